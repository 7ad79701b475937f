"""The file log: in which order the files of a stream are read, written down once and for all.

Spark reads the files of a directory in the order in which they were changed last, and those of one
moment in any order. Here they have the order of the local engine: those that are found together by
their names, after those that were found before. Each file gets a number. An index has a line for
each file; for Spark there is a tiny file for each line, as if it had been written a millisecond
after the one before. Those of one look are in one directory, which appears all at once, and goes
when Spark has read them: what it costs to look for new ones does not depend on how many there were.

A file that may still be written is not taken, and those that come after it wait for it. What it was
when it was taken is noted, so that a change can be told: before it has been read, by the task that
reads it, and afterwards here.

Law: files are only added to the log. Whatever happens in between, a file has one number, and a
number one file.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import deque
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from tidemill.errors import RunError
from tidemill.runtime.damage import damaged, json_lines
from tidemill.runtime.durable import (
    append_durably,
    make_directory,
    rename_durably,
    sync_directory,
    sync_file,
)
from tidemill.runtime.files import is_pattern, list_files
from tidemill.runtime.settling import Mark, Settling, await_settled, mark_of
from tidemill.runtime.spark.state.damage import require_file_log

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["ENTRY_COLUMNS", "NUMBERED", "FileLog", "literal", "require_place", "set_number"]

ENTRY_COLUMNS = "number long, path string, size long, changed long"
"""What Spark reads of an entry."""

NUMBERED = {"maxFileAge": "100ms", "fileNameOnly": "true"}
"""How Spark reads files whose time is their number, and whose names are never used twice.

