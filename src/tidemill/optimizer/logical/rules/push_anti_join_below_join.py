"""Push an anti-join below a join (negation push-down, G-24).

    AntiJoin on a = b              Join inner on a = c
      Join inner on a = c   ->       AntiJoin on a = b
        left (a)                       left (a)
        other (c)                      right (b)
      right (b)                      other (c)

Condition: the join is inner, and what the anti-join's condition reads of it comes from one side.
If it reads nothing of it, the left side is as good as the other.
Equal for the reason that ``pull_anti_join_through_join`` gives, whose inverse it is.

The join gets fewer rows, but it is no longer known when these end (STRICT). So it is not
among the rules that are always applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.expr import used_columns
from tidemill.algebra.plan import AntiJoin, Join, JoinKind

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["push_anti_join_below_join"]


def push_anti_join_below_join(plan: Plan, _context: Context) -> Plan | None:
    """The join above the anti-join."""
    match plan:
        case AntiJoin(Join(one, other, JoinKind.INNER, on, joined), right, condition, names):
            pass
        case _:
            return None
    width = len(one.schema)
    of_one, of_other, of_right = names[:width], names[width : len(joined)], names[len(joined) :]
    read = used_columns(condition)
    if read.isdisjoint(of_other):
        one = AntiJoin(one, right, condition, (*of_one, *of_right))
    elif read.isdisjoint(of_one):
        other = AntiJoin(other, right, condition, (*of_other, *of_right))
    else:
        return None
    return Join(one, other, JoinKind.INNER, on, joined)
