"""The adapter between Spark's stateful processor and a stage.

Each partition of a stage has two state variables: the manifest, and the segments by name. The stage
of a partition stays in this process as long as nobody else has moved it on: its token says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pandas as pd
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from tidemill.runtime.spark.cache import Cache
from tidemill.runtime.spark.keeper import Kept, open_stage
from tidemill.runtime.spark.wire import Kind, Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql.streaming.stateful_processor import (
        MapState,
        StatefulProcessorHandle,
        ValueState,
    )

    from tidemill.runtime.spark.deployment import Parcel
    from tidemill.runtime.spark.outlet import Outlet

__all__ = ["StageProcessor"]

_OPEN: dict[tuple[str, int, int], Kept] = {}
"""The stages that this process has stepped last, by checkpoint, stage and partition."""


class StageProcessor(StatefulProcessor):
    """A stage of the pipeline.

    Args:
        parcel: What runs where.
        number: The stage, from 1.
        cache: The directory of the cache, and how many bytes it may take.
        outlet: Where answers go, if this is the last stage.
    """

    def __init__(
        self,
        parcel: Parcel,
        number: int,
        cache: tuple[str, int],
        outlet: Outlet | None,
    ) -> None:
        self._parcel = parcel
        self._number = number
        self._cache_settings = cache
        self._outlet = outlet

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Find the state of the partitions."""
        directory, limit = self._cache_settings
        self._cache = Cache(Path(directory), limit=limit)
        self._manifest = handle.getValueState("manifest", "text string")
        self._segments = handle.getMapState("segments", "name string", "blob binary")

    def handleInputRows(  # type: ignore[override]  # noqa: N802 — Spark's name, frames only
        self,
        key: tuple[int],
        rows: Iterator[pd.DataFrame],
        timerValues: object,  # noqa: ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        """Step one partition."""
        (pid,) = key
        shelf = _StateShelf(self._manifest, self._segments)
        place = (self._cache_settings[0], self._number, int(pid))
        kept = _OPEN.pop(place, None)
        if kept is None or not kept.token or not shelf.has(kept.token) or self._differs(kept):
            at_hand = {} if kept is None else kept.frames()
            deployment, number = self._parcel.open(), self._number
            kept = open_stage(deployment, number, int(pid), shelf, self._cache, at_hand=at_hand)
        messages = [message for frame in rows for message in _messages(frame)]
        context = TaskContext.get()
        batch = int((context and context.getLocalProperty("streaming.sql.batchId")) or 0)
        given = kept.stage.step(messages)
        if self._outlet is not None:
            given = self._outlet.let_out(given, batch, int(pid))
        yield _frame(given)
        kept.save(shelf, self._cache, f"{batch}-{uuid4().hex[:12]}")
        _OPEN[place] = kept

    def close(self) -> None:
        """Nothing is held open."""

    def _differs(self, kept: Kept) -> bool:
        """Whether the stage belongs to another version of the plan."""
        return kept.stage.deployment.version != self._parcel.version


class _StateShelf:
    """The two state variables of a partition."""

    def __init__(self, manifest: ValueState, segments: MapState) -> None:
        self._manifest = manifest
        self._segments = segments
        self._text: str | None = None

    def has(self, token: str) -> bool:
        """Whether this is the state that was saved under a token."""
        text = self.manifest()
        return text is not None and f'"token": "{token}"' in text

    def manifest(self) -> str | None:
        """What was written last."""
        if self._text is None:
            value = self._manifest.get()
            self._text = None if value is None else value[0]
        return self._text

    def write_manifest(self, text: str) -> None:
        """Replace the manifest."""
        self._manifest.update((text,))

    def read(self, name: str) -> bytes:
        """A segment."""
        value = self._segments.getValue((name,))
        assert value is not None, f"segment {name} is in the manifest, so it is on the shelf"
        return bytes(value[0])

    def write(self, name: str, blob: bytes) -> None:
        """A new segment."""
        self._segments.updateValue((name,), (blob,))

    def remove(self, name: str) -> None:
        """Forget a segment."""
        self._segments.removeKey((name,))


def _messages(frame: pd.DataFrame) -> Iterator[Message]:
    columns = (frame[name] for name in ("pid", "kind", "channel", "blob"))
    for pid, kind, channel, blob in zip(*columns, strict=True):
        yield Message(int(pid), Kind(kind), channel, blob)


def _frame(messages: Iterable[Message]) -> pd.DataFrame:
    rows = [(m.pid, str(m.kind), m.channel, m.blob) for m in messages]
    frame = pd.DataFrame(rows, columns=["pid", "kind", "channel", "blob"])
    return frame.astype({"pid": "int32"})
