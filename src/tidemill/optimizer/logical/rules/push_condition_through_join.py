"""Push the parts of a join's condition that read one input below the join.

    Join left on l = r AND q(r)        Join left on l = r
      left (l)                    ->     left (l)
      right (r)                          Filter q(r)
                                           right (r)

Condition, for each part of the conjunction, by what it reads:

    kind        left only    right only
    inner       left         right
    left        stays        right
    right       left         stays
    full        stays        stays
    semi-join   left         right
    anti-join   stays        right

Equal because a row for which such a part is not true has no partner, and without a partner it
gives nothing: so it may be taken away, unless it is preserved just because it has no partner (the
left side of a left join or an anti-join, the right side of a right join, both of a full one).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.expr import conjunction, conjuncts, used_columns
from tidemill.algebra.plan import AntiJoin, Join, JoinKind, SemiJoin
from tidemill.optimizer.logical.predicates import filtered, parted, renamed, with_condition

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["push_condition_through_join"]


def push_condition_through_join(plan: Plan, _context: Context) -> Plan | None:
    """The join with what is left of its condition, above filters of its inputs."""
    if not isinstance(plan, Join | SemiJoin | AntiJoin):
        return None
    width = len(plan.left.schema)
    left_names, right_names = plan.names[:width], plan.names[width:]
    left_passes, right_passes = _sides(plan)
    of_left, rest = parted(
        conjuncts(plan.condition), lambda part: left_passes and used_columns(part) <= {*left_names}
    )
    of_right, rest = parted(
        rest, lambda part: right_passes and used_columns(part) <= {*right_names}
    )
    if not (of_left or of_right):
        return None
    left = filtered(plan.left, renamed(of_left, left_names, plan.left.schema.names))
    right = filtered(plan.right, renamed(of_right, right_names, plan.right.schema.names))
    return with_condition(plan, left, right, conjunction(*rest))


def _sides(plan: Join | SemiJoin | AntiJoin) -> tuple[bool, bool]:
    """Whether rows without a partner are lost, on the left and on the right."""
    match plan:
        case Join(kind=kind):
            return (
                kind in (JoinKind.INNER, JoinKind.RIGHT),
                kind in (JoinKind.INNER, JoinKind.LEFT),
            )
        case SemiJoin():
            return True, True
        case AntiJoin():
            return False, True
