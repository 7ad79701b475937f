"""Push a filter below a semi-join or an anti-join, to the left side.

    Filter p                 SemiJoin on a = b
      SemiJoin on a = b ->     Filter p
        left (a)                 left (a)
        right (b)              right (b)

Condition: none; the answer has the columns of the left side, under their names.
Equal because both operators keep all copies of a left row or none, and which of them depends on
that row and the right side alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.plan import AntiJoin, Filter, SemiJoin
from tidemill.algebra.tree import with_children

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["push_filter_through_semi_join"]


def push_filter_through_semi_join(plan: Plan, _context: Context) -> Plan | None:
    """The join above the filter."""
    match plan:
        case Filter((SemiJoin() | AntiJoin()) as join, predicate):
            return with_children(join, (Filter(join.left, predicate), join.right))
        case _:
            return None
