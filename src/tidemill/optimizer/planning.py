"""Planning: the settings that decide on how a query is computed.

None of it changes an answer. A checkpoint is made for one planning, since state is found by what
the operators are.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from tidemill.optimizer.constants import DEFAULTS
from tidemill.optimizer.physical.limit_delay import DEFAULT_DELAY
from tidemill.optimizer.physical.techniques import Technique

if TYPE_CHECKING:
    from tidemill.optimizer.constants import Constants
    from tidemill.optimizer.logical.rules import Negation

__all__ = ["PLANNING", "Joins", "Open", "Planning", "Spread"]


class Joins(Enum):
    """How more than two inputs are joined."""

    BINARY = "binary"
    MULTIWAY = "multiway"


class Spread(Enum):
    """Where rows go that are remembered, or looked at together."""

    KEYS = "keys"
    ONE = "one"


class Open(Enum):
    """What can be left open, to be chosen for each query by what it is expected to cost."""

    TECHNIQUE = "technique"
    NEGATION = "negation"
    JOINS = "joins"
    SPREAD = "spread"


@dataclass(frozen=True, slots=True)
class Planning:
    """How queries are planned.

    Attributes:
        optimized: Whether plans are rewritten.
        max_delay: How far what does not change may lie behind the watermark, in microseconds;
            ``None`` for ever.
        technique: What decides on the form of each edge.
        joins: Whether joins of joins remember intermediate results.
        negation: Where anti-joins stand, beside joins.
        spread: Whether rows go to all partitions by their keys, or to one.
        lazy: At multiples of how many microseconds joins of many inputs are evaluated, where the
            ends of rows are known; 0 for at once.
        adaptive: Whether joins of joins can change their trees while they run, where rows do not
            have to move for it.
        left_open: What is chosen for each query; the setting itself says what is usual.
        cpu_limit: How many microseconds of work a second of the streams may take.
        memory_limit: How many bytes of state there may be.
        constants: What the work of operators costs.
    """

    optimized: bool = True
    max_delay: int | None = DEFAULT_DELAY
    technique: Technique = Technique.PATTERN
    joins: Joins = Joins.BINARY
    negation: Negation = "written"
    spread: Spread = Spread.KEYS
    lazy: int = 0
    adaptive: bool = False
    left_open: frozenset[Open] = frozenset()
    cpu_limit: float | None = None
    memory_limit: float | None = None
    constants: Constants = DEFAULTS

    def facts(self) -> dict[str, int | str | None]:
        """What a checkpoint is made for.

        Constants and limits are no part of it: queries run on with the plans that were chosen for
        others.
        """
        chosen: dict[str, int | str | None] = {
            "optimize": int(self.optimized),
            "max_delay": self.max_delay,
            "technique": self.technique.value,
            "joins": self.joins.value,
            "negation": self.negation,
            "spread": self.spread.value,
            "lazy": self.lazy,
        }
        if self.adaptive:
            chosen["adaptive"] = 1
        return chosen | {one.value: "auto" for one in self.left_open}


PLANNING = Planning(left_open=frozenset(Open))
"""The defaults."""
