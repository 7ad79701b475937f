"""Predicates: NOT, IS, comparisons, BETWEEN, IN and LIKE.

``x NOT IN (…)``, ``x IS NOT NULL`` and the like come out as a ``Not`` around the predicate. A row
of values, ``(a, b)``, is a ``Tuple`` and stands only before IN with a query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import TokenType, exp

from tidemill.lang.primaries import is_query, read_constant, read_query_or_scalar
from tidemill.lang.spans import span_of

if TYPE_CHECKING:
    from sqlglot import Token

    from tidemill.lang.parser import Parser

__all__ = ["read_comparison", "read_negation", "read_range"]

_COMPARISONS: Final[dict[TokenType, type[exp.Binary]]] = {
    TokenType.EQ: exp.EQ,
    TokenType.NEQ: exp.NEQ,
    TokenType.LT: exp.LT,
    TokenType.LTE: exp.LTE,
    TokenType.GT: exp.GT,
    TokenType.GTE: exp.GTE,
}


_QUERY_STARTS: Final = (TokenType.SELECT, TokenType.WITH)


def read_negation(parser: Parser) -> exp.Expr:
    """Read ``NOT …`` or a comparison with any number of IS tests behind it."""
    start = parser.current
    if parser.accept(TokenType.NOT):
        return parser.mark(exp.Not(this=read_negation(parser)), start)
    this = read_comparison(parser)
    while parser.accept(TokenType.IS):
        negated = parser.accept(TokenType.NOT)
        if parser.accept(TokenType.DISTINCT):
            this = parser.mark(_read_distinct(parser, this, negated), start)
        else:
            this = _mark_test(parser, _read_is(parser, this), start, negated)
    return this


def read_comparison(parser: Parser, this: exp.Expr | None = None) -> exp.Expr:
    """Read ``a = b`` and its like, from left to right."""
    this = this or read_range(parser)
    while sign := parser.accept(*_COMPARISONS):
        this = _COMPARISONS[sign.token_type](this=this, expression=read_range(parser))
    return this


def read_range(parser: Parser, this: exp.Expr | None = None) -> exp.Expr:
    """Read an operand with any number of BETWEEN, IN and LIKE behind it."""
    start = parser.current
    this = this or (_read_row(parser) if _at_row(parser) else parser.operand())
    while True:
        negated = parser.accept(TokenType.NOT)
        if parser.accept(TokenType.BETWEEN):
            test = _read_between(parser, this)
        elif parser.accept(TokenType.IN):
            test = _read_in(parser, this)
        elif like := parser.accept(TokenType.LIKE, TokenType.ILIKE):
            kind = exp.Like if like.token_type is TokenType.LIKE else exp.ILike
            test = _read_escape(parser, kind(this=this, expression=parser.operand()))
        elif negated:
            parser.fail_expected("BETWEEN, IN or LIKE")
        else:
            return this
        this = _mark_test(parser, test, start, negated)


def _at_row(parser: Parser) -> bool:
    """Whether ``(a, b) IN`` comes next, as opposed to an expression or a query in parentheses."""
    if not parser.at(TokenType.L_PAREN) or parser.following.token_type in _QUERY_STARTS:
        return False
    cursor = parser.cursor
    cursor.index += 1
    return cursor.leave_parentheses() and (cursor.at("IN") or cursor.at("NOT", "IN"))


def _read_row(parser: Parser) -> exp.Expr:
    start = parser.expect(TokenType.L_PAREN, '"("')
    values = parser.separated(parser.scalar)
    parser.expect(TokenType.R_PAREN, '"," or ")"')
    return parser.mark(exp.Tuple(expressions=values), start)


def _mark_test(parser: Parser, test: exp.Expr, start: Token, negated: Token | None) -> exp.Expr:
    parser.mark(test, start)
    return parser.mark(exp.Not(this=test), start) if negated else test


def _read_distinct(parser: Parser, this: exp.Expr, negated: Token | None) -> exp.Expr:
    parser.expect(TokenType.FROM, "FROM")
    kind = exp.NullSafeEQ if negated else exp.NullSafeNEQ
    return kind(this=this, expression=read_comparison(parser))


def _read_is(parser: Parser, this: exp.Expr) -> exp.Expr:
    if not parser.at(TokenType.NULL, TokenType.TRUE, TokenType.FALSE):
        parser.fail_expected("NULL, TRUE, FALSE or DISTINCT FROM")
    return exp.Is(this=this, expression=read_constant(parser))


def _read_between(parser: Parser, this: exp.Expr) -> exp.Expr:
    low = parser.operand()
    parser.expect(TokenType.AND, "AND")
    return exp.Between(this=this, low=low, high=parser.operand())


def _read_escape(parser: Parser, like: exp.Expr) -> exp.Expr:
    if not parser.accept(TokenType.ESCAPE):
        return like
    if not parser.at(TokenType.STRING):
        parser.fail_expected("a string of one character")
    return exp.Escape(this=like, expression=read_constant(parser))


def _read_in(parser: Parser, this: exp.Expr) -> exp.Expr:
    start = parser.expect(TokenType.L_PAREN, '"("')
    first = read_query_or_scalar(parser)
    if is_query(first) and parser.at(TokenType.R_PAREN):
        parser.expect(TokenType.R_PAREN, '")"')
        return exp.In(this=this, query=parser.mark(exp.Subquery(this=first), start))
    if isinstance(this, exp.Tuple):
        parser.fail(
            "a row of several values is looked up in a query only",
            span=span_of(first),
            hint="compare the values one by one, or write IN (SELECT …)",
        )
    values = [first]
    while parser.accept(TokenType.COMMA):
        values.append(parser.scalar())
    parser.expect(TokenType.R_PAREN, '"," or ")"')
    return exp.In(this=this, expressions=values)
