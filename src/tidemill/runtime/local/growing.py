"""Sources that may still grow: the files of a directory, and what is read once.

Files are taken in the order of their names, those that are found later after those that were found
before; a file that may still be written is not taken, and those behind it wait for it. Each file is
read once, as it was when it was taken.

Law: a source that goes on from a position, with the files that were taken then, gives what the one
gives that was there, in the same batches, whatever the pieces are.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tidemill.engine.ingest import readable
from tidemill.errors import RunError
from tidemill.runtime import settling
from tidemill.runtime.files import READERS, is_pattern, list_files
from tidemill.runtime.local.sources import Given, file_batch, read_source
from tidemill.runtime.settling import Settling, await_settled, mark_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from tidemill.catalog.entries import StreamEntry
    from tidemill.engine.ingest import Malformed
    from tidemill.model.schema import Schema
    from tidemill.runtime.connectors import Place
    from tidemill.runtime.local.sources import Arrival
    from tidemill.runtime.reading.parquet_groups import Wanted
    from tidemill.runtime.reading.shaping import Refuse
    from tidemill.runtime.settling import Mark

__all__ = ["GrowingFiles", "Once", "Position", "Source", "open_source"]

_COMPARED = 250
"""How many files are compared in each look with what they were: the latest, and others in turn."""

_LONG = 5
"""A file that has not settled after so many times the time it is to is worth a word."""

_TOLD = 20
"""So many files that have changed are named; the others are counted."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far a source has been read.

    Attributes:
        read: How many files have been read to their ends.
        batches: How many batches they made.
        size: How many files the batch has that is being read; 0 between two of them.
        rows: How many rows of it have been given.
        malformed: How many malformed rows of it have been refused.
        skipped: How many files were there before the stream was read.
    """

    read: int = 0
    batches: int = 0
    size: int = 0
    rows: int = 0
    malformed: int = 0
    skipped: int = 0


class GrowingFiles:
    """The files of a stream, as they come.

    Args:
        stream: The stream.
        place: Where they are.
        schema: Its columns.
        refuse: What is done with malformed rows.

    Raises:
        RunError: There is no such place.

    Attributes:
        taken: The files in the order in which they are read, as they were when they were taken.
        read: How many of them have been read.
        skipped: How many were there before the stream was read.
        waiting: The files that are there and may still be written, and those that wait for them.
        needed: The columns that are needed of what is read from now on; ``None`` for all.
        wanted: The rows that are wanted of it; ``None`` for all.
    """

    def __init__(self, stream: str, place: Place, schema: Schema, refuse: Refuse) -> None:
        self.taken: list[tuple[str, Mark]] = []
        self.read = 0
        self.skipped = 0
        self.waiting: tuple[str, ...] = ()
        self.needed: frozenset[str] | None = None
        self.wanted: Wanted | None = None
        self._stream = stream
        self._place = place
        self._path = Path(place.path).absolute()  # whatever the current directory is later
        self._schema = schema
        self._refuse = refuse
        seconds = settling.SETTLE if place.settle is None else place.settle
        self._settling = Settling(seconds)
        self._names: set[str] = set()
        self._batches = self._size = self._rows = self._malformed = 0
        self._turn = 0
        self._changed: dict[str, None] = {}
        self._require_place()

    @property
    def settle(self) -> float:
        """For how many seconds a file must not have changed."""
        return self._settling.seconds

    def look(self) -> None:
        """Take in the files that are new and complete, and see whether others have changed.

        Raises:
            RunError: The place that they come from is not there.
        """
        self._require_place()
        there = {path: mark for path in self.waiting if (mark := mark_of(path)) is not None}
        for path in map(str, list_files(self._path, self._names)):
            if path not in there and (mark := mark_of(path)) is not None:
                there[path] = mark
        settled = {path: self._settling.has_settled(path, mark) for path, mark in there.items()}
        paths = list(there)
        count = next((n for n, path in enumerate(paths) if not settled[path]), len(paths))
        self.waiting = tuple(paths[count:])
        self._take({path: there[path] for path in paths[:count]})
        self._compare()

    def skip(self) -> None:
        """Leave out the files that are there, complete or not."""
        there = ((path, mark_of(path)) for path in map(str, list_files(self._path)))
        self._take({path: mark for path, mark in there if mark is not None})
        self.read = self.skipped = len(self.taken)

    def new(self) -> Iterator[Arrival] | None:
        """What has been taken and not been read, if there is something."""
        return self._arrivals() if self.read < len(self.taken) else None

    def warnings(self) -> tuple[str, ...]:
        """What people should know about the files."""
        told = []
        if self.skipped:
            which = "a file" if self.skipped == 1 else f"{self.skipped:,} files"
            told.append(f"{which} that came before the queries began will not be read")
        told += [
            f'file "{path}" has changed after it was taken: what was added or changed is not read'
            for path in list(self._changed)[:_TOLD]
        ]
        if len(self._changed) > _TOLD:
            told.append(f"… and {len(self._changed) - _TOLD} more files have changed")
        for path in self.waiting[:1]:
            if self._settling.waited(path) > _LONG * self.settle:
                others = len(self.waiting) - 1
                wait = f", and {others} more wait for it" if others else ""
                told.append(f'file "{path}" is still being written{wait}')
        return tuple(told)

    @property
    def position(self) -> Position:
        """How far it has been read."""
        given = self._rows, self._malformed
        return Position(self.read, self._batches, self._size, *given, self.skipped)

    def go_on(self, taken: Sequence[tuple[str, Mark]], position: Position) -> None:
        """Go on from where another one was.

        Args:
            taken: The files that it had taken.
            position: How far it had read them.

        Raises:
            RunError: A file has changed of which a part has been read, or changes now.
        """
        self._take(dict(taken))
        self.read, self.skipped = position.read, position.skipped
        self._batches, self._size = position.batches, position.size
        self._rows, self._malformed = position.rows, position.malformed
        self._take_anew()

    def _take_anew(self) -> None:
        """Take files as they are now that have not been read: they may have been replaced."""
        marks = {path: mark_of(path) for path, _ in self.taken[self.read :]}
        changed = [p for p, mark in self.taken[self.read :] if marks[p] not in (None, mark)]
        started = [path for path, _ in self.taken[self.read : self.read + self._size]]
        for path in set(started).intersection(changed) if self._rows or self._malformed else ():
            mark = marks[path]
            if path != started[-1] or mark is None or mark.size:
                raise RunError(
                    f'file "{path}" of "{self._stream}" has changed, and a part of its batch has'
                    " been read",
                    hint="bring it back as it was; the last file of a batch may be replaced with"
                    " an empty one: rows read before are not lost",
                )
        settled = await_settled(self._stream, changed, self.settle)
        self.taken = [(path, settled.get(path, mark)) for path, mark in self.taken]

    def _arrivals(self) -> Iterator[Arrival]:
        """The rows of the files that have not been read, also of those that come meanwhile."""
        while self.read < len(self.taken):
            if not self._size:
                self._size = min(self._place.files_per_batch, len(self.taken) - self.read)
            some, batch = self.taken[self.read : self.read + self._size], self._batches
            arrivals = file_batch(
                batch,
                some,
                self._place.kind,
                self._schema,
                self._refused,
                given=Given(self._rows, self._malformed),
                file=self.read,
                needed=self.needed,
                wanted=self.wanted,
            )
            for arrival in arrivals:
                self._rows += arrival.rows.height
                if arrival.is_last:
                    self._end_batch()
                yield arrival
            if self._batches == batch:
                self._end_batch()  # it had no rows

    def _refused(self, malformed: Malformed) -> None:
        self._refuse(malformed)
        self._malformed += malformed.rows.height

    def _end_batch(self) -> None:
        self.read += self._size
        self._batches += 1
        self._size = self._rows = self._malformed = 0

    def _take(self, files: Mapping[str, Mark]) -> None:
        self.taken += files.items()
        self._names |= {os.path.basename(path) for path in files}  # noqa: PTH119 — of many files

    def _compare(self) -> None:
        """Compare some files that were taken with what they were."""
        last = len(self.taken)
        turn = range(self._turn, min(self._turn + _COMPARED, last))
        self._turn = turn.stop if turn.stop < last else 0
        for number in {*turn, *range(max(last - _COMPARED, 0), last)}:
            path, mark = self.taken[number]
            if mark_of(path) not in (None, mark):
                self._changed[path] = None

    def _require_place(self) -> None:
        place = self._path.parent if is_pattern(self._path) else self._path
        if not place.exists():
            raise RunError(
                f'there is no directory "{self._path}" to read "{self._stream}" from',
                hint="give a directory of files, a file or a pattern; files may come later",
            )


class Once:
    """What is read once, and then is silent: a frame in memory, a connector that has an end.

    Args:
        arrivals: What it gives from now on.
        given: How many batches it has given before.
    """

    settle = 0.0
    waiting: tuple[str, ...] = ()

    def __init__(self, arrivals: Iterator[Arrival], given: int = 0) -> None:
        self._arrivals: Iterator[Arrival] | None = arrivals
        self._given = given

    @property
    def position(self) -> Position:
        """How many batches it has given."""
        return Position(read=self._given, batches=self._given)

    def look(self) -> None:
        """There is nothing to look for."""

    def new(self) -> Iterator[Arrival] | None:
        """All of it, when this is asked first."""
        found, self._arrivals = self._arrivals, None
        return None if found is None else self._counted(found)

    def _counted(self, arrivals: Iterator[Arrival]) -> Iterator[Arrival]:
        for arrival in arrivals:
            self._given += arrival.is_last
            yield arrival

    def warnings(self) -> tuple[str, ...]:
        """None."""
        return ()


Source = GrowingFiles | Once


def open_source(  # noqa: PLR0913 — what is read, and how
    stream: StreamEntry,
    place: Place,
    memory: Mapping[str, pl.DataFrame],
    refuse: Refuse,
    *,
    skips: bool,
    given: int = 0,
) -> Source:
    """The source of a stream that is read from now on.

    Args:
        stream: The stream.
        place: Where its rows are.
        memory: The frames that ``memory`` sources name.
        refuse: What is done with malformed rows.
        skips: Whether files that are there now are left out. A frame in memory does not come at
            some time, so that it is read in any case.
        given: How many batches it has given before, if that is no matter of files.

    Raises:
        RunError: It is not there.
    """
    if place.kind not in READERS:
        read = read_source(stream.name, stream.source, readable(stream), memory, refuse, skip=given)
        return Once(read, given)
    files = GrowingFiles(stream.name, place, readable(stream), refuse)
    if skips:
        files.skip()
    return files
