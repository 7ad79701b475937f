"""Removals: which rows of which segments are gone, as a log of small segments.

Law: it lists every removed row of every segment that is still there. What it lists besides, of
segments that are not, is never more than that, but for a few rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.physical.state.levels import merge_from
from tidemill.physical.state.segment import Segment

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

__all__ = ["LISTED", "ROW", "SEGMENT", "Removals"]

SEGMENT, ROW = "@segment", "@row"
LISTED = {SEGMENT: pl.Int64(), ROW: pl.UInt32()}
"""The columns of a list of removals."""

_SLACK_ROWS = 64
"""By how many rows what is stored may exceed twice what is removed, before it is cleaned up."""


class Removals:
    """Pairs of the name of a segment and the number of a row.

    Args:
        new_name: Gives a name that has never been used.
    """

    __slots__ = ("_new_name", "segments")

    def __init__(self, new_name: Callable[[], int]) -> None:
        self._new_name = new_name
        self.segments: list[Segment] = []

    def add(self, removed: Sequence[tuple[int, pl.Series]]) -> None:
        """List rows that have been removed: the name of a segment and the numbers of its rows."""
        frames = [
            pl.DataFrame(
                [
                    pl.Series(SEGMENT, [name], pl.Int64).new_from_index(0, len(rows)),
                    rows.alias(ROW),
                ]
            )
            for name, rows in removed
        ]
        if frames:
            self._append(pl.concat(frames))

    def all(self) -> pl.DataFrame:
        """All that is listed."""
        if not self.segments:
            return pl.DataFrame(schema=LISTED)
        return pl.concat([segment.frame for segment in self.segments])

    def merge(self, names: Collection[int], count: int) -> None:
        """Merge what is small, and forget what is of no segment any more.

        Args:
            names: The segments that are still there.
            count: How many of their rows are gone.
        """
        if not count:
            self.segments = []
        if not self.segments:
            return
        sizes = [segment.frame.height for segment in self.segments]
        is_stale = sum(sizes) > 2 * count + _SLACK_ROWS
        first = 0 if is_stale else merge_from(sizes)
        if first == len(sizes) - 1 and not is_stale:
            return
        frame = pl.concat([segment.frame for segment in self.segments[first:]])
        del self.segments[first:]
        frame = frame.filter(pl.col(SEGMENT).is_in(list(names)))
        if not frame.is_empty():
            self._append(frame)

    def _append(self, frame: pl.DataFrame) -> None:
        self.segments.append(Segment(self._new_name(), frame, {}, {}))
