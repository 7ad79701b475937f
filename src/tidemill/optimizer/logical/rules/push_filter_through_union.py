"""Push a filter below a set operation, to both sides (10.5).

    Filter a > 1             Union
      Union           ->       Filter a > 1
        left (a)                 left (a)
        right (b)              Filter b > 1
                                 right (b)

Condition: the operator is Union, MaxUnion, Difference, StrictDifference or Intersect. Columns are
matched by their place; the right side may have other names.
Equal because how often a row is in the answer depends on how often the same row is on the left and
on the right: l + r, max(l, r), max(l - r, 0), l if r = 0, min(l, r). All are 0 where both are. The
filter keeps all copies of a row on both sides, or none. For the differences and the intersection
the left side would be enough; the right side has less to remember so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.expr import conjuncts
from tidemill.algebra.plan import (
    Difference,
    Filter,
    Intersect,
    MaxUnion,
    StrictDifference,
    Union,
)
from tidemill.algebra.tree import with_children
from tidemill.optimizer.logical.predicates import filtered, renamed

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["push_filter_through_union"]


def push_filter_through_union(plan: Plan, _context: Context) -> Plan | None:
    """The set operation above two filters."""
    match plan:
        case Filter(
            (Union() | MaxUnion() | Difference() | StrictDifference() | Intersect()) as operator,
            predicate,
        ):
            left, right = operator.left, operator.right
            parts = renamed(conjuncts(predicate), left.schema.names, right.schema.names)
            if not parts:
                return None
            return with_children(operator, (Filter(left, predicate), filtered(right, parts)))
        case _:
            return None
