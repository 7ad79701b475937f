"""Replace what can be computed now by its value.

    Filter a > 1 + 1 AND TRUE   ->   Filter a > 2
      input                            input

Condition: none, for every operator with expressions:

    f(constants)                    its value, by the reference
    f(x, NULL)                      NULL, if f is strict
    x AND TRUE, x OR FALSE          x
    x AND FALSE                     FALSE
    x OR TRUE                       TRUE
    CASE WHEN FALSE or NULL THEN …  without the branch
    CASE WHEN TRUE THEN x …         ELSE x, without the branches behind

Equal because each replacement has the value of what it replaces in three-valued logic, for every x,
NULL too, and the same type; expressions have no effects and raise no errors.
``x AND NULL`` stays: it is FALSE or NULL. Texts that are longer than ``LONGEST`` stay calls, and so
do patterns: the reference may take for ever to find them. The engine computes them once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidemill.algebra.evaluate import evaluate
from tidemill.algebra.expr import (
    FALSE,
    TRUE,
    Call,
    Case,
    Cast,
    Expr,
    Literal,
    Named,
    expr_children,
    transform_expr,
)
from tidemill.algebra.functions import STRICT
from tidemill.algebra.functions.text import PATTERNS, grown_length
from tidemill.algebra.plan import (
    Aggregate,
    AntiJoin,
    Filter,
    Join,
    NamedAggregate,
    Project,
    SemiJoin,
)
from tidemill.optimizer.logical.predicates import with_condition

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["fold_constants", "folded"]

LONGEST = 1000
"""The longest text that is written into a plan."""


def fold_constants(plan: Plan, _context: Context) -> Plan | None:
    """The operator with its expressions simplified."""
    new: Plan
    match plan:
        case Filter(source, predicate):
            new = Filter(source, folded(predicate))
        case Project(source, columns):
            new = Project(source, tuple(Named(c.name, folded(c.expr)) for c in columns))
        case Aggregate(source, keys, aggregates):
            by = tuple(Named(key.name, folded(key.expr)) for key in keys)
            new = Aggregate(source, by, tuple(map(_folded_aggregate, aggregates)))
        case Join() | SemiJoin() | AntiJoin():
            new = with_condition(plan, plan.left, plan.right, folded(plan.condition))
        case _:
            return None
    return None if new == plan else new


def _folded_aggregate(aggregate: NamedAggregate) -> NamedAggregate:
    call = aggregate.call
    parts = (call.argument, call.condition)
    argument, condition = (None if part is None else folded(part) for part in parts)
    return NamedAggregate(aggregate.name, replace(call, argument=argument, condition=condition))


def folded(expr: Expr) -> Expr:
    """The expression with what can be computed now in the place of what says how."""
    return transform_expr(expr, _simpler)


def _simpler(expr: Expr) -> Expr | None:
    """What the expression is, its parts being as simple as they can be."""
    found: Expr | None
    match expr:
        case Case():
            found = _without_dead_branches(expr)
        case Call("and", (left, right)) if {left, right} & {TRUE, FALSE}:
            found = FALSE if FALSE in (left, right) else left if right == TRUE else right
        case Call("or", (left, right)) if {left, right} & {TRUE, FALSE}:
            found = TRUE if TRUE in (left, right) else left if right == FALSE else right
        case Call() | Cast():
            found = _value(expr)
        case _:
            return None
    return found if found is not None and found.type == expr.type else None


def _value(expr: Call | Cast) -> Literal | None:
    parts = expr_children(expr)
    constants = [part for part in parts if isinstance(part, Literal)]
    is_strict = isinstance(expr, Cast) or expr.function in STRICT
    if is_strict and any(part.value is None for part in constants):
        return Literal(None, expr.type)
    if len(constants) < len(parts) or not _is_quick(expr, constants):
        return None
    value = evaluate(expr, {})
    return None if isinstance(value, str) and len(value) > LONGEST else Literal(value, expr.type)


def _is_quick(expr: Call | Cast, constants: list[Literal]) -> bool:
    """Whether the reference computes it in little time and memory."""
    if isinstance(expr, Cast):
        return True
    values = [part.value for part in constants]
    return expr.function not in PATTERNS and grown_length(expr.function, values) <= LONGEST


def _without_dead_branches(expr: Case) -> Expr:
    branches: list[tuple[Expr, Expr]] = []
    otherwise = expr.otherwise
    for condition, value in expr.branches:
        if condition == TRUE:
            otherwise = value
            break
        if not isinstance(condition, Literal):
            branches.append((condition, value))
    return Case(tuple(branches), otherwise, expr.type) if branches else otherwise
