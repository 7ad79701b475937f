"""The joins of FROM: a tree of its items, and the plan it becomes once all conditions are known.

Conditions of WHERE that compare several items become join conditions where only inner joins are in
between (σ_θ(×) = ⋈_θ, K30).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from tidemill.algebra.expr import Column, Expr, conjunction, used_columns
from tidemill.algebra.plan import Join, JoinKind, Plan
from tidemill.binder.scope import ScopeColumn

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["Item", "Joined", "Tree", "build"]


@dataclass(frozen=True, slots=True)
class Item:
    """One FROM item: its plan, what it is called, and what its columns are called in the query."""

    plan: Plan
    alias: str | None
    table: str | None
    node: exp.Expr
    names: tuple[str, ...] = ()

    def columns(self) -> tuple[ScopeColumn, ...]:
        """The columns people can name."""
        return tuple(
            ScopeColumn(self.alias, self.table, field_.name, Column(name, field_.type))
            for field_, name in zip(self.plan.schema, self.names, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Joined:
    """Two parts of FROM and how they are joined."""

    left: Tree
    right: Tree
    kind: JoinKind
    condition: Expr
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", self.left.names + self.right.names)


Tree: TypeAlias = Item | Joined


def build(tree: Tree, pool: list[Expr]) -> Plan:
    """The plan of a part of FROM; takes from the pool the conditions it can apply."""
    if isinstance(tree, Item):
        return tree.plan
    inner = tree.kind is JoinKind.INNER
    left = build(tree.left, pool if inner else [])
    right = build(tree.right, pool if inner else [])
    condition = tree.condition
    if inner:
        here = [part for part in pool if _joins(part, tree)]
        pool[:] = [part for part in pool if not any(part is other for other in here)]
        condition = conjunction(condition, *here)
    return Join(left, right, tree.kind, condition, tree.names)


def _joins(part: Expr, tree: Joined) -> bool:
    used = used_columns(part)
    return (
        used <= set(tree.names)
        and not used.isdisjoint(tree.left.names)
        and not used.isdisjoint(tree.right.names)
    )
