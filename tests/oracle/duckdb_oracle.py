"""A second, independent statement of what a query means, with DuckDB as the relational part.

The oracle shares the parser with Tidemill and nothing else. To answer a query at an instant, every
FROM item becomes the table of what it contains at that instant, and DuckDB runs the SELECT that is
left. What windows contain is computed in ``contents.py``; a window over a query runs the query at
every instant first. Derived streams and names of WITH are written out as subqueries, functions as
their bodies. ISTREAM and DSTREAM are EXCEPT ALL of two instants.

Rules of Tidemill that the SQL has to say:

- an aggregate over no rows at all gives no row;
- a stream's own name may be used although the item has an alias;
- those on single functions, in ``translate.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from sqlglot import exp

from oracle.contents import Inputs, Row, content, is_now
from oracle.places import Place, alias_of, inside, resolved, with_tables
from oracle.tables import Stream, at_every_instant, base, connection, duckdb_text, rows, valid
from oracle.translate import has_aggregate, has_query, rebuilt, translate
from tidemill.lang.parse import parse_query, parse_script
from tidemill.lang.statements import (
    CreateDerivedStream,
    CreateFunction,
    CreateRelation,
    CreateStream,
    Statement,
)
from tidemill.lang.windows import StreamOperator, Windowed

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Answer", "Oracle"]

Definition: TypeAlias = CreateStream | CreateRelation | CreateDerivedStream


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of an answer in no order, and DuckDB's names for the types of its columns."""

    rows: list[Row]
    types: list[str]


class Oracle:
    """Answers of queries over given definitions and finite inputs, up to the instant ``last``."""

    def __init__(self, definitions: str, inputs: Inputs, last: int) -> None:
        self._last = last
        self._inputs = inputs
        self._definitions: dict[str, Definition] = {}
        self._functions: dict[str, CreateFunction] = {}
        self._streams: dict[int | str, Stream] = {}
        self._windowed: list[exp.Expr] = []  # kept, so that an id is never used again
        self._queries: dict[str, exp.Expr] = {}
        for statement in _statements(definitions):
            match statement:
                case CreateFunction():
                    self._functions[statement.name.text.lower()] = statement
                case CreateStream() | CreateRelation() | CreateDerivedStream():
                    self._definitions[statement.name.text.lower()] = statement
                case _:
                    raise AssertionError("definitions are CREATE statements")

    def snapshot(self, sql: str, time: int) -> Answer:
        """The answer at an instant."""
        result = connection().execute(self.question(sql, time))
        types = [str(column[1]) for column in result.description or ()]
        return Answer(result.fetchall(), types)

    def question(self, sql: str, time: int) -> str:
        """What DuckDB is asked."""
        if sql not in self._queries:
            self._queries[sql] = parse_query(sql)
        return duckdb_text(self._query(self._queries[sql], Place(time)))

    # Queries

    def _query(self, node: exp.Expr, place: Place) -> exp.Expr:
        place = with_tables(node, place)
        match node:
            case exp.Select():
                return self._select(node, place)
            case exp.SetOperation():
                left, right = self._query(node.this, place), self._query(node.expression, place)
                return _both(type(node), left, right, distinct=bool(node.args["distinct"]))
            case exp.Subquery() | exp.Paren():
                return self._query(node.this, place)
            case StreamOperator():
                return self._stream_operator(node, place)
            case _:
                raise AssertionError(f"{type(node).__name__} is not a query")

    def _stream_operator(self, node: StreamOperator, place: Place) -> exp.Expr:
        now = self._source(node.this, place)
        if node.kind == "RSTREAM" or (node.kind == "ISTREAM" and place.time == 0):
            return now
        if place.time == 0:
            return _both(exp.Except, now, now.copy(), distinct=False)
        before = self._source(node.this, place.at(place.time - 1))
        sides = (now, before) if node.kind == "ISTREAM" else (before, now)
        return _both(exp.Except, *sides, distinct=False)

    def _select(self, node: exp.Select, place: Place) -> exp.Select:
        joins: list[exp.Join] = node.args.get("joins") or []
        items = [node.args["from_"].this, *(join.this for join in joins)]
        within = inside(place, items)

        def inner(each: exp.Expr) -> exp.Expr:
            return self._expression(each, within)

        select = exp.Select(
            distinct=exp.Distinct() if node.args.get("distinct") else None,
            expressions=[inner(each) for each in node.expressions],
            from_=exp.From(this=self._item(items[0], place)),
            joins=[self._join(join, place, within) for join in joins],
        )
        for key in ("where", "group", "having"):
            if node.args.get(key) is not None:
                select.set(key, rebuilt(node.args[key], inner))
        having = node.args.get("having")
        looked_at = [*node.expressions, *([having] if having is not None else [])]
        if node.args.get("group") is None and any(map(has_aggregate, looked_at)):
            _require_rows(select)
        return select

    # FROM

    def _join(self, node: exp.Join, place: Place, within: Place) -> exp.Join:
        join = exp.Join(this=self._item(node.this, place))
        for key in ("side", "kind"):
            join.set(key, node.args.get(key))
        if node.args.get("on") is not None:
            join.set("on", self._expression(node.args["on"], within))
        if node.args.get("using"):
            join.set("using", [identifier.copy() for identifier in node.args["using"]])
        return join

    def _item(self, node: exp.Expr, place: Place) -> exp.Subquery:
        query = self._source(node, place.of_item())
        alias = alias_of(node)
        named = exp.TableAlias(this=exp.to_identifier(alias)) if alias else None
        return exp.Subquery(this=query, alias=named)

    def _source(self, node: exp.Expr, place: Place) -> exp.Expr:
        """The rows of a FROM item at an instant."""
        match node:
            case Windowed() if is_now(node.window):
                return self._source(node.this, place)
            case Windowed():
                stream = self._stream(node.this, place)
                kept = content(stream.elements, stream.columns, node.window, place.time)
                return rows(stream, kept)
            case exp.Table():
                return self._table(node.name.lower(), place)
            case _:
                return self._query(node, place)

    def _table(self, name: str, place: Place) -> exp.Expr:
        if name in place.tables:
            query, around = place.tables[name]
            return self._query(query, around.at(place.time, place.only))
        definition = self._definitions[name]
        if isinstance(definition, CreateDerivedStream):
            return self._query(definition.query, Place(place.time, only=place.only))
        stream = self._base(definition)
        if isinstance(definition, CreateRelation):
            there = [e for e in stream.elements if valid(definition, e.row, place.time)]
        else:
            now = [e for e in stream.elements if e.time == place.time]
            there = [e for e in now if place.only in (None, e.id)]
        return rows(stream, there)

    # Streams under windows

    def _base(self, definition: CreateStream | CreateRelation) -> Stream:
        name = definition.name.text.lower()
        if name not in self._streams:
            self._streams[name] = base(definition, self._inputs)
        return self._streams[name]

    def _stream(self, node: exp.Expr, place: Place) -> Stream:
        """All elements up to the last instant of what a window stands behind."""
        if isinstance(node, exp.Table) and node.name.lower() not in place.tables:
            definition = self._definitions[node.name.lower()]
            if isinstance(definition, CreateStream):
                return self._base(definition)
        if id(node) not in self._streams:
            self._windowed.append(node)
            self._streams[id(node)] = self._computed(node, place)
        return self._streams[id(node)]

    def _computed(self, node: exp.Expr, place: Place) -> Stream:
        filtered = self._only_filtered(node, place)
        places = (
            [place.at(time) for time in range(self._last + 1)]
            if filtered is None
            else [place.at(e.time, e.id) for e in filtered.elements if e.time <= self._last]
        )
        parts = [(each.time, duckdb_text(self._source(node, each))) for each in places]
        nothing = duckdb_text(self._source(node, place.at(0)))
        return at_every_instant(f"#{len(self._windowed)}", parts, nothing)

    def _only_filtered(self, node: exp.Expr, place: Place) -> Stream | None:
        """The base stream that a query only filters and projects, and so keeps in its order."""
        place = with_tables(node, place)
        match node:
            case Windowed() if is_now(node.window):
                return self._only_filtered(node.this, place)
            case exp.Subquery() | exp.Paren():
                return self._only_filtered(node.this, place)
            case exp.Select() if _is_plain(node):
                return self._only_filtered(node.args["from_"].this, place)
            case exp.Table() if node.name.lower() in place.tables:
                return self._only_filtered(*place.tables[node.name.lower()])
            case exp.Table():
                definition = self._definitions[node.name.lower()]
                if isinstance(definition, CreateDerivedStream):
                    return self._only_filtered(definition.query, Place(0))
                return self._base(definition) if isinstance(definition, CreateStream) else None
            case _:
                return None

    # Expressions

    def _expression(self, node: exp.Expr, place: Place) -> exp.Expr:
        match node:
            case exp.Subquery():
                return exp.Subquery(this=self._query(node, place))
            case exp.Query() | StreamOperator():
                return self._query(node, place)
            case exp.Any() | exp.All():
                return type(node)(this=exp.Subquery(this=self._query(node.this, place)))
            case exp.Column():
                return resolved(node, place)
            case exp.Anonymous() if node.name.lower() in self._functions:
                function = self._functions[node.name.lower()]
                return self._expression(_body(function, node.expressions), place)
            case _:
                return translate(node, lambda each: self._expression(each, place))


