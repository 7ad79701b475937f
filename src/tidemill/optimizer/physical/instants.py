"""Instants: whether the elements that leave a part of a physical plan are valid for one instant.

A window counts elements, so two equal rows at neighbouring instants must be two elements, not one
that is valid for both. Streams bring instants, and operators on single elements, and joins of
intervals, keep them. A sweep, and a converter from signs to intervals, makes one element of what
stays equal from one instant to the next: behind it a window needs a split.

This is asked of the physical plan, because the logical one does not say which form a join has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from tidemill.physical.plan import Apply, Exchange, Input

if TYPE_CHECKING:
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["Instants"]


@dataclass(frozen=True, slots=True)
class Instants:
    """Which parts of plans give instants; each part is looked at once.

    Attributes:
        relations: The inputs that are relations, whose rows stay.
    """

    relations: frozenset[str]
    _known: dict[str, bool] = field(default_factory=dict, repr=False, compare=False)

    def come_from(self, part: PhysicalPlan) -> bool:
        """Whether every row of a snapshot of a part, in interval form, is an element by itself."""
        if part.fingerprint not in self._known:
            self._known[part.fingerprint] = self._are_kept_by(part)
        return self._known[part.fingerprint]

    def _are_kept_by(self, part: PhysicalPlan) -> bool:
        match part:
            case Input(name):
                return name not in self.relations
            case Exchange(below):
                return self.come_from(below)
            case Apply(_, below):
                return part.traits.instants.of(map(self.come_from, below))
            case _:
                assert_never(part)
