"""Primaries: literals, names, parentheses, CASE and quantified queries; unary minus and ``::``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import TokenType, exp

from tidemill.errors import Span
from tidemill.lang.calls import read_call
from tidemill.lang.cursor import reads_as, reserved_hint
from tidemill.lang.intervals import read_interval
from tidemill.lang.queries import at_query, read_set_operations
from tidemill.lang.types import read_type
from tidemill.lang.windows import StreamOperator
from tidemill.lang.words import BARE_FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.lang.parser import Parser

__all__ = ["is_query", "read_constant", "read_query_or_scalar", "read_unary"]

_QUANTIFIERS: Final[dict[TokenType, type[exp.Expression]]] = {
    TokenType.ALL: exp.All,
    TokenType.ANY: exp.Any,
    TokenType.EXISTS: exp.Exists,
    TokenType.SOME: exp.Any,
}

_CONSTANTS: Final[dict[TokenType, Callable[[str], exp.Expr]]] = {
    TokenType.NUMBER: lambda text: exp.Literal(this=text, is_string=False),
    TokenType.STRING: exp.Literal.string,
    TokenType.TRUE: lambda _: exp.Boolean(this=True),
    TokenType.FALSE: lambda _: exp.Boolean(this=False),
    TokenType.NULL: lambda _: exp.Null(),
}

_LITERAL_TYPES: Final = ("DATE", "TIMESTAMP")


def is_query(node: exp.Expr) -> bool:
    """Whether a node is a query, also one in parentheses."""
    return isinstance(node, exp.Query | StreamOperator)


def read_unary(parser: Parser) -> exp.Expr:
    """Read ``- …``, ``+ …``, or a primary with any number of casts behind it."""
    start = parser.current
    if parser.accept(TokenType.DASH):
        return parser.mark(exp.Neg(this=read_unary(parser)), start)
    if parser.accept(TokenType.PLUS):
        return read_unary(parser)
    this = _read_primary(parser)
    while parser.accept(TokenType.DCOLON):
        this = parser.mark(exp.Cast(this=this, to=parser.read(read_type)), start)
    return this


def read_constant(parser: Parser) -> exp.Expr:
    """Read a number, a string, TRUE, FALSE or NULL."""
    start = parser.current
    parser.expect(start.token_type, "a constant")
    return parser.mark(_CONSTANTS[start.token_type](start.text), start)


def read_query_or_scalar(parser: Parser) -> exp.Expr:
    """Read a query or an expression; ``(SELECT …)`` may be the first part of either."""
    if at_query(parser):
        return parser.query()
    start = parser.current
    this = parser.scalar()
    return read_set_operations(parser, start, this) if isinstance(this, exp.Subquery) else this


def _read_primary(parser: Parser) -> exp.Expr:
    kind = parser.current.token_type
    followed = parser.following.token_type
    if kind in _CONSTANTS:
        return read_constant(parser)
    if kind is TokenType.L_PAREN:
        return _read_paren(parser)
    if kind is TokenType.CASE:
        return _read_case(parser)
    if kind is TokenType.INTERVAL:
        return parser.read(read_interval)
    if kind is TokenType.DOT and followed is TokenType.NUMBER:
        return _read_fraction(parser)
    if kind in _QUANTIFIERS and followed is TokenType.L_PAREN:
        return _read_quantified(parser)
    is_bare = any(reads_as(parser.current, word) for word in BARE_FUNCTIONS)
    is_name = parser.at_name() or is_bare or kind in (TokenType.LEFT, TokenType.RIGHT)
    if is_name and followed is TokenType.L_PAREN:
        return read_call(parser)
    if is_bare:
        start = parser.expect(TokenType.VAR, "a function")
        return parser.mark(exp.Anonymous(this=start.text, expressions=[]), start)
    if parser.at_name():
        return _read_name(parser)
    return parser.fail_expected("an expression", hint=reserved_hint(parser.current))


def _read_name(parser: Parser) -> exp.Expr:
    start = parser.current
    typed = any(reads_as(start, word) for word in _LITERAL_TYPES)
    if typed and parser.following.token_type is TokenType.STRING:
        to = parser.read(read_type)
        return parser.mark(exp.Cast(this=read_constant(parser), to=to), start)
    first = parser.identifier("a column")
    if not parser.accept(TokenType.DOT):
        return parser.mark(exp.Column(this=first), start)
    column = exp.Column(this=parser.identifier("a column"), table=first)
    if parser.at(TokenType.DOT):
        parser.fail("a column name has at most two parts", hint="write stream.column")
    return parser.mark(column, start)


def _read_fraction(parser: Parser) -> exp.Expr:
    dot = parser.expect(TokenType.DOT, '"."')
    digits = parser.expect(TokenType.NUMBER, "digits")
    if "." in digits.text or digits.start != dot.end + 1:
        parser.fail("malformed number", span=Span(dot.start, digits.end + 1))
    return parser.mark(exp.Literal(this=f"0.{digits.text}", is_string=False), dot)


def _read_paren(parser: Parser) -> exp.Expr:
    start = parser.expect(TokenType.L_PAREN, '"("')
    inner = read_query_or_scalar(parser)
    parser.expect(TokenType.R_PAREN, '")"')
    kind = exp.Subquery if is_query(inner) else exp.Paren
    return parser.mark(kind(this=inner), start)


def _read_quantified(parser: Parser) -> exp.Expr:
    start = parser.current
    parser.expect(start.token_type, "a quantifier")
    parser.expect(TokenType.L_PAREN, '"("')
    query = parser.query()
    parser.expect(TokenType.R_PAREN, '")"')
    return parser.mark(_QUANTIFIERS[start.token_type](this=query), start)


def _read_case(parser: Parser) -> exp.Expr:
    start = parser.expect(TokenType.CASE, "CASE")
    operand = None if parser.at(TokenType.WHEN) else parser.scalar()
    branches = []
    while when := parser.accept(TokenType.WHEN):
        condition = parser.scalar()
        parser.expect(TokenType.THEN, "THEN")
        branches.append(parser.mark(exp.If(this=condition, true=parser.scalar()), when))
    if not branches:
        parser.fail_expected("WHEN")
    default = parser.scalar() if parser.accept(TokenType.ELSE) else None
    parser.expect(TokenType.END, "END" if default else "WHEN, ELSE or END")
    return parser.mark(exp.Case(this=operand, ifs=branches, default=default), start)
