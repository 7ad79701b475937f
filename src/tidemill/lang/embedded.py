"""Embedded SQL: the query or expression that is the rest of a statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemill.errors import Span
from tidemill.lang.cursor import CLOSING, OPENING, Cursor
from tidemill.lang.dialect import Tidemill
from tidemill.lang.one_time import at_as_of, read_as_of
from tidemill.lang.parser import Parser
from tidemill.lang.statements import OneTimeQuery, Select, Why

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from sqlglot import exp

__all__ = [
    "read_asked_query",
    "read_embedded_query",
    "read_embedded_scalar",
    "read_query_in_parentheses",
]


_GO_ON: Final = frozenset(
    [
        *(",", ".", "(", ")", "+", "-", "/", "%", "||", "=", "<", ">", "<=", ">=", "<>", "!="),
        *("::", "FROM", "AS", "AND", "OR", "IS", "IN", "BETWEEN", "LIKE", "NOT", "OF"),
    ]
)
"""What goes on with a column, or ends it."""


def read_asked_query(cursor: Cursor) -> Select | OneTimeQuery | Why:
    """Read the rest of the statement as a query, which may be asked once, AS OF an instant.

    Behind SELECT, PROVENANCE is a word of the statement if it is asked once, and something follows
    that begins a column; else it is the name of one.
    """
    ends = _as_of(cursor)
    if ends and cursor.at("SELECT", "PROVENANCE") and _begins_column(cursor, 2):
        place = cursor.index + 1
        tokens = [*cursor.tokens[:place], *cursor.tokens[place + 1 :]]
        without = Cursor(tokens, cursor.index)
        query = _read_up_to(without, Parser.query, _as_of(without))
        at = read_as_of(without)
        cursor.index = len(cursor.tokens)
        return Why(query, at=at, flat=True, sets=True)
    query = _read_up_to(cursor, Parser.query, ends)
    return OneTimeQuery(query, read_as_of(cursor)) if cursor.index in ends else Select(query)


def _begins_column(cursor: Cursor, ahead: int) -> bool:
    """Whether what stands there begins a column, and does not go on with one."""
    token, after = cursor.peek(ahead), cursor.peek(ahead + 1)
    if token is not None and token.text == "*":
        return after is not None and after.text.upper() in ("FROM", ",")
    return token is not None and token.text.upper() not in _GO_ON


def _as_of(cursor: Cursor, after: Collection[str] = ()) -> frozenset[int]:
    """The places of AS OF that no bracket encloses, where it is no alias."""
    places = _outside_brackets(cursor, ("AS OF",))
    return frozenset(n for n in places if at_as_of(Cursor(cursor.tokens, n), after))


def read_embedded_query(cursor: Cursor, *, before: Collection[str] = ()) -> exp.Expr:
    """Read the rest of the statement as a query, or what stands before one of some words.

    Args:
        cursor: Where to read.
        before: Words of the statement that may follow the query. Outside of brackets they are no
            aliases of the query, unless AS stands before them.
    """
    for place in _as_of(cursor, before):
        Cursor(cursor.tokens, place).fail(
            "AS OF is for a query that is asked once",
            span=Span(cursor.tokens[place].start, cursor.tokens[-1].end + 1),
            hint="leave it out, or write SELECT … AS OF … as a statement of its own",
        )
    return _read_rest(cursor, Parser.query, before)


def read_query_in_parentheses(cursor: Cursor) -> exp.Expr:
    """Read a query and the parentheses around it, behind which the statement goes on."""
    ahead = Cursor(cursor.tokens, cursor.index + 1)
    ahead.leave_parentheses()
    end = ahead.index - 1
    cursor.expect("(")
    for place in _as_of(Cursor(cursor.tokens[:end], cursor.index)):
        Cursor(cursor.tokens, place).fail(
            "AS OF does not stand in parentheses",
            span=Span(cursor.tokens[place].start, cursor.tokens[end].start),
            hint="the instant stands at the end of the whole statement, as in … AT NOW",
        )
    query = _read_up_to(cursor, Parser.query, frozenset({end}))
    cursor.expect(")")
    return query


def read_embedded_scalar(cursor: Cursor, *, before: Collection[str] = ()) -> exp.Expr:
    """Read the rest of the statement as an expression, or what stands before one of some words."""
    return _read_rest(cursor, Parser.scalar, before)


def _read_rest(
    cursor: Cursor, production: Callable[[Parser], exp.Expr], before: Collection[str] = ()
) -> exp.Expr:
    return _read_up_to(cursor, production, frozenset(_outside_brackets(cursor, before)))


def _read_up_to(
    cursor: Cursor, production: Callable[[Parser], exp.Expr], ends: frozenset[int]
) -> exp.Expr:
    parser = Parser(dialect=Tidemill)
    node = parser.read_whole(cursor.tokens, cursor.index, production, ends)
    cursor.index = parser.position
    return node


def _outside_brackets(cursor: Cursor, words: Collection[str]) -> Iterator[int]:
    """The places of these words that no bracket encloses."""
    ahead, depth = Cursor(cursor.tokens, cursor.index), 0
    while token := ahead.current:
        depth += (token.token_type in OPENING) - (token.token_type in CLOSING)
        if depth == 0 and any(ahead.at(*word.split()) for word in words):
            yield ahead.index
        ahead.index += 1
