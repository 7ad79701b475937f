"""Drop a semi-join that every row passes, or that has been made already.

    SemiJoin on a = a_2              Filter a IS NOT NULL
      Filter p                 ->      Filter p
        input                            input
      Project a
        input

    SemiJoin on C                    SemiJoin on C
      SemiJoin on C            ->      left
        left                           right
        right
      right

Condition: in the first case the left side is the right one or filters it, a project of columns
above the right side left aside, and the condition equates each column that it reads with itself.
An anti-join in its place keeps the rows with a NULL in one of these columns. In the second case
both joins have the same condition. Equal sides are found where they are one part of the plan.
Equal because a row finds itself on the right, unless it has a NULL there, which equals nothing; and
because a row that has found a partner once finds it again. ROWS windows above go on counting in the
order of values.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from tidemill.algebra.expr import FALSE, Call, Column, Expr, conjuncts
from tidemill.algebra.plan import AntiJoin, Filter, Project, SemiJoin
from tidemill.model.types import BOOLEAN
from tidemill.optimizer.logical.empty import as_derived
from tidemill.optimizer.logical.predicates import filtered, renamed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["drop_redundant_semi_join"]


def drop_redundant_semi_join(plan: Plan, _context: Context) -> Plan | None:
    """The left side, without the rows that find no partner."""
    match plan:
        case SemiJoin(SemiJoin(_, right) as first, again) if right is again:
            return first if _condition(first) == _condition(plan) else None
        case SemiJoin() | AntiJoin():
            columns = _compared_with_themselves(plan)
        case _:
            return None
    if columns is None:
        return None
    missing = [Call("is_null", (column,), BOOLEAN) for column in columns]
    if isinstance(plan, SemiJoin):
        there = [Call("not", (part,), BOOLEAN) for part in missing]
        return filtered(as_derived(plan.left), there)
    return Filter(as_derived(plan.left), reduce(_either, missing, FALSE))


def _condition(plan: SemiJoin) -> tuple[Expr, ...]:
    """The condition in names that do not depend on how the join calls its columns."""
    names = (*(f"left{i}" for i in range(len(plan.left.schema))),)
    names += (*(f"right{i}" for i in range(len(plan.right.schema))),)
    return renamed(conjuncts(plan.condition), plan.names, names)


def _either(one: Expr, other: Expr) -> Expr:
    return other if one == FALSE else Call("or", (one, other), BOOLEAN)


def _compared_with_themselves(plan: SemiJoin | AntiJoin) -> list[Column] | None:
    """The left columns that a join of rows with themselves compares; ``None`` if it is none."""
    left, right = plan.left, plan.right
    origins = {name: name for name in right.schema.names}
    if isinstance(right, Project):
        origins = {c.name: c.expr.name for c in right.columns if isinstance(c.expr, Column)}
        right = right.input
    if left is not right and not (isinstance(left, Filter) and left.input is right):
        return None
    width = len(plan.left.schema)
    lefts = dict(zip(plan.names[:width], plan.left.schema.names, strict=True))
    rights = dict(zip(plan.names[width:], plan.right.schema.names, strict=True))
    columns: list[Column] = []
    for part in conjuncts(plan.condition):
        column = _column(part, lefts, rights, origins)
        if column is None:
            return None
        columns.append(column)
    return columns


def _column(
    part: Expr, lefts: Mapping[str, str], rights: Mapping[str, str], origins: Mapping[str, str]
) -> Column | None:
    """The left column, in its own name, that a condition equates with itself."""
    match part:
        case Call("=", (Column(one, type_), Column(other))):
            if one in rights:
                one, other = other, one
            if one not in lefts or other not in rights:
                return None
            same = origins.get(rights[other]) == lefts[one]
            return Column(lefts[one], type_) if same else None
        case _:
            return None
