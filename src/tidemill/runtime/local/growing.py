"""Sources that may still grow: the files of a directory, and what is read once.

Files are taken in the order of their names, those that are found later after those that were found
before; a file that may still be written is not taken, and those behind it wait for it. Each file is
read once, as it was when it was taken.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tidemill.engine.ingest import readable
from tidemill.errors import RunError
from tidemill.runtime.connectors import source_place
from tidemill.runtime.files import READERS, is_pattern, list_files
from tidemill.runtime.local.sources import file_batch, read_source
from tidemill.runtime.settling import SETTLE, Settling, mark_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import polars as pl

    from tidemill.catalog.entries import StreamEntry
    from tidemill.model.schema import Schema
    from tidemill.runtime.connectors import Place
    from tidemill.runtime.local.sources import Arrival
    from tidemill.runtime.reading.shaping import Refuse
    from tidemill.runtime.settling import Mark

__all__ = ["GrowingFiles", "Once", "Source", "open_source"]

_COMPARED = 250
"""How many files are compared in each look with what they were: the latest, and others in turn."""

_LONG = 5
"""A file that has not settled after so many times the time it is to is worth a word."""

_TOLD = 20
"""So many files that have changed are named; the others are counted."""


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
    """

    def __init__(self, stream: str, place: Place, schema: Schema, refuse: Refuse) -> None:
        self.taken: list[tuple[str, Mark]] = []
        self.read = 0
        self.skipped = 0
        self.waiting: tuple[str, ...] = ()
        self._stream = stream
        self._place = place
        self._path = Path(place.path).absolute()  # whatever the current directory is later
        self._schema = schema
        self._refuse = refuse
        self._settling = Settling(SETTLE if place.settle is None else place.settle)
        self._names: set[str] = set()
        self._batches = 0
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

    def _arrivals(self) -> Iterator[Arrival]:
        """The rows of the files that have not been read, also of those that come meanwhile."""
        while self.read < len(self.taken):
            some = self.taken[self.read : self.read + self._place.files_per_batch]
            number, self._batches = self._batches, self._batches + 1
            yield from file_batch(number, some, self._place.kind, self._schema, self._refuse)
            self.read += len(some)

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
    """What is read once, and then is silent: a frame in memory, a connector that has an end."""

    settle = 0.0
    waiting: tuple[str, ...] = ()

    def __init__(self, arrivals: Iterator[Arrival]) -> None:
        self._arrivals: Iterator[Arrival] | None = arrivals

    def look(self) -> None:
        """There is nothing to look for."""

    def new(self) -> Iterator[Arrival] | None:
        """All of it, when this is asked first."""
        found, self._arrivals = self._arrivals, None
        return found

    def warnings(self) -> tuple[str, ...]:
        """None."""
        return ()


Source = GrowingFiles | Once


def open_source(
    stream: StreamEntry, memory: Mapping[str, pl.DataFrame], refuse: Refuse, *, skips: bool
) -> Source:
    """The source of a stream that is read from now on.

    Args:
        stream: The stream.
        memory: The frames that ``memory`` sources name.
        refuse: What is done with malformed rows.
        skips: Whether files that are there now are left out. A frame in memory does not come at
            some time, so that it is read in any case.

    Raises:
        RunError: It is not there.
    """
    place = source_place(stream.name, stream.source)
    if place.kind not in READERS:
        return Once(read_source(stream.name, stream.source, readable(stream), memory, refuse))
    files = GrowingFiles(stream.name, place, readable(stream), refuse)
    if skips:
        files.skip()
    return files
