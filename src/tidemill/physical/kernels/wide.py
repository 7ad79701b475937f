"""Sums of DOUBLEs of any size, as Python's integers.

Every finite DOUBLE is a whole number of units of 2**-1074. Those that do not fit 128 bits, the wide
ones (``exact.py``), are added up in that unit, and their squares in its square. Such sums are
exact, so a value is added where it comes, and taken away where it goes: one loop over these
endpoints, in Python, since there is no integer wide enough in Polars.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from tidemill.physical.kernels.cover import COUNT, FIRST, PAST, ROW, VALUE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["UNIT", "Wide", "repaired", "wide_sums"]

UNIT = 1074
"""The unit is the least DOUBLE above zero: two to the power of minus this."""

Wide: TypeAlias = "Mapping[int, tuple[int, int]]"
"""By row that has wide values, their sum in units, and that of their squares in square units."""


def units(value: float) -> int:
    """A finite DOUBLE in units; exact.

    >>> units(5e-324), units(-1.0) == -(2**1074)
    (1, True)
    """
    numerator, denominator = value.as_integer_ratio()
    return numerator << (UNIT + 1 - denominator.bit_length())


def wide_sums(pieces: pl.DataFrame) -> Wide:
    """The sums over the pieces that cover each row.

    Args:
        pieces: Wide values and how often each, with the rows they cover (``cover.located``).
    """
    edges = pl.concat(
        [
            pieces.select(pl.col(FIRST).alias(ROW), VALUE, COUNT),
            pieces.select(pl.col(PAST).alias(ROW), VALUE, -pl.col(COUNT)),
        ]
    )
    sums: dict[int, tuple[int, int]] = {}
    row = count = total = squares = 0
    for at, value, n in edges.sort(ROW).iter_rows():
        if count:
            sums.update(dict.fromkeys(range(row, at), (total, squares)))
        exact = units(value)
        row, count = at, count + n
        total += n * exact
        squares += n * exact * exact
    return sums


def repaired(
    answer: pl.DataFrame,
    frame: pl.DataFrame,
    wide: Wide,
    exactly: Callable[[tuple[int, ...], tuple[int, int]], tuple[int, int]],
) -> pl.Series:
    """The values, with those that are not good, or have wide values in them, computed exactly.

    Args:
        answer: ``value`` and whether it is ``good``.
        frame: What they have been computed from.
        wide: The sums of wide values.
        exactly: From a row of the frame and its sums of wide values, a value as numerator and
            denominator, which is above zero.
    """
    value = answer["value"]
    covered = pl.Series(list(wide), dtype=pl.UInt32).implode()
    bad = answer.with_row_index(ROW).filter(
        pl.col("value").is_not_null() & (~pl.col("good") | pl.col(ROW).is_in(covered))
    )[ROW]
    if bad.is_empty():
        return value
    # A loop over rows, with Python's integers: rare, and there are none as wide in Polars.
    rows = zip(bad, frame[bad].iter_rows(), strict=True)
    return value.scatter(bad, [_quotient(*exactly(row, wide.get(i, (0, 0)))) for i, row in rows])


def _quotient(numerator: int, denominator: int) -> float:
    """The quotient, rounded once."""
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf
