"""Conversions of a value to another type, in plain Python.

A value that cannot be converted has no value of the other type: the result is NULL.

- Text to a number is an optional sign and digits, for DECIMAL and DOUBLE with a point and an
  exponent; DOUBLE also takes inf, infinity and nan. Text to BOOLEAN is true, t, yes, y, 1 or
  false, f, no, n, 0. Case does not matter.
- Text to DATE and TIMESTAMP is ISO 8601: ``2024-05-06``, with a blank or T and ``07:08``,
  ``07:08:09`` or ``07:08:09.123456`` behind it; more digits are cut off. An offset (``Z``, ``+01``,
  ``+01:30``) is taken into account: a TIMESTAMP is UTC. DATE is the date of such a TIMESTAMP.
- Blanks around numbers and times do not matter.
- DOUBLE to an integer rounds to the nearest, halves to even. To a DECIMAL of scale s it rounds
  ``x * 10**s``, computed as a DOUBLE, halves away from zero.
- DECIMAL to an integer or to fewer digits rounds halves away from zero.
- DOUBLE to text is the shortest text that reads back as the same number; what is not finite is
  NaN, Infinity or -Infinity. TIMESTAMP to text has a fraction only if there is one, without
  trailing zeros.
- A number is TRUE unless it is zero; TRUE is 1.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING

from tidemill.algebra.values import EXACT, conform
from tidemill.model.doubles import double_text
from tidemill.model.types import DataType, Kind

if TYPE_CHECKING:
    from tidemill.model.types import Value

__all__ = ["cast_value", "half_away_from_zero"]

_BLANKS = " \t\n\v\f\r"
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))([eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(inf|infinity|nan)", re.IGNORECASE)
_MOMENT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(Z|[+-]\d\d(?::\d\d)?)?)?",
    re.ASCII,
)
_BOOLEANS = {
    **dict.fromkeys(("true", "t", "yes", "y", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "0"), False),
}
_FAR = 100


def cast_value(value: Value, target: DataType) -> Value:
    """The value converted to ``target``, or ``None`` if it has no value of that type.

    >>> from tidemill.model.types import DATE, INTEGER
    >>> cast_value(2.5, INTEGER), cast_value("2024-02-30", DATE)
    (2, None)
    """
    if value is None:
        return None
    return conform(_cast(value, target), target)


def _cast(value: Value, target: DataType) -> Value:
    match target.kind:
        case Kind.BOOLEAN:
            return _BOOLEANS.get(value.lower()) if isinstance(value, str) else bool(value)
        case Kind.INTEGER | Kind.BIGINT:
            return _to_integer(value)
        case Kind.DECIMAL:
            return _to_decimal(value, target.scale)
        case Kind.DOUBLE:
            return _to_double(value)
        case Kind.VARCHAR:
            return _to_text(value)
        case Kind.DATE:
            moment = _to_moment(value)
            return None if moment is None else moment.date()
        case Kind.TIMESTAMP:
            return _to_moment(value)
        case Kind.NULL:
            return None


def _to_integer(value: Value) -> int | None:
    match value:
        case str():
            text = value.strip(_BLANKS)
            return _integer(text) if _WHOLE.fullmatch(text) else None
        case float():
            return round(value) if math.isfinite(value) else None
        case Decimal():
            return int(value.to_integral_value(ROUND_HALF_UP))
        case bool() | int():
            return int(value)
        case _:
            raise AssertionError(f"{value!r} does not convert to an integer")


def _to_decimal(value: Value, scale: int) -> Decimal | None:
    match value:
        case str():
            found = _NUMBER.fullmatch(value.strip(_BLANKS))
            return None if found is None else _number(found[1], _integer((found[2] or "e0")[1:]))
        case float():
            shifted = value * float(10**scale)
            if not math.isfinite(shifted):
                return None
            return EXACT.scaleb(Decimal(half_away_from_zero(shifted)), -scale)
        case bool() | int():
            return Decimal(int(value))
        case Decimal():
            return value
        case _:
            raise AssertionError(f"{value!r} does not convert to DECIMAL")


def _number(mantissa: str, exponent: int) -> Decimal | None:
    digits = Decimal(mantissa)
    size = digits.adjusted() + exponent
    # Far out of any DECIMAL's range: not to be written out digit by digit.
    if not digits or size < -_FAR:
        return Decimal(0)
    return None if size > _FAR else Decimal((*digits.as_tuple()[:2], _exponent(digits) + exponent))


def _integer(text: str) -> int:
    return int(Decimal(text))  # int(text) refuses texts of more than 4300 digits


def _exponent(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int), "the number is finite"
    return exponent


def _to_double(value: Value) -> float | None:
    match value:
        case str():
            text = value.strip(_BLANKS)
            known = _NUMBER.fullmatch(text) or _NOT_FINITE.fullmatch(text)
            return float(text) if known else None
        case bool() | int() | float() | Decimal():
            return float(value)
        case _:
            raise AssertionError(f"{value!r} does not convert to DOUBLE")


def _to_text(value: Value) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return double_text(value)
        case Decimal():
            return f"{value:f}"
        case datetime():
            text = value.isoformat(" ")
            return text.rstrip("0") if value.microsecond else text
        case _:
            return str(value)


def _to_moment(value: Value) -> datetime | None:
    match value:
        case datetime():
            return value
        case date():
            return datetime(value.year, value.month, value.day)  # noqa: DTZ001 — no zone: UTC
        case str():
            found = _MOMENT.fullmatch(value.strip(_BLANKS))
            return None if found is None else _moment(found)
        case _:
            raise AssertionError(f"{value!r} does not convert to TIMESTAMP")


def _moment(found: re.Match[str]) -> datetime | None:
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    fraction = int((found[7] or "")[:6].ljust(6, "0"))
    offset = found[8] or "Z"
    hours, _, minutes = "".join(offset[1:]).partition(":")
    shift = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    try:
        zone = timezone(-shift if offset[0] == "-" else shift)
        local = datetime(year, month, day, hour, minute, second, fraction, tzinfo=zone)
        return local.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None  # no such day or time, or outside the years 1 to 9999


def half_away_from_zero(value: float) -> int:
    """The nearest integer to a finite number; of two, the one further from zero.

    >>> half_away_from_zero(2.5), half_away_from_zero(-2.5), half_away_from_zero(2.4)
    (3, -3, 2)
    """
    size = abs(value)
    whole = math.floor(size)
    rounded = whole + 1 if size - whole >= 0.5 else whole  # noqa: PLR2004 — a half
    return -rounded if value < 0 else rounded
