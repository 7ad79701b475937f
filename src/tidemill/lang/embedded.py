"""Embedded SQL: the query or expression that is the rest of a statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.lang.dialect import Tidemill
from tidemill.lang.parser import Parser

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot import exp

    from tidemill.lang.cursor import Cursor

__all__ = ["read_embedded_query", "read_embedded_scalar"]


def read_embedded_query(cursor: Cursor) -> exp.Expr:
    """Read the rest of the statement as a query."""
    return _read_rest(cursor, Parser.query)


def read_embedded_scalar(cursor: Cursor) -> exp.Expr:
    """Read the rest of the statement as an expression."""
    return _read_rest(cursor, Parser.scalar)


def _read_rest(cursor: Cursor, production: Callable[[Parser], exp.Expr]) -> exp.Expr:
    node = Parser(dialect=Tidemill).read_whole(cursor.tokens, cursor.index, production)
    cursor.index = len(cursor.tokens)
    return node
