"""Which streams carry their elements' ids, and so the order in which ROWS windows count.

The elements of a registered stream are ordered by (time, id); Filter and Project keep that order,
whatever they do to the values. Everywhere else rows of one instant are ordered by their values,
column by column (``algebra/snapshot.py``). A rewrite below a ROWS window must therefore keep the
kind of its input, and where the order is by values, all its columns in their places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.plan import Filter, Project, Source

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan

__all__ = ["carries_ids"]


def carries_ids(plan: Plan) -> bool:
    """Whether the plan only filters and projects a registered stream."""
    while isinstance(plan, Filter | Project):
        plan = plan.input
    return isinstance(plan, Source)
