"""The statement log of a checkpoint: what its sessions have created and dropped, line by line.

    {"number": 1, "create": "STREAM", "name": "bid", "statement": …, "digest": …}
    {"undo": 1, "digest": …}

Each line has a digest of itself and of the line before it, so that no line can be changed, left out
or moved without a word. The first line says in which format the others are.

Law: what was appended is read again in its order. A last line that was cut short, by a kill or a
loss of power, was never acted upon: it is left out, and overwritten by the next one. Anything else
that is not as it was written is an error.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, assert_never

from tidemill.catalog.durable import Done, LogEntry, Undone, Written
from tidemill.errors import RunError
from tidemill.lang.statements import ObjectKind
from tidemill.runtime.damage import damaged
from tidemill.runtime.durable import append_durably, sync_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["STATEMENTS_FILE", "StatementLog"]

STATEMENTS_FILE = "statements.jsonl"
_FORMAT = 1


class StatementLog:
    """The log of a checkpoint, as far as this session has read and written it.

    All methods are called by the session that holds the lock of the checkpoint.

    Args:
        directory: The checkpoint.

    Attributes:
        next: The number that the next statement gets.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / STATEMENTS_FILE
        self._size = 0  # of the lines that are whole
        self._last = 0  # so many of them are the last one
        self._digest = ""
        self.next = 1

    def read(self) -> list[LogEntry]:
        """All entries, in their order.

        Raises:
            RunError: The log is damaged, or of another format.
        """
        self._size, self._last, self._digest, self.next = 0, 0, "", 1
        content = self._whole()
        entries: list[LogEntry] = []
        for number, line in enumerate(content.split(b"\n")[:-1], start=1):
            try:
                found = self._opened(line)
                if number == 1:
                    self._require_format(found)
                else:
                    entries.append(_entry(found))
            except (ValueError, KeyError, TypeError) as error:
                raise damaged(f'line {number} of "{self._path}"', error) from error
        written = [entry.number for entry in entries if isinstance(entry, Written)]
        self._size, self.next = len(content), max(written, default=0) + 1
        self._last = len(content) - (content[:-1].rfind(b"\n") + 1)
        return entries

    def is_unchanged(self) -> bool:
        """Whether nobody else has written since this session has read or written."""
        before = self._size - self._last
        last = self._whole(before)  # each line vouches for those before it
        return before + len(last) == self._size and self._digest.encode() in last

    def append(self, entry: LogEntry) -> None:
        """Write an entry; it is there after a loss of power when this returns."""
        if not self._size:
            self._append({"format": _FORMAT})
        self._append(_fields(entry))
        if isinstance(entry, Written):
            self.next = entry.number + 1

    def _append(self, fields: Mapping[str, object]) -> None:
        """Write a line, whose digest follows the one before it."""
        if self._path.exists() and self._path.stat().st_size > self._size:
            os.truncate(self._path, self._size)  # a line that was cut short
            sync_file(self._path)
        digest = _digest(self._digest, fields)
        line = json.dumps({**fields, "digest": digest}).encode() + b"\n"
        append_durably(self._path, line)
        self._digest = digest
        self._size, self._last = self._size + len(line), len(line)

    def _whole(self, after: int = 0) -> bytes:
        """The lines that are whole, after so many bytes."""
        try:
            with self._path.open("rb") as file:
                file.seek(after)
                content = file.read()
        except FileNotFoundError:
            return b""
        return content[: content.rfind(b"\n") + 1]

    def _opened(self, line: bytes) -> dict[str, object]:
        """A line without its digest, which was found to be right."""
        found = json.loads(line.decode())
        if not isinstance(found, dict):
            raise TypeError("it is no object")
        said = found.pop("digest")
        self._digest = _digest(self._digest, found)
        if said != self._digest:
            raise ValueError("it is not what was written, or a line before it is missing")
        return found

    def _require_format(self, found: Mapping[str, object]) -> None:
        if found["format"] != _FORMAT:
            raise RunError(
                f'"{self._path}" has format {found["format"]}, and this version reads {_FORMAT}',
                hint="go on with the version that wrote it, or choose a new checkpoint",
            )


def _digest(before: str, fields: Mapping[str, object]) -> str:
    content = before + json.dumps(fields, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _fields(entry: LogEntry) -> dict[str, object]:
    match entry:
        case Written(number, kind, name, text, is_drop):
            verb = "drop" if is_drop else "create"
            return {"number": number, verb: kind.value, "name": name, "statement": text}
        case Undone(number):
            return {"undo": number}
        case Done(number):
            return {"done": number}
        case _:
            assert_never(entry)


def _entry(found: Mapping[str, object]) -> LogEntry:
    match found:
        case {
            "number": int(number),
            "create": str(kind),
            "name": str(name),
            "statement": str(text),
        }:
            return Written(number, ObjectKind(kind), name, text)
        case {"number": int(number), "drop": str(kind), "name": str(name), "statement": str(text)}:
            return Written(number, ObjectKind(kind), name, text, is_drop=True)
        case {"undo": int(number)}:
            return Undone(number)
        case {"done": int(number)}:
            return Done(number)
        case _:
            raise ValueError(f"{dict(found)} is no entry")
