"""The log of adaptations: which plans and trees were changed while queries ran, and why.

    {"query": "q", "subject": "tree of joins in partition 0", "what": ["changed", …]}

It is no part of any answer: nothing is refused because of it. A line that is not whole, as after a
kill, is left out, and the next one stands in a line of its own.

Law: what was appended is read again in its order, whatever else is in the file.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tidemill.engine.adaptations import Adaptation

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["ADAPTATIONS_FILE", "AdaptationLog", "Logged"]

ADAPTATIONS_FILE: Final = "adaptations.jsonl"


@dataclass(frozen=True, slots=True)
class Logged:
    """A line of the log.

    Attributes:
        query: The query.
        subject: What of it was to change.
        what: What was decided.
    """

    query: str
    subject: str
    what: Adaptation


class AdaptationLog:
    """The log of a session, in its checkpoint if it has one.

    Args:
        directory: The checkpoint; ``None`` to keep the log in memory.
    """

    def __init__(self, directory: Path | None) -> None:
        self._path = None if directory is None else directory / ADAPTATIONS_FILE
        self._in_memory: list[Logged] = []

    def append(self, entries: Sequence[Logged]) -> None:
        """Add to the log, as far as it can be written."""
        if not entries:
            return
        if self._path is None or not self._path.parent.is_dir():
            self._in_memory += entries
            return
        text = "".join(json.dumps(_fields(entry)) + "\n" for entry in entries)
        with suppress(OSError), self._path.open("ab+") as file:  # queries run on without it
            end = file.seek(0, 2)
            file.seek(max(end - 1, 0))
            is_torn = end > 0 and file.read(1) != b"\n"
            file.write(b"\n" * is_torn + text.encode())

    def read(self) -> list[Logged]:
        """All entries that can be read."""
        if self._path is None:
            return list(self._in_memory)
        try:
            content = self._path.read_bytes()
        except OSError:
            return list(self._in_memory)
        found = (_entry(line) for line in content.split(b"\n"))
        return [*(entry for entry in found if entry is not None), *self._in_memory]


def _fields(entry: Logged) -> dict[str, object]:
    return {"query": entry.query, "subject": entry.subject, "what": entry.what.written()}


def _entry(line: bytes) -> Logged | None:
    try:
        match json.loads(line):
            case {"query": str(query), "subject": str(subject), "what": what}:
                return Logged(query, subject, Adaptation.read(what))
    except ValueError:
        pass
    return None
