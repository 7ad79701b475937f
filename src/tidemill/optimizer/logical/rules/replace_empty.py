"""Replace a plan that can have no rows by one that is known to have none.

    Aggregate count(*)          Project NULL AS …
      Join on a = b       ->      Filter FALSE
        Filter FALSE                first
          first
        second

Condition: an input without which there is no row is empty (``empty.py``), or the predicate of a
filter is FALSE or NULL:

    one input                                   that input
    inner join, semi-join, intersection         either
    left join, anti-join, both differences      the left
    right join                                  the right
    full join, union, max-union                 both

Equal because each of these operators makes its rows of rows of such an input. An aggregate without
keys gives no row for no rows either (K29), and a window has what its input has had.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.plan import (
    AntiJoin,
    Difference,
    Intersect,
    Join,
    JoinKind,
    MaxUnion,
    SemiJoin,
    StrictDifference,
    Union,
)
from tidemill.algebra.tree import children
from tidemill.optimizer.logical.empty import empty_like, is_empty, is_never

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["replace_empty"]


def replace_empty(plan: Plan, _context: Context) -> Plan | None:
    """The plan that has no rows, in the way such plans are written."""
    if is_empty(plan) or not (is_never(plan) or _has_no_rows(plan)):
        return None
    return empty_like(plan)


def _has_no_rows(plan: Plan) -> bool:
    match plan:
        case Join(left, right, JoinKind.INNER) | SemiJoin(left, right) | Intersect(left, right):
            return is_empty(left) or is_empty(right)
        case Join(left, _, JoinKind.LEFT) | AntiJoin(left):
            return is_empty(left)
        case Difference(left) | StrictDifference(left):
            return is_empty(left)
        case Join(_, right, JoinKind.RIGHT):
            return is_empty(right)
        case Join() | Union() | MaxUnion():
            return is_empty(plan.left) and is_empty(plan.right)
        case _:
            return any(map(is_empty, children(plan)))
