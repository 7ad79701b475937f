"""Random query texts over ``world.py``: valid by construction, every clause of the language.

``Queries`` writes texts and is told by ``choose`` what to write, so that the same code serves every
family of tests; a family is one of its methods. A query comes with its columns, and can so stand in
FROM, beside another in a set operation, or under a window.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from oracle.expressions import Choose, Column, Expressions
from oracle.sources import ROW_WINDOWS, Select, Sources
from oracle.subqueries import SIGNS, Subqueries
from oracle.templates import APPROXIMATE, TYPES
from oracle.world import SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hypothesis.strategies import DrawFn, SearchStrategy

    from oracle.sources import Item

__all__ = ["FAMILIES", "Queries", "queries"]

COMPATIBLE = {
    "BIGINT": ("BIGINT", "INTEGER", "DOUBLE", "DECIMAL"),
    "INTEGER": ("INTEGER", "BIGINT", "DECIMAL"),
    "DOUBLE": ("DOUBLE", "DECIMAL", "BIGINT"),
    "DECIMAL": ("DECIMAL", "DOUBLE", "INTEGER"),
    "DATE": ("DATE", "TIMESTAMP"),
    "TIMESTAMP": ("TIMESTAMP", "DATE"),
    "VARCHAR": ("VARCHAR",),
    "BOOLEAN": ("BOOLEAN",),
}
_COLUMN = re.compile(r"\bt\d+\.")
WIDER = ("INTEGER", "BIGINT", "DECIMAL", "DOUBLE", "DATE", "TIMESTAMP")


@dataclass(slots=True)
class Queries:
    """Writes queries; ``choose`` makes every choice."""

    choose: Choose
    sources: Sources = field(init=False)
    inside: Subqueries = field(init=False)

    def __post_init__(self) -> None:
        self.sources = Sources(self.choose)
        self.inside = Subqueries(
            self.choose, self.sources, lambda type_: self.set_operation(1, [type_]).text
        )

    # Families

    def projections(self) -> str:
        """Every function, over rows."""
        text, columns = self.sources.item(self.choose("aabc"))
        write = Expressions(self.choose, columns)
        items = [write.scalar(type_, 3) for type_ in self.some(TYPES, 3)]
        items += [write.filled(self.choose(APPROXIMATE), 1) for _ in self.choose(("", ".", ".."))]
        distinct = self.choose(("", "", "DISTINCT ")) if len(items) == 3 else ""
        return f"SELECT {distinct}{', '.join(items)} FROM {text}"

    def filters(self) -> str:
        """WHERE with three-valued logic."""
        text, columns = self.sources.item(self.choose("abcrpvw"))
        condition = Expressions(self.choose, columns).scalar("BOOLEAN", 4)
        return f"SELECT {self.choose(('*', 'DISTINCT k', 'k'))} FROM {text} WHERE {condition}"

    def joins(self) -> str:
        """Joins of every kind, and mixes of them."""
        text, columns = self.from_(int(self.choose("2234")))
        write = Expressions(self.choose, columns)
        where = f" WHERE {write.scalar('BOOLEAN', 2)}" if self.choose.one_in(2) else ""
        items = self.listed(write, 3) if self.choose.one_in(2) else "*"
        return f"SELECT {items} FROM {text}{where}"

    def aggregates(self) -> str:
        """Grouping and aggregates."""
        return self.grouped(approximate=True).text

    def set_operations(self) -> str:
        """UNION, EXCEPT and INTERSECT, of types that convert."""
        return self.set_operation(int(self.choose("123"))).text

    def subqueries(self) -> str:
        """Subqueries as conditions and as values."""
        return self.with_subqueries(2).text

    def windows_over_queries(self) -> str:
        """Windows over subqueries, views and names of WITH."""
        if self.choose.one_in(3):
            return self.in_order()
        query = self.query(2)
        if self.choose.one_in(3):
            item, columns = self.sources.over(query, name="q")
            items = self.listed(Expressions(self.choose, columns), 2)
            return f"WITH q AS ({query.text}) SELECT {items} FROM {item}"
        item, _ = (
            self.sources.item(self.choose("vw"))
            if self.choose.one_in(3)
            else self.sources.over(query)
        )
        return f"SELECT * FROM {item}"

    def in_order(self) -> str:
        """ROWS over a query that only filters and projects, and so keeps the order of elements."""
        alias, outer = self.sources.alias(), self.sources.alias()
        name = self.choose("abcv")
        columns = tuple(Column(f"{alias}.{c}", type_) for c, type_ in SOURCES[name].columns.items())
        write = Expressions(self.choose, columns)
        now = self.choose(("", " [NOW]", " [RANGE 1]"))
        where = f" WHERE {write.scalar('BOOLEAN', 2)}" if self.choose.one_in(2) else ""
        query = (
            f"SELECT {alias}.k AS k, {self.listed(write, 1)} AS c0 FROM {name} {alias}{now}{where}"
        )
        if self.choose.one_in(2):
            query = f"SELECT c0 AS k, k AS c0 FROM ({query}) q"
        frame = (
            f"{self.choose(('', 'PARTITION BY k ', 'PARTITION BY c0 '))}{self.choose(ROW_WINDOWS)}"
        )
        return f"SELECT * FROM ({query}) [{frame}] {outer}"

    def everything(self) -> str:
        """All of it."""
        query = self.query(3).text
        kind = self.choose(("", "", "ISTREAM", "DSTREAM", "RSTREAM"))
        return f"{kind}({query})" if kind else query

    # Queries with known columns

    def query(self, depth: int) -> Select:
        """A query of any kind whose columns have names of their own."""
        kinds = ("plain", "grouped", "plain", "set", "sub")
        match self.choose(kinds if depth else kinds[:3]):
            case "grouped":
                return self.grouped()
            case "set":
                return self.set_operation(1)
            case "sub":
                return self.with_subqueries(depth - 1)
            case _:
                return self.plain(depth)

    def plain(self, depth: int, types: Sequence[str] = ()) -> Select:
        """A block without aggregates; ``types`` are those of its columns."""
        text, columns = self.from_(int(self.choose("112")), depth)
        write = Expressions(self.choose, columns)
        wanted = types or self.some(write.types(), int(self.choose("23")))
        named = [self.named(write.scalar(t, 1), t, n) for n, t in enumerate(wanted)]
        where = f" WHERE {write.scalar('BOOLEAN', 2)}" if self.choose.one_in(2) else ""
        distinct = self.choose(("", "", "DISTINCT "))
        items = ", ".join(item for item, _ in named)
        return Select(f"SELECT {distinct}{items} FROM {text}{where}", tuple(c for _, c in named))

    def grouped(self, types: Sequence[str] = (), *, approximate: bool = False) -> Select:
        """A block with aggregates."""
        text, columns = self.from_(int(self.choose("112")))
        write = Expressions(self.choose, columns)
        keys = [] if types else self.some(write.types(), int(self.choose("0112")))
        grouped = [write.scalar(t, int(self.choose("02"))) for t in keys]
        named = [self.named(e, t, n) for n, (e, t) in enumerate(zip(grouped, keys, strict=True))]
        by = [
            self.choose((str(number), column.text, e, e) if _COLUMN.search(e) else (str(number),))
            for number, (e, (_, column)) in enumerate(zip(grouped, named, strict=True), start=1)
        ]
        for number, type_ in enumerate(types or self.some(write.types(), 2), start=len(keys)):
            aggregate = write.aggregate(type_, 1)
            if type_ in ("BIGINT", "INTEGER", "DECIMAL") and self.choose.one_in(3):
                aggregate = f"{aggregate} + 1"
            named.append(self.named(aggregate, type_, number))
        items = [item for item, _ in named]
        if approximate and self.choose.one_in(2):
            items.append(write.aggregate("APPROXIMATE", 1))
        where = f" WHERE {write.scalar('BOOLEAN', 2)}" if self.choose.one_in(3) else ""
        group = f" GROUP BY {', '.join(by)}" if by else ""
        having = self.having(write) if self.choose.one_in(3) else ""
        distinct = "DISTINCT " if not approximate and self.choose.one_in(4) else ""
        text = f"SELECT {distinct}{', '.join(items)} FROM {text}{where}{group}{having}"
        return Select(text, tuple(column for _, column in named))

    def having(self, write: Expressions) -> str:
        """HAVING, with a subquery by chance."""
        type_ = self.choose(("BIGINT", "DOUBLE", "VARCHAR"))
        left, sign = write.aggregate(type_, 1), self.choose(SIGNS)
        match self.choose(("constant", "or", "scalar", "any", "in", "exists")):
            case "scalar":
                condition = f"{left} {sign} ({self.inside.inner(type_, 'scalar')})"
            case "any":
                word = self.choose(("ANY", "ALL"))
                condition = f"{left} {sign} {word} ({self.inside.inner(type_)})"
            case "in":
                word = self.choose(("IN", "NOT IN"))
                condition = f"{left} {word} ({self.inside.inner(type_)}) OR COUNT(*) > 1"
            case "exists":
                condition = f"{self.choose(('', 'NOT '))}EXISTS ({self.inside.inner(type_)})"
            case "or":
                condition = f"{left} {sign} {Expressions(self.choose).leaf(type_)} OR COUNT(*) > 1"
            case _:
                condition = f"{left} {sign} {Expressions(self.choose).leaf(type_)}"
        return f" HAVING {condition}"

    def set_operation(self, operations: int, wanted: Sequence[str] = ()) -> Select:
        """Blocks put together."""
        types = list(wanted or self.some(TYPES, int(self.choose("12"))))
        first = self.operand(types)
        text = first.text
        for _ in range(operations):
            others = [self.choose(COMPATIBLE[type_]) for type_ in types]
            word = self.choose(("UNION", "EXCEPT", "INTERSECT"))
            every = self.choose(("", " ALL"))
            right = self.operand(others).text
            right = f"({right})" if self.choose.one_in(2) else right
            text = f"({text}) {word}{every} {right}"
            types = [max(a, b, key=_width) for a, b in zip(types, others, strict=True)]
        columns = [Column(c.text, t) for c, t in zip(first.columns, types, strict=True)]
        return Select(text, tuple(columns))

    def operand(self, types: Sequence[str]) -> Select:
        return self.grouped(types) if self.choose.one_in(3) else self.plain(0, types)

    def with_subqueries(self, depth: int) -> Select:
        """A block with subqueries in WHERE and SELECT."""
        text, columns = self.from_(int(self.choose("112")))
        write = Expressions(self.choose, columns)
        types = self.some(write.types(), 2)
        named = [self.named(write.scalar(t, 1), t, n) for n, t in enumerate(types)]
        if self.choose.one_in(2):
            type_, value = self.inside.value(columns)
            named.append(self.named(value, type_, len(named)))
        parts = [self.inside.condition(columns, depth) for _ in self.choose((".", ".", ".."))]
        if self.choose.one_in(3):
            parts.append(write.scalar("BOOLEAN", 2))
        items = ", ".join(item for item, _ in named)
        text = f"SELECT {items} FROM {text} WHERE {' AND '.join(parts)}"
        return Select(text, tuple(column for _, column in named))

    def from_(self, count: int, depth: int = 0) -> Item:
        """FROM items joined in every way; the first is a subquery by chance if it may be deep."""
        if depth and self.choose.one_in(2):
            return self.sources.joined(count, self.sources.over(self.query(depth - 1)))
        return self.sources.joined(count, self.sources.any())

    # Small parts

    def some(self, options: Sequence[str], count: int) -> list[str]:
        return [self.choose(options) for _ in range(count)]

    def named(self, expr: str, type_: str, number: int) -> tuple[str, Column]:
        name = f"c{number}"
        return f"{expr} AS {name}", Column(name, type_)

    def listed(self, write: Expressions, count: int) -> str:
        return ", ".join(write.scalar(type_, 1) for type_ in self.some(write.types(), count))


def _width(type_: str) -> int:
    return WIDER.index(type_) if type_ in WIDER else 0


FAMILIES: dict[str, Callable[[Queries], str]] = {
    "projections": Queries.projections,
    "filters": Queries.filters,
    "joins": Queries.joins,
    "aggregates": Queries.aggregates,
    "set operations": Queries.set_operations,
    "subqueries": Queries.subqueries,
    "windows over queries": Queries.windows_over_queries,
    "everything": Queries.everything,
}


def queries(family: str) -> SearchStrategy[str]:
    """Texts of one family."""
    return _queries(FAMILIES[family])


@st.composite
def _queries(draw: DrawFn, write: Callable[[Queries], str]) -> str:
    return write(Queries(Choose(lambda count: draw(st.integers(0, count - 1)))))
