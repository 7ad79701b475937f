"""Durations: numbers with units of a fixed length, in microseconds.

A number without a unit counts microseconds. Months and years have no fixed length and are refused.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from sqlglot import Token, TokenType

from tidemill.errors import ParseError, Span, closest
from tidemill.lang.statements import Duration
from tidemill.lang.tokens import token_span, tokenize

if TYPE_CHECKING:
    from collections.abc import Collection

    from tidemill.lang.cursor import Cursor

__all__ = ["duration_text", "is_unit", "read_duration", "unit_name"]

_MICROSECONDS: Final = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}

_SHORT: Final = {
    "US": "MICROSECOND",
    "MS": "MILLISECOND",
    "S": "SECOND",
    "SEC": "SECOND",
    "SECS": "SECOND",
    "MIN": "MINUTE",
    "MINS": "MINUTE",
    "H": "HOUR",
    "D": "DAY",
}

_NAMES: Final = {**{name: name for name in _MICROSECONDS}, **_SHORT} | {
    f"{name}S": name for name in _MICROSECONDS
}

_CALENDAR: Final = {
    spelling: name for name in ("MONTH", "QUARTER", "YEAR") for spelling in (name, f"{name}S")
}

# Beyond this many digits a number is refused before it is computed.
_DIGITS: Final = 30
_LONGEST: Final = 2**63 - 1


def unit_name(word: str) -> str | None:
    """The unit a word stands for, singular and in upper case; months and years included.

    >>> unit_name("minutes"), unit_name("ms"), unit_name("YEARS"), unit_name("minuets")
    ('MINUTE', 'MILLISECOND', 'YEAR', None)
    """
    return _NAMES.get(word.upper()) or _CALENDAR.get(word.upper())


def is_unit(token: Token | None) -> bool:
    """Whether a token is a word for a unit."""
    return (
        token is not None
        and token.token_type is TokenType.VAR
        and unit_name(token.text) is not None
    )


def duration_text(microseconds: int) -> str:
    """The duration with the largest unit that divides it.

    >>> duration_text(600_000_000), duration_text(3_600_000_000), duration_text(5)
    ('10 MINUTES', '1 HOUR', '5')
    """
    for name, length in reversed(_MICROSECONDS.items()):
        count, rest = divmod(microseconds, length)
        if microseconds and not rest and length > 1:
            return f"{count} {name}" if count == 1 else f"{count} {name}S"
    return str(microseconds)


def read_duration(cursor: Cursor, *, stop: Collection[str] = ()) -> Duration:
    """Read ``[-] number [unit] {number unit}`` or ``INTERVAL '…' [unit]``.

    Args:
        cursor: Where to read.
        stop: The words that may follow a duration; any other is taken for a misspelt unit.
    """
    start = cursor.index
    if cursor.accept("INTERVAL"):
        microseconds = _read_interval(cursor, stop)
    else:
        sign = -1 if cursor.accept("-") else 1
        microseconds = sign * _read_sum(cursor, stop)
    span = cursor.span_from(start)
    if abs(microseconds) > _LONGEST:
        cursor.fail(
            "the duration is too long",
            span=span,
            hint="RANGE UNBOUNDED, or KEEP ALL, keeps rows for ever",
        )
    if microseconds.denominator != 1:
        cursor.fail(
            "the duration is not a whole number of microseconds",
            span=span,
            hint="a microsecond is the smallest unit of time",
        )
    return Duration(microseconds.numerator, span)


def _read_interval(cursor: Cursor, stop: Collection[str]) -> Fraction:
    literal = cursor.accept_type(TokenType.STRING)
    if literal is None:
        return _read_sum(cursor, stop)
    span = token_span(literal)
    inner = type(cursor)(_inner_tokens(literal, span))
    sign = -1 if inner.accept("-") else 1
    number = inner.accept_type(TokenType.NUMBER)
    if number is not None and inner.current is None:
        return sign * _number(cursor, number, span) * _read_unit(cursor, stop)
    inner.index = 1 if sign < 0 else 0
    total = sign * _read_sum(inner, ()) if inner.current else None
    if total is None or inner.current is not None:
        cursor.fail(f"malformed duration '{literal.text}'", span=span, hint="write '10 minutes'")
    return total


def _inner_tokens(literal: Token, span: Span) -> list[Token]:
    """The tokens inside a string literal, all of them standing where the literal stands."""
    try:
        tokens = tokenize(literal.text)
    except ParseError:
        message = f"malformed duration '{literal.text}'"
        raise ParseError(message, span=span, hint="write '10 minutes'") from None
    for token in tokens:
        token.start, token.end = span.start, span.end - 1
    return tokens


def _read_sum(cursor: Cursor, stop: Collection[str]) -> Fraction:
    total = Fraction(0)
    first = True
    while first or (cursor.current and cursor.current.token_type is TokenType.NUMBER):
        number = cursor.accept_type(TokenType.NUMBER)
        if number is None:
            cursor.fail_expected("a duration", hint="write a number and a unit, as in 10 MINUTES")
        value = _number(cursor, number, token_span(number))
        plain = first and (cursor.current is None or not _wants_unit(cursor, stop))
        total += value if plain else value * _read_unit(cursor, stop)
        if plain:
            break
        first = False
    return total


def _wants_unit(cursor: Cursor, stop: Collection[str]) -> bool:
    token = cursor.current
    return token is not None and token.token_type is TokenType.VAR and not cursor.at_any(stop)


def _read_unit(cursor: Cursor, stop: Collection[str]) -> int:
    token = cursor.current
    if token is None or not _wants_unit(cursor, stop):
        cursor.fail_expected("a unit of time", hint="write MINUTES, for example")
    word = token.text.upper()
    if word in _CALENDAR:
        cursor.fail(
            f"{word} has no fixed length", hint="write the length in DAYS, HOURS or a smaller unit"
        )
    name = _NAMES.get(word)
    if name is None:
        units = [f"{unit}S" for unit in _MICROSECONDS]
        near = closest(word, units) or f"the units are {', '.join(units)}"
        cursor.fail(f'unknown unit of time "{token.text}"', hint=near)
    cursor.index += 1
    return _MICROSECONDS[name]


def _number(cursor: Cursor, token: Token, span: Span) -> Fraction:
    value = Decimal(token.text)
    if value and not -_DIGITS < value.adjusted() < _DIGITS:
        cursor.fail(f"the number {token.text} is out of range", span=span)
    return Fraction(value)
