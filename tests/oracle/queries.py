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

from oracle.expressions import APPROXIMATE, TYPES, Column, Expressions
from oracle.world import SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hypothesis.strategies import DrawFn, SearchStrategy

__all__ = ["FAMILIES", "Queries", "queries"]

TIME_WINDOWS = (
    "RANGE 4",
    "RANGE 5",
    "RANGE 4 SLIDE 2",
    "RANGE 6 SLIDE 3",
    "RANGE UNBOUNDED",
    "NOW",
)
ROW_WINDOWS = ("ROWS 2", "ROWS 4", "ROWS 3 SLIDE 2", "ROWS UNBOUNDED", "ROWS 1")
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
WIDER = ("INTEGER", "BIGINT", "DECIMAL", "DOUBLE", "DATE", "TIMESTAMP")
JOINS = ("JOIN", "INNER JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL OUTER JOIN", ",", "CROSS JOIN")
_STREAMS = re.compile(r"\b(RANGE|ROWS|NOW|[IDR]STREAM)\b")
SIGNS = ("=", "<>", "<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class Select:
    """The text of a query, and what its columns are called."""

    text: str
    columns: tuple[Column, ...]


@dataclass(slots=True)
class Queries:
    """Writes queries; ``choose`` makes every choice."""

    choose: Callable[[Sequence[str]], str]
    _aliases: int = field(default=0)

    # Families

    def projections(self) -> str:
        """Every function, over rows."""
        text, columns = self.item(self.choose("aabc"))
        write = Expressions(self.choose, columns)
        items = [write.scalar(type_, 3) for type_ in self.some(TYPES, 3)]
        items += [write.filled(self.choose(APPROXIMATE), 1) for _ in self.choose(("", ".", ".."))]
        distinct = self.choose(("", "", "DISTINCT ")) if len(items) == 3 else ""  # noqa: PLR2004
        return f"SELECT {distinct}{', '.join(items)} FROM {text}"

    def filters(self) -> str:
        """WHERE with three-valued logic."""
        text, columns = self.item(self.choose("abcrpvw"))
        condition = Expressions(self.choose, columns).scalar("BOOLEAN", 4)
        return f"SELECT {self.choose(('*', 'DISTINCT k', 'k'))} FROM {text} WHERE {condition}"

    def joins(self) -> str:
        """Joins of every kind, and mixes of them."""
        text, columns = self.from_(int(self.choose("2234")))
        write = Expressions(self.choose, columns)
        where = f" WHERE {write.scalar('BOOLEAN', 2)}" if self.choose("01") == "1" else ""
        items = "*" if self.choose("012") == "0" else self.listed(write, 3)
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
        if self.choose("012") == "0":
            return self.in_order()
        query = self.query(2)
        if self.choose("012") == "0":
            item, columns = self.over(query, name="q")
            items = self.listed(Expressions(self.choose, columns), 2)
            return f"WITH q AS ({query.text}) SELECT {items} FROM {item}"
        item, _ = self.item(self.choose("vw")) if self.choose("012") == "0" else self.over(query)
        return f"SELECT * FROM {item}"

    def in_order(self) -> str:
        """ROWS over a query that only filters and projects, and so keeps the order of elements."""
        alias, outer = self.alias(), self.alias()
        name = self.choose("abcv")
        columns = tuple(Column(f"{alias}.{c}", type_) for c, type_ in SOURCES[name].columns.items())
        write = Expressions(self.choose, columns)
        now = self.choose(("", " [NOW]", " [RANGE 1]"))
        where = f" WHERE {write.scalar('BOOLEAN', 2)}" if self.choose("01") == "1" else ""
        query = (
            f"SELECT {alias}.k AS k, {self.listed(write, 1)} AS c0 FROM {name} {alias}{now}{where}"
        )
        if self.choose("01") == "1":
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
        where = f" WHERE {write.scalar('BOOLEAN', 2)}" if self.choose("01") == "1" else ""
        distinct = self.choose(("", "", "DISTINCT "))
        items = ", ".join(item for item, _ in named)
        return Select(f"SELECT {distinct}{items} FROM {text}{where}", tuple(c for _, c in named))

    def grouped(self, types: Sequence[str] = (), *, approximate: bool = False) -> Select:
        """A block with aggregates."""
        text, columns = self.from_(int(self.choose("112")))
        write = Expressions(self.choose, columns)
        keys = [] if types else self.some(write.types(), int(self.choose("0112")))
        grouped = [write.leaf(t) if self.choose("01") == "0" else write.scalar(t, 2) for t in keys]
        named = [self.named(e, t, n) for n, (e, t) in enumerate(zip(grouped, keys, strict=True))]
        by = [
            self.choose((str(n + 1), column.text, e, e))
            for n, (e, (_, column)) in enumerate(zip(grouped, named, strict=True))
        ]
        by = [str(n + 1) if _is_constant(e) else e for n, e in enumerate(by)]
        for number, type_ in enumerate(types or self.some(write.types(), 2), start=len(keys)):
            aggregate = write.aggregate(type_, 1)
            if type_ in ("BIGINT", "INTEGER", "DECIMAL") and self.choose("012") == "0":
                aggregate = f"{aggregate} + 1"
            named.append(self.named(aggregate, type_, number))
        items = [item for item, _ in named]
        if approximate and self.choose("01") == "0":
            items.append(write.aggregate("APPROXIMATE", 1))
        where = f" WHERE {write.scalar('BOOLEAN', 2)}" if self.choose("012") == "0" else ""
        group = f" GROUP BY {', '.join(by)}" if by else ""
        having = self.having(write) if self.choose("012") == "0" else ""
        distinct = "DISTINCT " if not approximate and self.choose("0123") == "0" else ""
        text = f"SELECT {distinct}{', '.join(items)} FROM {text}{where}{group}{having}"
        return Select(text, tuple(column for _, column in named))

    def having(self, write: Expressions) -> str:
        """HAVING, with a subquery by chance."""
        type_ = self.choose(("BIGINT", "DOUBLE", "VARCHAR"))
        left, sign = write.aggregate(type_, 1), self.choose(SIGNS)
        rows, constant = self.inner(type_), Expressions(self.choose).leaf(type_)
        condition = self.choose(
            (
                f"{left} {sign} ({self.inner(type_, 'scalar')})",
                f"{left} {sign} {self.choose(('ANY', 'ALL'))} ({rows})",
                f"{left} {self.choose(('IN', 'NOT IN'))} ({rows}) OR COUNT(*) > 1",
                f"{self.choose(('', 'NOT '))}EXISTS ({rows})",
                f"{left} {sign} {constant} OR COUNT(*) > 1",
                f"{left} {sign} {constant}",
            )
        )
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
            right = f"({right})" if self.choose("01") == "0" else right
            text = f"({text}) {word}{every} {right}"
            types = [max(a, b, key=_width) for a, b in zip(types, others, strict=True)]
        columns = [Column(c.text, t) for c, t in zip(first.columns, types, strict=True)]
        return Select(text, tuple(columns))

    def operand(self, types: Sequence[str]) -> Select:
        return self.plain(0, types) if self.choose("012") != "0" else self.grouped(types)

    def with_subqueries(self, depth: int) -> Select:
        """A block with subqueries in WHERE and SELECT."""
        text, columns = self.from_(int(self.choose("112")))
        write = Expressions(self.choose, columns)
        types = self.some(write.types(), 2)
        named = [self.named(write.scalar(t, 1), t, n) for n, t in enumerate(types)]
        if self.choose("01") == "0":
            type_, value = self.value(columns)
            named.append(self.named(value, type_, len(named)))
        parts = [self.condition(columns, depth) for _ in self.choose((".", ".", ".."))]
        if self.choose("012") == "0":
            parts.append(write.scalar("BOOLEAN", 2))
        items = ", ".join(item for item, _ in named)
        text = f"SELECT {items} FROM {text} WHERE {' AND '.join(parts)}"
        return Select(text, tuple(column for _, column in named))

    # Subqueries in expressions

    def condition(self, columns: Sequence[Column], depth: int) -> str:
        """A condition of WHERE with a subquery in it."""
        write = Expressions(self.choose, tuple(columns))
        type_ = self.choose(write.types())
        match self.choose(("exists", "in", "any", "scalar", "or", "case", "not", "row")):
            case "exists":
                inner = self.inner(type_, outer=columns, depth=depth, free=True)
                return f"{self.choose(('', 'NOT '))}EXISTS ({inner})"
            case "in":
                inner = self.inner(type_, outer=columns, depth=depth, free=True)
                return f"{write.scalar(type_, 1)} {self.choose(('IN', 'NOT IN'))} ({inner})"
            case "any":
                inner = self.inner(type_, outer=columns, depth=depth, free=True)
                word = self.choose(("ANY", "ALL", "SOME"))
                return f"{write.scalar(type_, 1)} {self.choose(SIGNS)} {word} ({inner})"
            case "scalar":
                inner = self.inner(type_, "scalar", outer=columns, depth=depth)
                sides = [write.scalar(type_, 1), f"({inner})"]
                sides = sides[::-1] if self.choose("01") == "0" else sides
                return f"{sides[0]} {self.choose(SIGNS)} {sides[1]}"
            case "or":
                return f"({self.truth(columns)} OR {write.scalar('BOOLEAN', 1)})"
            case "case":
                value = write.scalar("BOOLEAN", 1)
                return (
                    f"CASE WHEN {self.truth(columns)} THEN {value} ELSE {self.truth(columns)} END"
                )
            case "row":
                text, others = self.item(self.choose("abcrpvw"))
                left, right = self.choose_pairs(columns, others)
                word = self.choose(("IN", "NOT IN"))
                return f"({left}) {word} (SELECT {right} FROM {text})"
            case _:
                return f"NOT {self.truth(columns)}"

    def choose_pairs(self, left: Sequence[Column], right: Sequence[Column]) -> tuple[str, str]:
        """Two columns of each side with the same types, or constants where there are none."""
        pairs = [f"{a.text} {b.text}" for a in left for b in right if a.type == b.type] or ["1 1"]
        chosen = [self.choose(pairs).split() for _ in range(2)]
        return ", ".join(pair[0] for pair in chosen), ", ".join(pair[1] for pair in chosen)

    def truth(self, columns: Sequence[Column]) -> str:
        """A subquery as a BOOLEAN value."""
        write = Expressions(self.choose, tuple(columns))
        type_ = self.choose(write.types())
        left, inner = write.scalar(type_, 1), self.inner(type_, outer=columns)
        match self.choose(("exists", "in", "any", "scalar")):
            case "exists":
                return f"({self.choose(('', 'NOT '))}EXISTS ({inner}))"
            case "in":
                return f"({left} {self.choose(('IN', 'NOT IN'))} ({inner}))"
            case "any":
                return f"({left} {self.choose(SIGNS)} {self.choose(('ANY', 'ALL'))} ({inner}))"
            case _:
                inner = self.inner(type_, "scalar", outer=columns)
                return f"({left} {self.choose(SIGNS)} ({inner}))"

    def value(self, columns: Sequence[Column]) -> tuple[str, str]:
        """A subquery in the SELECT list, with its type."""
        if self.choose("01") == "0":
            return "BOOLEAN", self.truth(columns)
        type_ = self.choose(TYPES)
        inner = f"({self.inner(type_, 'scalar', outer=columns)})"
        other = Expressions(self.choose, tuple(columns)).scalar(type_, 1)
        return type_, self.choose((inner, f"COALESCE({inner}, {other})"))

    def inner(
        self,
        type_: str,
        kind: str = "rows",
        *,
        outer: Sequence[Column] = (),
        depth: int = 0,
        free: bool = False,
    ) -> str:
        """A subquery of one column, correlated by chance; by inequalities too if it is ``free``."""
        if kind == "rows" and self.choose("01234") == "0":
            return self.set_operation(1, [type_]).text
        text, columns = self.item(self.choose("abcrpvw"))
        write = Expressions(self.choose, columns)
        grouped = kind == "scalar" or self.choose("012345") == "0"
        item = write.aggregate(type_, 1) if grouped else write.scalar(type_, 1)
        parts = []
        if outer and self.choose("01") == "0":
            sign = self.choose(("=", *SIGNS)) if free and not grouped else "="
            parts += self.compared(outer, columns, sign)
        if self.choose("01") == "0":
            parts.append(write.scalar("BOOLEAN", 1))
        if depth and self.choose("01") == "0":
            parts.append(self.condition(columns, depth - 1))
        where = f" WHERE {' AND '.join(parts)}" if parts else ""
        group = f" GROUP BY {columns[1].text}" if grouped and kind == "rows" else ""
        distinct = self.choose(("", "", "DISTINCT ")) if not grouped else ""
        return f"SELECT {distinct}{item} FROM {text}{where}{group}"

    def compared(self, left: Sequence[Column], right: Sequence[Column], sign: str) -> list[str]:
        """Two columns of the same type compared, if there are any."""
        pairs = [f"{a.text} {sign} {b.text}" for a in left for b in right if a.type == b.type]
        return [self.choose(pairs)] if pairs else []

    # FROM

    def from_(self, count: int, depth: int = 0) -> tuple[str, tuple[Column, ...]]:
        """FROM items joined in every way."""
        text, columns = self.source(depth)
        near = columns  # what ON can see: JOIN binds tighter than a comma
        for _ in range(count - 1):
            joined, others = self.source(0)
            match self.choose(JOINS):
                case ",":
                    text, near = f"{text}, {joined}", others
                case "CROSS JOIN":
                    text, near = f"{text} CROSS JOIN {joined}", (*near, *others)
                case join if self.usable(near, others) and self.choose("01") == "0":
                    text = f"{text} {join} {joined} USING (k)"
                    near = (*near, *others)
                case join:
                    text = f"{text} {join} {joined} ON {self.on(near, others)}"
                    near = (*near, *others)
            columns = (*columns, *others)
        return text, columns

    def on(self, left: Sequence[Column], right: Sequence[Column]) -> str:
        sign = self.choose(("=", "=", *SIGNS))
        condition = " AND ".join(self.compared(left, right, sign)) or "TRUE"
        if self.choose("012") == "0":
            write = Expressions(self.choose, (*left, *right))
            condition = f"{condition} {self.choose(('AND', 'OR'))} {write.scalar('BOOLEAN', 1)}"
        return condition

    def usable(self, left: Sequence[Column], right: Sequence[Column]) -> bool:
        """Whether both sides have one k that can be merged."""
        keys = [[c.type for c in side if c.text.endswith(".k")] for side in (left, right)]
        return all(len(types) == 1 for types in keys)

    def source(self, depth: int) -> tuple[str, tuple[Column, ...]]:
        """A stream, a relation or, if it may be deep, a subquery."""
        if depth and self.choose("01") == "0":
            return self.over(self.query(depth - 1))
        return self.item(self.choose("aabbcrpvw"))

    def item(self, name: str, alias: str | None = None) -> tuple[str, tuple[Column, ...]]:
        """A stream with a window, or a relation; under an alias."""
        source = SOURCES[name]
        alias = alias or self.alias()
        columns = tuple(
            Column(f"{alias}.{column}", type_, exact=type_ == "DOUBLE")
            for column, type_ in source.columns.items()
        )
        operator = self.choose((*[""] * 12, "ISTREAM", "DSTREAM", "RSTREAM"))
        text = f"{operator}({name})" if operator else name
        windows = source.windows or bool(operator)
        return self.windowed(text, alias, list(source.columns), windows), columns

    def over(self, query: Select, name: str = "") -> tuple[str, tuple[Column, ...]]:
        """A query in FROM, or its name: plain, under a window, or under a stream operator."""
        alias = self.alias()
        columns = tuple(Column(f"{alias}.{c.text}", c.type) for c in query.columns)
        names = [column.text for column in query.columns]
        operator = self.choose(("", "", "", "ISTREAM", "DSTREAM", "RSTREAM"))
        text = name if name and not operator else f"{operator}({name or query.text})"
        # What reads relations only is a relation, and takes no window.
        streams = bool(operator) or _STREAMS.search(query.text) is not None
        return self.windowed(text, alias, names, streams and self.choose("012") != "0"), columns

    def windowed(self, text: str, alias: str, names: Sequence[str], windows: bool) -> str:  # noqa: FBT001
        if not windows:
            return f"{text} {self.choose(('', 'AS '))}{alias}"
        frame = self.choose((*TIME_WINDOWS, *ROW_WINDOWS, ""))
        if not frame:
            return f"{text} {alias}"
        if frame.startswith("ROWS") and self.choose("01") == "0":
            frame = f"PARTITION BY {self.choose(names)} {frame}"
        window = self.choose((f"[{frame}]", f"WINDOW({frame})"))
        return self.choose((f"{text} {window} AS {alias}", f"{text} {alias} {window}"))

    # Small parts

    def alias(self) -> str:
        self._aliases += 1
        return f"t{self._aliases}"

    def some(self, options: Sequence[str], count: int) -> list[str]:
        return [self.choose(options) for _ in range(count)]

    def named(self, expr: str, type_: str, number: int) -> tuple[str, Column]:
        name = f"c{number}"
        return f"{expr} AS {name}", Column(name, type_)

    def listed(self, write: Expressions, count: int) -> str:
        return ", ".join(write.scalar(type_, 1) for type_ in self.some(write.types(), count))


def _is_constant(expr: str) -> bool:
    return "." not in expr.replace("0.", "").replace("1.", "").replace("2.", "") and expr[0] != "c"


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
    def choose(options: Sequence[str]) -> str:
        return options[draw(st.integers(0, len(options) - 1))]

    return write(Queries(choose))
