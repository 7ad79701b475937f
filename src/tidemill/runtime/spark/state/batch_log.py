"""The batch log: clock and watermarks at the start of each batch, and how far the batch came.

Streams without a time of their own get the time of the batch that reads them, a stream is idle by
it, and rows are late if they are from before what their stream had reached. All that is written
down before anything is computed, so that a batch that is replayed finds what it found. How far the
streams have come after a batch is written down before Spark takes the batch for done. Time never
stands still or runs backwards, whatever the clock of this host does: each batch has a later time
than the one before. How many files of each stream have been read is written down as well, the
latest time that each has brought, and the last epoch whose queries have run: their state must be
there. A batch that has ended names the version of the deployment that it was computed with.

    {"begin": 7, "now": …, "watermarks": {…}, "files": {…}, "ran": …}
    {"end": 7, "watermarks": {…}, "files": {…}, "known": {…}, "ran": …, "latest": {…}, "version": …}

Spark has a time of its own for each batch, but as a constant in the code that it generates, which
it then compiles anew in every batch, twice.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from pyspark import TaskContext

from tidemill.runtime.clock import now as now_here
from tidemill.runtime.damage import damaged, json_lines
from tidemill.runtime.durable import append_durably, write_durably

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pyspark import SparkContext

__all__ = ["BatchLog", "Beginning", "Ending", "batch_beginning", "batch_number", "batch_version"]

_PROPERTY, _VERSION = "tidemill.beginning", "tidemill.version"
_KEPT = 1000
"""How many batches are remembered over a restart; Spark replays the last one."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What is known when a batch begins.

    Attributes:
        now: The time, in microseconds since 1970.
        watermarks: How far each stream has come; others are at their beginning.
        files: How many files of each stream have been read for good.
        ran: The last epoch whose queries have run; -1 if none have.
    """

    now: int
    watermarks: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, int] = field(default_factory=dict)
    ran: int = -1


@dataclass(frozen=True, slots=True)
class Ending:
    """How far a batch has come; what is not in it is where it was.

    Attributes:
        watermarks: Up to when streams are complete.
        files: How many of their files have been read.
        known: Up to when channels of answers are known.
        ran: The last epoch whose queries have run in it, if any have.
        latest: The latest time that rows of streams have had.
        version: The deployment that it was computed with.
    """

    watermarks: Mapping[str, int]
    files: Mapping[str, int] = field(default_factory=dict)
    known: Mapping[str, int] = field(default_factory=dict)
    ran: int | None = None
    latest: Mapping[str, int] = field(default_factory=dict)
    version: str = ""


class BatchLog:
    """What was known when batches began.

    Args:
        path: The file it is written to.
        clock: What time it is, in microseconds since 1970.

    Attributes:
        latest: The batch that has begun last, and when; -1 and 0 if there was none.
        known: Up to when each channel of answers is known; a name may come to mean another query.
        newest: The latest time that rows of each stream have had so far.
    """

    def __init__(self, path: Path, clock: Callable[[], int] = now_here) -> None:
        self._path = path
        self._clock = clock
        self._begun: dict[int, Beginning] = {}
        self._ended = -1
        self._watermarks: dict[str, int] = {}
        self._files: dict[str, int] = {}
        self._ran = -1
        self._version = ""
        self.known: dict[str, int] = {}
        self.newest: dict[str, int] = {}
        for line in json_lines(path) if path.exists() else ():
            self._read(line)
        last = max(self._begun, default=-1)
        self.latest = last, self._begun[last].now if last >= 0 else 0
        self._rewrite()

    @property
    def committed(self) -> Mapping[str, int]:
        """How many files of each stream Spark will never ask for again."""
        batch, _ = self.latest
        return self._begun[batch].files if batch >= 0 else {}

    @property
    def has_delivered(self) -> bool:
        """Whether a batch has been delivered."""
        return self._ended >= 0

    @property
    def ended(self) -> int:
        """The last batch that has been delivered; -1 if there was none."""
        return self._ended

    @property
    def delivered(self) -> Mapping[str, int]:
        """How many files of each stream are in what has been delivered."""
        return self._files

    @property
    def watermarks(self) -> Mapping[str, int]:
        """How far each stream has come in what has been delivered."""
        return self._watermarks

    def version_of(self, batch: int) -> str | None:
        """The deployment that a batch was delivered with; ``None`` if it is still to be delivered.

        Logs of earlier versions do not say it.
        """
        return self._version or None if batch == self._ended else None

    @property
    def last_version(self) -> str:
        """The deployment that the last batch was delivered with."""
        return self._version

    def begin(self, batch: int) -> Beginning:
        """What is known when a batch begins, or was when it began."""
        if batch not in self._begun:
            _, latest = self.latest
            now = max(latest + 1, self._clock())
            begun = Beginning(now, dict(self._watermarks), dict(self._files), self._ran)
            self._begun[batch] = begun
            self.latest = batch, now
            self._append(_begin_line(batch, self._begun[batch]))
            if len(self._begun) >= 2 * _KEPT:
                self._rewrite()
        return self._begun[batch]

    def end(self, batch: int, ending: Ending) -> None:
        """Write down how far a batch has come."""
        begun = self.begin(batch)
        self._watermarks = {**begun.watermarks, **ending.watermarks}
        self._files = {**begun.files, **ending.files}
        self.known = dict(ending.known)
        self._ran = begun.ran if ending.ran is None else max(begun.ran, ending.ran)
        self.newest = _later(self.newest, ending.latest)
        self._version = ending.version
        self._ended = batch
        self._append(self._end_line())

    def tell(self, context: SparkContext, batch: int, version: str) -> None:
        """Tell the tasks that this thread starts what is known, and what they are part of."""
        context.setLocalProperty(_PROPERTY, json.dumps(asdict(self.begin(batch))))
        context.setLocalProperty(_VERSION, version)

    def _read(self, line: object) -> None:
        match line:
            case {
                "begin": int(batch),
                "now": int(now),
                "watermarks": dict(marks),
                "files": dict(files),
                **rest,
            }:
                ran = self._ran_of(rest)
                self._begun[batch] = Beginning(now, marks, files, ran)
            case {
                "end": int(batch),
                "watermarks": dict(marks),
                "files": dict(files),
                "known": dict(known),
                **rest,
            }:
                self._ended, self._watermarks = batch, marks
                self._files, self.known, self._ran = files, known, self._ran_of(rest)
                self.newest, self._version = self._more_of(rest)
            case _:
                raise damaged(f'"{self._path}"', f"{line} is no line of it")

    def _ran_of(self, rest: Mapping[object, object]) -> int:
        """The last epoch that has run; lines of earlier versions do not say it."""
        ran = rest.get("ran", -1)
        if not isinstance(ran, int):
            raise damaged(f'"{self._path}"', f"{ran} is no epoch")
        return ran

    def _more_of(self, rest: Mapping[object, object]) -> tuple[dict[str, int], str]:
        """The latest times and the version; lines of earlier versions do not say them."""
        match rest.get("latest", {}), rest.get("version", ""):
            case dict(latest), str(version):
                return latest, version
            case latest, version:
                raise damaged(f'"{self._path}"', f"{latest} or {version} is no end of a batch")

    def _rewrite(self) -> None:
        """Write the file anew, without batches that are long over."""
        for batch in sorted(self._begun)[:-_KEPT]:
            del self._begun[batch]
        lines = [_begin_line(batch, begun) for batch, begun in sorted(self._begun.items())]
        if self._ended >= 0:
            lines.append(self._end_line())
        write_durably(self._path, "".join(lines).encode())

    def _end_line(self) -> str:
        """The line about the last batch that has ended."""
        line = {
            "end": self._ended,
            "watermarks": self._watermarks,
            "files": self._files,
            "known": self.known,
            "ran": self._ran,
            "latest": self.newest,
            "version": self._version,
        }
        return json.dumps(line) + "\n"

    def _append(self, line: str) -> None:
        # Spark must not know more than this after a loss of power.
        append_durably(self._path, line.encode())


def _later(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """The later time of each stream."""
    return {**one, **{name: max(time, one.get(name, time)) for name, time in other.items()}}


def _begin_line(batch: int, begun: Beginning) -> str:
    return json.dumps({"begin": batch, **asdict(begun)}) + "\n"


# In a task


def batch_number() -> int:
    """The number of the batch that this task belongs to."""
    return int(_property("streaming.sql.batchId"))


def batch_beginning() -> Beginning:
    """What was known when the batch began that this task belongs to."""
    return Beginning(**json.loads(_property(_PROPERTY)))


def batch_version() -> str:
    """The version of the deployment that this task belongs to."""
    return _property(_VERSION)


def _property(name: str) -> str:
    context = TaskContext.get()
    assert context is not None, "this runs in a task"
    value = context.getLocalProperty(name)
    assert value is not None, f"the driver has set {name}"
    return value
