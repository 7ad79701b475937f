"""Embedded SQL: the query or expression that is the rest of a statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.errors import Span
from tidemill.lang.cursor import CLOSING, OPENING, Cursor
from tidemill.lang.dialect import Tidemill
from tidemill.lang.one_time import at_as_of, read_as_of
from tidemill.lang.parser import Parser
from tidemill.lang.statements import OneTimeQuery, Select

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from sqlglot import exp

__all__ = ["read_asked_query", "read_embedded_query", "read_embedded_scalar"]


def read_embedded_query(cursor: Cursor, *, before: Collection[str] = ()) -> exp.Expr:
    """Read the rest of the statement as a query, or what stands before one of some words.

    Args:
        cursor: Where to read.
        before: Words of the statement that may follow the query. Outside of brackets they are no
            aliases of the query, unless AS stands before them.
    """
    if any(at_as_of(place, before) for place in _outside_brackets(cursor)):
        place = next(place for place in _outside_brackets(cursor) if at_as_of(place, before))
        place.fail(
            "AS OF is for a query that is asked once",
            span=Span(place.here().start, cursor.tokens[-1].end + 1),
            hint="leave it out, or write SELECT … AS OF … as a statement of its own",
        )
    ends = {place.index for place in _outside_brackets(cursor) if place.at_any(before)}
    return _read_rest(cursor, Parser.query, ends)


def read_asked_query(cursor: Cursor) -> Select | OneTimeQuery:
    """Read the rest of the statement as a query, which may be asked once, AS OF an instant."""
    ends = {place.index for place in _outside_brackets(cursor) if at_as_of(place)}
    query = _read_rest(cursor, Parser.query, ends)
    return OneTimeQuery(query, read_as_of(cursor)) if cursor.index in ends else Select(query)


def read_embedded_scalar(cursor: Cursor) -> exp.Expr:
    """Read the rest of the statement as an expression."""
    return _read_rest(cursor, Parser.scalar)


def _read_rest(
    cursor: Cursor, production: Callable[[Parser], exp.Expr], ends: Collection[int] = ()
) -> exp.Expr:
    parser = Parser(dialect=Tidemill)
    node = parser.read_whole(cursor.tokens, cursor.index, production, ends)
    cursor.index = parser.position
    return node


def _outside_brackets(cursor: Cursor) -> Iterator[Cursor]:
    """The places of the rest of the statement that no bracket encloses."""
    depth = 0
    for index in range(cursor.index, len(cursor.tokens)):
        kind = cursor.tokens[index].token_type
        depth += (kind in OPENING) - (kind in CLOSING)
        if depth == 0:
            yield Cursor(cursor.tokens, index)
