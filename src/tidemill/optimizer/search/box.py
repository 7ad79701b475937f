"""A box for a search: how long it may look for better plans (Z33).

It is counted in steps of probing that are priced, of which a plan of many inputs has more. So a
search that is repeated ends where it did before, on any machine. A clock can only end it earlier;
then the choice says so, as another search may choose another plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Box"]


@dataclass(slots=True)
class Box:
    """How long is searched.

    Attributes:
        most: So many steps are priced.
        stop: Asked now and then whether to end earlier.
        steps: How many steps were priced.
        ended_by: What has ended the search; empty as long as nothing has.

    >>> box = Box(most=10)
    >>> box.steps += 12
    >>> box.is_over, box.ended_by
    (True, '10 steps')
    """

    most: float = inf
    stop: Callable[[], bool] | None = None
    steps: int = 0
    ended_by: str = ""

    @property
    def is_over(self) -> bool:
        """Whether the search ends here."""
        if not self.ended_by:
            if self.steps >= self.most:
                self.ended_by = f"{self.most:,} steps"
            elif self.stop is not None and self.stop():
                self.ended_by = "a clock"
        return bool(self.ended_by)
