"""A table whose rows are found by a key, log-structured.

Segments are sorted by a hash of the key, and searched by halving. Inserting appends a segment, and
merges the newest as long as the one before is no larger than they are together (``levels.py``).
Removing writes down which rows are gone (``removals.py``); a segment of which more than half are
gone is written anew.

Law:    a table behaves like the bag of its rows. Keys are equal as Polars groups them: NULL equals
        NULL, NaN equals NaN, and -0.0 equals 0.0. ``rows`` and ``bytes`` count exactly the rows
        that are alive. Names of segments are never used twice.
Cost:   finding k keys, or removing their rows, takes time for them and for the logarithm of the
        rows. A row is written as often as that logarithm, over its whole life.

The hash of Polars may be another in another version. What was hashed otherwise is hashed anew when
it is loaded, under new names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tidemill.physical.frames import pick
from tidemill.physical.state.damaged import require_columns
from tidemill.physical.state.hashes import different, key_hash, row_hash, upper_halves
from tidemill.physical.state.levels import merge_from
from tidemill.physical.state.places import ALL, Places, agreeing
from tidemill.physical.state.removals import LISTED, ROW, SEGMENT, Removals
from tidemill.physical.state.run import HASH, Run, row_bytes
from tidemill.physical.state.segment import Segment, is_searched
from tidemill.physical.state.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tidemill.model.time import Time
    from tidemill.physical.operator import State

__all__ = ["KeyedTable", "keyed"]

_PROBE = pl.DataFrame({"0": [None, 0, -1], "1": [0.5, None, float("nan")], "2": ["", "x", None]})
_BITS = 32
_INNER = 2**_BITS - 1
_OUTER = _INNER << _BITS
"""Where there is something within a key, the upper half of a hash is that of the key."""


class KeyedTable(Table):
    """Rows with a key.

    Args:
        schema: The columns and their types.
        times: The columns of time.
        index: The columns of the key; none means that all rows have the same.
        within: Columns by which the rows of a key are found among themselves, so that a
            search by them, too, does not pay for all rows of the key.
    """

    __slots__ = ("_index", "_removals", "_row_bytes", "_runs", "_within")

    def __init__(
        self,
        schema: dict[str, pl.DataType],
        times: tuple[str, ...],
        *,
        index: Sequence[str],
        within: Sequence[str] = (),
    ) -> None:
        super().__init__(schema, times)
        assert all(name in schema for name in (*index, *within)), "the key is made of columns"
        self._index = tuple(index)
        self._within = tuple(within)
        self._runs: list[Run] = []
        self._removals = Removals(self._new_name)
        self._row_bytes = row_bytes(schema)

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that rows are found by."""
        return self._index

    @property
    def layout(self) -> str:
        """How segments are laid out."""
        return "key"

    def is_empty(self) -> bool:
        """Whether nothing is remembered."""
        return not self._runs

    def rows(self) -> int:
        """How many rows are alive."""
        return sum(run.left for run in self._runs)

    def bytes(self) -> int:
        """How many bytes the rows that are alive take, with their hashes, and what finds them."""
        return sum(run.bytes(self._row_bytes) for run in self._runs)

    def segments(self) -> tuple[Segment, ...]:
        """The segments of rows and of removals, each kind oldest first."""
        runs = (Segment(run.name, run.frame, {}, {}) for run in self._runs)
        return (*runs, *self._removals.segments)

    def insert(self, frame: pl.DataFrame) -> None:
        """Add rows."""
        if frame.is_empty():
            return
        added = pick(frame, self._schema).hstack([self._hash(frame).alias(HASH)])
        first = merge_from([*(run.left for run in self._runs), added.height])
        rows = pl.concat([*(run.alive() for run in self._runs[first:]), added])
        self._runs[first:] = [Run(self._new_name(), rows.sort(HASH))]
        self._forget()

    def all(self) -> pl.DataFrame:
        """The rows that are alive, as one frame."""
        return self._joined([run.alive() for run in self._runs])

    def values(self, column: str) -> list[pl.Series]:
        """One column of the rows that are alive, in pieces; the others are not touched."""
        return [run.values(column) for run in self._runs]

    def find(self, keys: pl.DataFrame) -> pl.DataFrame:
        """The rows that agree with one of the keys.

        Args:
            keys: The columns of the key, and any others by which the rows of a key are told
                apart. It does not matter if one is there twice, or none at all.
        """
        if not keys.width:
            return self.all()
        return self._joined([run.frame[rows] for run, rows in self._found(keys)])

    def candidates(self, by: Sequence[str], keys: pl.DataFrame) -> pl.DataFrame:
        """At least the rows with one of the keys.

        In a run of many more rows than there are keys, only those with their hashes are looked at.

        Args:
            by: Columns by which they are looked for: the key, or any others; without any, all rows
                have the same key.
            keys: As many columns, of the same types.
        """
        count = keys.height
        if not by or not any(is_searched(run.frame.height, count) for run in self._runs):
            return self.all()
        if tuple(by) == self._index:
            hashes = key_hash(keys)
            outer = different(hashes & _OUTER if self._within else hashes)
            found = self._candidates(outer, is_whole=not self._within)
            return self._joined([run.frame[rows] for run, rows in found])
        halves = upper_halves(row_hash(keys))
        return self._joined([run.meeting(by, halves, count) for run in self._runs])

    def take(self, keys: pl.DataFrame) -> pl.DataFrame:
        """Remove and return the rows that agree with one of the keys."""
        return self._remove(self._found(keys)) if keys.width else self.drain()

    def drain(self) -> pl.DataFrame:
        """Remove and return all rows."""
        rows = self.all()
        self.clear()
        return rows

    def extract(self, column: str, before: Time) -> pl.DataFrame:
        """Remove and return the rows with ``column < before``."""
        due = [run for run in self._runs if run.least(column) < before]
        return self._remove([(run, run.before(column, before)) for run in due])

    def purge(self, column: str, time: Time) -> None:
        """Forget the rows with ``column <= time``."""
        due = [run for run in self._runs if run.least(column) <= time]
        self._remove([(run, run.before(column, time + 1)) for run in due])

    def least(self, column: str) -> int | None:
        """The least value of a time column among the rows that are alive."""
        return min((run.least(column) for run in self._runs), default=None)

    def clear(self) -> None:
        """Forget everything."""
        self._runs = []
        self._removals.segments = []

    def manifest(self) -> dict[str, object]:
        """What, besides the segments, a table must know to go on."""
        return {
            "segments": [segment.name for segment in self.segments()],
            "removals": [segment.name for segment in self._removals.segments],
            "next_name": self._next_name,
            "hash": self._hash_version(),
        }

    def restore(self, manifest: Mapping[str, object], frames: Sequence[pl.DataFrame]) -> None:
        """Go on where another table stopped, given its manifest and the rows of its segments.

        Raises:
            DamagedError: A segment has other columns.
        """
        names, removals, next_name = (manifest[k] for k in ("segments", "removals", "next_name"))
        assert isinstance(names, list), "a manifest lists the names of the segments"
        assert isinstance(removals, list), "a manifest lists the names of the removals"
        assert isinstance(next_name, int), "a manifest says which name is next"
        self.clear()
        self._next_name = next_name
        for name, frame in zip(names, frames, strict=True):
            if name in removals:
                require_columns(frame, LISTED)
                self._removals.segments.append(Segment(name, frame, {}, {}))
            else:
                require_columns(frame, {**self._schema, HASH: pl.UInt64()})
                self._runs.append(Run(name, frame))
        by_name = {run.name: run for run in self._runs}
        removed = self._removals.all().filter(pl.col(SEGMENT).is_in(list(by_name)))
        for (name,), part in removed.partition_by(SEGMENT, as_dict=True).items():
            by_name[name].remove(part[ROW])
        if manifest["hash"] != self._hash_version():
            self.insert(self.drain())

    def _found(self, keys: pl.DataFrame) -> Places:
        """The rows that agree with one of the keys."""
        if not self._runs:
            return []
        is_whole = all(name in keys.columns for name in self._within)
        hashes = self._hash(keys) if is_whole else self._outer_hash(keys)
        found = self._candidates(different(hashes), is_whole=is_whole)
        if not found:
            return []
        # Hashes may agree where keys do not.
        return agreeing(found, keys, hashes, ALL if is_whole else _OUTER)

    def _candidates(self, hashes: NDArray[np.uint64], *, is_whole: bool) -> Places:
        """The rows with some hashes, or with some that are known in their outer part only."""
        last = hashes if is_whole else hashes | np.uint64(_INNER)
        found = ((run, run.among(run.hashed(hashes, last))) for run in self._runs)
        return [(run, rows) for run, rows in found if len(rows)]

    def _remove(self, found: Places) -> pl.DataFrame:
        """Remove and return rows."""
        found = [(run, rows) for run, rows in found if len(rows)]
        if not found:
            return self.none()
        taken = self._joined([run.frame[rows] for run, rows in found])
        for run, rows in found:
            run.remove(rows)
        self._runs = [self._tidied(run) for run in self._runs if run.left]
        names = {run.name for run in self._runs}
        self._removals.add([(run.name, rows) for run, rows in found if run.name in names])
        self._forget()
        return taken

    def _tidied(self, run: Run) -> Run:
        """The run, written anew if more than half of it is gone."""
        return run if 2 * run.left >= run.frame.height else Run(self._new_name(), run.alive())

    def _forget(self) -> None:
        """Forget removals from segments that are no more."""
        gone = sum(run.frame.height - run.left for run in self._runs)
        self._removals.merge([run.name for run in self._runs], gone)

    def _hash(self, frame: pl.DataFrame) -> pl.Series:
        """The hash of each row: that of its key, or half of it and half of what is within."""
        outer = self._outer_hash(frame)
        return outer | (key_hash(pick(frame, self._within)) // 2**_BITS) if self._within else outer

    def _outer_hash(self, frame: pl.DataFrame) -> pl.Series:
        if not self._index:
            return pl.Series([0], dtype=pl.UInt64).new_from_index(0, frame.height)
        outer = key_hash(pick(frame, self._index))
        return outer & _OUTER if self._within else outer

    def _hash_version(self) -> str:
        """What a hash depends on: Polars, what it makes of a few rows, and what is within."""
        known = f"{pl.__version__} {key_hash(_PROBE).to_list()}"
        return f"{known} {self._within}" if self._within else known

    def _new_name(self) -> int:
        self._next_name += 1
        return self._next_name - 1

    def _joined(self, frames: list[pl.DataFrame]) -> pl.DataFrame:
        """Rows of several runs as one frame, without their hashes."""
        return self._concat([pick(frame, self._schema) for frame in frames])


def keyed(state: State, name: str) -> KeyedTable:
    """A table of state that has a key."""
    table = state.tables[name]
    assert isinstance(table, KeyedTable), f"{name} has a key"
    return table
