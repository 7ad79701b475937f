"""The streams and relations of the oracle, as tables of DuckDB.

A table has the columns of the stream and its number ``#id``. The content of a window is the rows
with certain numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING

import duckdb
from sqlglot import exp

from oracle.contents import Element, Value, value_order
from oracle.translate import MACROS, duckdb_type
from tidemill.lang.statements import CreateRelation, CreateStream

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from oracle.contents import Inputs

__all__ = ["Stream", "at_every_instant", "base", "connection", "duckdb_text", "rows", "valid"]


@dataclass(frozen=True, slots=True)
class Stream:
    """A table, and its elements in the order in which ROWS counts them."""

    table: str
    columns: tuple[str, ...]
    elements: Sequence[Element]


@cache
def connection() -> duckdb.DuckDBPyConnection:
    """The database in which everything is asked."""
    opened = duckdb.connect(config={"threads": 1})
    opened.execute("PRAGMA disable_optimizer")  # with few rows, planning is what takes time
    for macro in MACROS:
        opened.execute(macro)
    return opened


def duckdb_text(query: exp.Expr) -> str:
    """The text of a translated query."""
    return query.sql(
        dialect="duckdb", identify=True, normalize_functions=False, comments=False, copy=False
    )


def base(definition: CreateStream | CreateRelation, inputs: Inputs) -> Stream:
    """The table of a registered stream or relation."""
    name = definition.name.text.lower()
    if isinstance(definition, CreateRelation):
        given = inputs.relations.get(name, ())
        elements = [Element(0, number, row) for number, row in enumerate(given)]
    else:
        elements = sorted(inputs.streams.get(name, ()), key=lambda e: (e.time, e.id))
    columns = [
        f'unnest(?::{duckdb_type(column.type).sql(dialect="duckdb")}[]) AS "{column.name.text}"'
        for column in definition.columns
    ]
    lists: list[list[Value]] = [[element.id for element in elements]]
    lists += [[element.row[place] for element in elements] for place in range(len(columns))]
    connection().execute(
        f'CREATE OR REPLACE TEMP TABLE "#{name}" AS '
        f'SELECT unnest(?::BIGINT[]) AS "#id", {", ".join(columns)}',
        lists,
    )
    names = tuple(column.name.text for column in definition.columns)
    return Stream(f"#{name}", names, elements)


def at_every_instant(table: str, parts: Iterable[tuple[int, str]], nothing: str) -> Stream:
    """The table of the answers of a query.

    Args:
        table: What to call it.
        parts: Instants and the texts of the query there, in the order in which ROWS counts; rows of
            one part are in the order of their values.
        nothing: The text of the query anywhere, for the names and types of its columns.
    """
    texts = [
        f'SELECT {time} AS "#time", {number} AS "#part", q.* FROM ({text}) AS q'
        for number, (time, text) in enumerate(parts)
    ]
    texts.append(f'SELECT 0 AS "#time", 0 AS "#part", q.* FROM ({nothing}) AS q WHERE FALSE')
    connection().execute(
        f'CREATE OR REPLACE TEMP TABLE "{table}" AS '
        f'SELECT row_number() OVER () AS "#id", * FROM ({" UNION ALL ".join(texts)})'
    )
    result = connection().execute(f'SELECT * FROM "{table}"')
    columns = tuple(str(column[0]) for column in result.description or ())[3:]
    found = sorted(result.fetchall(), key=lambda row: (row[2], value_order(row[3:])))
    return Stream(table, columns, [Element(row[1], row[0], row[3:]) for row in found])


def rows(stream: Stream, elements: Iterable[Element]) -> exp.Query:
    """The query for some of a stream's elements."""
    columns = [exp.Column(this=exp.Identifier(this=name)) for name in stream.columns]
    number = exp.Column(this=exp.Identifier(this="#id"))
    numbers = [exp.Literal.number(element.id) for element in elements]
    chosen = exp.In(this=number, expressions=numbers) if numbers else exp.false()
    table = exp.Table(this=exp.Identifier(this=stream.table))
    return exp.Select(expressions=columns, from_=exp.From(this=table), where=exp.Where(this=chosen))


def valid(relation: CreateRelation, row: tuple[Value, ...], time: int) -> bool:
    """Whether a relation's row is there at an instant: always, or in its period."""
    if relation.validity is None:
        return True
    names = [column.name.text.lower() for column in relation.columns]
    start = _instant(row[names.index(relation.validity.start.text.lower())])
    end = relation.validity.end
    past = None if end is None else _instant(row[names.index(end.text.lower())])
    return (start is None or start <= time) and (past is None or time < past)


def _instant(value: Value) -> int | None:
    if isinstance(value, datetime):
        since = value.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
        return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    assert value is None or isinstance(value, int), f"{value!r} is not an instant"
    return value
