"""Variances from exact sums.

A value is split into parts of 40 bits. The sums of the parts and of the products of parts are kept,
as 128-bit integers: exact, so what is inserted and removed leaves nothing behind. Up to 2**31
values of INTEGER, BIGINT and DECIMAL are summed without a rest; of DOUBLE, those below 2**47 that
are multiples of 2**-80, as is every value from 2**-28 on. Others are wide (``exact.py``).

The mean is subtracted from the sums, part by part and exactly, before anything is rounded; then
the relative error is below 2**-30, and usually some 2**-50. Where that is not certain, a row is
computed with Python's integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.types import DataType, Kind
from tidemill.physical.kernels.exact import digits, rest
from tidemill.physical.kernels.wide import UNIT, repaired

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.physical.kernels.wide import Wide

__all__ = ["NARROW", "part_columns", "part_count", "variance"]

NARROW = (47, 80)
"""How large a narrow DOUBLE may be, and how many bits it may have behind the point."""

_I128 = pl.Int128()
_PART = 40
_ILL_CONDITIONED = 2.0**-20


def part_count(type_: DataType) -> int:
    """In how many parts a value is split."""
    match type_.kind:
        case Kind.INTEGER:
            return 1
        case Kind.BIGINT:
            return 2
        case Kind.DOUBLE:
            return 3
        case _:
            return 1 + (type_.precision - 1) // 12


def part_columns(value: pl.Expr, type_: DataType) -> dict[str, pl.Expr]:
    """What is added up for a variance, by name: parts, and products of them."""
    split = _parts(value, type_)
    sums = {f"s{i}": part for i, part in enumerate(split)}
    squares = {f"p{k}": _product(split, split, k) for k in range(2 * len(split) - 1)}
    return {**sums, **squares}


def _parts(value: pl.Expr, type_: DataType) -> list[pl.Expr]:
    """The parts of a value, each worth 2**40 of the next."""
    found: list[pl.Expr] = []
    if type_.kind is Kind.DOUBLE:
        for _ in range(part_count(type_)):
            found.append(value.cast(_I128, strict=False))
            value = rest(value) * 2.0**_PART
        return found
    whole = digits(value, type_)
    for _ in range(part_count(type_) - 1):
        found.append(whole % (1 << _PART))
        whole = whole // (1 << _PART)
    return [whole, *reversed(found)]


def _product(left: Sequence[pl.Expr], right: Sequence[pl.Expr], k: int) -> pl.Expr:
    """One part of the product of two numbers in parts."""
    width = len(left)
    terms = [left[i] * right[k - i] for i in range(max(0, k - width + 1), min(k, width - 1) + 1)]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def variance(frame: pl.DataFrame, type_: DataType, wide: Wide, freedom: int) -> pl.Series:
    """The variance of each row.

    Args:
        frame: ``n`` and the sums of ``part_columns``; NULL where there is no result.
        type_: The type of the values.
        wide: The sums of wide values.
        freedom: What is taken from the number of values.
    """
    width = part_count(type_)
    answer = _spread(_shifted(frame, width), width)
    unit = 1 << 2 * _PART if type_.kind is Kind.DOUBLE else 10**type_.scale
    scale = (1 << _PART * max(0, 2 * width - 4)) / unit**2
    divisor = (pl.lit(frame["n"]) - freedom).cast(pl.Float64)
    answer = answer.with_columns(pl.col("value") * scale / divisor)

    def exactly(row: tuple[int, ...], wide: tuple[int, int]) -> tuple[int, int]:
        n, parts, products = row[0], row[1 : width + 1], row[width + 1 :]
        total, squares, size = _joined(parts), _joined(products), unit
        if any(wide):
            # Only of DOUBLE, whose unit is a power of two.
            shift = UNIT - 2 * _PART
            total, squares = (total << shift) + wide[0], (squares << 2 * shift) + wide[1]
            size <<= shift
        return n * squares - total**2, n * (n - freedom) * size**2

    columns = ("n", *(f"s{i}" for i in range(width)), *(f"p{k}" for k in range(2 * width - 1)))
    return repaired(answer, frame.select(columns), wide, exactly)


def _joined(parts: Sequence[int]) -> int:
    """A number from its parts."""
    total = 0
    for part in parts:
        total = (total << _PART) + part
    return total


def _shifted(frame: pl.DataFrame, width: int) -> pl.DataFrame:
    """The sums of the values less their mean: ``p0`` and so on, and ``rest``, the sum that is left.

    Integers wrap, so it does not matter how large the sums have been before.
    """
    n = pl.col("n")
    sums = [pl.col(f"s{i}") for i in range(width)]
    frame = frame.with_columns(pl.lit(0, _I128).alias("rest"))
    means = [pl.col(f"c{i}") for i in range(width)]
    for i in range(width):
        frame = frame.with_columns(rest=pl.col("rest") * (1 << _PART) + sums[i])
        frame = frame.with_columns(((pl.col("rest") + n // 2) // n).alias(f"c{i}"))
        frame = frame.with_columns(rest=pl.col("rest") - n * means[i])
    return frame.select(
        "n",
        "rest",
        *(
            pl.col(f"p{k}") - 2 * _product(means, sums, k) + n * _product(means, means, k)
            for k in range(2 * width - 1)
        ),
    )


def _spread(frame: pl.DataFrame, width: int) -> pl.DataFrame:
    """The sum of the squares less their mean, in units of ``p2``, and whether it is accurate."""
    top = min(3, 2 * width - 1)
    exact: pl.Expr = pl.lit(0, _I128)
    sizes: list[pl.Expr] = []
    for k in range(top):
        exact = exact * (1 << _PART) + pl.col(f"p{k}")
        sizes.append(pl.col(f"p{k}").cast(pl.Float64) * 2.0 ** (_PART * (top - 1 - k)))
    low = [
        pl.col(f"p{k}").cast(pl.Float64) * 2.0 ** (_PART * (2 - k)) for k in range(3, 2 * width - 1)
    ]
    # The first products may be large and cancel: added as integers if that is certain to fit.
    size = pl.sum_horizontal(s.abs() for s in sizes)
    fits = size < 2.0**126
    high = pl.when(fits).then(exact.cast(pl.Float64)).otherwise(pl.sum_horizontal(sizes))
    size = pl.when(fits).then(high.abs()).otherwise(size)
    unit = 2.0 ** (-_PART * max(0, 2 * width - 4))
    mean = pl.col("rest").cast(pl.Float64) ** 2 / pl.col("n").cast(pl.Float64) * unit
    value = high - mean
    for part in low:
        value, size = value + part, size + part.abs()
    frame = frame.select(value=value, size=size + mean)
    return frame.select(
        value=pl.max_horizontal("value", 0.0),
        good=(pl.col("value") >= _ILL_CONDITIONED * pl.col("size")),
    )