It takes them in the order of their numbers, and what is a hundred before the last is over: it need
not remember it, and never takes it again.
"""

_SPECIAL = re.compile(r"[\\*?\[\]{}]")

_MILLISECOND = 1_000_000

_RECENT, _OTHERS, _AT_FIRST = 250, 250, 20_000
"""How many files are compared in each look with what they were: the latest, and some of the others
in turn; and at most in the first look."""

_LONG = 5
"""A file that has not settled after so many times the time it is to is worth a word."""

_TOLD = 20
"""So many files that have changed are named; the others are counted."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A file of the stream: its number, where it is, and what it was when it was taken.

    Attributes:
        number: Its number.
        path: Where it is.
        size: How many bytes it had; -1 if an earlier version has not noted it.
        changed: When it had been changed, in nanoseconds.
    """

    number: int
    path: str
    size: int = -1
    changed: int = -1


class FileLog:
    """The files of a stream in order.

    Args:
        stream: The stream.
        path: Its files: a file, a directory, or a pattern in the last part.
        directory: Where the order is kept.
        settle: For how many seconds a file must not have changed.
        taken: How many of the files Spark has read so far, as its own notes say.
        committed: How many files Spark has read for good.
        delivered: How many files are in answers that have been delivered; no less.

    Raises:
        RunError: What is kept is damaged, or a file that is taken anew is still being written.

    Attributes:
        directory: Where the order is kept.
        pattern: The directories that Spark reads the order from.
        skipped: How many files were there before the first query began that still reads the stream.
        waiting: The files that are there and may still be written, and those that wait for them.
        changed: The files that have changed after they were taken; the first of them.
        changes: How many they are.
    """

    def __init__(  # noqa: PLR0913 — what is known of a stream's files
        self,
        stream: str,
        path: Path,
        directory: Path,
        *,
        settle: float = 0,
        taken: int = 0,
        committed: int = 0,
        delivered: int = 0,
    ) -> None:
        self.pattern = f"{literal(directory)}/look-*"
        self.waiting: tuple[str, ...] = ()
        self.changed: tuple[str, ...] = ()
        self.changes = 0
        self.directory = directory
        self._stream = stream
        self._path = path
        self._index = directory / "index.jsonl"
        self._settling = Settling(settle)
        make_directory(directory)
        for rest in directory.glob(".*"):
            shutil.rmtree(rest, ignore_errors=True)
        self.skipped = 0
        self._entries = list(self._read_index())
        committed = max(committed, self.skipped)
        self._unwritten: list[_Entry] = []
        self._looks = deque(sorted(int(p.name.partition("-")[2]) for p in directory.glob("look-*")))
        written = {int(found.stem): found for found in directory.glob("look-*/*.json")}
        numbers = [entry.number for entry in self._entries]
        require_file_log(stream, self._index, numbers, written.keys(), taken, committed)
        self._drop_cut_line()
        for number, found in written.items():
            text = _text(self._entries[number])
            if found.stat().st_size != len(text):
                found.write_bytes(text)  # it was lost with the power
            set_number(found, number)  # a copy of a checkpoint may have lost it
        self._take_anew(delivered, written)
        missing = [e for e in self._entries[committed:] if e.number not in written]
        self._write(missing)
        self.forget(committed)
        self._place = path.parent if path.is_file() or is_pattern(path) else path
        here = (p.rpartition("/") for p in (entry.path for entry in self._entries))
        self._names = {name for place, _, name in here if place == str(self._place)}
        self._changed_to: dict[int, Mark] = {}
        self._turn = 0
        self._first = True

    @property
    def settle(self) -> float:
        """For how many seconds a file must not have changed."""
        return self._settling.seconds

    @property
    def files(self) -> int:
        """How many files have been found."""
        return len(self._entries)

    def look(self) -> None:
        """Take in the files that are new and complete, and see whether others have changed.

        Raises:
            RunError: The place that they come from is not there, or there is no room for a note.
        """
        require_place(self._stream, self._path)
        entries = self._new_entries()
        if entries or self._unwritten:
            try:
                self._note(entries)
                self._entries += entries
                self._names |= {os.path.basename(entry.path) for entry in entries}  # noqa: PTH119
                self._unwritten += entries
                self._write(self._unwritten)
                self._unwritten = []
            except OSError as error:
                raise self._no_room(error) from error
        self._find_changes()

    def skip(self, files: int | None = None) -> None:
        """Leave out files that came before the queries that read the stream.

        Args:
            files: How many; ``None`` for all that are there.

        Raises:
            RunError: The place that they come from is not there, or there is no room for a note.
        """
        require_place(self._stream, self._path)
        entries = self._entries_there() if files is None else []
        count = len(self._entries) + len(entries) if files is None else files
        try:
            if count != self.skipped:
                self._note(entries, skipped=count)
            self._entries += entries
            self._names |= {os.path.basename(entry.path) for entry in entries}  # noqa: PTH119
            self.skipped = count
            self._leave_out(count)
        except OSError as error:
            raise self._no_room(error) from error

    def _leave_out(self, files: int) -> None:
        """Remove the notes of so many files; the others stay where Spark may have seen them."""
        for look in list(self._looks):
            place = self.directory / _look_name(look)
            for path in place.glob("*.json"):
                if int(path.stem) < files:
                    path.unlink()
            if not any(place.iterdir()):
                place.rmdir()
                self._looks.remove(look)

    def _entries_there(self) -> list[_Entry]:
        """The files that are new, complete or not."""
        there = ((path, mark_of(path)) for path in map(str, list_files(self._path, self._names)))
        found = [(path, mark) for path, mark in there if mark is not None]
        return [
            _Entry(number, path, mark.size, mark.changed)
            for number, (path, mark) in enumerate(found, start=len(self._entries))
        ]

    def forget(self, committed: int) -> None:
        """Remove what Spark does not read again: it has read so many files for good."""
        while len(self._looks) > 1 and self._looks[1] <= committed:
            look = self.directory / _look_name(self._looks.popleft())
            gone = look.with_name(f".{look.name}")
            look.rename(gone)  # all of it, or nothing
            shutil.rmtree(gone)

    def _no_room(self, error: OSError) -> RunError:
        return RunError(
            f'the files of "{self._stream}" cannot be noted in the checkpoint: {error}',
            hint="make room; nothing is lost",
        )

    def warnings(self) -> tuple[str, ...]:
        """What people should know about the files."""
        told = []
        if self.skipped:
            which = "a file" if self.skipped == 1 else f"{self.skipped:,} files"
            told.append(f"{which} that came before the queries began will not be read")
        told += [
            f'file "{path}" has changed after it was taken: what was added or changed is not read'
            for path in self.changed
        ]
        if self.changes > len(self.changed):
            told.append(f"… and {self.changes - len(self.changed)} more files have changed")
        first, others = self.waiting[:1], len(self.waiting) - 1
        for path in first:
            if self._settling.waited(path) > _LONG * self.settle:
                wait = f", and {others} more wait for it" if others else ""
                told.append(f'file "{path}" is still being written{wait}')
        return tuple(told)

    def _new_entries(self) -> list[_Entry]:
        """The files that are new and complete, in their order, up to the first that is not."""
        there = {path: mark for path in self.waiting if (mark := mark_of(path)) is not None}
        for path in map(str, list_files(self._path, self._names)):
            if path not in there and (mark := mark_of(path)) is not None:
                there[path] = mark
        settled = {path: self._settling.has_settled(path, mark) for path, mark in there.items()}
        paths = list(there)
        count = next((n for n, path in enumerate(paths) if not settled[path]), len(paths))
        self.waiting = tuple(paths[count:])
        first = len(self._entries)
        return [
            _Entry(first + place, path, there[path].size, there[path].changed)
            for place, path in enumerate(paths[:count])
        ]

    def _find_changes(self) -> None:
        """Compare some files that were taken with what they were."""
        last = len(self._entries)
        recent, others = (_AT_FIRST, 0) if self._first else (_RECENT, _OTHERS)
        self._first = False
        older = max(last - recent, 0)
        turn = range(self._turn, min(self._turn + others, older))
        self._turn = turn.stop if turn.stop < older else 0
        for number in (*turn, *range(older, last)):
            entry = self._entries[number]
            mark = mark_of(entry.path) if entry.size >= 0 else None
            if mark is None or mark == Mark(entry.size, entry.changed):
                continue
            if number not in self._changed_to:
                self.changes += 1
                self.changed = (*self.changed, entry.path)[:_TOLD]
            self._changed_to[number] = mark

    def _take_anew(self, delivered: int, written: dict[int, Path]) -> None:
        """Take files as they are now of which nothing has been delivered.

        A user who was told that a file is broken may have replaced it.

        Raises:
            RunError: One of them is still being written.
        """
        changed = [e for e in self._entries[delivered:] if _has_changed(e)]
        marks = await_settled(self._stream, (e.path for e in changed), self.settle)
        renewed = [
            replace(entry, size=marks[entry.path].size, changed=marks[entry.path].changed)
            for entry in changed
            if entry.path in marks
        ]
        if renewed:
            self._note(renewed)
        for entry in renewed:
            self._entries[entry.number] = entry
            if entry.number in written:
                _write_entry(written[entry.number], entry)

    def _read_index(self) -> Iterator[_Entry]:
        """The files that were found so far; a line that was not finished does not count.

        Raises:
            RunError: A line is damaged.
        """
        if not self._index.exists():
            return
        entries: dict[int, _Entry] = {}
        for line in json_lines(self._index):
            match line:
                case {
                    "number": int(number),
                    "path": str(path),
                    "size": int(size),
                    "changed": int(changed),
                }:
                    # One that was taken anew has a second line.
                    entries[number] = _Entry(number, path, size, changed)
                case {"skipped": int(count)}:
                    self.skipped = count
                case _:
                    raise damaged(f'"{self._index}"', f"{line} is no line of it")
        yield from entries.values()

    def _drop_cut_line(self) -> None:
        """Remove a line that was not finished: nothing was built on it."""
        text = self._index.read_bytes() if self._index.exists() else b""
        whole = text.rfind(b"\n") + 1
        if whole != len(text):
            os.truncate(self._index, whole)

    def _note(self, entries: Iterable[_Entry], *, skipped: int | None = None) -> None:
        """Write files down for good, all of them or none, and how many are skipped."""
        before = self._index.stat().st_size if self._index.exists() else 0
        last = b"" if skipped is None else (json.dumps({"skipped": skipped}) + "\n").encode()
        try:
            append_durably(self._index, b"".join(map(_text, entries)) + last)
        except OSError:
            os.truncate(self._index, before)
            raise

    def _write(self, entries: list[_Entry]) -> None:
        """Tell Spark of files, all at once."""
        if not entries:
            return
        name = _look_name(entries[0].number)
        unfinished = self.directory / f".{name}"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        for entry in entries:
            _fill(unfinished / f"{entry.number:012d}.json", entry)
        # Not each of them: what they say is in the index, and they are written again from it.
        sync_directory(unfinished)
        rename_durably(unfinished, self.directory / name)
        self._looks.append(entries[0].number)


def literal(path: Path) -> str:
    r"""A path as Spark must be told it, to which some characters are those of patterns.

    >>> from pathlib import Path
    >>> literal(Path("/data/run[1]"))
    '/data/run\\[1\\]'
    """
    return _SPECIAL.sub(r"\\\g<0>", str(path))


def require_place(stream: str, path: Path) -> None:
    """Refuse a stream whose files are to come from where there is nothing.

    Raises:
        RunError: There is no such directory.
    """
    place = path.parent if is_pattern(path) else path
    if not place.exists():
        raise RunError(
            f'there is no directory "{path}" to read "{stream}" from',
            hint="give a directory of files, a file or a pattern; files may come later",
        )


def _look_name(number: int) -> str:
    return f"look-{number:012d}"


def _has_changed(entry: _Entry) -> bool:
    mark = mark_of(entry.path) if entry.size >= 0 else None
    return mark is not None and mark != Mark(entry.size, entry.changed)


def _write_entry(path: Path, entry: _Entry) -> None:
    """Replace the note of a file."""
    unfinished = path.with_name(f".{path.name}")
    _fill(unfinished, entry)
    sync_file(unfinished)
    rename_durably(unfinished, path)


def _fill(path: Path, entry: _Entry) -> None:
    path.write_bytes(_text(entry))
    set_number(path, entry.number)


def _text(entry: _Entry) -> bytes:
    """What Spark reads of a file, and what is kept of it."""
    return (json.dumps(asdict(entry)) + "\n").encode()


def set_number(path: Path, number: int) -> None:
    """Let Spark take a file for the one with this number."""
    os.utime(path, ns=(number * _MILLISECOND,) * 2)
