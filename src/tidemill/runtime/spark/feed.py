"""The feed: in which order the files of a stream are read, written down once and for all.

Spark reads the files of a directory in the order in which they were changed last, and those of one
moment in any order. Here they have the order of the local engine: those that are found together by
their names, after those that were found before. Each file gets a number. An index has a line for
each file; for Spark there is a tiny file for each line, as if it had been written a millisecond
after the one before. Those of one look are in one directory, which appears all at once.

Law: the files of a feed only become more. Whatever happens in between, a file has one number, and a
number one file.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from tidemill.errors import RunError
from tidemill.runtime.durable import (
    append_durably,
    make_directory,
    rename_durably,
    sync_directory,
)
from tidemill.runtime.files import is_pattern, list_files
from tidemill.runtime.spark.damage import damaged, json_lines, require_feed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["ENTRY_COLUMNS", "Feed"]

ENTRY_COLUMNS = "number long, path string"
"""What Spark reads of an entry."""

_MILLISECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class _Entry:
    """A file of the stream: its number, and where it is."""

    number: int
    path: str


class Feed:
    """The files of a stream in order.

    Args:
        stream: The stream.
        path: Its files: a file, a directory, or a pattern in the last part.
        directory: Where the order is kept.
        taken: How many of the files Spark has read so far.

    Raises:
        RunError: What is kept is damaged.

    Attributes:
        pattern: The directories that Spark reads the order from.
    """

    def __init__(self, stream: str, path: Path, directory: Path, *, taken: int = 0) -> None:
        self.pattern = directory / "look-*"
        self._directory = directory
        self._stream = stream
        self._path = path
        self._index = directory / "index.jsonl"
        make_directory(directory)
        entries = list(self._read_index())
        self._known = {entry.path for entry in entries}
        self._next = len(entries)
        self._unwritten: list[_Entry] = []
        written = {int(found.stem): found for found in directory.glob("look-*/*.json")}
        numbers = [entry.number for entry in entries]
        require_feed(stream, self._index, numbers, written.keys(), taken)
        self._drop_cut_line()
        for number, found in written.items():
            text = _text(entries[number])
            if found.stat().st_size != len(text):
                found.write_bytes(text)  # it was lost with the power
            _set_time(found, number)  # a copy of a checkpoint may have lost it
        self._write([entry for entry in entries if entry.number not in written])

    @property
    def files(self) -> int:
        """How many files have been found."""
        return self._next

    def look(self) -> None:
        """Take in the files that are new.

        Raises:
            RunError: The place that they come from is not there, or there is no room for a note.
        """
        place = self._path.parent if is_pattern(self._path) else self._path
        if not place.exists():
            raise RunError(
                f'there is no directory "{self._path}" to read "{self._stream}" from',
                hint="give a directory of files, a file or a pattern; files may come later",
            )
        new = [path for path in map(str, list_files(self._path)) if path not in self._known]
        if not new and not self._unwritten:
            return
        entries = [_Entry(self._next + place, path) for place, path in enumerate(new)]
        try:
            self._note(entries)
            self._known |= set(new)
            self._next += len(new)
            self._unwritten += entries
            self._write(self._unwritten)
            self._unwritten = []
        except OSError as error:
            raise RunError(
                f'the files of "{self._stream}" cannot be noted in the checkpoint: {error}',
                hint="make room; nothing is lost",
            ) from error

    def _read_index(self) -> Iterator[_Entry]:
        """The files that were found so far; a line that was not finished does not count.

        Raises:
            RunError: A line is damaged.
        """
        if not self._index.exists():
            return
        for line in json_lines(self._index):
            match line:
                case {"number": int(number), "path": str(path)}:
                    yield _Entry(number, path)
                case _:
                    raise damaged(f'"{self._index}"', f"{line} is no line of it")

    def _drop_cut_line(self) -> None:
        """Remove a line that was not finished: nothing was built on it."""
        text = self._index.read_bytes() if self._index.exists() else b""
        whole = text.rfind(b"\n") + 1
        if whole != len(text):
            os.truncate(self._index, whole)

    def _note(self, entries: list[_Entry]) -> None:
        """Write files down for good, all of them or none."""
        before = self._index.stat().st_size if self._index.exists() else 0
        try:
            append_durably(self._index, b"".join(map(_text, entries)))
        except OSError:
            os.truncate(self._index, before)
            raise

    def _write(self, entries: list[_Entry]) -> None:
        """Tell Spark of files, all at once."""
        if not entries:
            return
        name = f"look-{entries[0].number:012d}"
        unfinished = self._directory / f".{name}"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        for entry in entries:
            path = unfinished / f"{entry.number:012d}.json"
            path.write_bytes(_text(entry))
            _set_time(path, entry.number)
        # Not each of them: what they say is in the index, and they are written again from it.
        sync_directory(unfinished)
        rename_durably(unfinished, self._directory / name)


def _text(entry: _Entry) -> bytes:
    return (json.dumps(asdict(entry)) + "\n").encode()


def _set_time(path: Path, number: int) -> None:
    os.utime(path, ns=(number * _MILLISECOND,) * 2)
