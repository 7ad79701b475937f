"""Planning: the settings for experts, which decide how queries are computed.

None of them changes an answer. What they mean is described in docs/reference/language.md; what
becomes of them, in ``optimizer/planning.py``.

>>> Planning(technique="direct") == Planning(technique="pattern", joins="binary")
False
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tidemill.errors import PlanError, suggestion
from tidemill.optimizer import planning as optimizer
from tidemill.optimizer.constants import DEFAULTS, Constants, read_constants
from tidemill.optimizer.logical.rules import PATTERN_RULES
from tidemill.optimizer.physical.techniques import Technique

if TYPE_CHECKING:
    from tidemill.optimizer.logical.rules import Negation

__all__ = ["CHOICES", "SETTINGS", "Planning", "is_duration"]

AUTO = "auto"
"""Chosen for each query by what it is expected to cost."""

CHOICES = {
    "technique": (AUTO, *(known.value for known in Technique)),
    "joins": (AUTO, *(known.value for known in optimizer.Joins)),
    "negation": (AUTO, *PATTERN_RULES),
    "spread": (AUTO, *(known.value for known in optimizer.Spread)),
}
"""What can be chosen, setting by setting."""

_WORDS = {
    "technique": "technique",
    "joins": "kind of joins",
    "negation": "place of negation",
    "spread": "spread",
}
_MICROSECONDS = 1_000_000


def is_duration(value: object) -> bool:
    """Whether a value is a number of seconds, not negative.

    >>> [is_duration(value) for value in (0, 1.5, -1, math.inf, math.nan, "5", True, None)]
    [True, True, False, False, False, False, False, False]
    """
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return is_number and 0 <= cast("float", value) < math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning:
    """How queries are computed; the answers are the same.

    Attributes:
        optimize: Whether plans are rewritten before they run.
        max_delay: For how long, in seconds of the streams' time, a result that does not change may
            be held back from the operators above it; ``None`` for ever.
        technique: How plans represent the expiry of rows: ``"direct"``, every row knows its end;
            ``"negative"``, a row that expires is withdrawn by a message; ``"hybrid"``, messages
            above joins; ``"pattern"``, messages where the end is not known in advance;
            ``"auto"``, as ``"pattern"`` but for queries that cost less without and answer as soon.
        joins: Whether joins of joins remember intermediate results: ``"binary"`` ones do,
            ``"multiway"`` ones compute them again; ``"auto"``, what costs least and keeps to the
            limits of the session.
        negation: Where NOT EXISTS and NOT IN are computed: ``"written"``, where the query has
            them; ``"pulled"`` above joins, so that these know the ends of their rows; ``"pushed"``
            below joins, so that these have fewer rows; ``"auto"``, where it costs least.
        spread: Whether rows go to all partitions by their ``"keys"``, or those of a query to
            ``"one"``; ``"auto"``, to one if few come.
        lazy: With ``joins="multiway"``, every how many seconds of the streams' time what has come
            is joined; 0 for at once. The answers are the same, but later.
        constants: The file with what the work of operators costs on this machine, which ``tidemill
            calibrate`` writes; ``None`` for what it costs where this version was made.

    Raises:
        PlanError: There is no such choice, a time is negative, or two settings exclude each other.
    """

    optimize: bool = True
    max_delay: float | None = 60
    technique: str = AUTO
    joins: str = AUTO
    negation: str = AUTO
    spread: str = AUTO
    lazy: float = 0
    constants: str | Path | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.optimize, bool):
            raise PlanError("optimize must be True or False", hint="write optimize=True")
        for setting, known in CHOICES.items():
            given = getattr(self, setting)
            if given not in known:
                hint = suggestion(str(given), known, what="choices")
                raise PlanError(f'there is no {_WORDS[setting]} "{given}"', hint=hint)
        if self.max_delay is not None and not is_duration(self.max_delay):
            raise PlanError(
                "max_delay must be a number of seconds, not negative",
                hint="write max_delay=60, or max_delay=None for ever",
            )
        if not is_duration(self.lazy):
            raise PlanError("lazy must be a number of seconds, not negative", hint="write lazy=0")
        if self.lazy and self.joins != optimizer.Joins.MULTIWAY.value:
            raise PlanError("only joins of many inputs can be lazy", hint='write joins="multiway"')
        if not isinstance(self.constants, str | Path | None):
            raise PlanError(
                "constants must be the path of a file", hint='write constants="constants.json"'
            )
        if self.negation not in (AUTO, "written") and not self.optimize:
            raise PlanError(
                "negation is moved by the optimizer",
                hint='write negation="written", or optimize=True',
            )

    def for_optimizer(self) -> optimizer.Planning:
        """The same for the optimizer, which counts in microseconds.

        Raises:
            PlanError: The file with the constants cannot be read, or holds none.
        """
        delay, usual = self.max_delay, optimizer.Planning()
        return optimizer.Planning(
            optimized=self.optimize,
            max_delay=None if delay is None else round(delay * _MICROSECONDS),
            technique=usual.technique if self.technique == AUTO else Technique(self.technique),
            joins=usual.joins if self.joins == AUTO else optimizer.Joins(self.joins),
            negation=usual.negation if self.negation == AUTO else cast("Negation", self.negation),
            spread=usual.spread if self.spread == AUTO else optimizer.Spread(self.spread),
            lazy=round(self.lazy * _MICROSECONDS),
            left_open=frozenset(one for one in optimizer.Open if getattr(self, one.value) == AUTO),
            constants=_constants(self.constants),
        )


def _constants(file: str | Path | None) -> Constants:
    if file is None:
        return DEFAULTS
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise PlanError(
            f'the constants of the cost model cannot be read from "{file}": {why}',
            hint="tidemill calibrate --output FILE writes such a file",
        ) from None
    return read_constants(text, f'"{file}"')


SETTINGS = tuple(field.name for field in fields(Planning))
"""The names of the settings, as ``connect`` and the command line have them."""
