"""An independent judge of texts: what value a text is of a type, by plain Python; and cases."""

# ruff: noqa: DTZ001 — timestamps carry no zone

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Final

from tidemill.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    TIMESTAMP,
    VARCHAR,
    DataType,
    Kind,
    decimal,
)

BAD: Final = "no such value"
"""What the judge says of a text that is no value of the type."""

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WORDS = {"nan", "inf", "infinity"}
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.([0-9]+))?)?(Z|[+-][0-9]{2}(:?[0-5][0-9])?)?)?"
)


def judge(text: str | None, type_: DataType) -> object:
    """The value that a text is, exactly, or ``BAD``."""
    if text is None:
        return None
    match type_.kind:
        case Kind.VARCHAR:
            return text
        case Kind.BOOLEAN:
            return {"true": True, "false": False}.get(text.lower(), BAD)
        case Kind.DATE:
            return _calendar(text) if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) else BAD
        case Kind.TIMESTAMP:
            return _moment(text)
        case Kind.DOUBLE:
            return _double(text)
        case _:
            return _exact(text, type_)


def _exact(text: str, type_: DataType) -> object:
    if not _NUMBER.fullmatch(text) or len(text.lower().partition("e")[2]) > 4:
        return BAD
    number = Fraction(text)
    if type_.kind is Kind.DECIMAL:
        scaled = number * 10**type_.scale
        fits = scaled.denominator == 1 and abs(scaled) < 10**type_.precision
        return Decimal(int(scaled)).scaleb(-type_.scale) if fits else BAD
    limit = 2 ** (31 if type_.kind is Kind.INTEGER else 63)
    return int(number) if number.denominator == 1 and -limit <= number < limit else BAD


def _double(text: str) -> object:
    if text.lower().lstrip("+-") in _WORDS and len(text) - len(text.lstrip("+-")) <= 1:
        return float(text)
    if not _NUMBER.fullmatch(text) or math.isinf(float(text)):
        return BAD
    return float(text)


def _calendar(text: str) -> object:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return BAD


def _moment(text: str) -> object:
    found = _MOMENT.fullmatch(text)
    if not found or (found[4] or "")[6:].strip("0"):
        return BAD
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return BAD
    return moment


_D = decimal(10, 2)

CASES: Final[list[tuple[str, DataType, object]]] = [
    ("7", BIGINT, 7),
    ("+7", BIGINT, 7),
    ("007", BIGINT, 7),
    ("-0", BIGINT, 0),
    ("9007199254740993", BIGINT, 2**53 + 1),
    ("9223372036854775807", BIGINT, 2**63 - 1),
    ("9223372036854775808", BIGINT, BAD),
    ("-9223372036854775808", BIGINT, -(2**63)),
    ("1.5", BIGINT, BAD),
    ("1.0", BIGINT, 1),
    ("1e3", BIGINT, 1000),
    ("1.5e1", BIGINT, 15),
    ("1e-1", BIGINT, BAD),
    ("1e19", BIGINT, BAD),
    ("1e999999999", BIGINT, BAD),
    ("0x1F", BIGINT, BAD),
    ("1_000", BIGINT, BAD),
    (" 7", BIGINT, BAD),
    ("seven", BIGINT, BAD),
    ("2147483647", INTEGER, 2**31 - 1),
    ("2147483648", INTEGER, BAD),
    ("-2147483648.0", INTEGER, -(2**31)),
    ("12.34", _D, Decimal("12.34")),
    ("12.340", _D, Decimal("12.34")),
    ("12.345", _D, BAD),
    ("12.3400000000000000000000000000000000000000000001", _D, BAD),
    ("12.3400000000000000000000000000000000000000000000", _D, Decimal("12.34")),
    (".5", _D, Decimal("0.50")),
    ("1e2", _D, Decimal(100)),
    ("1e-3", _D, BAD),
    ("0E-18", _D, Decimal(0)),
    ("99999999.99", _D, Decimal("99999999.99")),
    ("100000000", _D, BAD),
    ("NaN", _D, BAD),
    ("12345678901234.5678", decimal(18, 4), Decimal("12345678901234.5678")),
    ("0.1", DOUBLE, 0.1),
    ("1e400", DOUBLE, BAD),
    ("-1e400", DOUBLE, BAD),
    ("1e-400", DOUBLE, 0.0),
    ("NaN", DOUBLE, math.nan),
    ("Infinity", DOUBLE, math.inf),
    ("-Infinity", DOUBLE, -math.inf),
    ("1,5", DOUBLE, BAD),
    ("true", BOOLEAN, True),
    ("FALSE", BOOLEAN, False),
    ("yes", BOOLEAN, BAD),
    ("1", BOOLEAN, BAD),
    ("2026-03-01", DATE, date(2026, 3, 1)),
    ("03/01/2026", DATE, BAD),
    ("2026-3-1", DATE, BAD),
    ("2026-02-30", DATE, BAD),
    ("2026-03-01T00:00:00", DATE, BAD),
    ("0000-01-01", DATE, BAD),
    ("2026-03-01", TIMESTAMP, datetime(2026, 3, 1)),
    ("2026-03-01T12:30", TIMESTAMP, datetime(2026, 3, 1, 12, 30)),
    ("2026-03-01 12:30:15", TIMESTAMP, datetime(2026, 3, 1, 12, 30, 15)),
    ("2026-03-01T12:30:15.5", TIMESTAMP, datetime(2026, 3, 1, 12, 30, 15, 500_000)),
    ("2026-03-01T12:30:15.123456", TIMESTAMP, datetime(2026, 3, 1, 12, 30, 15, 123_456)),
    ("2026-03-01T12:30:15.123456000", TIMESTAMP, datetime(2026, 3, 1, 12, 30, 15, 123_456)),
    ("2026-03-01T12:30:15.1234567", TIMESTAMP, BAD),
    ("2026-03-01T12:30:15Z", TIMESTAMP, datetime(2026, 3, 1, 12, 30, 15)),
    ("2026-03-01T12:30:15+01:30", TIMESTAMP, datetime(2026, 3, 1, 11, 0, 15)),
    ("2026-03-01T12:30:15-0100", TIMESTAMP, datetime(2026, 3, 1, 13, 30, 15)),
    ("2026-03-01T12:30:15+01", TIMESTAMP, datetime(2026, 3, 1, 11, 30, 15)),
    ("0001-01-01T00:00:00+01:00", TIMESTAMP, BAD),
    ("2026-03-01T24:00:00", TIMESTAMP, BAD),
    ("2026-03-01T12:30:60", TIMESTAMP, BAD),
    ("03/01/2026 12:30", TIMESTAMP, BAD),
    ("1700000000", TIMESTAMP, BAD),
    ("any, text", VARCHAR, "any, text"),
]
"""Texts with the value that they are of a type."""
