"""Share a condition on a column with the column that a join equates with it.

    Join on a = b               Join on a = b
      Filter a > 5        ->      Filter a > 5
        left (a)                    left (a)
      right (b)                   Filter b > 5
                                    right (b)

Condition: the join equates two columns of one type, a filter somewhere on one side reads this
column only, and the filter is not known to hold on the other side (``known.py``). Rows of the
other side must be lost if they have no partner:

    kind        from the left   from the right
    inner       yes             yes
    left        yes             no
    right       no              yes
    full        no              no
    semi-join   yes             yes
    anti-join   yes             no

Equal because all rows of the one side meet the condition, so a row of the other side that does not
is equal to none of them, and without a partner it gives nothing. DOUBLE is left out: equal numbers
need not be the same (0 and -0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from tidemill.algebra.expr import Call, Column, Expr, conjuncts, replace_columns, used_columns
from tidemill.algebra.plan import AntiJoin, Join, JoinKind, SemiJoin
from tidemill.algebra.tree import with_children
from tidemill.model.types import DOUBLE
from tidemill.optimizer.logical.known import conditions, holds
from tidemill.optimizer.logical.predicates import filtered

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["share_condition_across_join"]

_Pair: TypeAlias = tuple[Column, Column]


def share_condition_across_join(plan: Plan, _context: Context) -> Plan | None:
    """The join above filters that say of one side what is known of the other."""
    match plan:
        case Join(kind=kind):
            to_right = kind in (JoinKind.INNER, JoinKind.LEFT)
            to_left = kind in (JoinKind.INNER, JoinKind.RIGHT)
        case SemiJoin() | AntiJoin():
            to_right, to_left = True, isinstance(plan, SemiJoin)
        case _:
            return None
    pairs = _equated(plan)
    rights = _shared(plan.left, plan.right, pairs) if to_right else ()
    backwards = [(right, left) for left, right in pairs]
    lefts = _shared(plan.right, plan.left, backwards) if to_left else ()
    if not (lefts or rights):
        return None
    return with_children(plan, (filtered(plan.left, lefts), filtered(plan.right, rights)))


def _equated(plan: Join | SemiJoin | AntiJoin) -> list[_Pair]:
    """The columns that must be equal, in the names of the left and of the right side."""
    width = len(plan.left.schema)
    lefts = dict(zip(plan.names[:width], plan.left.schema.names, strict=True))
    rights = dict(zip(plan.names[width:], plan.right.schema.names, strict=True))
    found: list[_Pair] = []
    for part in conjuncts(plan.condition):
        match part:
            case Call("=", (Column() as one, Column() as other)) if (
                one.type == other.type != DOUBLE
            ):
                if one.name in rights:
                    one, other = other, one
                if one.name in lefts and other.name in rights:
                    left = Column(lefts[one.name], one.type)
                    found.append((left, Column(rights[other.name], other.type)))
            case _:
                pass
    return found


def _shared(known: Plan, side: Plan, pairs: Iterable[_Pair]) -> tuple[Expr, ...]:
    """What is known of the one side and can be said of the other, and is not known of it."""
    told = [
        _said_of(part, other)
        for one, other in pairs
        for part in conditions(known)
        if used_columns(part) == {one.name}
    ]
    return tuple(part for part in dict.fromkeys(told) if not holds(side, part))


def _said_of(part: Expr, column: Column) -> Expr:
    """A condition on one column as one on another."""
    return replace_columns(part, lambda _: column)
