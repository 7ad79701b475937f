"""Scopes: which columns a name can mean at one place of a query.

A scope maps what people write (``price``, ``b.price``) to expressions over the columns of the plan
built so far. Inside a subquery, a name the inner scope does not know is looked for in the enclosing
one; such a column is marked as an outer one until the subquery is joined to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidemill.algebra.expr import Call, Column, Expr, replace_columns, used_columns
from tidemill.errors import BindError, suggestion
from tidemill.lang.spans import span_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlglot import exp

__all__ = [
    "Scope",
    "ScopeColumn",
    "correlation",
    "fresh_name",
    "has_outer",
    "mark_outer",
    "resolve_outer",
]

_OUTER = "\0"
"""What marks a column of the enclosing query; no name in a text can contain it."""


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """A column people can name.

    Attributes:
        qualifier: The alias of the FROM item it belongs to; ``None`` for a column merged by USING.
        table: The name of the stream behind the alias, which may be used in its place.
        name: The name of the column.
        expr: Its value.
        merged: Whether USING has merged it, so that only its qualified name still means it.
    """

    qualifier: str | None
    table: str | None
    name: str
    expr: Expr
    merged: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """The columns in sight, and those of the enclosing query behind them.

    Attributes:
        columns: The columns of this query.
        outer: The enclosing query, where this place can refer to it.
        unseen: The enclosing query, where this place cannot.
    """

    columns: tuple[ScopeColumn, ...]
    outer: Scope | None = None
    unseen: Scope | None = None

    def resolve(self, node: exp.Column) -> Expr:
        """The value a column reference means.

        Raises:
            BindError: No column has that name, or several have.
        """
        return self.lookup(node).expr

    def lookup(self, node: exp.Column) -> ScopeColumn:
        """The column a reference means.

        Raises:
            BindError: No column has that name, or several have.
        """
        found = self._matching(node, by_table=False) or self._outer(node, by_table=False)
        if not found:
            # A stream's own name may be used although the item has an alias (K erratum E16), if
            # only one item in sight, here or in the enclosing query, reads that stream.
            found = self._matching(node, by_table=True) + self._outer(node, by_table=True)
        if len(found) == 1:
            return found[0]
        raise _ambiguous(node, found) if found else self._unknown(node)

    def _outer(self, node: exp.Column, *, by_table: bool) -> list[ScopeColumn]:
        if self.outer is None:
            return []
        found = self.outer._matching(node, by_table=by_table)  # noqa: SLF001 — the same class
        return [replace(column, expr=mark_outer(column.expr)) for column in found]

    def star(self, qualifier: str | None = None) -> list[ScopeColumn]:
        """The columns ``*`` or ``qualifier.*`` stands for, in order."""
        if qualifier is None:
            return [column for column in self.columns if not column.merged]
        return self._of(qualifier)

    def qualifiers(self) -> list[str]:
        """The aliases in sight, in order."""
        return list(dict.fromkeys(c.qualifier for c in self.columns if c.qualifier is not None))

    def _of_alias(self, alias: str) -> list[ScopeColumn]:
        return [c for c in self.columns if c.qualifier and c.qualifier.lower() == alias.lower()]

    def _of_table(self, table: str) -> list[ScopeColumn]:
        found = [c for c in self.columns if c.table and c.table.lower() == table.lower()]
        return found if len({c.qualifier for c in found}) == 1 else []

    def _of(self, qualifier: str) -> list[ScopeColumn]:
        return self._of_alias(qualifier) or self._of_table(qualifier)

    def _matching(self, node: exp.Column, *, by_table: bool) -> list[ScopeColumn]:
        if not node.table:
            among = self.star()
        elif by_table:
            among = self._of_table(node.table)
        else:
            among = self._of_alias(node.table)
        return [c for c in among if c.name.lower() == node.name.lower()]

    def _unknown(self, node: exp.Column) -> BindError:
        qualifier = node.table
        beyond = self.unseen
        if self.outer is not None:
            beyond = self.outer.outer or self.outer.unseen
        if beyond is not None and beyond._matching(node, by_table=False):  # noqa: SLF001
            return BindError(
                f'"{node.name}" belongs to an outer query, which cannot be seen from here',
                span=span_of(node),
                hint="the WHERE clause of a subquery can refer to the query it stands in",
            )
        if qualifier and not self._of(qualifier):
            return BindError(
                f'there is no "{qualifier}" in FROM',
                span=span_of(node),
                hint=suggestion(qualifier, self.qualifiers(), what="items of FROM"),
            )
        among = self._of(qualifier) if qualifier else list(self.columns)
        names = list(dict.fromkeys(column.name for column in among))
        where = f' in "{qualifier}"' if qualifier else ""
        return BindError(
            f'column "{node.name}" does not exist{where}',
            span=span_of(node),
            hint=suggestion(node.name, names),
        )


def mark_outer(expr: Expr) -> Expr:
    """The expression with its columns marked as belonging to the enclosing query."""
    return replace_columns(expr, lambda column: Column(_OUTER + column.name, column.type))


def resolve_outer(expr: Expr, inner: dict[str, str]) -> Expr:
    """The expression in the names of a join: outer marks taken off, inner columns renamed."""

    def renamed(column: Column) -> Expr:
        if column.name.startswith(_OUTER):
            return Column(column.name.removeprefix(_OUTER), column.type)
        return Column(inner[column.name], column.type)

    return replace_columns(expr, renamed)


def has_outer(expr: Expr) -> bool:
    """Whether the expression reads a column of the enclosing query."""
    return any(name.startswith(_OUTER) for name in used_columns(expr))


def _only_outer(expr: Expr) -> bool:
    """Whether the expression reads columns of the enclosing query and no others."""
    used = used_columns(expr)
    return bool(used) and all(name.startswith(_OUTER) for name in used)


def correlation(part: Expr) -> tuple[Expr, Expr] | None:
    """The outer and the inner side of a condition outer = inner."""
    match part:
        case Call("=", (a, b)) if _only_outer(a) and not has_outer(b):
            return a, b
        case Call("=", (a, b)) if _only_outer(b) and not has_outer(a):
            return b, a
        case _:
            return None


def fresh_name(name: str, taken: Iterable[str], *, alias: str | None = None) -> str:
    """A free column name: the name itself, else with the alias, else with a number."""
    used = {other.lower() for other in taken}

    def candidates() -> Iterator[str]:
        yield name
        if alias is not None:
            yield f"{alias}.{name}"
        number = 1
        while True:
            yield f"{name}_{number}"
            number += 1

    return next(candidate for candidate in candidates() if candidate.lower() not in used)


def _ambiguous(node: exp.Column, found: list[ScopeColumn]) -> BindError:
    owners = [f"{c.qualifier}.{c.name}" for c in found if c.qualifier is not None]
    return BindError(
        f'column "{node.name}" is ambiguous',
        span=span_of(node),
        hint=f"write {' or '.join(owners)}" if owners else "give the columns different names",
    )
