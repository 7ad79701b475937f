"""Sums of segments: of rows that are picked, and lie in segments one after another.

Law:    ``Addends(column).sums(picked, starts)`` has for each segment the sum that Polars gives for
        ``column.gather(picked)`` from its start to the next one, to the last bit: integers only.

Rows are picked many times over where many queries look at them. NumPy adds up the rows of segments
in a fraction of the time that grouping by a hash takes, but has no integers of 128 bits: these go
as three parts, most of which are the same everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Addends"]

_PART = 1 << 32


class Addends:
    """Integers to be added up, none of them NULL.

    Args:
        column: The integers.
    """

    def __init__(self, column: pl.Series) -> None:
        self._name, self._type = column.name, column.dtype
        self._parts: list[tuple[NDArray[np.int64], int]] = []
        self._each = 0
        parts = [(column, 1)] if column.dtype == pl.Int64 else _parts(column)
        for part, weight in parts if len(column) else ():
            values = part.to_numpy()
            if (values == values[0]).all():  # as the number of rows is, and often that of values
                self._each += int(values[0]) * weight
            else:
                self._parts.append((values, weight))

    def sums(self, picked: NDArray[np.intp], starts: NDArray[np.intp]) -> pl.Series:
        """The sum of each segment.

        Args:
            picked: Numbers of rows, segment by segment; there are some.
            starts: Where in ``picked`` segments start; none is empty.
        """
        counts = pl.Series(np.diff(starts, append=len(picked)), dtype=pl.Int64)
        total = counts.cast(self._type) * self._constant(self._each)
        for values, weight in self._parts:
            part = pl.Series(np.add.reduceat(values[picked], starts)).cast(self._type)
            total += part if weight == 1 else part * self._constant(weight)
        return total.alias(self._name)

    def _constant(self, value: int) -> pl.Series:
        return pl.Series([value], dtype=self._type)


def _parts(column: pl.Series) -> list[tuple[pl.Series, int]]:
    """Numbers that can be added up as they are, and what the sums are to be multiplied with."""
    large, small = (pl.Series([factor], dtype=column.dtype) for factor in (_PART**2, _PART))
    high = column // large
    rest = column - high * large
    middle = rest // small
    low = rest - middle * small
    return [
        (high.cast(pl.Int64), _PART**2),
        (middle.cast(pl.Int64), _PART),
        (low.cast(pl.Int64), 1),
    ]
