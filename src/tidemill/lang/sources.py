"""Sources: the items of FROM, their windows and aliases, and joins.

The first item is the query's ``from_``; the others are ``Join`` nodes, those after a comma without
kind, side or condition. INNER and OUTER say nothing new and are not kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import Token, TokenType, exp

from tidemill.errors import closest
from tidemill.lang.cursor import reads_as
from tidemill.lang.one_time import at_query_answer, read_query_answer
from tidemill.lang.spans import record_value
from tidemill.lang.tokens import token_span
from tidemill.lang.windows import (
    StreamOperator,
    WindowClause,
    Windowed,
    at_window,
    read_output_window,
    read_window,
)
from tidemill.lang.words import STREAM_OPERATORS

if TYPE_CHECKING:
    from tidemill.lang.parser import Parser

__all__ = ["at_stream_operator", "read_from", "read_stream_operator"]

_SIDES: Final = (TokenType.LEFT, TokenType.RIGHT, TokenType.FULL)
_JOINS: Final = (TokenType.JOIN, TokenType.INNER, TokenType.CROSS, *_SIDES)


def read_from(parser: Parser) -> tuple[exp.From, list[exp.Join]]:
    """Read FROM with all its items."""
    start = parser.expect(TokenType.FROM, "FROM")
    from_ = parser.mark(exp.From(this=_read_item(parser)), start)
    joins = []
    while parser.at(TokenType.COMMA, *_JOINS):
        joins.append(_read_join(parser))
    return from_, joins


def at_stream_operator(parser: Parser) -> bool:
    """Whether ``ISTREAM(``, ``DSTREAM(``, ``RSTREAM(`` or ``WSTREAM[…](`` comes next."""
    cursor = parser.cursor
    if not cursor.at("WSTREAM", "["):
        return any(cursor.at(operator, "(") for operator in STREAM_OPERATORS)
    # A stream of that name has a window too, but nothing in parentheses behind it.
    while cursor.current and not cursor.at("]"):
        cursor.index += 1
    return cursor.at("]", "(")


def read_stream_operator(parser: Parser, *, in_from: bool = False) -> StreamOperator:
    """Read ``ISTREAM(query)`` or ``WSTREAM[…](query)``, in FROM also ``ISTREAM(name)``."""
    start = parser.expect(TokenType.VAR, "a stream operator")
    kind = start.text.upper()
    window = parser.read(read_output_window) if kind == "WSTREAM" else None
    parser.expect(TokenType.L_PAREN, '"("')
    is_table = in_from and parser.at_name() and not at_stream_operator(parser)
    operand = _read_table(parser) if is_table else parser.query()
    parser.expect(TokenType.R_PAREN, '")"')
    node = parser.mark(StreamOperator(kind=kind, this=operand, window=window), start)
    return record_value(node, "kind", token_span(start))


def _read_join(parser: Parser) -> exp.Join:
    start = parser.current
    if parser.accept(TokenType.COMMA):
        return parser.mark(exp.Join(this=_read_item(parser)), start)
    side = parser.accept(*_SIDES)
    if side:
        parser.accept(TokenType.OUTER)
    cross = None if side else parser.accept(TokenType.INNER, TokenType.CROSS)
    is_cross = cross is not None and cross.token_type is TokenType.CROSS
    parser.expect(TokenType.JOIN, "JOIN")
    join = exp.Join(this=_read_item(parser))
    if side:
        join.set("side", side.text.upper())
    if is_cross:
        join.set("kind", "CROSS")
    else:
        _read_condition(parser, join)
    return parser.mark(join, start)


def _read_condition(parser: Parser, join: exp.Join) -> None:
    if parser.accept(TokenType.ON):
        join.set("on", parser.scalar())
        return
    if not parser.accept(TokenType.USING):
        parser.fail_expected("ON or USING", hint="a join without a condition is a CROSS JOIN")
    parser.expect(TokenType.L_PAREN, '"("')
    join.set("using", parser.separated(lambda: parser.identifier("a column")))
    parser.expect(TokenType.R_PAREN, '"," or ")"')


def _read_item(parser: Parser) -> exp.Expr:
    start = parser.current
    source = _read_source(parser)
    window = _read_window(parser)
    alias = _read_alias(parser)
    if window is None:
        window = _read_window(parser)
    if at_window(parser.cursor):
        parser.fail("a second window on the same stream", hint="keep one of the two")
    is_call = parser.at_name() and parser.following.token_type is TokenType.L_PAREN
    if is_call and not parser.at_end_of_query():
        _refuse_call(parser)
    if window is None:
        if alias:
            source.set("alias", alias)
        return parser.mark(source, start)
    return parser.mark(Windowed(this=source, window=window, alias=alias), start)


def _read_source(parser: Parser) -> exp.Expr:
    start = parser.current
    if parser.accept(TokenType.L_PAREN):
        query = parser.query()
        parser.expect(TokenType.R_PAREN, '")"')
        return parser.mark(exp.Subquery(this=query), start)
    if at_stream_operator(parser):
        return read_stream_operator(parser, in_from=True)
    return read_query_answer(parser) if at_query_answer(parser) else _read_table(parser)


def _read_table(parser: Parser) -> exp.Table:
    start = parser.current
    name = parser.identifier("a stream, a relation or a subquery")
    if parser.at(TokenType.DOT):
        parser.fail(
            "the name of a stream or relation has one part",
            hint="there are no schemas; a name with a dot in it stands in quotes",
        )
    if parser.at(TokenType.L_PAREN):
        parser.fail(
            f'"{start.text}" is called like a function, which FROM does not support',
            span=token_span(start),
            hint="name a stream or a relation, or write a subquery",
        )
    return parser.mark(exp.Table(this=name), start)


def _read_window(parser: Parser) -> WindowClause | None:
    if not at_window(parser.cursor):
        return None
    return parser.read(read_window)


def _read_alias(parser: Parser) -> exp.TableAlias | None:
    start = parser.current
    explicit = None if parser.at_end_of_query() else parser.accept(TokenType.ALIAS)
    if not explicit and not _at_implicit_alias(parser):
        return None
    name = parser.current
    alias = exp.TableAlias(this=parser.identifier("a name"))
    if explicit and parser.at(TokenType.L_PAREN):
        parser.fail("an alias takes no column names", hint="name the columns in the subquery")
    return parser.mark(alias, name or start)


def _at_implicit_alias(parser: Parser) -> bool:
    if reads_as(parser.current, "EVERY"):
        parser.fail("EVERY is not supported yet", hint="give the window a SLIDE")
    if parser.at_end_of_query():
        return False
    if not parser.at_name() or parser.following.token_type is TokenType.L_PAREN:
        return False
    return not reads_as(parser.current, "OFFSET")


def _refuse_call(parser: Parser) -> None:
    """``bid WINDW(…)`` and ``bid GRANULARITY(…)``."""
    token: Token = parser.current
    if reads_as(token, "GRANULARITY"):
        parser.fail(
            "GRANULARITY is not supported yet", hint="leave it out, or give the window a SLIDE"
        )
    parser.fail(f'unexpected "{token.text}"', hint=closest(token.text, ["WINDOW"]))
