"""Settling: whether a file is written to its end, and whether it is still what it was.

Nothing says that a file is complete. So a file is taken when its size and its time of change have
been the same for a while: since an earlier look, or, as its time of change says, since before the
first one. A program that gives files their names when they are complete need not wait.

Law: a file that changes at least once in every stretch of the time it is to settle is not taken.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from time import monotonic, sleep, time
from typing import TYPE_CHECKING

from tidemill.connectors.files import SETTLE as DEFAULT_SETTLE
from tidemill.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "SETTLE",
    "FileRows",
    "Mark",
    "Settling",
    "await_settled",
    "mark_of",
    "require_unchanged",
    "still_written",
]

SETTLE = DEFAULT_SETTLE
"""For how many seconds a file must not have changed, if its source does not say."""

_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Mark:
    """What a file is known by: its size, and when it was changed last, in nanoseconds."""

    size: int
    changed: int


@dataclass(frozen=True, slots=True)
class FileRows:
    """A file that is read, and the ids of its rows.

    Attributes:
        path: The file.
        mark: What it was when it was taken.
        first: The id of its first row; those of others follow.
    """

    path: str
    mark: Mark
    first: int


def mark_of(path: str | os.PathLike[str]) -> Mark | None:
    """The mark of a file; ``None`` if it is not there any more."""
    try:
        found = os.stat(path)  # noqa: PTH116 — a path of a hot loop is a text
    except FileNotFoundError:
        return None
    return Mark(found.st_size, found.st_mtime_ns)


class Settling:
    """Files that have come and may still be written.

    Args:
        seconds: For how long a file must not have changed; 0 for not at all.
        clock: What time it is, in seconds since 1970, by which files have their times.
        steady: A clock that is never set.
    """

    def __init__(
        self,
        seconds: float,
        *,
        clock: Callable[[], float] = time,
        steady: Callable[[], float] = monotonic,
    ) -> None:
        self.seconds = seconds
        self._clock = clock
        self._steady = steady
        self._seen: dict[str, tuple[Mark, float]] = {}
        self._found: dict[str, float] = {}

    def has_settled(self, path: str, mark: Mark) -> bool:
        """Whether a file that has this mark now is complete."""
        now = self._steady()
        # A time of change in the future says nothing: such a file is looked at twice.
        is_old = self._clock() - mark.changed / _NANOSECONDS >= self.seconds
        before, since = self._seen.get(path, (None, now))
        if is_old or self.seconds <= 0 or (before == mark and now - since >= self.seconds):
            self._seen.pop(path, None)
            self._found.pop(path, None)
            return True
        self._found.setdefault(path, now)
        if before != mark:
            self._seen[path] = mark, now
        return False

    def waited(self, path: str) -> float:
        """For how many seconds a file has been there without having settled."""
        now = self._steady()
        return now - self._found.get(path, now)


def await_settled(stream: str, paths: Iterable[str], seconds: float) -> dict[str, Mark]:
    """The marks of files that are complete; those that have just been written are waited for, once.

    Args:
        stream: What is read from them.
        paths: The files.
        seconds: For how long they must not have changed.

    Raises:
        RunError: One of them is still being written.
    """
    settling = Settling(seconds)
    marks = {path: mark for path in paths if (mark := mark_of(path)) is not None}
    waiting = [path for path, mark in marks.items() if not settling.has_settled(path, mark)]
    if waiting:
        sleep(seconds)
    for path in waiting:
        mark = mark_of(path)
        if mark is None:
            del marks[path]
        elif settling.has_settled(path, mark):
            marks[path] = mark
        else:
            raise still_written(stream, path)
    return marks


def still_written(stream: str, path: str) -> RunError:
    """A file that is to be read, now or never, changes."""
    return RunError(
        f'file "{path}" of "{stream}" is still being written',
        hint="run again when it is complete; a file that gets its name when it is complete, by a "
        "rename, is never in the way",
    )


def require_unchanged(path: str, mark: Mark) -> None:
    """See whether a file that has just been read is the one that was taken.

    Raises:
        RunError: It has changed meanwhile.
    """
    if mark_of(path) != mark:
        raise RunError(
            f'file "{path}" has changed since it was taken, before it was read',
            hint="start again when it is complete: it is taken as it is then; give files their "
            "names when they are complete, or let the source wait longer: settle => 10",
        )
