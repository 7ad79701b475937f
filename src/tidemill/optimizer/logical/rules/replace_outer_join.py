"""Replace an outer join whose filled rows are filtered out.

    Filter b > 3                     Filter b > 3
      Join left on a = c        ->     Join inner on a = c
        left (a)                         left (a)
        right (b, c)                     right (b, c)

Condition: a part of the filter is FALSE or NULL if all columns of one side are NULL, whatever the
other side is. Then rows are not filled with NULLs on that side:

    right columns   left becomes inner, full becomes right
    left columns    right becomes inner, full becomes left

Equal because the rows that an outer join adds to the pairs have nothing but NULLs on one side, so
the filter takes them away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemill.algebra.expr import (
    TRUE,
    Column,
    Expr,
    Literal,
    conjuncts,
    replace_columns,
    used_columns,
)
from tidemill.algebra.plan import Filter, Join, JoinKind
from tidemill.optimizer.logical.folding import folded

if TYPE_CHECKING:
    from collections.abc import Collection

    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["replace_outer_join"]

_RIGHT_IS_THERE: Final = {JoinKind.LEFT: JoinKind.INNER, JoinKind.FULL: JoinKind.RIGHT}
_LEFT_IS_THERE: Final = {JoinKind.RIGHT: JoinKind.INNER, JoinKind.FULL: JoinKind.LEFT}


def replace_outer_join(plan: Plan, _context: Context) -> Plan | None:
    """The filter above a join that keeps fewer rows without a partner."""
    match plan:
        case Filter(Join(left, right, kind, condition, names), predicate):
            pass
        case _:
            return None
    width, needed = len(left.schema), kind
    for part in conjuncts(predicate):
        if needed in _RIGHT_IS_THERE and _refuses_nulls(part, names[width:]):
            needed = _RIGHT_IS_THERE[needed]
        if needed in _LEFT_IS_THERE and _refuses_nulls(part, names[:width]):
            needed = _LEFT_IS_THERE[needed]
    if needed is kind:
        return None
    return Filter(Join(left, right, needed, condition, names), predicate)


def _refuses_nulls(part: Expr, names: Collection[str]) -> bool:
    """Whether a condition is not true of any row in which these columns are NULL."""
    if used_columns(part).isdisjoint(names):
        return False
    filled = folded(replace_columns(part, lambda c: _null(c) if c.name in names else c))
    return isinstance(filled, Literal) and filled != TRUE


def _null(column: Column) -> Literal:
    return Literal(None, column.type)
