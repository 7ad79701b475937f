"""Folding: expressions with what can be computed now in the place of what says how.

Which those are, and why they are equal, is said in ``rules/fold_constants.py``.
"""

from __future__ import annotations

from tidemill.algebra.evaluate import evaluate
from tidemill.algebra.expr import (
    FALSE,
    TRUE,
    Call,
    Case,
    Cast,
    Expr,
    Literal,
    expr_children,
    transform_expr,
)
from tidemill.algebra.functions import STRICT
from tidemill.algebra.functions.text import PATTERNS, grown_length

__all__ = ["folded"]

LONGEST = 1000
"""The longest text that is written into a plan."""


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
    if is_strict and any(part.is_null for part in constants):
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
