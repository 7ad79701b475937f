"""What travels between the steps of the pipeline: messages, each to one partition.

A message holds rows as one Arrow IPC blob, or facts as JSON; never code. Rows travel in blobs
because a row of its own costs Spark several microseconds in each stage.

    rows      elements on a channel of the graph
    answer    elements of a query's answer, on their way out
    kept      rows that were refused and are kept, with the reason
    pulse     how far time has come, to every partition
    report    counts for people
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

import polars as pl
import pyarrow as pa

from tidemill.engine.adaptations import Adaptation
from tidemill.engine.engine import Metrics
from tidemill.model.time import Time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = [
    "COLUMNS",
    "Facts",
    "Figures",
    "Kind",
    "Message",
    "figures_of",
    "from_arrow",
    "read_figures",
    "to_arrow",
]

COLUMNS = "pid int, kind string, channel string, blob binary"
"""The columns of a message, as Spark writes them."""

_SCHEMA = pa.schema(
    [
        ("pid", pa.int32()),
        ("kind", pa.string()),
        ("channel", pa.string()),
        ("blob", pa.binary()),
    ]
)

Figures: TypeAlias = "list[int | float | list[str | int | float]]"
"""Metrics of an operator in one partition, field by field; then what it has decided."""

Fact: TypeAlias = (
    "int | dict[str, int] | Figures | dict[str, Figures] | list[dict[str, object]]"
    " | Mapping[str, object] | None"
)

Facts: TypeAlias = "Mapping[str, Fact]"

_DIGITS = 7
"""How many digits of a second travel."""


class Kind(StrEnum):
    """What a message is about."""

    ROWS = "rows"
    ANSWER = "answer"
    KEPT = "kept"
    PULSE = "pulse"
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class Message:
    """A message to a partition.

    Attributes:
        pid: The partition, by the number Spark knows it by.
        kind: What it is about.
        channel: The channel, query or stream it belongs to; for facts, the sender.
        content: Rows; or what was received: rows in Arrow's IPC format, or JSON.
    """

    pid: int
    kind: Kind
    channel: str
    content: bytes | pl.DataFrame

    @classmethod
    def of_rows(cls, pid: int, kind: Kind, channel: str, frame: pl.DataFrame) -> Message:
        """A message that holds rows."""
        return cls(pid, kind, channel, frame)

    @classmethod
    def of_facts(cls, pid: int, kind: Kind, channel: str, facts: Facts) -> Message:
        """A message that holds facts."""
        return cls(pid, kind, channel, json.dumps(dict(facts), sort_keys=True).encode())

    @property
    def blob(self) -> bytes:
        """The content as it travels; rows are written only when they do."""
        if isinstance(self.content, bytes):
            return self.content
        buffer = io.BytesIO()
        # Not compressed: Spark compresses what it sends to other hosts.
        self.content.write_ipc_stream(buffer, compression="uncompressed")
        return buffer.getvalue()

    def to(self, pid: int) -> Message:
        """The same message to another partition."""
        return Message(pid, self.kind, self.channel, self.content)

    def rows(self) -> pl.DataFrame:
        """The rows."""
        if isinstance(self.content, bytes):
            return pl.read_ipc_stream(io.BytesIO(self.content))
        return self.content

    def facts(self) -> Facts:
        """The facts."""
        assert isinstance(self.content, bytes), "facts are written at once"
        facts: Facts = json.loads(self.content)
        return facts


def to_arrow(messages: Iterable[Message]) -> pa.RecordBatch:
    """Messages as rows for Spark."""
    columns = list(zip(*((m.pid, m.kind, m.channel, m.blob) for m in messages), strict=True))
    columns = columns or [(), (), (), ()]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, _SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def from_arrow(batch: pa.RecordBatch | pa.Table) -> Iterator[Message]:
    """The messages that rows from Spark are."""
    for pid, kind, channel, blob in zip(
        *(batch.column(name).to_pylist() for name in _SCHEMA.names), strict=True
    ):
        yield Message(pid, Kind(kind), channel, blob)


def figures_of(metrics: Mapping[str, Metrics]) -> dict[str, Figures]:
    """Metrics by operator, as they travel."""
    return {
        name: [
            m.rows_in,
            m.rows_out,
            round(m.seconds, _DIGITS),
            m.state_rows,
            m.state_bytes,
            m.watermark,
            *(one.written() for one in m.adapted),
        ]
        for name, m in metrics.items()
    }


def read_figures(facts: Mapping[str, object]) -> dict[str, Metrics]:
    """The metrics that have travelled, by operator."""
    found: dict[str, Metrics] = {}
    for name, told in facts.items():
        match told:
            case [
                int(i),
                int(o),
                int() | float() as seconds,
                int(rows),
                int(bytes_),
                int(time),
                *adapted,
            ]:
                decided = tuple(map(Adaptation.read, adapted))
                found[name] = Metrics(i, o, seconds, rows, bytes_, Time(time), decided)
            case _:
                raise AssertionError(f"{told} are no figures of {name}")
    return found
