"""Embedded SQL: the query or expression that is the rest of a statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.lang.cursor import CLOSING, OPENING, Cursor
from tidemill.lang.dialect import Tidemill
from tidemill.lang.parser import Parser

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from sqlglot import exp

__all__ = ["read_embedded_query", "read_embedded_scalar"]


def read_embedded_query(cursor: Cursor, *, before: Collection[str] = ()) -> exp.Expr:
    """Read the rest of the statement as a query, or what stands before one of some words.

    Args:
        cursor: Where to read.
        before: Words of the statement that may follow the query. Outside of brackets they are no
            aliases of the query, unless AS stands before them.
    """
    return _read_rest(cursor, Parser.query, before)


def read_embedded_scalar(cursor: Cursor, *, before: Collection[str] = ()) -> exp.Expr:
    """Read the rest of the statement as an expression, or what stands before one of some words."""
    return _read_rest(cursor, Parser.scalar, before)


def _read_rest(
    cursor: Cursor, production: Callable[[Parser], exp.Expr], before: Collection[str] = ()
) -> exp.Expr:
    parser = Parser(dialect=Tidemill)
    ends = frozenset(_outside_brackets(cursor, before))
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
