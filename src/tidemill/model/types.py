"""The types of the language, and which of them convert into which without being asked.

Implicit conversions lose nothing but digits of a DOUBLE: INTEGER to BIGINT to DECIMAL to DOUBLE,
DATE to TIMESTAMP, and NULL to anything. Text never converts by itself; a quoted literal beside a
DATE or TIMESTAMP is read as one by the binder.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import TypeAlias

__all__ = [
    "BIGINT",
    "BOOLEAN",
    "DATE",
    "DOUBLE",
    "INTEGER",
    "MAX_PRECISION",
    "NULL",
    "TIMESTAMP",
    "VARCHAR",
    "DataType",
    "Kind",
    "Value",
    "as_decimal",
    "common_type",
    "converts",
    "decimal",
]

Value: TypeAlias = bool | int | float | Decimal | str | date | datetime | None
"""What a column holds, as a Python value; TIMESTAMP is a datetime without a zone."""

MAX_PRECISION = 38


class Kind(Enum):
    """The family a type belongs to."""

    NULL = "NULL"
    BOOLEAN = "BOOLEAN"
    INTEGER = "INTEGER"
    BIGINT = "BIGINT"
    DECIMAL = "DECIMAL"
    DOUBLE = "DOUBLE"
    VARCHAR = "VARCHAR"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"


@dataclass(frozen=True, slots=True)
class DataType:
    """A type; precision and scale are those of a DECIMAL and 0 otherwise."""

    kind: Kind
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        if self.kind is Kind.DECIMAL:
            return f"DECIMAL({self.precision},{self.scale})"
        return self.kind.name

    @property
    def is_integer(self) -> bool:
        """Whether it is INTEGER or BIGINT."""
        return self.kind in (Kind.INTEGER, Kind.BIGINT)

    @property
    def is_numeric(self) -> bool:
        """Whether it is a number."""
        return self.is_integer or self.kind in (Kind.DECIMAL, Kind.DOUBLE)

    @property
    def is_temporal(self) -> bool:
        """Whether it is DATE or TIMESTAMP."""
        return self.kind in (Kind.DATE, Kind.TIMESTAMP)


NULL = DataType(Kind.NULL)
BOOLEAN = DataType(Kind.BOOLEAN)
INTEGER = DataType(Kind.INTEGER)
BIGINT = DataType(Kind.BIGINT)
DOUBLE = DataType(Kind.DOUBLE)
VARCHAR = DataType(Kind.VARCHAR)
DATE = DataType(Kind.DATE)
TIMESTAMP = DataType(Kind.TIMESTAMP)

_NUMERIC_ORDER = (Kind.INTEGER, Kind.BIGINT, Kind.DECIMAL, Kind.DOUBLE)
_DIGITS = {Kind.INTEGER: 10, Kind.BIGINT: 19}


def decimal(precision: int, scale: int) -> DataType:
    """The type of exact numbers with ``precision`` digits, ``scale`` of them after the point."""
    assert 0 <= scale <= precision <= MAX_PRECISION, "the binder checks the limits"
    assert precision > 0, "the binder checks the limits"
    return DataType(Kind.DECIMAL, precision, scale)


def as_decimal(type_: DataType) -> DataType:
    """The DECIMAL that holds every value of an exact numeric type."""
    if type_.kind is Kind.DECIMAL:
        return type_
    return decimal(_DIGITS[type_.kind], 0)


def common_type(left: DataType, right: DataType) -> DataType | None:
    """The smallest type both convert to, or ``None`` if they have nothing in common.

    >>> str(common_type(INTEGER, decimal(5, 2)))
    'DECIMAL(12,2)'
    >>> common_type(VARCHAR, BIGINT) is None
    True
    """
    if left == right or right.kind is Kind.NULL:
        return left
    if left.kind is Kind.NULL:
        return right
    if left.is_numeric and right.is_numeric:
        kind = max(left.kind, right.kind, key=_NUMERIC_ORDER.index)
        return _common_decimal(left, right) if kind is Kind.DECIMAL else DataType(kind)
    if left.is_temporal and right.is_temporal:
        return TIMESTAMP
    return None


def converts(source: DataType, target: DataType) -> bool:
    """Whether ``source`` becomes ``target`` without a CAST."""
    return common_type(source, target) == target


def _common_decimal(left: DataType, right: DataType) -> DataType:
    a, b = as_decimal(left), as_decimal(right)
    scale = max(a.scale, b.scale)
    whole = max(a.precision - a.scale, b.precision - b.scale)
    # Digits after the point are given up before digits in front of it.
    return decimal(min(whole + scale, MAX_PRECISION), min(scale, MAX_PRECISION - whole))
