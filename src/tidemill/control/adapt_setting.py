"""Whether plans follow what is measured, and how often it is looked."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final

import polars as pl

from tidemill.engine.adapting import Adapting
from tidemill.errors import PlanError, suggestion
from tidemill.lang.statements import Adapt

if TYPE_CHECKING:
    from tidemill.control.admission import SessionLimits

__all__ = ["ADAPT", "ADAPT_EVERY", "NO_ADAPTING", "AdaptSetting", "adapt_setting"]

ADAPT: Final = tuple(adapt.value.lower() for adapt in Adapt)
"""What can be chosen."""

ADAPT_EVERY: Final = 16
"""After so many batches it is looked for better plans, unless something else is asked for."""


_QUOTA: Final = 0.01
"""Which share of the work of joins looks may take then."""


@dataclass(frozen=True, slots=True)
class AdaptSetting:
    """Whether and how plans follow what is measured.

    Attributes:
        adapt: Whether they do.
        every: After how many batches it is looked for a better one.
        memory: How many bytes of state there may be.
    """

    adapt: Adapt = Adapt.OFF
    every: int = ADAPT_EVERY
    memory: float = inf

    @property
    def engine(self) -> Adapting | None:
        """The same for partitions; ``None`` if nothing adapts."""
        if self.adapt is Adapt.OFF:
            return None
        # Who wants to look more often has that work done, too.
        quota = _QUOTA * ADAPT_EVERY / self.every
        return Adapting(self.every, self.adapt is Adapt.ON, quota, self.memory)

    def frame(self) -> pl.DataFrame:
        """The settings as SHOW SETTINGS has them."""
        rows = [
            ("adapt", self.adapt.value.lower(), "whether plans follow what is measured"),
            ("adapt_every", str(self.every), "after how many batches it is looked for better ones"),
        ]
        names = ("name", "value", "description")
        return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


NO_ADAPTING: Final = AdaptSetting()
"""Plans stay as they are."""


def adapt_setting(adapt: object, every: object, limits: SessionLimits) -> AdaptSetting:
    """The setting that ``connect`` is given.

    Raises:
        PlanError: There is no such choice, or the number is none.
    """
    if not isinstance(adapt, str) or adapt not in ADAPT:
        hint = suggestion(str(adapt), ADAPT, what="choices")
        raise PlanError(f'adapt cannot be "{adapt}"', hint=hint)
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise PlanError("adapt_every must be at least 1", hint=f"write adapt_every={ADAPT_EVERY}")
    memory = inf if limits.memory is None else limits.memory
    return AdaptSetting(Adapt(adapt.upper()), every, memory)
