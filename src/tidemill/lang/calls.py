"""Function calls.

Every call is opaque: an ``Anonymous`` with the name as written and the arguments in order, whatever
sqlglot knows about the name. The forms with words between the arguments become such calls too; only
CAST, TRY_CAST and EXTRACT, which take more than expressions, keep a node of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import Token, TokenType, exp

from tidemill.lang.cursor import reads_as
from tidemill.lang.durations import unit_name
from tidemill.lang.spans import record_value
from tidemill.lang.tokens import token_span
from tidemill.lang.types import read_type
from tidemill.lang.words import OVER_HINT, OVER_MESSAGE, TRIM_SIDES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.lang.parser import Parser

__all__ = ["SAYS_ALL", "read_call"]

_PARTS: Final = ("DOW", "DOY", "EPOCH", "ISODOW")

SAYS_ALL: Final = "says_all"
"""What is noted of a call whose arguments begin with ALL."""


def read_call(parser: Parser) -> exp.Expr:
    """Read ``name(…)`` with FILTER and OVER, if they follow."""
    name = parser.current
    parser.expect(name.token_type, "a function")
    parser.expect(TokenType.L_PAREN, '"("')
    read = next((form for word, form in _FORMS.items() if reads_as(name, word)), _read_plain)
    call = read(parser, name)
    parser.expect(TokenType.R_PAREN, '"," or ")"' if call.expressions else '")"')
    call = record_value(parser.mark(call, name), "name", token_span(name))
    if reads_as(parser.current, "FILTER") and parser.following.token_type is TokenType.L_PAREN:
        call = parser.mark(_read_filter(parser, call), name)
    if parser.accept(TokenType.OVER):
        call = parser.mark(_read_over(parser, call), name)
    return call


def _read_plain(parser: Parser, name: Token) -> exp.Expr:
    if not parser.accept(TokenType.ALL):
        return exp.Anonymous(this=name.text, expressions=_read_arguments(parser))
    call = exp.Anonymous(this=name.text, expressions=parser.separated(parser.scalar))
    call.meta[SAYS_ALL] = True  # no part of the meaning: it is what is meant without it as well
    return call


def _read_arguments(parser: Parser) -> list[exp.Expr]:
    start = parser.current
    if parser.at(TokenType.R_PAREN):
        return []
    if parser.at(TokenType.STAR) and parser.following.token_type is TokenType.R_PAREN:
        parser.expect(TokenType.STAR, '"*"')
        return [parser.mark(exp.Star(), start)]
    if parser.accept(TokenType.DISTINCT):
        return [parser.mark(exp.Distinct(expressions=parser.separated(parser.scalar)), start)]
    return parser.separated(parser.scalar)


def _read_cast(parser: Parser, name: Token) -> exp.Expr:
    kind = exp.Cast if reads_as(name, "CAST") else exp.TryCast
    value = parser.scalar()
    parser.expect(TokenType.ALIAS, "AS")
    return kind(this=value, to=parser.read(read_type))


def _read_extract(parser: Parser, _: Token) -> exp.Expr:
    part = parser.current
    unit = unit_name(part.text) or part.text.upper()
    if part.token_type is not TokenType.VAR or not (unit in _PARTS or unit_name(unit)):
        parser.fail_expected("a part of a time", hint="write YEAR, MONTH, DAY, HOUR, for example")
    parser.expect(TokenType.VAR, "a part of a time")
    this = parser.mark(exp.Var(this=unit), part)
    parser.expect(TokenType.FROM, "FROM")
    return exp.Extract(this=this, expression=parser.scalar())


def _read_substring(parser: Parser, name: Token) -> exp.Expr:
    arguments = _read_arguments(parser)
    if len(arguments) == 1 and parser.at(TokenType.FROM):
        parser.expect(TokenType.FROM, "FROM")
        arguments.append(parser.scalar())
        if reads_as(parser.current, "FOR"):
            parser.expect(TokenType.VAR, "FOR")
            arguments.append(parser.scalar())
    return exp.Anonymous(this=name.text, expressions=arguments)


def _read_position(parser: Parser, name: Token) -> exp.Expr:
    """``POSITION(a IN b)``: a is read as an operand, so that IN is left for us."""
    start = parser.position
    plain = (TokenType.R_PAREN, TokenType.STAR, TokenType.DISTINCT, TokenType.NOT)
    if not parser.at(*plain) and not parser.cursor.leave_parentheses():
        part = parser.operand()
        if parser.accept(TokenType.IN):
            return exp.Anonymous(this=name.text, expressions=[part, parser.operand()])
    parser.position = start
    return _read_plain(parser, name)


def _read_trim(parser: Parser, name: Token) -> exp.Expr:
    """``TRIM([side] [characters] FROM x)`` becomes TRIM, LTRIM or RTRIM of (x, characters)."""
    words = (word for word in TRIM_SIDES if reads_as(parser.current, word))
    side = next(words, None)
    if side is None:
        arguments = _read_arguments(parser)
        if len(arguments) == 1 and parser.accept(TokenType.FROM):
            arguments.insert(0, parser.scalar())
        return exp.Anonymous(this=name.text, expressions=arguments)
    parser.expect(TokenType.VAR, "a side")
    characters = [] if parser.at(TokenType.FROM) else [parser.scalar()]
    parser.expect(TokenType.FROM, "FROM")
    return exp.Anonymous(this=TRIM_SIDES[side], expressions=[parser.scalar(), *characters])


def _read_filter(parser: Parser, call: exp.Expr) -> exp.Expr:
    parser.expect(TokenType.VAR, "FILTER")
    parser.expect(TokenType.L_PAREN, '"("')
    start = parser.expect(TokenType.WHERE, "WHERE")
    where = parser.mark(exp.Where(this=parser.scalar()), start)
    parser.expect(TokenType.R_PAREN, '")"')
    return exp.Filter(this=call, expression=where)


def _read_over(parser: Parser, call: exp.Expr) -> exp.Expr:
    if not parser.accept(TokenType.L_PAREN):
        parser.fail(OVER_MESSAGE, hint=OVER_HINT)  # the name of a window
    partition_by = parser.separated(parser.scalar) if parser.accept(TokenType.PARTITION_BY) else []
    order = parser.order()
    if not parser.accept(TokenType.R_PAREN):
        parser.fail(OVER_MESSAGE, hint=OVER_HINT)  # which rows of the window
    return exp.Window(this=call, partition_by=partition_by, order=order, over="OVER")


_FORMS: Final[dict[str, Callable[[Parser, Token], exp.Expr]]] = {
    "CAST": _read_cast,
    "TRY_CAST": _read_cast,
    "EXTRACT": _read_extract,
    "SUBSTRING": _read_substring,
    "POSITION": _read_position,
    "TRIM": _read_trim,
}
