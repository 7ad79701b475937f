"""Sums that are exact, from which a value may be taken away again, and numbers rounded once.

Everything is a sum of 128-bit integers, so a sum is a function of the bag of values alone, and what
is inserted and removed leaves nothing behind. A sum wraps only beyond 2**127:

- INTEGER and BIGINT are their own values; up to 2**64 of them.
- DECIMAL is its digits without the point; up to 10**10 values of 28 digits. With more than 28
  digits they are two halves of base 10**19; up to 10**19 values.
- DOUBLE is split into a whole number and a fraction in units of 2**-100, both exact for a *narrow*
  value: one below 2**90 that is a multiple of 2**-100, as is every value from 2**-48 on. Up to
  2**37 of them are added up, if fractions are carried over (``carried``) before there are 2**27
  more. Values that are not narrow are *wide*: they are kept apart, each with how often it occurs,
  and added as longer integers (``wide.py``). NaN and infinities are counted.

There is no error to bound: sums and means are the exact value rounded once. Where 128 bits do not
suffice to round correctly, or there are wide values, a row is computed with Python's integers,
which takes some microseconds, and is rare.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.types import DataType, Kind
from tidemill.physical.kernels.wide import UNIT, repaired

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.physical.kernels.wide import Wide

__all__ = [
    "HALF",
    "carried",
    "counts_of_not_finite",
    "decimal_sum",
    "digits",
    "integer_sum",
    "is_narrow",
    "not_finite",
    "ratio",
    "rest",
    "sum_columns",
]

_I128 = pl.Int128()
_FRACTION = 100
_WIDE_DECIMAL = 28
HALF = 10**19
"""The base of the halves of a DECIMAL with many digits."""

_COUNT = 40  # bits of each of the three counts of values that are not finite


# Splitting values


def is_narrow(value: pl.Expr, size: int = 90, bits: int = _FRACTION) -> pl.Expr:
    """Whether a DOUBLE is below ``2**size``, with no more than ``bits`` bits behind the point."""
    scaled = rest(value) * 2.0**bits
    return (value.abs() < 2.0**size) & (scaled == scaled.floor())


def sum_columns(value: pl.Expr, type_: DataType) -> dict[str, pl.Expr]:
    """What is added up for a sum, by name; of DOUBLE, narrow values only."""
    if type_.kind is Kind.DOUBLE:
        whole = value.cast(_I128, strict=False)
        return {"whole": whole, "fraction": (rest(value) * 2.0**_FRACTION).cast(_I128)}
    whole = digits(value, type_)
    if type_.kind is Kind.DECIMAL and type_.precision > _WIDE_DECIMAL:
        return {"high": whole // HALF, "low": whole % HALF}
    return {"sum": whole}


def not_finite(value: pl.Expr) -> pl.Expr:
    """NaN and both infinities, counted in one number."""
    return (
        pl.when(value.is_nan())
        .then(pl.lit(1 << 2 * _COUNT, _I128))
        .when(value == math.inf)
        .then(pl.lit(1 << _COUNT, _I128))
        .when(value == -math.inf)
        .then(pl.lit(1, _I128))
        .otherwise(pl.lit(0, _I128))
    )


def rest(value: pl.Expr) -> pl.Expr:
    """What is behind the point, with the sign of the value; exact."""
    return value - value.cast(_I128, strict=False).cast(pl.Float64)


def digits(value: pl.Expr, type_: DataType) -> pl.Expr:
    """An exact number without its point."""
    return (value.to_physical() if type_.kind is Kind.DECIMAL else value).cast(_I128)


def carried(whole: str, fraction: str) -> tuple[pl.Expr, pl.Expr]:
    """The same sum with a fraction below one, so that there is room for more."""
    base = 1 << _FRACTION
    return pl.col(whole) + pl.col(fraction) // base, pl.col(fraction) % base


def counts_of_not_finite(total: pl.Expr) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    """How many NaN, +inf and -inf there are in a sum of ``not_finite``."""
    base = 1 << _COUNT
    return total // base // base, total // base % base, total % base


# Sums


def integer_sum(total: pl.Expr) -> pl.Expr:
    """The sum as a BIGINT, NULL if it is none."""
    return pl.when(total.is_between(-(2**63), 2**63 - 1)).then(total).cast(pl.Int64)


def decimal_sum(sums: Sequence[pl.Expr], type_: DataType) -> pl.Expr:
    """The sum, of digits or of halves of them, as a DECIMAL, NULL if it has too many digits."""
    limit = 10**type_.precision
    if len(sums) == 1:
        total, fits = sums[0], sums[0].is_between(-limit + 1, limit - 1)
    else:
        high, low = sums[0] + sums[1] // HALF, sums[1] % HALF
        total = high * HALF + low
        fits = (high < limit // HALF) & (
            (high > -(limit // HALF)) | ((high == -(limit // HALF)) & (low > 0))
        )
    return pl.when(fits).then(total).reinterpret(dtype=pl.Decimal(type_.precision, type_.scale))


def ratio(frame: pl.DataFrame, wide: Wide) -> pl.Series:
    """``(whole + fraction / 2**100 + the wide values) / divisor``, rounded once.

    Args:
        frame: ``whole``, ``fraction`` and ``divisor``; NULL where there is no result.
        wide: The sums of wide values.
    """
    largest = _largest(frame, "whole")
    simple = frame["fraction"].max() == 0 and frame["fraction"].min() == 0
    if simple and largest < 1 << 53 and _largest(frame, "divisor") < 1 << 53:
        # Of series: Polars multiplies by the reciprocal of a constant, which rounds twice.
        value = frame["whole"].cast(pl.Float64) / frame["divisor"].cast(pl.Float64)
        answer = pl.DataFrame({"value": value}).with_columns(good=pl.lit(True))
    else:
        answer = _divided(frame)

    return repaired(answer, frame, wide, _exactly)


def _exactly(row: tuple[int, ...], wide: tuple[int, int]) -> tuple[int, int]:
    """The numerator and the denominator of a ratio."""
    whole, fraction, divisor = row
    narrow, (total, _) = (whole << _FRACTION) + fraction, wide
    if not total:
        return narrow, divisor << _FRACTION
    return (narrow << UNIT - _FRACTION) + total, divisor << UNIT


def _divided(frame: pl.DataFrame) -> pl.DataFrame:
    """The quotient, and whether it is certain to be rounded correctly."""
    base = 1 << _FRACTION
    whole, fraction, divisor = pl.col("whole"), pl.col("fraction"), pl.col("divisor")
    frame = frame.with_columns(whole=whole + fraction // base, fraction=fraction % base)
    # From here on sign and size: below zero, the fraction is what is missing to the next whole.
    borrow = pl.when(fraction > 0).then(pl.lit(1, _I128)).otherwise(pl.lit(0, _I128))
    below = whole < 0
    frame = frame.with_columns(
        sign=pl.when(below).then(-1.0).otherwise(1.0),
        whole=pl.when(below).then(0 - whole - borrow).otherwise(whole),
        fraction=pl.when(below & (fraction > 0)).then(base - fraction).otherwise(fraction),
    )
    # As many bits behind the point as leave room for those in front of it.
    largest = _largest(frame, "whole")
    bits = next((b for limit, b in ((26, 100), (60, 66), (90, 36)) if largest < 1 << limit), 0)
    cut_off = 1 << (_FRACTION - bits)
    frame = frame.with_columns(
        scaled=whole * (1 << bits) + fraction // cut_off, inexact=fraction % cut_off != 0
    )
    scaled = pl.col("scaled")
    frame = frame.with_columns(quotient=scaled // divisor)
    quotient = pl.col("quotient")
    frame = frame.with_columns(inexact=pl.col("inexact") | (quotient * divisor != scaled))
    # Whatever was cut off decides only between a tie and more than a tie: the last bit says it.
    sticky = quotient | pl.col("inexact").cast(_I128)
    return frame.select(
        value=sticky.cast(pl.Float64) * (2.0**-bits) * pl.col("sign"),
        good=~pl.col("inexact") | (quotient >= 1 << 55),
    )


def _largest(frame: pl.DataFrame, column: str) -> int:
    low, high = frame[column].min(), frame[column].max()
    return max(abs(low), abs(high)) if isinstance(low, int) and isinstance(high, int) else 0
