"""Samples: what a batch says about an input, found out of a few of its rows.

All rows are counted, and it is known up to when they are. Their values are looked at in a sample:
the first ``HEAD`` rows of some files, and one in ``EVERY`` of all others. Whether a row is in the
sample follows from its place alone, so it makes no difference how the rows are cut into batches,
nor which engine reads them. In one batch no more than ``LIMIT`` rows are looked at.

Rows need not have all columns: those that nobody reads are there in the first rows only. Of rows
that only stand for others, which were not read, the times alone are looked at.

Law: a sample of some batches is what the samples of each give when they are merged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import polars as pl

from tidemill.engine.ingest import file_number, place_in_file
from tidemill.physical.state.strings import compact_strings
from tidemill.runtime.measuring.sketch import HASHES, Sketch
from tidemill.runtime.reading.parquet_groups import UNREAD

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "EVERY",
    "HEAD",
    "LIMIT",
    "WORTH_IT",
    "Sample",
    "Sampler",
    "has_head",
    "sample_of",
    "sampled",
]

HEAD: Final = 256

_FIRST_FILES: Final = 4
_EVERY_FILE: Final = 16
"""Of these files the first rows are in the sample: of the first ones, and of one in so many."""

EVERY: Final = 4_093
"""A prime: what repeats itself in the rows does not repeat itself in the sample."""

LIMIT: Final = 4_096

WORTH_IT: Final = 1_024
"""It takes as long to look at one row as at some hundreds, so small batches are put together."""

_TEXT: Final = 16
"""How many bytes a text takes besides its letters."""


Integers: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"
"""A column of integers."""


@dataclass(slots=True)
class Sample:
    """What some rows say about an input.

    Attributes:
        rows: How many there were.
        least: The least of their times; ``None`` if there were none.
        latest: The greatest of their times, or of those before.
        looked_at: How many of them are in the sample.
        granule: Of what the times of these are multiples; 0 if all of them are 0.
        bytes: How many bytes these take, by column.
        nulls: How many of them are NULL, by column.
        values: Their values, by column.
        unseen: How many of them do not have a column, by column.
    """

    rows: int = 0
    least: int | None = None
    latest: int | None = None
    looked_at: int = 0
    granule: int = 0
    bytes: dict[str, int] = field(default_factory=dict)
    nulls: dict[str, int] = field(default_factory=dict)
    values: dict[str, Sketch] = field(default_factory=dict)
    unseen: dict[str, int] = field(default_factory=dict)

    def count(self, rows: int, least: int, latest: int) -> None:
        """Count rows, given the least and the greatest of their times."""
        self.rows += rows
        self._span(least, latest)

    def look_at(self, rows: pl.DataFrame, columns: Iterable[str] = ()) -> None:
        """Look at rows that are in the sample.

        Args:
            rows: The rows.
            columns: The columns that there are besides those that these have.
        """
        self.looked_at += rows.height
        for name in columns:
            if name in rows.columns:
                continue
            self.unseen[name] = self.unseen.get(name, 0) + rows.height
        for column in rows.get_columns():
            name = column.name
            self.nulls[name] = self.nulls.get(name, 0) + column.null_count()
            self.values.setdefault(name, Sketch()).add(column)
            self.bytes[name] = self.bytes.get(name, 0) + _bytes(column)

    def look_at_times(self, starts: Integers) -> None:
        """Look at times of rows that are in the sample."""
        self.granule = gcd(self.granule, int(np.gcd.reduce(starts)))

    def merge(self, other: Sample) -> None:
        """Add what other rows say."""
        self.rows += other.rows
        if other.least is not None and other.latest is not None:
            self._span(other.least, other.latest)
        self.looked_at += other.looked_at
        self.granule = gcd(self.granule, other.granule)
        for name, bytes_ in other.bytes.items():
            self.bytes[name] = self.bytes.get(name, 0) + bytes_
        for name, nulls in other.nulls.items():
            self.nulls[name] = self.nulls.get(name, 0) + nulls
        for name, values in other.values.items():
            self.values.setdefault(name, Sketch()).merge(values)
        for name, unseen in other.unseen.items():
            self.unseen[name] = self.unseen.get(name, 0) + unseen

    def write(self) -> dict[str, object]:
        """The sample, for ``json``."""
        return {
            "rows": self.rows,
            "least": self.least,
            "latest": self.latest,
            "looked_at": self.looked_at,
            "granule": self.granule,
            "bytes": dict(self.bytes),
            "nulls": dict(self.nulls),
            "values": {name: sketch.write() for name, sketch in self.values.items()},
            "hashes": HASHES,
            "unseen": dict(self.unseen),
        }

    @classmethod
    def read(cls, written: Mapping[str, object]) -> Sample:
        """The sample that was written.

        Raises:
            ValueError: It is none, or values were hashed otherwise.
        """
        match written:
            case {
                "rows": int(rows),
                "least": int() | None as least,
                "latest": int() | None as latest,
                "looked_at": int(looked_at),
                "granule": int(granule),
                "bytes": dict(bytes_),
                "nulls": dict(nulls),
                "values": dict(values),
                "hashes": str(hashes),
                "unseen": dict(unseen),
            } if hashes == HASHES:
                sketches = {name: Sketch.read(one) for name, one in values.items()}
                sums = rows, least, latest, looked_at, granule, bytes_
                return cls(*sums, nulls, sketches, unseen)
            case _:
                raise ValueError(f"{sorted(written)} is no sample")

    def _span(self, least: int, latest: int) -> None:
        self.least = least if self.least is None else min(self.least, least)
        self.latest = latest if self.latest is None else max(self.latest, latest)


class Sampler:
    """Takes the sample of an input, batch by batch.

    Rows of small batches wait until it is worth to look at them: it takes about as long for a few
    rows as for a thousand.

    Args:
        columns: The columns of the input, of which rows may have some only.
    """

    def __init__(self, columns: Iterable[str] = ()) -> None:
        self._columns = tuple(columns)
        self._sample = Sample()
        self._has_begun = False
        self._waiting: list[tuple[pl.DataFrame, Integers]] = []
        self._rows = 0

    def take(self, frame: pl.DataFrame, first_id: int, starts: pl.Series, latest: int) -> None:
        """Take rows that have come.

        Args:
            frame: The rows, as they came.
            first_id: The id of the first of them.
            starts: The times of those that were taken.
            latest: A time that none of these is after, and one row of the batch has.
        """
        if not starts.len():
            return
        # When rows begin is of interest once, and to find it out takes as long as to filter them.
        self._sample.count(starts.len(), latest if self._has_begun else _least(starts), latest)
        self._has_begun = True
        if self._rows >= LIMIT:
            return
        places = sampled(first_id, frame.height)[: LIMIT - self._rows]
        if not places.size:
            return
        is_whole, is_late = places.size == frame.height, starts.len() < frame.height
        known = places[places < starts.len()] if is_late else places
        times = starts.to_numpy() if is_whole else starts.to_numpy()[known]
        self._rows += places.size
        if UNREAD in frame.columns:
            places = places[~frame[UNREAD].gather(places).to_numpy()]
            frame, is_whole = frame.drop(UNREAD), False
        # Rows that wait must not keep the texts of a whole file alive.
        self._waiting.append((compact_strings(frame if is_whole else frame[places]), times))

    def drain(self, enough: int = 1) -> Sample:
        """What the rows say that came since this was asked last.

        Args:
            enough: Rows of the sample are looked at if there are so many.
        """
        if self._rows >= enough and self._waiting:
            alike: dict[tuple[str, ...], list[pl.DataFrame]] = {}
            for rows, _ in self._waiting:
                alike.setdefault(tuple(rows.columns), []).append(rows)
            for some in alike.values():
                self._sample.look_at(pl.concat(some, rechunk=True), self._columns)
            self._sample.look_at_times(np.concatenate([times for _, times in self._waiting]))
            self._waiting, self._rows = [], 0
        done, self._sample = self._sample, Sample()
        return done


def sampled(first_id: int, rows: int) -> Integers:
    """Which of some rows are in the sample, counted from the first of them.

    Args:
        first_id: The id of the first row.
        rows: How many rows there are.

    >>> sampled(0, 3), sampled(2 * EVERY - 1, 3), sampled(9 << 25, 3)
    (array([0, 1, 2]), array([1]), array([], dtype=int64))
    """
    place, file = place_in_file(first_id), file_number(first_id)
    head = min(max(HEAD - place, 0), rows) if has_head(file) else 0
    first = max(-place % EVERY, EVERY - place)
    return np.concatenate([np.arange(head), np.arange(first, rows, EVERY)])


def has_head(file: int) -> bool:
    """Whether the first rows of a file, given by its number, are in the sample."""
    return file < _FIRST_FILES or not file % _EVERY_FILE


def sample_of(frame: pl.DataFrame) -> Sample:
    """What the rows of a relation say, of which a part is looked at."""
    found = Sample(rows=frame.height)
    if frame.height:
        every = -(-frame.height // LIMIT)
        found.look_at(frame if every == 1 else frame[np.arange(0, frame.height, every)])
    return found


def _least(starts: pl.Series) -> int:
    least = starts.min()
    assert isinstance(least, int), "times are integers"
    return least


def _bytes(column: pl.Series) -> int:
    """How many bytes the values of a column take."""
    if column.dtype == pl.String:
        return int(column.str.len_bytes().sum()) + _TEXT * column.len()
    return int(column.estimated_size())
