"""Liveness: no operator holds back for long what does not change.

The answer to an unchanged question is a segment that is still open, and an operator emits a segment
when it has ended. An operator that waits for it, such as a join, would wait and remember for ever.
With a limit on the delay, a segment that has been open for longer is emitted up to the watermark,
and goes on from there. Snapshots are the same; only the cuts between elements are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.physical.operator import with_delay
from tidemill.physical.plan import Apply, PhysicalPlan, rebuilt

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DEFAULT_DELAY", "limit_delay"]

DEFAULT_DELAY = 60_000_000
"""A minute, in microseconds."""


def limit_delay(
    plan: PhysicalPlan, max_delay: int | None
) -> tuple[PhysicalPlan, Mapping[str, str]]:
    """The plan with operators that hold nothing back for longer.

    Returns:
        The plan, and for each part of the given one the part that stands in its place, by
        fingerprint.
    """

    def limited(part: PhysicalPlan) -> PhysicalPlan:
        if isinstance(part, Apply) and part.traits.delays:
            return Apply(with_delay(part.operator, max_delay), part.inputs, part.epoch)
        return part

    return rebuilt(plan, limited)
