"""The ledger: what is known when a batch begins: the time, and how far each stream has come.

Streams without a time of their own get the time of the batch that reads them, a stream is idle by
it, and rows are late if they are from before what their stream had reached. All that is written
down before anything is computed, so that a batch that is replayed finds what it found. How far the
streams have come after a batch is written down before Spark takes the batch for done. Time never
runs backwards, whatever the clock of this host does.

    {"begin": 7, "now": …, "watermarks": {…}}
    {"end": 7, "watermarks": {…}, "known": {…}}

Spark has a time of its own for each batch, but as a constant in the code that it generates, which
it then compiles anew in every batch, twice.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from time import time_ns
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyspark import TaskContext

from tidemill.runtime.durable import append_durably, write_durably
from tidemill.runtime.spark.damage import damaged, json_lines

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark import SparkContext

__all__ = ["Beginning", "Ledger", "batch_beginning", "batch_number"]

_PROPERTY = "tidemill.beginning"
_KEPT = 1000
"""How many batches are remembered over a restart; Spark replays the last one."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What is known when a batch begins.

    Attributes:
        now: The time, in microseconds since 1970.
        watermarks: How far each stream has come; others are at their beginning.
    """

    now: int
    watermarks: Mapping[str, int] = field(default_factory=dict)


class Ledger:
    """What was known when batches began.

    Args:
        path: The file it is written to.

    Attributes:
        known: Up to when the answer of each query is known.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begun: dict[int, Beginning] = {}
        self._ended = -1
        self._watermarks: dict[str, int] = {}
        self.known: dict[str, int] = {}
        for line in json_lines(path) if path.exists() else ():
            self._read(line)
        self._rewrite()

    def begin(self, batch: int) -> Beginning:
        """What is known when a batch begins, or was when it began."""
        if batch not in self._begun:
            latest = max((begun.now for begun in self._begun.values()), default=0)
            now = max(latest, time_ns() // 1000)
            self._begun[batch] = Beginning(now, dict(self._watermarks))
            self._append(_begin_line(batch, self._begun[batch]))
            if len(self._begun) >= 2 * _KEPT:
                self._rewrite()
        return self._begun[batch]

    def end(
        self,
        batch: int,
        watermarks: Mapping[str, int],
        known: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Write down how far streams have come in a batch; others are where they were.

        Args:
            batch: The batch.
            watermarks: How far streams have come.
            known: Up to when the answers of queries are known.
        """
        self._watermarks = {**self.begin(batch).watermarks, **watermarks}
        self.known = dict(known)
        self._ended = batch
        self._append(_end_line(batch, self._watermarks, self.known))

    def tell(self, context: SparkContext, batch: int) -> None:
        """Tell the tasks that this thread starts what is known."""
        context.setLocalProperty(_PROPERTY, json.dumps(asdict(self.begin(batch))))

    def _read(self, line: object) -> None:
        match line:
            case {"begin": int(batch), "now": int(now), "watermarks": dict(watermarks)}:
                self._begun[batch] = Beginning(now, watermarks)
            case {"end": int(batch), "watermarks": dict(watermarks), "known": dict(known)}:
                self._ended, self._watermarks, self.known = batch, watermarks, known
            case _:
                raise damaged(f'"{self._path}"', f"{line} is no line of it")

    def _rewrite(self) -> None:
        """Write the file anew, without batches that are long over."""
        for batch in sorted(self._begun)[:-_KEPT]:
            del self._begun[batch]
        lines = [_begin_line(batch, begun) for batch, begun in sorted(self._begun.items())]
        if self._ended >= 0:
            lines.append(_end_line(self._ended, self._watermarks, self.known))
        write_durably(self._path, "".join(lines).encode())

    def _append(self, line: str) -> None:
        # Spark must not know more than this after a loss of power.
        append_durably(self._path, line.encode())


def _begin_line(batch: int, begun: Beginning) -> str:
    return json.dumps({"begin": batch, **asdict(begun)}) + "\n"


def _end_line(batch: int, watermarks: Mapping[str, int], known: Mapping[str, int]) -> str:
    line = {"end": batch, "watermarks": dict(watermarks), "known": dict(known)}
    return json.dumps(line) + "\n"


# In a task


def batch_number() -> int:
    """The number of the batch that this task belongs to."""
    return int(_property("streaming.sql.batchId"))


def batch_beginning() -> Beginning:
    """What was known when the batch began that this task belongs to."""
    return Beginning(**json.loads(_property(_PROPERTY)))


def _property(name: str) -> str:
    context = TaskContext.get()
    assert context is not None, "this runs in a task"
    value = context.getLocalProperty(name)
    assert value is not None, f"the driver has set {name}"
    return value
