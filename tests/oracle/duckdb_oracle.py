"""A second, independent statement of what a query means, with DuckDB as the relational part.

The oracle shares the parser with Tidemill and nothing else. To answer a query at an instant, every
FROM item becomes the table of what it contains at that instant, and DuckDB runs the SELECT that is
left. What windows contain is computed in ``contents.py``; a window over a query runs the query at
every instant first. Derived streams and names of WITH are written out as subqueries, functions as
their bodies. ISTREAM and DSTREAM are EXCEPT ALL of two instants.

One rule of Tidemill is added to the SQL: an aggregate over no rows at all gives no row.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import duckdb
from sqlglot import exp

from oracle.contents import Element, Inputs, Row, content, in_value_order, is_now
from oracle.translate import MACROS, aggregates, duckdb_type, rebuilt, translate
from tidemill.lang.parse import parse_query, parse_script
from tidemill.lang.statements import (
    ColumnDefinition,
    CreateDerivedStream,
    CreateFunction,
    CreateRelation,
    CreateStream,
)
from tidemill.lang.windows import StreamOperator, Windowed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Answer", "Oracle"]

Definition: TypeAlias = CreateStream | CreateRelation | CreateDerivedStream | CreateFunction


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of an answer in no order, and DuckDB's names for the types of its columns."""

    rows: list[Row]
    types: list[str]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a query is evaluated: the instant, the names of WITH, the FROM clauses around it."""

    time: int
    tables: Mapping[str, tuple[exp.Expr, _Place]] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    only: int | None = None  # the one element of base streams that is looked at


@dataclass(frozen=True, slots=True)
class _Stream:
    """A stream as a table of DuckDB, and its elements in the order in which ROWS counts them."""

    table: str
    columns: tuple[str, ...]
    elements: Sequence[Element]


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("PRAGMA disable_optimizer")  # small tables: planning is what takes time
    for macro in MACROS:
        connection.execute(macro)
    return connection


class Oracle:
    """Answers of queries over given definitions and finite inputs, up to the instant ``last``."""

    def __init__(self, definitions: str, inputs: Inputs, last: int) -> None:
        self._last = last
        self._inputs = inputs
        self._definitions: dict[str, Definition] = {}
        self._functions: dict[str, CreateFunction] = {}
        self._streams: dict[int | str, _Stream] = {}
        self._parsed: dict[str, exp.Expr] = {}
        for statement, _ in parse_script(definitions):
            assert isinstance(statement, Definition), "only CREATE"
            known = self._functions if isinstance(statement, CreateFunction) else self._definitions
            known[statement.name.text.lower()] = statement  # type: ignore[assignment]

    def snapshot(self, sql: str, time: int) -> Answer:
        """The answer at an instant."""
        if sql not in self._parsed:
            self._parsed[sql] = parse_query(sql)
        result = _connection().execute(self.text(self._parsed[sql], _Place(time)))
        types = [str(column[1]) for column in result.description or ()]
        return Answer(result.fetchall(), types)

    def text(self, node: exp.Expr, place: _Place) -> str:
        """What DuckDB is asked."""
        return self._query(node, place).sql(
            dialect="duckdb", identify=True, normalize_functions=False, comments=False
        )

    # Queries

    def _query(self, node: exp.Expr, place: _Place) -> exp.Query:
        with_ = node.args.get("with_")
        for table in with_.expressions if with_ is not None else ():
            named = {**place.tables, table.alias.lower(): (table.this, place)}
            place = replace(place, tables=named)
        match node:
            case exp.Select():
                return self._select(node, place)
            case exp.SetOperation():
                sides = self._query(node.this, place), self._query(node.expression, place)
                return _set_operation(type(node), *sides, distinct=bool(node.args["distinct"]))
            case exp.Subquery() | exp.Paren():
                return self._query(node.this, place)
            case StreamOperator():
                return self._stream_operator(node, place)
            case _:
                raise AssertionError(f"{type(node).__name__} is not a query")

    def _stream_operator(self, node: StreamOperator, place: _Place) -> exp.Query:
        operand, time = node.this, place.time
        now = self._source(operand, place)
        before = self._source(operand, replace(place, time=time - 1)) if time else None
        match node.kind, before:
            case ("RSTREAM", _) | ("ISTREAM", None):
                return now
            case ("DSTREAM", None):
                return _set_operation(exp.Except, now, now.copy(), distinct=False)
            case ("ISTREAM", _):
                return _set_operation(exp.Except, now, before, distinct=False)
            case _:
                return _set_operation(exp.Except, before, now, distinct=False)

    def _select(self, node: exp.Select, place: _Place) -> exp.Select:
        joins: list[exp.Join] = node.args.get("joins") or []
        items = [node.args["from_"].this, *(join.this for join in joins)]
        inside = replace(place, aliases={**place.aliases, **_aliases(items)})

        def inner(each: exp.Expr) -> exp.Expr:
            return self._expression(each, inside)

        select = exp.Select(
            distinct=exp.Distinct() if node.args.get("distinct") else None,
            expressions=[inner(each) for each in node.expressions],
            from_=exp.From(this=self._item(items[0], place)),
            joins=[self._join(join, place, inside) for join in joins],
        )
        for key in ("where", "group", "having"):
            if node.args.get(key) is not None:
                select.set(key, rebuilt(node.args[key], inner))
        having = node.args.get("having")
        looked_at = [*node.expressions, *([having] if having is not None else [])]
        if node.args.get("group") is None and any(map(aggregates, looked_at)):
            _require_rows(select)
        return select

    # FROM

    def _join(self, node: exp.Join, place: _Place, inside: _Place) -> exp.Join:
        join = exp.Join(this=self._item(node.this, place))
        for key in ("side", "kind"):
            join.set(key, node.args.get(key))
        if node.args.get("on") is not None:
            join.set("on", self._expression(node.args["on"], inside))
        if node.args.get("using"):
            join.set("using", [identifier.copy() for identifier in node.args["using"]])
        return join

    def _item(self, node: exp.Expr, place: _Place) -> exp.Subquery:
        alias = _alias(node)
        # A FROM item sees the names of WITH, but not the items around it.
        query = self._source(node, replace(place, aliases={}))
        named = exp.TableAlias(this=exp.to_identifier(alias)) if alias else None
        return exp.Subquery(this=query, alias=named)

    def _source(self, node: exp.Expr, place: _Place) -> exp.Query:
        """The rows of a FROM item at an instant."""
        match node:
            case Windowed(this=source, window=window) if is_now(window):
                return self._source(source, place)
            case Windowed(this=source, window=window):
                stream = self._stream(source, place)
                kept = content(stream.elements, stream.columns, window, place.time)
                return _rows(stream, kept)
            case exp.Table():
                return self._table(node.name.lower(), place)
            case _:
                return self._query(node, place)

    def _table(self, name: str, place: _Place) -> exp.Query:
        if name in place.tables:
            query, around = place.tables[name]
            return self._query(query, replace(around, time=place.time, only=place.only))
        definition = self._definitions[name]
        if isinstance(definition, CreateDerivedStream):
            return self._query(definition.query, _Place(place.time, only=place.only))
        base = self._base(definition)
        if isinstance(definition, CreateRelation):
            return _rows(base, [e for e in base.elements if _valid(definition, e, place.time)])
        return _rows(
            base,
            [
                element
                for element in base.elements
                if element.time == place.time and place.only in (None, element.id)
            ],
        )

    # Streams as tables

    def _base(self, definition: CreateStream | CreateRelation) -> _Stream:
        name = definition.name.text.lower()
        if name not in self._streams:
            if isinstance(definition, CreateRelation):
                rows = self._inputs.relations.get(name, ())
                elements = [Element(0, number, row) for number, row in enumerate(rows)]
            else:
                given = self._inputs.streams.get(name, ())
                elements = sorted(given, key=lambda e: (e.time, e.id))
            columns = tuple(column.name.text for column in definition.columns)
            stream = _Stream(f"#{name}", columns, elements)
            _load(stream, definition.columns)
            self._streams[name] = stream
        return self._streams[name]

    def _stream(self, source: exp.Expr, place: _Place) -> _Stream:
        """What a window stands behind: all its elements up to the last instant."""
        if isinstance(source, exp.Table) and source.name.lower() not in place.tables:
            definition = self._definitions[source.name.lower()]
            if isinstance(definition, CreateStream):
                return self._base(definition)
        if id(source) not in self._streams:
            self._streams[id(source)] = self._computed(source, place, f"#{len(self._streams)}")
        return self._streams[id(source)]

    def _computed(self, source: exp.Expr, place: _Place, table: str) -> _Stream:
        base = self._kept_in_order(source, place)
        places = (
            [replace(place, time=e.time, only=e.id) for e in base.elements if e.time <= self._last]
            if base is not None
            else [replace(place, time=time) for time in range(self._last + 1)]
        )
        parts = [
            f"SELECT {each.time} AS \"#time\", {number} AS \"#part\", q.* FROM ({text}) q"  # noqa: S608
            for number, each in enumerate(places)
            for text in [self._source_text(source, each)]
        ]
        nothing = self._source_text(source, replace(place, time=0))
        parts.append(f'SELECT 0 AS "#time", 0 AS "#part", q.* FROM ({nothing}) q WHERE FALSE')  # noqa: S608
        _connection().execute(
            f'CREATE OR REPLACE TEMP TABLE "{table}" AS '  # noqa: S608
            f'SELECT row_number() OVER () AS "#id", * FROM ({" UNION ALL ".join(parts)})'
        )
        result = _connection().execute(f'SELECT * FROM "{table}"')  # noqa: S608
        columns = tuple(str(column[0]) for column in result.description or ())[3:]
        found = result.fetchall()
        ids = {id(row[3:]): row for row in ()}
        assert not ids
        ordered = sorted(found, key=lambda row: row[1:3])
        elements = []
        for part in dict.fromkeys(row[1:3] for row in ordered):
            members = [row for row in found if row[1:3] == part]
            elements += [
                Element(part[0], row[-1], row[:-1])  # type: ignore[arg-type]
                for row in in_value_order((*row[3:], row[0]) for row in members)
            ]
        return _Stream(table, columns, elements)

    def _source_text(self, source: exp.Expr, place: _Place) -> str:
        return self._source(source, place).sql(
            dialect="duckdb", identify=True, normalize_functions=False, comments=False
        )
