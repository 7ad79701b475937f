"""Places: the instant at which a part of a query is evaluated, and the names in sight there."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Place", "alias_of", "inside", "resolved", "with_tables"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a query is evaluated.

    Attributes:
        time: The instant.
        tables: The queries that WITH has named, and where they are evaluated.
        aliases: The aliases in sight.
        renamed: The aliases of streams that may be called by their own names.
        only: The one element of a base stream that is looked at, if it is one.
    """

    time: int
    tables: Mapping[str, tuple[exp.Expr, Place]] = field(default_factory=dict)
    aliases: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = field(default_factory=dict)
    only: int | None = None

    def at(self, time: int, only: int | None = None) -> Place:
        return replace(self, time=time, only=only)

    def of_item(self) -> Place:
        """A FROM item sees the names of WITH, but no columns."""
        return replace(self, aliases=frozenset(), renamed={})


def with_tables(node: exp.Expr, place: Place) -> Place:
    """The place inside of WITH; each of its queries sees the names before it."""
    with_ = node.args.get("with_")
    for table in with_.expressions if with_ is not None else ():
        tables = {**place.tables, table.alias.lower(): (table.this, place.of_item())}
        place = replace(place, tables=tables)
    return place


def inside(place: Place, items: Sequence[exp.Expr]) -> Place:
    """The place where the columns of these FROM items are in sight."""
    aliases = {alias.lower() for item in items if (alias := alias_of(item))}
    often = Counter(item.name.lower() for item in items)
    renamed = {item.name.lower(): alias_of(item) for item in items if often[item.name.lower()] == 1}
    return replace(place, aliases=place.aliases | aliases, renamed={**place.renamed, **renamed})


def alias_of(node: exp.Expr) -> str:
    alias = node.args.get("alias")
    return alias.name if alias is not None else node.name


def resolved(node: exp.Column, place: Place) -> exp.Column:
    qualifier = node.table.lower()
    if not qualifier or qualifier in place.aliases:
        return node.copy()
    return exp.Column(this=node.this.copy(), table=exp.to_identifier(place.renamed[qualifier]))
