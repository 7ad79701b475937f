"""The feed: in which order the files of a stream are read, written down once and for all.

Spark reads the files of a directory in the order in which they were changed last, and those of one
moment in any order. Here they have the order of the local engine: those that are found together by
their names, after those that were found before. Each file gets a number. An index has a line for
each file; for Spark there is a tiny file for each line, as if it had been written a millisecond
after the one before.

Law: the files of a feed only become more. Whatever happens in between, a file has one number, and a
number one file.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from tidemill.errors import RunError
from tidemill.runtime.files import is_pattern, list_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["ENTRY_COLUMNS", "Feed"]

ENTRY_COLUMNS = "number long, path string"
"""What Spark reads of an entry."""

_MILLISECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class _Entry:
    """A file of the stream: its number, where it is, and how long it was when it was found."""

    number: int
    path: str
    bytes: int


class Feed:
    """The files of a stream in order.

    Args:
        stream: The stream.
        path: Its files: a file, a directory, or a pattern in the last part.
        directory: Where the order is kept.
    """

    def __init__(self, stream: str, path: Path, directory: Path) -> None:
        self.directory = directory
        self._stream = stream
        self._path = path
        self._index = directory / "_index.jsonl"
        directory.mkdir(parents=True, exist_ok=True)
        entries = list(self._read_index())
        self._known = {entry.path for entry in entries}
        self._bytes = sum(entry.bytes for entry in entries)
        written = {path.name for path in directory.glob("*.json")}
        self._write(entry for entry in entries if _name(entry.number) not in written)

    @property
    def files(self) -> int:
        """How many files have been found."""
        return len(self._known)

    @property
    def bytes(self) -> int:
        """How many bytes they had."""
        return self._bytes

    def look(self) -> None:
        """Take in the files that are new.

        Raises:
            RunError: The place that they come from is not there.
        """
        place = self._path.parent if is_pattern(self._path) else self._path
        if not place.exists():
            raise self._is_gone()
        try:
            found = [path.resolve() for path in list_files(self._path)]
            new = [path for path in found if str(path) not in self._known]
            sizes = [path.stat().st_size for path in new]
        except FileNotFoundError as error:
            raise self._is_gone() from error
        first = len(self._known)
        entries = [
            _Entry(first + place, str(path), size)
            for place, (path, size) in enumerate(zip(new, sizes, strict=True))
        ]
        if not entries:
            return
        with self._index.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(asdict(entry)) + "\n" for entry in entries)
            file.flush()
            os.fsync(file.fileno())
        self._write(entries)
        self._known |= {entry.path for entry in entries}
        self._bytes += sum(sizes)

    def _is_gone(self) -> RunError:
        return RunError(
            f'there is no directory "{self._path}" to read "{self._stream}" from',
            hint="give a directory of files, a file or a pattern; files may come later",
        )

    def _read_index(self) -> Iterator[_Entry]:
        """The files that were found so far; a line that was not finished does not count."""
        if not self._index.exists():
            return
        text = self._index.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            unfinished = self._index.with_suffix(".part")
            unfinished.write_text(whole, encoding="utf-8")
            unfinished.rename(self._index)
        for line in whole.splitlines():
            yield _Entry(**json.loads(line))

    def _write(self, entries: Iterable[_Entry]) -> None:
        """Tell Spark of files, in the order of their numbers."""
        for entry in entries:
            unfinished = self.directory / f".{entry.number}"
            unfinished.write_text(json.dumps(asdict(entry)) + "\n", encoding="utf-8")
            os.utime(unfinished, ns=(entry.number * _MILLISECOND,) * 2)
            unfinished.rename(self.directory / _name(entry.number))


def _name(number: int) -> str:
    return f"{number:012d}.json"
