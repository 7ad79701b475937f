"""Values of a type: which of them are equal, which is greater, and what has no value.

Laws:
- A value of a type is in its range: an INTEGER or BIGINT that overflows and a DECIMAL with too many
  digits have no value, and are NULL. A DECIMAL always has the digits after the point of its type.
- Equal values cannot be told apart. DOUBLE has therefore one NaN, the object ``NAN``, and one zero
  (``-0.0`` becomes ``0.0``): a bag of rows can be counted in a ``Counter``, and it does not matter
  which of several equal rows is kept.
- Values of a type are in a total order. NaN equals itself and is greater than every other number;
  text is in the order of its code points; FALSE is less than TRUE.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, TypeAlias

from tidemill.model.types import MAX_PRECISION, DataType, Kind

if TYPE_CHECKING:
    from tidemill.model.types import Value

__all__ = ["EXACT", "NAN", "OrderKey", "conform", "order_key"]

NAN = float("nan")
"""The only NaN that an expression gives."""

EXACT = Context(prec=200, rounding=ROUND_HALF_UP)
"""Decimal arithmetic that never rounds: products, quotients and shifts of 38 digits fit in."""

OrderKey: TypeAlias = tuple[bool, "bool | int | float | Decimal | str"]

_RANGES = {Kind.INTEGER: range(-(2**31), 2**31), Kind.BIGINT: range(-(2**63), 2**63)}


def conform(value: Value, type_: DataType) -> Value:
    """The value as one of ``type_``, or ``None`` if it is out of range.

    >>> from tidemill.model.types import INTEGER, decimal
    >>> conform(2**31, INTEGER) is None
    True
    >>> conform(Decimal("1.255"), decimal(3, 2))
    Decimal('1.26')
    """
    if value is None:
        return None
    match type_.kind:
        case Kind.INTEGER | Kind.BIGINT:
            assert isinstance(value, int), f"{value!r} is no {type_}"
            return value if value in _RANGES[type_.kind] else None
        case Kind.DECIMAL:
            assert isinstance(value, Decimal | int), f"{value!r} is no {type_}"
            return _conform_decimal(Decimal(value), type_)
        case Kind.DOUBLE:
            assert isinstance(value, float), f"{value!r} is no {type_}"
            # Adding 0.0 turns -0.0 into 0.0 and changes nothing else.
            return NAN if math.isnan(value) else value + 0.0
        case _:
            return value


def _conform_decimal(value: Decimal, type_: DataType) -> Decimal | None:
    if value.adjusted() > MAX_PRECISION:
        return None  # too large even to be written out
    rounded = EXACT.quantize(value, Decimal(1).scaleb(-type_.scale))
    limit = Decimal(1).scaleb(type_.precision - type_.scale)
    # Unary plus turns -0 into 0. The operators abs and + would round to 28 digits.
    return EXACT.plus(rounded) if rounded.copy_abs() < limit else None


def order_key(value: Value) -> OrderKey:
    """What two values of one type are compared by; NULL has none.

    >>> order_key(NAN) == order_key(NAN), order_key(NAN) > order_key(float("inf"))
    (True, True)
    """
    assert value is not None, "NULL is not compared"
    if isinstance(value, float) and math.isnan(value):
        return (True, 0)
    if isinstance(value, bool | int | float | Decimal | str):
        return (False, value)
    return (False, value.isoformat())
