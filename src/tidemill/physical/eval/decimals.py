"""Exact numbers as scaled integers of 128 bits: DECIMAL(p, s) ``x`` is the integer ``x * 10**s``.

Both operands of a sum have less than ``10**38``, and ``2 * 10**38 - 2**128 < -10**38``: a sum that
overflows is out of the range of every DECIMAL. Products are checked before they are made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.types import DataType, Kind
from tidemill.physical.eval.binding import int128, let

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "divided",
    "from_digits",
    "product",
    "rescaled",
    "rounded",
    "three_way",
    "to_digits",
]

_MOST_DIGITS = 38
_DIGITS = {Kind.BOOLEAN: 1, Kind.INTEGER: 10, Kind.BIGINT: 19}


def to_digits(x: pl.Expr, type_: DataType) -> pl.Expr:
    """The scaled integer of a DECIMAL, an integer or a BOOLEAN."""
    return x.to_physical() if type_.kind is Kind.DECIMAL else x.cast(pl.Int128)


def from_digits(digits: pl.Expr, type_: DataType) -> pl.Expr:
    """The DECIMAL of a scaled integer; NULL where it has too many digits."""
    fitting = digits.cast(pl.Decimal(type_.precision, 0), strict=False).to_physical()
    return fitting.reinterpret(dtype=pl.Decimal(type_.precision, type_.scale))


def product(left: pl.Expr, right: pl.Expr, *, precision: int) -> pl.Expr:
    """The product of two scaled integers of so many digits together; NULL where it is too large."""
    if precision <= _MOST_DIGITS:
        return left * right

    def checked(a: pl.Expr, b: pl.Expr) -> pl.Expr:
        # Division by zero is NULL: a product with zero is not too large.
        too_large = a.abs() > int128(10**_MOST_DIGITS - 1) // b.abs()
        return pl.when(too_large.fill_null(value=False)).then(None).otherwise(a * b)

    return let(left, right, body=checked)


def divided(
    digits: pl.Expr, places: int, how: Callable[[pl.Expr, pl.Expr], pl.Expr] = pl.Expr.truncdiv
) -> pl.Expr:
    """The integer without its last digits, cut off (or floored)."""
    if places == 0:
        return digits
    return how(digits, int128(10**places))


def rounded(digits: pl.Expr, places: int) -> pl.Expr:
    """The integer without its last digits, rounded; halves go away from zero."""
    if places == 0:
        return digits
    if places > _MOST_DIGITS:
        return digits * int128(0)  # less than a half of the unit, but NULL stays NULL
    half = int128(10**places // 2)  # 10**38 and half of it are less than 2**127
    return let(digits, body=lambda d: divided(d + d.sign() * half, places))


def rescaled(x: pl.Expr, source: DataType, target: DataType) -> pl.Expr:
    """An exact number as a DECIMAL of another scale; NULL where it does not fit."""
    digits = to_digits(x, source)
    places = target.scale - source.scale
    if places <= 0:
        return from_digits(rounded(digits, -places), target)
    source_digits = source.precision or _DIGITS[source.kind]
    room = _MOST_DIGITS - places
    if room > 0:
        wide = digits if source_digits <= room else _fitting(digits, room)
        return from_digits(wide * int128(10**places), target)
    zero_only = let(digits, body=lambda d: pl.when(d == int128(0)).then(d))
    return from_digits(zero_only, target)


def _fitting(digits: pl.Expr, precision: int) -> pl.Expr:
    return digits.cast(pl.Decimal(precision, 0), strict=False).to_physical()


def three_way(left: pl.Expr, right: pl.Expr, scales: tuple[int, int]) -> pl.Expr:
    """-1, 0 or 1: how two scaled integers of different scales compare, exactly."""
    if scales[0] > scales[1]:
        return pl.lit(0, dtype=pl.Int8) - three_way(right, left, (scales[1], scales[0]))
    unit = int128(10 ** (scales[1] - scales[0]))

    def compared(a: pl.Expr, b: pl.Expr) -> pl.Expr:
        floor = b // unit
        sign = (a > floor).cast(pl.Int8) - (a < floor).cast(pl.Int8)
        exact = b == floor * unit
        return pl.when(sign == 0).then(exact.cast(pl.Int8) - 1).otherwise(sign)

    return let(left, right, body=compared)
