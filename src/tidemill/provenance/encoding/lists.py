"""Lists of integers, one after the other in one array, for computations on all of them at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

__all__ = ["Flags", "Ints", "Lists", "counted", "joined"]

Ints: TypeAlias = "npt.NDArray[np.int64]"
Flags: TypeAlias = "npt.NDArray[np.bool_]"

_LIMIT = 1 << 62


@dataclass(frozen=True, slots=True)
class Lists:
    """Lists of integers.

    Attributes:
        bounds: Where each list begins, and where the last one ends.
        values: The values of all lists, in order.
    """

    bounds: Ints
    values: Ints

    @staticmethod
    def of(column: pl.Series) -> Lists:
        """The lists of a column that has no NULL.

        >>> Lists.of(pl.Series([[1, 2], [], [3]])).bounds.tolist()
        [0, 2, 2, 3]
        """
        lists = column.cast(pl.List(pl.Int64)).rechunk().to_arrow()
        if isinstance(lists, pa.ChunkedArray):
            lists = lists.combine_chunks()
        assert lists.null_count == 0, "a set may be empty, but it is there"
        bounds = np.asarray(lists.offsets, dtype=np.int64)
        values = lists.values.slice(bounds[0], bounds[-1] - bounds[0])
        assert values.null_count == 0, "ids are there"
        return Lists(bounds - bounds[0], np.asarray(values, dtype=np.int64))

    @staticmethod
    def with_lengths(lengths: Ints, values: Ints) -> Lists:
        """Lists of so many values each."""
        return Lists(_sums(lengths), values)

    def column(self, name: str, type_: pl.DataType) -> pl.Series:
        """The lists as a column, of values of a type."""
        arrow = pa.LargeListArray.from_arrays(pa.array(self.bounds), pa.array(self.values))
        return pl.Series(name, pl.from_arrow(arrow), pl.List(pl.Int64)).cast(pl.List(type_))

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def lengths(self) -> Ints:
        """How many values each list has."""
        return np.diff(self.bounds)

    def rise(self) -> bool:
        """Whether the values of each list do."""
        stays = self.values[1:] <= self.values[:-1]
        return not (stays & ~self.firsts[1:]).any()

    @property
    def firsts(self) -> Flags:
        """Of each value, whether it is the first of its list."""
        found = np.zeros(len(self.values), dtype=np.bool_)
        found[self.bounds[:-1][self.lengths > 0]] = True
        return found

    def shifts(self, block: int) -> Ints | None:
        """What makes all values of a block of lists greater than those of blocks before.

        None, if there are no integers as great as that.
        """
        if not len(self.values):
            return self.values
        low, high = int(self.values.min()), int(self.values.max())
        span, blocks = high - low + 1, (len(self) - 1) // block + 1
        if span * blocks >= _LIMIT or not -_LIMIT < low <= high < _LIMIT:
            return None
        return np.repeat(np.arange(len(self)) // block * span, self.lengths)

    def sums(self, figures: npt.NDArray[np.integer] | Flags) -> Ints:
        """The sums of figures, one for each value, by list."""
        return np.diff(_sums(figures)[self.bounds])

    def places(self, rows: Ints) -> Lists:
        """Where the values of some of the lists stand."""
        lengths = self.bounds[rows + 1] - self.bounds[rows]
        return Lists.with_lengths(lengths, counted(self.bounds[rows], lengths))

    def at(self, rows: Ints) -> Lists:
        """Some of the lists."""
        places = self.places(rows)
        return Lists(places.bounds, self.values[places.values])

    def of_rows(self, wanted: Flags) -> Lists:
        """The lists that are wanted, and an empty one in place of others."""
        return self.where(np.repeat(wanted, self.lengths))

    def where(self, wanted: Flags) -> Lists:
        """The lists without the values that are not wanted."""
        return Lists(_sums(wanted)[self.bounds], self.values[wanted])


def joined(parts: Sequence[Lists]) -> Lists:
    """From lists of each part, lists of the values of all, in order.

    >>> one, other = Lists.of(pl.Series([[1, 4], [2]])), Lists.of(pl.Series([[3], [5, 6]]))
    >>> joined([one, other]).column("all", pl.Int64()).to_list()
    [[1, 3, 4], [2, 5, 6]]
    """
    parts = [part for part in parts if len(part.values)] or parts[:1]
    if len(parts) == 1:
        return _ordered(parts[0])
    bounds = np.sum([part.bounds for part in parts], axis=0)
    values = np.empty(bounds[-1], dtype=np.int64)
    starts = bounds[:-1].copy()
    for part in parts:
        values[counted(starts, part.lengths)] = part.values
        starts += part.lengths
    return _ordered(Lists(bounds, values))


def counted(starts: Ints, lengths: Ints) -> Ints:
    """From each start on, so many integers.

    >>> counted(np.array([5, 1]), np.array([2, 3])).tolist()
    [5, 6, 1, 2, 3]
    """
    sums = _sums(lengths)
    numbers = np.repeat(starts - sums[:-1], lengths)
    numbers += np.arange(len(numbers))
    return numbers


def _ordered(lists: Lists) -> Lists:
    """The lists, each in order. They have a few parts that are in order: merging them is quick."""
    if lists.rise():
        return lists
    shifts = lists.shifts(1)
    if shifts is None:
        rows = np.repeat(np.arange(len(lists)), lists.lengths)
        return Lists(lists.bounds, lists.values[np.lexsort((lists.values, rows))])
    return Lists(lists.bounds, np.sort(lists.values + shifts, kind="stable") - shifts)


def _sums(figures: npt.NDArray[np.integer] | Flags) -> Ints:
    """The sums of none, the first, the first two and so on."""
    sums = np.zeros(len(figures) + 1, dtype=np.int64)
    np.cumsum(figures, out=sums[1:])
    return sums
