"""Taking predicates apart, and saying them in the names of another operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.expr import Column, conjunction, replace_columns, walk_expr
from tidemill.algebra.plan import AntiJoin, Filter, Join, SemiJoin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tidemill.algebra.expr import Expr
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.context import Context

__all__ = ["filtered", "parted", "renamed", "substituted", "with_condition"]


def parted(
    parts: Iterable[Expr], passes: Callable[[Expr], bool]
) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """The parts that pass, and those that do not, both in their order."""
    every = tuple(parts)
    return tuple(p for p in every if passes(p)), tuple(p for p in every if not passes(p))


def filtered(plan: Plan, parts: Sequence[Expr]) -> Plan:
    """The rows of the plan for which all parts are true; the plan itself if there are none."""
    return Filter(plan, conjunction(*parts)) if parts else plan


def renamed(parts: Iterable[Expr], old: tuple[str, ...], new: tuple[str, ...]) -> tuple[Expr, ...]:
    """The parts with each column of ``old`` called as in the same place of ``new``."""
    names = dict(zip(old, new, strict=True))
    return tuple(
        replace_columns(part, lambda column: Column(names[column.name], column.type))
        for part in parts
    )


def substituted(expr: Expr, meaning: Mapping[str, Expr], context: Context) -> Expr | None:
    """The expression with what each column means in its place; ``None`` if it grows too large."""
    parts = list(walk_expr(expr))
    sizes = {name: sum(1 for _ in walk_expr(part)) for name, part in meaning.items()}
    size = sum(sizes[part.name] if isinstance(part, Column) else 1 for part in parts)
    if size > max(context.largest_expression, len(parts)):
        return None
    return replace_columns(expr, lambda column: meaning[column.name])


def with_condition(
    join: Join | SemiJoin | AntiJoin, left: Plan, right: Plan, condition: Expr
) -> Plan:
    """The same join of other inputs with the same columns, on another condition."""
    if isinstance(join, Join):
        return Join(left, right, join.kind, condition, join.names)
    return type(join)(left, right, condition, join.names)
