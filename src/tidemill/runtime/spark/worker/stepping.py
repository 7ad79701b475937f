"""Stepping: one partition of a stage, in a task of Spark's.

The stage of a partition stays open in this process as long as no other worker has stepped the
partition: its token says so.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pandas as pd

from tidemill.engine.pool import in_pool
from tidemill.runtime.spark.state.batch_log import batch_beginning, batch_number, batch_version
from tidemill.runtime.spark.state.cache import Cache
from tidemill.runtime.spark.state.keeper import Kept, open_stage
from tidemill.runtime.spark.worker.replaying import Relay
from tidemill.runtime.spark.worker.wire import Kind, Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql.streaming.stateful_processor import MapState

    from tidemill.runtime.spark.state.deployments import Deployments
    from tidemill.runtime.spark.worker.stage import Stage

__all__ = ["Task", "step"]

_MANIFEST = "manifest"

_OPEN: dict[tuple[int, int], Kept] = {}
"""The stages that this process has stepped last, by stage and partition, of one checkpoint."""

_WHERE: list[str] = []
"""The cache of the checkpoint that they belong to."""


@dataclass(frozen=True, slots=True)
class Task:
    """What the tasks of a stage do.

    Attributes:
        deployments: What runs where, by the version that the batch has.
        number: The stage, from 1.
        cache: The directory of the cache.
        cache_bytes: How many bytes it may take.
    """

    deployments: Deployments
    number: int
    cache: str
    cache_bytes: int


def step(
    packed: bytes,
    pid: int,
    rows: Iterable[pd.DataFrame],
    blobs: MapState,
) -> Iterator[pd.DataFrame]:
    """Step a partition with the messages of a batch; the messages for the next stage.

    Args:
        packed: The task.
        pid: The partition.
        rows: The messages.
        blobs: Its state.
    """
    task = pickle.loads(packed)  # noqa: S301 — it comes from the driver
    assert isinstance(task, Task), "only tasks are packed"
    store, cache = _SparkStore(blobs), Cache(Path(task.cache), limit=task.cache_bytes)
    kept = _opened(task, pid, store, cache)
    messages = [message for frame in rows for message in _messages(frame)]
    batch, deployment, past = batch_number(), kept.stage.deployment, dict[str, int]()
    if task.number == 1 and (begun := batch_beginning()).replays:
        past = dict(begun.reached)
        messages += Relay(task.deployments.relay).get(batch, pid)
    given: Iterable[Message] = _stepped(kept.stage, messages, past)
    if task.number == deployment.stages:
        given = deployment.last_writer.let_out(given, batch, pid)
    yield _frame(given)
    kept.save(store, cache, f"{batch}-{uuid4().hex[:12]}")
    _OPEN[task.number, pid] = kept


@in_pool
def _stepped(stage: Stage, messages: list[Message], past: Mapping[str, int]) -> list[Message]:
    return list(stage.step(messages, past))


def _opened(task: Task, pid: int, store: _SparkStore, cache: Cache) -> Kept:
    """The stage with its state: the one of this process, unless it is not the latest."""
    if task.cache not in _WHERE:
        _OPEN.clear()  # a worker may live longer than many sessions
        _WHERE[:] = [task.cache]
    kept, version = _OPEN.pop((task.number, pid), None), batch_version()
    if kept is not None and kept.token and store.has(kept.token):
        is_same_plan = kept.stage.deployment.version == version
        if is_same_plan:
            return kept
    at_hand = {} if kept is None else kept.frames()
    ran = batch_beginning().ran
    deployment = task.deployments.open(version)
    return open_stage(deployment, task.number, pid, store, cache, at_hand=at_hand, ran=ran)


class _SparkStore:
    """The state variable of a partition: the manifest, and packs of segments."""

    def __init__(self, blobs: MapState) -> None:
        self._blobs = blobs
        self._text: str | None = None

    def has(self, token: str) -> bool:
        """Whether this is the state that was saved under a token."""
        text = self.manifest()
        return text is not None and f'"token": "{token}"' in text

    def manifest(self) -> str | None:
        """What was written last."""
        if self._text is None:
            value = self._blobs.getValue((_MANIFEST,))
            self._text = None if value is None else bytes(value[0]).decode(errors="replace")
        return self._text

    def write_manifest(self, text: str) -> None:
        """Replace the manifest."""
        self._blobs.updateValue((_MANIFEST,), (text.encode(),))

    def read(self, name: str) -> bytes:
        """A pack.

        Raises:
            LookupError: It is not there.
        """
        value = self._blobs.getValue((name,))
        if value is None:
            raise LookupError(f"there is no pack {name}")
        return bytes(value[0])

    def write(self, name: str, blob: bytes) -> None:
        """A new pack."""
        self._blobs.updateValue((name,), (blob,))

    def remove(self, name: str) -> None:
        """Forget a pack."""
        self._blobs.removeKey((name,))


def _messages(frame: pd.DataFrame) -> Iterator[Message]:
    columns = (frame[name] for name in ("pid", "kind", "channel", "blob"))
    for pid, kind, channel, blob in zip(*columns, strict=True):
        yield Message(int(pid), Kind(kind), channel, blob)


def _frame(messages: Iterable[Message]) -> pd.DataFrame:
    rows = [(m.pid, str(m.kind), m.channel, m.blob) for m in messages]
    frame = pd.DataFrame(rows, columns=["pid", "kind", "channel", "blob"])
    return frame.astype({"pid": "int32"})
