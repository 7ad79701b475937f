"""Queries: WITH, set operations and SELECT.

INTERSECT binds tighter than UNION and EXCEPT; both levels go from left to right. ORDER BY, LIMIT
and OFFSET belong to the whole query, not to the last SELECT of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import Token, TokenType, exp

from tidemill.lang.cursor import reads_as
from tidemill.lang.sources import at_stream_operator, read_from, read_stream_operator
from tidemill.lang.words import STREAM_OPERATORS

if TYPE_CHECKING:
    from tidemill.lang.parser import Parser

__all__ = ["at_query", "read_order", "read_query", "read_set_operations"]

_SET_OPERATIONS: Final[dict[TokenType, type[exp.SetOperation]]] = {
    TokenType.UNION: exp.Union,
    TokenType.EXCEPT: exp.Except,
    TokenType.INTERSECT: exp.Intersect,
}

_CONDITIONS: Final[tuple[tuple[TokenType, str, type[exp.Expression]], ...]] = (
    (TokenType.HAVING, "having", exp.Having),
    (TokenType.QUALIFY, "qualify", exp.Qualify),
)


def at_query(parser: Parser) -> bool:
    """Whether a query comes next; one in parentheses does not count."""
    return parser.at(TokenType.SELECT, TokenType.WITH) or at_stream_operator(parser)


def read_query(parser: Parser) -> exp.Expr:
    """Read a query."""
    start = parser.current
    with_ = _read_with(parser) if parser.at(TokenType.WITH) else None
    query = read_set_operations(parser, start, _read_operand(parser))
    if with_ is not None:
        query.set("with_", with_)
    return parser.mark(query, start)


def read_set_operations(parser: Parser, start: Token, first: exp.Expr) -> exp.Expr:
    """Read what may follow the first operand of a query, to the end of the query."""
    query = _read_intersections(parser, start, first)
    while sign := parser.accept(TokenType.UNION, TokenType.EXCEPT):
        distinct = _read_distinct(parser)
        right = parser.current
        operand = _read_intersections(parser, right, _read_operand(parser))
        kind = _SET_OPERATIONS[sign.token_type]
        query = parser.mark(kind(this=query, expression=operand, distinct=distinct), start)
    return _read_order_and_limit(parser, start, query)


def _read_intersections(parser: Parser, start: Token, first: exp.Expr) -> exp.Expr:
    query = first
    while parser.accept(TokenType.INTERSECT):
        distinct = _read_distinct(parser)
        operand = _read_operand(parser)
        query = exp.Intersect(this=query, expression=operand, distinct=distinct)
        parser.mark(query, start)
    return query


def _read_distinct(parser: Parser) -> bool:
    word = parser.accept(TokenType.ALL, TokenType.DISTINCT)
    return word is None or word.token_type is TokenType.DISTINCT


def _read_order_and_limit(parser: Parser, start: Token, query: exp.Expr) -> exp.Expr:
    if not isinstance(query, exp.Query):
        return query
    first = parser.current
    if order := read_order(parser):
        query.set("order", order)
    if limit := parser.accept(TokenType.LIMIT):
        query.set("limit", parser.mark(exp.Limit(expression=parser.scalar()), limit))
    if reads_as(parser.current, "OFFSET"):
        offset = parser.expect(TokenType.VAR, "OFFSET")
        query.set("offset", parser.mark(exp.Offset(expression=parser.scalar()), offset))
    return query if parser.current is first else parser.mark(query, start)


def read_order(parser: Parser) -> exp.Order | None:
    """Read ORDER BY, if it comes next."""
    start = parser.accept(TokenType.ORDER_BY)
    if start is None:
        return None
    keys = parser.separated(lambda: _read_ordered(parser))
    return parser.mark(exp.Order(expressions=keys), start)


def _read_ordered(parser: Parser) -> exp.Ordered:
    """Read a key of ORDER BY; as in sqlglot, NULL counts as the smallest value."""
    start = parser.current
    key = parser.scalar()
    word = parser.accept(TokenType.ASC, TokenType.DESC)
    descending = word.token_type is TokenType.DESC if word else None
    first = parser.read(lambda cursor: cursor.accept("NULLS", "FIRST"))
    last = not first and parser.read(lambda cursor: cursor.accept("NULLS", "LAST"))
    nulls_first = first or not (last or descending)
    return parser.mark(exp.Ordered(this=key, desc=descending, nulls_first=nulls_first), start)


def _read_operand(parser: Parser) -> exp.Expr:
    start = parser.current
    if parser.at(TokenType.SELECT):
        return _read_select(parser)
    if at_stream_operator(parser) or parser.cursor.at("WSTREAM", "["):
        return read_stream_operator(parser)
    if parser.accept(TokenType.L_PAREN):
        query = parser.query()
        parser.expect(TokenType.R_PAREN, '")"')
        return parser.mark(exp.Subquery(this=query), start)
    if parser.at(TokenType.WITH):
        parser.fail("WITH stands before the whole query", hint="move it there, or use parentheses")
    return parser.fail_expected("a query", hint="a query begins with SELECT, WITH or ISTREAM(")


def _read_with(parser: Parser) -> exp.With:
    start = parser.expect(TokenType.WITH, "WITH")
    if reads_as(parser.current, "RECURSIVE"):
        parser.fail(
            "recursive queries are not supported",
            hint="a query cannot refer to its own answer",
        )
    return parser.mark(exp.With(expressions=parser.separated(lambda: _read_cte(parser))), start)


def _read_cte(parser: Parser) -> exp.CTE:
    start = parser.current
    name = parser.identifier("a name")
    if parser.at(TokenType.L_PAREN):
        parser.fail("a name in WITH takes no column names", hint="name the columns in its SELECT")
    alias = parser.mark(exp.TableAlias(this=name), start)
    parser.expect(TokenType.ALIAS, "AS")
    parser.expect(TokenType.L_PAREN, '"("')
    query = parser.query()
    parser.expect(TokenType.R_PAREN, '")"')
    return parser.mark(exp.CTE(this=query, alias=alias), start)


def _read_select(parser: Parser) -> exp.Select:
    start = parser.expect(TokenType.SELECT, "SELECT")
    _refuse_stream_operator(parser)
    word = parser.accept(TokenType.DISTINCT)
    if word is None:
        parser.accept(TokenType.ALL)  # what is meant without it as well
    if word is not None and reads_as(parser.current, "ON"):
        parser.fail(
            "DISTINCT ON is not supported",
            hint="for the last row of each key, write [PARTITION BY key ROWS 1]",
        )
    distinct = parser.mark(exp.Distinct(), word) if word else None
    select = exp.Select(distinct=distinct, expressions=parser.separated(lambda: _read_item(parser)))
    if parser.at(TokenType.FROM):
        from_, joins = read_from(parser)
        select.set("from_", from_)
        if joins:
            select.set("joins", joins)
    if where := parser.accept(TokenType.WHERE):
        select.set("where", parser.mark(exp.Where(this=parser.scalar()), where))
    if group := parser.accept(TokenType.GROUP_BY):
        keys = exp.Group(expressions=parser.separated(parser.scalar))
        select.set("group", parser.mark(keys, group))
    for token_type, key, kind in _CONDITIONS:
        if word := parser.accept(token_type):
            select.set(key, parser.mark(kind(this=parser.scalar()), word))
    return parser.mark(select, start)


def _read_item(parser: Parser) -> exp.Expr:
    start = parser.current
    if parser.accept(TokenType.STAR):
        return parser.mark(exp.Star(), start)
    ahead = (parser.cursor.peek(1), parser.cursor.peek(2))
    if parser.at_name() and reads_as(ahead[0], ".") and reads_as(ahead[1], "*"):
        table = parser.identifier("a stream")
        parser.expect(TokenType.DOT, '"."')
        star = parser.expect(TokenType.STAR, '"*"')
        return parser.mark(exp.Column(this=parser.mark(exp.Star(), star), table=table), start)
    value = parser.scalar()
    if not parser.at_end_of_query() and (parser.accept(TokenType.ALIAS) or parser.at_name()):
        return parser.mark(exp.Alias(this=value, alias=parser.identifier("a name")), start)
    return value


def _refuse_stream_operator(parser: Parser) -> None:
    """``SELECT ISTREAM …``, the form of CQL, would read as a column with an alias."""
    operator = next((w for w in sorted(STREAM_OPERATORS) if reads_as(parser.current, w)), None)
    names = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.L_PAREN, TokenType.DISTINCT)
    star = parser.cursor
    if operator and (
        parser.following.token_type in names
        or star.at(operator, "*", "FROM")
        or star.at(operator, "*", ",")
        or star.at("WSTREAM", "[")
    ):
        whole = "WSTREAM[ROWS 100]" if operator == "WSTREAM" else operator
        parser.fail(
            f"SELECT {operator} is not supported yet",
            hint=f"write the operator around the query: {whole}(SELECT …)",
        )
