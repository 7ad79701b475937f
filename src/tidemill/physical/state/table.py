"""A table of state: a list of immutable segments, log-structured.

Inserting appends a segment. Each segment knows the least and the greatest value of every time
column, so that reading, extracting and purging skip what lies outside. Extracting and purging drop
whole segments; in a segment of which only a part is over, the rows are passed over until half of
them are, then it is written anew. Small segments are merged when there are many, and those of a
table with a key go on to be merged by tiers, sorted by their ``END`` if they have one, so that the
first of them are over first. Large ones get an index of each key that few are looked for by.

Law: a table behaves like the bag of its rows. ``rows`` and ``bytes`` count exactly the rows that
are alive, and ``bytes`` the indexes besides. Segments have names that are never used twice, so
that each is written to the state store only once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END
from tidemill.physical.frames import pick
from tidemill.physical.state.damaged import require_columns
from tidemill.physical.state.hashes import row_hash, upper_halves
from tidemill.physical.state.levels import merge_tier
from tidemill.physical.state.segment import Segment, is_searched, made

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from tidemill.model.time import Time

__all__ = ["Table"]

_MANY_SMALL = 16
"""So many small segments are merged."""

_SMALL_ROWS = 4096
"""A segment with fewer rows is small."""

_STRETCHES = 8


class Table:
    """Rows with time columns.

    Args:
        schema: The columns and their types.
        times: The columns of time, by which rows are found and purged.
        key: The columns by which ``meeting`` looks for rows, all or some of them; without any, rows
            are not looked for.
        by_expiry: Whether rows inserted together are laid out by their ``END``, in a few segments
            one after another (G-25), so that rows that expire together stand together. For rows
            that do not end in the order they come in. Otherwise the layout is by arrival.
        first_name: The name of the first segment, where others had the names before it.
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
        first_name: int = 0,
    ) -> None:
        assert all(time in schema for time in times), "time columns are columns"
        assert not by_expiry or END in times, "a layout by expiry needs an end"
        self._schema = schema
        self._times = times
        self._key = tuple(key)
        self._by_expiry = by_expiry
        self._none: pl.DataFrame | None = None
        self._segments: list[Segment] = []
        self._next_name = first_name
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

    @property
    def next_name(self) -> int:
        """The name of the next segment; none that there was has it."""
        return self._next_name

    def is_empty(self) -> bool:
        """Whether nothing is remembered, not even what is over."""
        return not self._segments

    def rows(self) -> int:
        """How many rows are alive."""
        return sum(segment.left(self._floor) for segment in self._segments)

    def bytes(self) -> int:
        """How many bytes the rows that are alive take, and what finds them."""
        return sum(
            int(segment.alive(self._floor).estimated_size()) + segment.searches.bytes()
            for segment in self._segments
        )

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
        return self._concat([segment.alive(self._floor) for segment in self._segments])

    def values(self, column: str) -> list[pl.Series]:
        """One column of the rows that are alive, in pieces; the others are not touched."""
        return [segment.values(column, self._floor) for segment in self._segments]

    def meeting(
        self, column: str, *, after: Time, by: Sequence[str], keys: pl.DataFrame
    ) -> pl.DataFrame:
        """At least the rows that are alive with ``column > after`` and one of the keys.

        In a segment of many more rows than there are keys, only those with their hashes are looked
        at. Others are given as they are, unless they lie before ``after`` as a whole.

        Args:
            column: A column of time.
            after: Before which rows do not matter.
            by: Columns by which they are looked for; without any, all have the same key.
            keys: As many columns, of the same types.
        """
        halves: NDArray[np.uint64] | None = None
        parts: list[pl.DataFrame] = []
        for segment in self._segments:
            if segment.high[column] <= after:
                continue
            rows: NDArray[np.uint32] | None = None
            if by and is_searched(segment.frame.height, keys.height):
                halves = upper_halves(row_hash(keys)) if halves is None else halves
                rows = segment.searches.found(segment.frame, by, halves)
            if rows is None:
                parts.append(segment.alive(self._floor))
            elif len(rows):
                parts.append(segment.among(rows, self._floor))
        return self._concat(parts)

    def extract(self, column: str, before: Time) -> pl.DataFrame:
        """Remove and return the rows with ``column < before``."""
        taken: list[pl.DataFrame] = []
        kept: list[Segment] = []
        for segment in self._segments:
            if segment.low[column] >= before:
                kept.append(segment)
                continue
            due = segment.frame.get_column(column) < before
            taken.append(segment.alive(self._floor, due))
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
                value = segment.values(column, self._floor).min()
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

    def _kept(self, segment: Segment) -> list[Segment]:
        """What is kept of a segment: it, while half of it is alive, then what is, if anything."""
        left = segment.left(self._floor)
        if 2 * left >= segment.frame.height:
            return [segment]
        return [self._segment(segment.copied(self._floor))] if left else []

    def _laid_out(self, frame: pl.DataFrame) -> list[Segment]:
        """New segments of rows, if there are any."""
        if frame.is_empty() or not self._by_expiry:
            return [self._segment(frame)] if frame.height else []
        size = max(_SMALL_ROWS, -(-frame.height // _STRETCHES))
        order = frame.get_column(END).arg_sort()
        # Each gathered by itself: slices would keep all of the frame in memory.
        return [self._segment(frame[part]) for part in _slices(order, size)]

    def _segment(self, frame: pl.DataFrame) -> Segment:
        self._next_name += 1
        # Order pays where rows stay for long.
        return made(self._next_name - 1, frame, self._times, looks_for_order=bool(self._key))

    def _compact(self) -> None:
        """Merge small segments, and larger ones where keys will be looked for."""
        large, small = self._by_size()
        if len(small) >= _MANY_SMALL:
            self._segments = large + self._laid_out(self._merged(small))
            large, small = self._by_size()
        if not self._key:
            return
        while (first := merge_tier([s.frame.height for s in large], _SMALL_ROWS)) is not None:
            rows = self._merged(large[first:])
            if END in self._times and not rows.get_column(END).is_sorted():
                rows = rows.sort(END)
            large = [*large[:first], self._segment(rows)] if rows.height else large[:first]
            self._segments = large + small

    def _by_size(self) -> tuple[list[Segment], list[Segment]]:
        """The large segments and the small ones, each as they are, about in the order they came."""
        large = [s for s in self._segments if s.frame.height >= _SMALL_ROWS]
        return large, [s for s in self._segments if s.frame.height < _SMALL_ROWS]

    def _merged(self, segments: Sequence[Segment]) -> pl.DataFrame:
        """The rows of some that are alive, in one piece."""
        return self._concat([segment.alive(self._floor) for segment in segments]).rechunk()

    def _concat(self, frames: list[pl.DataFrame]) -> pl.DataFrame:
        if not frames:
            return self.none()
        return frames[0] if len(frames) == 1 else pl.concat(frames)


def _slices(series: pl.Series, size: int) -> Iterator[pl.Series]:
    return (series.slice(first, size) for first in range(0, series.len(), size))
