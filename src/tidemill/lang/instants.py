"""Instants: points in time as a statement names them.

An instant is a whole number of microseconds since 1970, or a calendar time in ISO form in quotes,
with or without the word TIMESTAMP before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import TokenType

from tidemill.errors import RunError
from tidemill.lang.cursor import reads_as
from tidemill.lang.statements import Instant
from tidemill.lang.words import quote_string
from tidemill.model.time import END_OF_TIME, time_text, to_instant

if TYPE_CHECKING:
    from tidemill.errors import Span
    from tidemill.lang.cursor import Cursor

__all__ = ["INSTANT_HINT", "begins_instant", "instant_text", "read_instant"]

INSTANT_HINT: Final = (
    "write a whole number of microseconds since 1970, or a time such as '2026-03-01T12:00:00'"
)
_STARTS: Final = (TokenType.NUMBER, TokenType.STRING, TokenType.DASH)
_DIGITS: Final = len(str(END_OF_TIME))


def instant_text(microseconds: int) -> str:
    """The instant as it stands in a statement.

    >>> instant_text(1_772_366_400_070_000), instant_text(7)
    ("TIMESTAMP '2026-03-01 12:00:00.07'", '7')
    """
    text = time_text(microseconds)
    return text if text.isdecimal() else f"TIMESTAMP {quote_string(text)}"


def begins_instant(cursor: Cursor, ahead: int = 0) -> bool:
    """Whether what stands so many places ahead looks like an instant."""
    token, following = cursor.peek(ahead), cursor.peek(ahead + 1)
    if reads_as(token, "TIMESTAMP"):
        return following is not None and following.token_type is TokenType.STRING
    return token is not None and token.token_type in _STARTS


def read_instant(cursor: Cursor) -> Instant:
    """Read ``number``, ``'time'`` or ``TIMESTAMP 'time'``."""
    start = cursor.index
    if not begins_instant(cursor):
        cursor.fail_expected("an instant", hint=INSTANT_HINT)
    if cursor.accept("-"):
        if cursor.accept_type(TokenType.NUMBER) is None:
            cursor.fail_expected("a number", hint=INSTANT_HINT)
        _refuse_early(cursor, cursor.span_from(start))
    if number := cursor.accept_type(TokenType.NUMBER):
        span = cursor.span_from(start)
        if not number.text.isdecimal():
            cursor.fail(f"{number.text} is no instant", span=span, hint=INSTANT_HINT)
        digits = number.text.lstrip("0") or "0"
        if len(digits) > _DIGITS or int(digits) >= END_OF_TIME:
            cursor.fail("the instant is too late", span=span, hint="time ends before it")
        return Instant(int(digits), span)
    cursor.accept("TIMESTAMP")
    literal = cursor.accept_type(TokenType.STRING)
    assert literal is not None, "an instant begins with one of these"
    span = cursor.span_from(start)
    try:
        microseconds = to_instant(literal.text)
    except RunError:
        cursor.fail(f"'{literal.text}' is no instant", span=span, hint=INSTANT_HINT)
    if microseconds < 0:
        _refuse_early(cursor, span)
    return Instant(microseconds, span)


def _refuse_early(cursor: Cursor, span: Span) -> None:
    cursor.fail("an instant is not before 1970", span=span, hint=INSTANT_HINT)
