"""Interval literals: ``INTERVAL 5 MINUTES``, ``INTERVAL '5' MINUTE`` and ``INTERVAL '5 minutes'``.

All three come out alike: the number as a string literal, the unit singular and in upper case.
Unlike a window's size, an interval may count months and years; the binder says what that means.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sqlglot import TokenType, exp

from tidemill.lang.durations import is_unit, unit_name
from tidemill.lang.spans import record

if TYPE_CHECKING:
    from tidemill.lang.cursor import Cursor

__all__ = ["read_interval"]

_NUMBER: Final = re.compile(r"\s*(-?[0-9]+(?:\.[0-9]+)?)\s*")
_NUMBER_AND_UNIT: Final = re.compile(_NUMBER.pattern + r"([A-Za-z]+)\s*")


def read_interval(cursor: Cursor) -> exp.Interval:
    """Read an interval literal."""
    start = cursor.index
    cursor.expect("INTERVAL")
    number, unit = _read_parts(cursor)
    node = exp.Interval(this=exp.Literal.string(number), unit=exp.Var(this=unit))
    return record(node, cursor.span_from(start))


def _read_parts(cursor: Cursor) -> tuple[str, str]:
    sign = "-" if cursor.accept("-") else ""
    token = cursor.accept_type(TokenType.NUMBER)
    if token is not None and _NUMBER.fullmatch(token.text):
        return sign + token.text, _read_unit(cursor)
    literal = None if sign or token else cursor.accept_type(TokenType.STRING)
    if literal is None:
        cursor.fail_expected("a number or a string", hint="write INTERVAL '5' MINUTES")
    if number := _NUMBER.fullmatch(literal.text):
        return number[1], _read_unit(cursor)
    both = _NUMBER_AND_UNIT.fullmatch(literal.text)
    unit = unit_name(both[2]) if both else None
    if both is None or unit is None:
        cursor.index -= 1
        cursor.fail(f"malformed interval '{literal.text}'", hint="write INTERVAL '5' MINUTES")
    return both[1], unit


def _read_unit(cursor: Cursor) -> str:
    token = cursor.current
    unit = unit_name(token.text) if token is not None and is_unit(token) else None
    if unit is None:
        cursor.fail_expected("a unit of time", hint="write MINUTES, for example")
    cursor.index += 1
    return unit
