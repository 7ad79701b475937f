"""Push the parts of a filter below a join, or into its condition.

    Filter p(l) AND q(r) AND c(l, r)        Join inner on l = r AND c(l, r)
      Join inner on l = r               ->    Filter p(l)
        left (l)                                left (l)
        right (r)                             Filter q(r)
                                                right (r)

Condition, for each part of the conjunction, by what it reads:

    kind     left only    right only    both
    inner    left         right         condition
    left     left         stays         stays
    right    stays        right         stays
    full     stays        stays         stays

Equal because a part that reads one side is true for all pairs a row of that side is in, or for
none. An outer join gives each row of the side it preserves at least once, matched or filled with
NULLs, and the part says the same of both; so it may look at these rows before the join. Rows of
the other side must not be taken away before: their partners would come out filled with NULLs, and
the part may be true of NULLs, or not. For the same reason nothing can become a condition of an
outer join. A full join preserves both sides, so each side is the other side of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.expr import conjunction, conjuncts, used_columns
from tidemill.algebra.plan import Filter, Join, JoinKind
from tidemill.optimizer.logical.predicates import filtered, parted, renamed

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["push_filter_through_join"]


def push_filter_through_join(plan: Plan, _context: Context) -> Plan | None:
    """The join above filters of its inputs."""
    match plan:
        case Filter(Join(left, right, kind, condition, names), predicate):
            pass
        case _:
            return None
    left_names, right_names = names[: len(left.schema)], names[len(left.schema) :]
    left_passes = kind in (JoinKind.INNER, JoinKind.LEFT)
    right_passes = kind in (JoinKind.INNER, JoinKind.RIGHT)
    of_left, rest = parted(
        conjuncts(predicate), lambda part: left_passes and used_columns(part) <= {*left_names}
    )
    of_right, rest = parted(
        rest, lambda part: right_passes and used_columns(part) <= {*right_names}
    )
    of_both, above = parted(rest, lambda _: kind is JoinKind.INNER)
    if not (of_left or of_right or of_both):
        return None
    joined = Join(
        filtered(left, renamed(of_left, left_names, left.schema.names)),
        filtered(right, renamed(of_right, right_names, right.schema.names)),
        kind,
        conjunction(condition, *of_both),
        names,
    )
    return filtered(joined, above)