@cache
def _statements(text: str) -> list[Statement]:
    return [statement for statement, _ in parse_script(text)]


def _body(function: CreateFunction, arguments: Sequence[exp.Expr]) -> exp.Expr:
    """The body of a function with the arguments, converted, in place of the parameters."""
    values = {
        parameter.name.text.lower(): exp.Cast(this=argument.copy(), to=parameter.type.copy())
        for parameter, argument in zip(function.parameters, arguments, strict=True)
    }

    def replaced(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column):
            return values[node.name.lower()].copy()
        return rebuilt(node, replaced)

    return exp.Paren(this=replaced(function.body))


def _both(
    kind: type[exp.SetOperation], left: exp.Expr, right: exp.Expr, *, distinct: bool
) -> exp.SetOperation:
    return kind(
        this=exp.Subquery(this=left), expression=exp.Subquery(this=right), distinct=distinct
    )


def _require_rows(select: exp.Select) -> None:
    """An aggregate over no rows gives no row."""
    some = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))
    having = select.args.get("having")
    condition = (
        some if having is None else exp.And(this=exp.Paren(this=having.this), expression=some)
    )
    select.set("having", exp.Having(this=condition))


def _is_plain(select: exp.Select) -> bool:
    """Whether a query block treats every row for itself."""
    if any(select.args.get(key) for key in ("distinct", "group", "having", "joins")):
        return False
    parts = [*select.expressions, *filter(None, [select.args.get("where")])]
    return not any(has_aggregate(part) or has_query(part) for part in parts)
