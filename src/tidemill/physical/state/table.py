"""A table of state: a list of immutable segments, log-structured.

Inserting appends a segment. Each segment knows the least and the greatest value of every time
column, so that reading, extracting and purging skip what lies outside. Extracting and purging drop
whole segments; in a segment of which only a part is over, the rows are passed over until half of
them are, then it is written anew. Small segments are merged when there are many, and those of a
table with a key, laid out by arrival, go on to be merged by tiers. Large ones get an index when a
few keys are first looked for in them.

Law: a table behaves like the bag of its rows. ``rows`` and ``bytes`` count exactly the rows that
are alive, and ``bytes`` the indexes besides. Segments have names that are never used twice, so
that each is written to the state store only once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

import polars as pl

from tidemill.model.batch import END
from tidemill.physical.frames import keep, pick
from tidemill.physical.state.damaged import require_columns
from tidemill.physical.state.hashes import Index, different, key_hash
from tidemill.physical.state.levels import merge_tier
from tidemill.physical.state.strings import compact_strings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from tidemill.model.time import Time

__all__ = ["Segment", "Table"]

_MANY_SMALL = 16
"""So many small segments are merged."""

_SMALL_ROWS = 4096
"""A segment with fewer rows is small."""

_STRETCHES = 8

_MANY_MORE = 8
"""A segment with so many rows for each key is searched; one with fewer is quicker gone through."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows that never change.

    Attributes:
        name: Its name, unique in the table for ever.
        frame: The rows.
        low: The least value of each time column, or less.
        high: The greatest value of each time column, or more.
        floor: Rows whose time is at most this have been extracted.
        index: What finds its rows by key, if it has been asked to. Copies of the segment share it,
            since they have the same frame.
    """

    name: int
    frame: pl.DataFrame
    low: dict[str, int]
    high: dict[str, int]
    floor: dict[str, int] = field(default_factory=dict)
    index: list[Index] = field(default_factory=list, repr=False, compare=False)


class Table:
    """Rows with time columns.

    Args:
        schema: The columns and their types.
        times: The columns of time, by which rows are found and purged.
        key: The columns that ``meeting`` looks for; without any it gives all rows.
        by_expiry: Whether rows inserted together are laid out by their ``END``, in a few segments
            one after another (G-25), so that rows that expire together stand together. For rows
            that do not end in the order they come in. Otherwise the layout is by arrival.
    """

    __slots__ = (
        "_by_expiry",
        "_floor",
        "_key",
        "_next_name",
        "_none",
        "_schema",
        "_segments",
        "_times",
    )

    def __init__(
        self,
        schema: dict[str, pl.DataType],
        times: tuple[str, ...],
        *,
        key: Sequence[str] = (),
        by_expiry: bool = False,
    ) -> None:
        assert all(time in schema for time in times), "time columns are columns"
        assert not by_expiry or END in times, "a layout by expiry needs an end"
        self._schema = schema
        self._times = times
        self._key = tuple(key)
        self._by_expiry = by_expiry
        self._none: pl.DataFrame | None = None
        self._segments: list[Segment] = []
        self._next_name = 0
        # Rows whose time is at most this are over, whether or not they have been removed yet.
        self._floor: dict[str, int] = {}

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """The columns and their types."""
        return self._schema

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that rows are found by."""
        return self._key

    @property
    def layout(self) -> str:
        """How segments are laid out: by arrival, or by arrival and expiry."""
        return "arrival and expiry" if self._by_expiry else "arrival"

    def rows(self) -> int:
        """How many rows are alive."""
        return sum(self._left(segment) for segment in self._segments)

    def bytes(self) -> int:
        """How many bytes the rows that are alive take, and what finds them."""
        rows = sum(int(self._alive(segment).estimated_size()) for segment in self._segments)
        return rows + sum(index.bytes() for s in self._segments for index in s.index)

    def segments(self) -> tuple[Segment, ...]:
        """The segments; large ones first when there were many small ones."""
        return tuple(self._segments)

    def insert(self, frame: pl.DataFrame) -> None:
        """Add rows."""
        if frame.is_empty():
            return
        if frame.columns != list(self._schema):
            frame = pick(frame, self._schema)
        self._segments += self._laid_out(frame)
        self._compact()

    def all(self) -> pl.DataFrame:
        """The rows that are alive, as one frame."""
        return self._concat([self._alive(segment) for segment in self._segments])

    def values(self, column: str) -> list[pl.Series]:
        """One column of the rows that are alive, in pieces; the others are not touched."""
        found = ((s.frame.get_column(column), self._floors(s)) for s in self._segments)
        return [part.filter(reduce(and_, floors)) if floors else part for part, floors in found]

    def alive(self, column: str, *, after: Time) -> pl.DataFrame:
        """At least the rows that are alive with ``column > after``; other segments are skipped."""
        found = [s for s in self._segments if s.high[column] > after]
        return self._concat([self._alive(segment) for segment in found])

    def meeting(self, column: str, *, after: Time, keys: pl.DataFrame) -> pl.DataFrame:
        """At least the rows that are alive with ``column > after`` and one of the keys.

        In a segment of many more rows than there are keys, only those with their hashes are looked
        at. Others are given as they are.

        Args:
            column: A column of time.
            after: Before which rows do not matter.
            keys: Columns of the types of the key.
        """
        found = [s for s in self._segments if s.high[column] > after]
        least = max(_SMALL_ROWS, _MANY_MORE * keys.height) if self._key else None
        hashes: NDArray[np.uint64] | None = None
        parts: list[pl.DataFrame] = []
        for segment in found:
            if least is None or segment.frame.height < least:
                parts.append(self._alive(segment))
                continue
            if hashes is None:
                hashes = different(key_hash(keys))
            rows = self._index_of(segment).rows(hashes)
            if len(rows):
                parts.append(self._alive(replace(segment, frame=segment.frame[rows])))
        return self._concat(parts)

    def extract(self, column: str, before: Time) -> pl.DataFrame:
        """Remove and return the rows with ``column < before``."""
        taken: list[pl.DataFrame] = []
        kept: list[Segment] = []
        for segment in self._segments:
            if segment.low[column] >= before:
                kept.append(segment)
                continue
            taken.append(self._alive(segment, segment.frame.get_column(column) < before))
            # What is known of the least value may be too little, and more be extracted already.
            over = max(before - 1, segment.floor.get(column, before - 1))
            low, floor = {**segment.low, column: over + 1}, {**segment.floor, column: over}
            kept += self._kept(replace(segment, low=low, floor=floor))
        self._segments = kept
        return self._concat(taken)

    def purge(self, column: str, time: Time) -> None:
        """Forget the rows with ``column <= time``."""
        self._floor[column] = max(time, self._floor.get(column, time))
        kept: list[Segment] = []
        for segment in self._segments:
            if segment.low[column] > time:
                kept.append(segment)
            elif segment.high[column] > time:
                kept += self._kept(segment)
        self._segments = kept

    def least(self, column: str) -> int | None:
        """The least value of a time column among the rows that are alive."""
        least: int | None = None
        for segment in self._segments:
            if least is None or segment.low[column] < least:
                times, floors = segment.frame.get_column(column), self._floors(segment)
                value = (times.filter(reduce(and_, floors)) if floors else times).min()
                assert value is None or isinstance(value, int), "times are integers"
                least = value if least is None else min(least, least if value is None else value)
        return least

    def none(self) -> pl.DataFrame:
        """No rows; made once, since that takes longer than most of what is done with them."""
        if self._none is None:
            self._none = pl.DataFrame(schema=self._schema)
        return self._none.clone()

    def clear(self) -> None:
        """Forget everything."""
        self._segments = []

    def manifest(self) -> dict[str, object]:
        """What, besides the segments, a table must know to go on: names and what is over."""
        return {
            "segments": [segment.name for segment in self._segments],
            "next_name": self._next_name,
            "floor": dict(self._floor),
            "floors": {str(s.name): s.floor for s in self._segments if s.floor},
        }

    def restore(self, manifest: Mapping[str, object], frames: Sequence[pl.DataFrame]) -> None:
        """Go on where another table stopped, given its manifest and the rows of its segments.

        Raises:
            DamagedError: A segment has other columns.
        """
        names, next_name, floor, floors = (
            manifest[key] for key in ("segments", "next_name", "floor", "floors")
        )
        assert isinstance(names, list), "a manifest lists the names of the segments"
        assert isinstance(next_name, int), "a manifest says which name is next"
        assert isinstance(floor, dict), "a manifest says what is over"
        assert isinstance(floors, dict), "a manifest says what has been extracted"
        self._floor = dict(floor)
        self._segments = []
        for name, frame in zip(names, frames, strict=True):
            require_columns(frame, self._schema)
            segment = self._segment(frame)
            floor_of_it = floors.get(str(name), {})
            self._segments.append(replace(segment, name=name, floor=floor_of_it))
        self._next_name = next_name

    def _alive(self, segment: Segment, *conditions: pl.Series) -> pl.DataFrame:
        """The rows of a segment that are alive, and meet some conditions."""
        conditions = (*conditions, *self._floors(segment))
        if not conditions:
            return segment.frame
        return keep(segment.frame, reduce(and_, conditions))

    def _floors(self, segment: Segment) -> list[pl.Series]:
        """What rows of a segment meet that are alive."""
        purged = [(name, t) for name, t in self._floor.items() if segment.low[name] <= t]
        times = (*segment.floor.items(), *purged)
        return [segment.frame.get_column(name) > time for name, time in times]

    def _kept(self, segment: Segment) -> list[Segment]:
        """What is kept of a segment: it, while half of it is alive, then what is, if anything."""
        left = self._left(segment)
        if 2 * left >= segment.frame.height:
            return [segment]
        return [self._segment(self._alive(segment))] if left else []

    def _left(self, segment: Segment) -> int:
        """How many rows of a segment are alive."""
        floors = self._floors(segment)
        return int(reduce(and_, floors).sum()) if floors else segment.frame.height

    def _laid_out(self, frame: pl.DataFrame) -> list[Segment]:
        """New segments of rows, of which there are some."""
        if not self._by_expiry:
            return [self._segment(frame)]
        size = max(_SMALL_ROWS, -(-frame.height // _STRETCHES))
        order = frame.get_column(END).arg_sort()
        # Each gathered by itself: slices would keep all of the frame in memory.
        return [self._segment(frame[part]) for part in _slices(order, size)]

    def _segment(self, frame: pl.DataFrame) -> Segment:
        self._next_name += 1
        frame = compact_strings(frame)
        # Column by column: for a small frame, one call of the query engine takes ten times as long.
        times = {name: frame.get_column(name) for name in self._times}
        low: dict[str, Any] = {name: column.min() for name, column in times.items()}
        high: dict[str, Any] = {name: column.max() for name, column in times.items()}
        return Segment(self._next_name - 1, frame, low, high)

    def _index_of(self, segment: Segment) -> Index:
        if not segment.index:
            segment.index.append(Index(key_hash(pick(segment.frame, self._key))))
        return segment.index[0]

    def _compact(self) -> None:
        """Merge small segments, and larger ones where keys will be looked for."""
        large, small = self._by_size()
        if len(small) >= _MANY_SMALL:
            self._segments = large + self._merged(small)
            large, small = self._by_size()
        if self._key and not self._by_expiry:
            while (first := merge_tier([s.frame.height for s in large], _SMALL_ROWS)) is not None:
                large = large[:first] + self._merged(large[first:])
                self._segments = large + small

    def _by_size(self) -> tuple[list[Segment], list[Segment]]:
        """The large segments and the small ones, each as they are, about in the order they came."""
        large = [s for s in self._segments if s.frame.height >= _SMALL_ROWS]
        return large, [s for s in self._segments if s.frame.height < _SMALL_ROWS]

    def _merged(self, segments: Sequence[Segment]) -> list[Segment]:
        """The rows of some that are alive, laid out anew, in one piece."""
        rows = self._concat([self._alive(segment) for segment in segments]).rechunk()
        return [] if rows.is_empty() else self._laid_out(rows)

    def _concat(self, frames: list[pl.DataFrame]) -> pl.DataFrame:
        if not frames:
            return self.none()
        return frames[0] if len(frames) == 1 else pl.concat(frames)


def _slices(series: pl.Series, size: int) -> Iterator[pl.Series]:
    return (series.slice(first, size) for first in range(0, series.len(), size))
