"""Progress: how far a job has come, in numbers for people."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidemill.engine.ingest import MALFORMED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidemill.engine.ingest import Gate

__all__ = ["Progress", "QueryProgress", "StreamProgress", "stream_progress", "with_replays"]


@dataclass(frozen=True, slots=True)
class StreamProgress:
    """How far a stream has come.

    Attributes:
        name: The stream.
        rows: How many rows have come in.
        refused: How many of them were late, malformed or had no valid time.
        watermark: Up to when it is complete, in microseconds; ``None`` before the first row.
        files: How many files have been read, and how many were found; ``None`` if it is not known.
        warnings: What people should know about its files, or about rows that were refused.
    """

    name: str
    rows: int
    refused: int
    watermark: int | None
    files: tuple[int, int] | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """What a query has given so far.

    Attributes:
        name: The query.
        rows: How many elements of its answer there were.
        to_replay: About how many kept rows are still to be replayed to it.
    """

    name: str
    rows: int
    to_replay: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job has come.

    Attributes:
        batches: How many batches have been delivered.
        streams: The streams that are read.
        queries: The queries that run.
        state_rows: How many rows are remembered.
        state_bytes: How many bytes they take.
        log: Where Spark writes what it has to say, if it was started by the session.
        failure: Why the job has stopped, if it has stopped by itself.
        starting: Whether Spark has yet to start.
    """

    batches: int
    streams: tuple[StreamProgress, ...]
    queries: tuple[QueryProgress, ...]
    state_rows: int
    state_bytes: int
    log: str | None = None
    failure: str | None = None
    starting: bool = False


def with_replays(
    queries: Iterable[QueryProgress], to_replay: Mapping[str, int]
) -> tuple[QueryProgress, ...]:
    """What queries have given, with how many rows are still to be replayed to each."""
    return tuple(replace(one, to_replay=to_replay.get(one.name, 0)) for one in queries)


def stream_progress(
    gate: Gate,
    watermark: int,
    files: tuple[int, int] | None = None,
    warnings: tuple[str, ...] = (),
) -> StreamProgress:
    """How far a stream has come, of which the gate has counted the rows."""
    counts = gate.refused.counts
    rows = gate.rows + counts.get(MALFORMED, 0)
    mark = watermark if gate.rows else None
    if gate.refused.removed:
        told = f"{gate.refused.removed:,} of the rows that were kept aside have gone, to make room"
        warnings = (*warnings, told)
    return StreamProgress(gate.stream.name, rows, sum(counts.values()), mark, files, warnings)
