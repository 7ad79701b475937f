"""Segments: rows that never change, of which the first may be over, and what finds them by a key.

Law: what a segment says is true of the rows that are alive: those that have not been extracted, and
whose times lie behind all that has been purged. In a segment that is sorted by a time column those
that are over in it are the first ones, so that to pass over them and to count them costs the same
however many there are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl

from tidemill.physical.frames import keep, pick
from tidemill.physical.state.hashes import Index, row_hash
from tidemill.physical.state.strings import compact_strings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

__all__ = ["Floors", "Searches", "Segment", "is_searched", "made"]

Floors: TypeAlias = "Mapping[str, int]"
"""By time column, a time: what is not after it is over."""

_FEWEST_ROWS = 8_192
"""A segment with fewer rows is gone through."""

_MANY_MORE = 64
"""A segment with so many rows for each key is searched; one with fewer is quicker gone through."""

_PATIENCE = 3
"""So often rows are gone through before they get what finds them: to make it takes several times as
long, and some segments are merged, or the program ends, before it has paid."""


def is_searched(rows: int, keys: int) -> bool:
    """Whether so many rows are searched for so many keys, and not gone through."""
    return rows >= max(_FEWEST_ROWS, _MANY_MORE * keys)


class Searches:
    """What finds rows that never change, by any key that they have been asked for."""

    __slots__ = ("_asked", "_indexes")

    def __init__(self) -> None:
        self._indexes: dict[tuple[str, ...], Index] = {}
        self._asked: dict[tuple[str, ...], int] = {}

    def found(
        self, frame: pl.DataFrame, by: Sequence[str], halves: NDArray[np.uint64]
    ) -> NDArray[np.uint32] | None:
        """The numbers of rows, or ``None`` while it is better to go through them.

        Args:
            frame: The rows, always the same.
            by: The columns of the key.
            halves: Those of the hashes of the keys that are looked for.
        """
        key = tuple(by)
        if key not in self._indexes:
            self._asked[key] = self._asked.get(key, 0) + 1
            if self._asked[key] <= _PATIENCE:
                return None
            self._indexes[key] = Index(row_hash(pick(frame, by)))
        return self._indexes[key].rows(halves)

    def bytes(self) -> int:
        """How many bytes they take."""
        return sum(index.bytes() for index in self._indexes.values())


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows that never change.

    Attributes:
        name: Its name, unique in the table for ever.
        frame: The rows.
        low: The least value of each time column, or less.
        high: The greatest value of each time column, or more.
        ordered: The time columns by which the rows are sorted.
        floor: Rows whose time is at most this have been extracted.
        searches: What finds its rows by key. Copies of the segment share it, since they have the
            same frame.
    """

    name: int
    frame: pl.DataFrame
    low: dict[str, int]
    high: dict[str, int]
    ordered: frozenset[str] = frozenset()
    floor: dict[str, int] = field(default_factory=dict)
    searches: Searches = field(default_factory=Searches, repr=False, compare=False)

    def alive(self, floors: Floors, *conditions: pl.Series) -> pl.DataFrame:
        """The rows that are alive and meet some conditions, given for all rows."""
        first, after = self._over(floors)
        rows = self.frame.slice(first) if first else self.frame
        met = [condition.slice(first) for condition in conditions]
        return _behind(rows, after, met)

    def among(self, rows: NDArray[np.uint32], floors: Floors) -> pl.DataFrame:
        """Those of the rows with some numbers that are alive."""
        first, after = self._over(floors)
        left = rows[rows >= first] if first else rows
        return _behind(self.frame[pl.Series(left)], after)

    def values(self, column: str, floors: Floors) -> pl.Series:
        """One column of the rows that are alive; of the others none is copied."""
        first, after = self._over(floors)
        masks = [self.frame.get_column(name).slice(first) > time for name, time in after]
        values = self.frame.get_column(column).slice(first)
        return values.filter(reduce(and_, masks)) if masks else values

    def left(self, floors: Floors) -> int:
        """How many rows are alive."""
        first, after = self._over(floors)
        masks = [self.frame.get_column(name).slice(first) > time for name, time in after]
        return int(reduce(and_, masks).sum()) if masks else self.frame.height - first

    def copied(self, floors: Floors) -> pl.DataFrame:
        """The rows that are alive, of which there are others, without the memory of those."""
        return _behind(self.frame, self._floors(floors))

    def _over(self, floors: Floors) -> tuple[int, list[tuple[str, int]]]:
        """How many of the first rows are over, and behind which times others must lie."""
        first, after = 0, []
        for name, time in self._floors(floors):
            if name in self.ordered:
                times = self.frame.get_column(name).to_numpy()
                first = max(first, int(np.searchsorted(times, time, "right")))
            else:
                after.append((name, time))
        return first, after

    def _floors(self, floors: Floors) -> list[tuple[str, int]]:
        """The times that matter here."""
        purged = ((name, time) for name, time in floors.items() if self.low[name] <= time)
        return [*self.floor.items(), *purged]


def made(name: int, frame: pl.DataFrame, times: Iterable[str], *, looks_for_order: bool) -> Segment:
    """A segment of rows, of which there are some.

    Args:
        name: Its name.
        frame: The rows.
        times: The columns of time.
        looks_for_order: Whether to find out by which of them the rows are sorted.
    """
    frame = compact_strings(frame.rechunk() if looks_for_order else frame)
    # Column by column: for a small frame, one call of the query engine takes ten times as long.
    columns = {time: frame.get_column(time) for time in times}
    low: dict[str, Any] = {time: column.min() for time, column in columns.items()}
    high: dict[str, Any] = {time: column.max() for time, column in columns.items()}
    ordered = (time for time, column in columns.items() if looks_for_order and column.is_sorted())
    return Segment(name, frame, low, high, frozenset(ordered))


def _behind(
    rows: pl.DataFrame, after: Iterable[tuple[str, int]], conditions: Sequence[pl.Series] = ()
) -> pl.DataFrame:
    """The rows that lie behind some times, by column, and meet some conditions."""
    masks = [*conditions, *(rows.get_column(name) > time for name, time in after)]
    return keep(rows, reduce(and_, masks)) if masks else rows
