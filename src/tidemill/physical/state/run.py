"""A run: rows that never change, sorted by the hash of their key, of which some are gone.

Law: what a run says is true of the rows that are left, as if the others had never been. Removing
k rows costs time for k rows, whatever the size of the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tidemill.physical.frames import keep
from tidemill.physical.state.hashes import found_between
from tidemill.physical.state.segment import Searches, is_searched
from tidemill.physical.state.strings import compact_strings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

__all__ = ["HASH", "Run", "row_bytes"]

HASH = "@hash"
"""The column of the hash, besides those of the table."""

_FIRST_STRIDE = 64
"""How many rows are looked at first, when the first one that is left is searched."""

_PROBE = 64


@dataclass(slots=True)
class _Front:
    """The rows in the order of a time column: those before ``at`` are gone."""

    order: pl.Series
    times: pl.Series
    at: int = 0


class Run:
    """Rows and which of them are left.

    Args:
        name: Its name, unique in the table for ever.
        frame: The rows, sorted by ``HASH``.

    Attributes:
        left: How many rows are left.
        searches: What finds rows by other keys than that; gone or not.
    """

    __slots__ = (
        "_alive",
        "_fronts",
        "_hashes",
        "_oldest",
        "_text",
        "frame",
        "left",
        "name",
        "searches",
    )

    def __init__(self, name: int, frame: pl.DataFrame) -> None:
        self.name = name
        self.frame = compact_strings(frame)
        self.left = frame.height
        self.searches = Searches()
        self._text = _text_bytes(frame)
        # None while every row is left. A series of its own, so that it is changed in place.
        self._alive: pl.Series | None = None
        self._oldest: dict[str, int | None] = {}
        self._fronts: dict[str, _Front] = {}
        self._hashes: NDArray[np.uint64] | None = None

    def hashed(self, first: NDArray[np.uint64], last: NDArray[np.uint64]) -> pl.Series:
        """The numbers of the rows, gone or not, whose hash is in one of some ranges."""
        if self._hashes is None:
            self._hashes = self.frame.get_column(HASH).to_numpy()
        return pl.Series(found_between(self._hashes, first, last).astype(np.uint32))

    def among(self, rows: pl.Series) -> pl.Series:
        """Those of some numbers of rows that are left."""
        return rows if self._alive is None else rows.filter(self._alive[rows])

    def alive(self) -> pl.DataFrame:
        """The rows that are left."""
        alive = self._alive
        if alive is None:
            return self.frame
        return keep(self.frame, alive)

    def meeting(self, by: Sequence[str], halves: NDArray[np.uint64], keys: int) -> pl.DataFrame:
        """At least the rows that are left with one of some keys.

        Args:
            by: The columns of the key.
            halves: Those of the hashes of the keys (``upper_halves``).
            keys: How many keys there are.
        """
        found = None
        if is_searched(self.frame.height, keys):
            found = self.searches.found(self.frame, by, halves)
        return self.alive() if found is None else self.frame[self.among(pl.Series(found))]

    def values(self, column: str) -> pl.Series:
        """One column of the rows that are left."""
        values = self.frame.get_column(column)
        return values if self._alive is None else values.filter(self._alive)

    def remove(self, rows: pl.Series) -> None:
        """Remove rows that are left, by their numbers, each once."""
        if self._alive is None:
            self._alive = pl.Series([True]).new_from_index(0, self.frame.height)
        self._alive.scatter(rows, False)
        self.left -= len(rows)
        if self._text:
            self._text -= _text_bytes(self.frame[rows])

    def bytes(self, width: int) -> int:
        """The bytes of the rows that are left, and of what finds them by another key.

        Args:
            width: Those of a row besides its texts.
        """
        return self.left * width + self._text + self.searches.bytes()

    def least(self, column: str) -> int:
        """The least value of a time column; some row is left."""
        if column not in self._oldest:
            self._oldest[column] = self.frame.get_column(column).arg_min()
        oldest = self._oldest[column]
        assert oldest is not None, "times are not NULL"
        if self._alive is not None and not self._alive[oldest]:
            oldest = self._oldest[column] = self._advance(self._front(column))
        return int(self.frame.get_column(column)[oldest])

    def before(self, column: str, time: int) -> pl.Series:
        """The numbers of the rows whose time is before ``time``."""
        front = self._front(column)
        past = int(front.times.search_sorted(time))
        return self.among(front.order.slice(front.at, max(past - front.at, 0)))

    def _front(self, column: str) -> _Front:
        if column not in self._fronts:
            times = self.frame.get_column(column)
            order = times.arg_sort()
            self._fronts[column] = _Front(order, times[order])
        return self._fronts[column]

    def _advance(self, front: _Front) -> int:
        """The first row in the order that is left; what is passed over is so for ever."""
        width = _FIRST_STRIDE
        while (left := self.among(front.order.slice(front.at, width))).is_empty():
            front.at += width
            width *= 2
        return int(left[0])


def row_bytes(schema: Mapping[str, pl.DataType]) -> int:
    """The bytes of a row, with its hash, besides the characters of its strings."""
    return sum(_type_bytes(type_) for type_ in (*schema.values(), pl.UInt64()))


@cache
def _type_bytes(type_: pl.DataType) -> int:
    if type_ == pl.String:
        return 16  # a view: where its characters are, and how many
    column = pl.repeat(None, _PROBE, dtype=type_, eager=True)
    return max(1, int(column.estimated_size()) // _PROBE)


def _text_bytes(frame: pl.DataFrame) -> int:
    # To Polars some names are patterns, even of a column that stands alone.
    texts = [column.alias("") for column in frame.get_columns() if column.dtype == pl.String]
    return sum(int(column.str.len_bytes().sum()) for column in texts)
