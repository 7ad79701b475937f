"""Intake: what a task does with the rows of one stream where they come in.

Rows get their time and id, pass what the queries do before anything must be remembered, and go to
the partitions that their channels say; those that need not meet others are dealt out to all. Every
partition hears, once for each task, how far the stream has come. A row is late if it is from before
what the stream had reached when the batch began.

The id of a row is made of its file and its number there, so that it is the same however files are
put into batches. Of sources without files it is made of the batch, the task and the number there,
so that a batch that is replayed gives every row the id it had.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tidemill.engine.ingest import Gate, file_id, timed
from tidemill.engine.routing import route
from tidemill.errors import RunError
from tidemill.model.batch import ID, START
from tidemill.model.time import Time
from tidemill.physical.fragments import Route
from tidemill.physical.state.strings import compact_strings
from tidemill.runtime.measuring.sample import Sampler
from tidemill.runtime.reading.parquet_groups import UNREAD
from tidemill.runtime.spark.worker.keeping import PieceWriter
from tidemill.runtime.spark.worker.wire import Kind, Message, figures_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import polars as pl

    from tidemill.catalog.entries import StreamEntry
    from tidemill.engine.ingest import Refused
    from tidemill.model.batch import Batch
    from tidemill.physical.fragments import Channel
    from tidemill.runtime.settling import FileRows
    from tidemill.runtime.spark.worker.deployment import Deployment
    from tidemill.runtime.spark.worker.wire import Facts

__all__ = ["Origin", "Piece", "deal", "first_id", "spread", "take_in"]

_TASK_BITS, _ROW_BITS = 12, 25

_MESSAGE_ROWS = 4096
"""How many rows are worth a message."""

_MESSAGE_BYTES = 32 << 20
"""How many bytes of rows a message has at most; Java has no array of more than 2 GB."""


class Piece(NamedTuple):
    """Rows that came together.

    Attributes:
        first: The id of the first; the others follow.
        rows: The rows.
        file: The file that they stand in, if it can be read here.
    """

    first: int
    rows: pl.DataFrame
    file: FileRows | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """Where in the run of the pipeline rows come in.

    Attributes:
        batch: The batch.
        task: The task.
        now: The time of the batch.
        watermark: How far the stream had come when the batch began.
    """

    batch: int
    task: int
    now: Time
    watermark: Time = field(default=Time(0))


def take_in(  # noqa: PLR0913 — what comes in, and where it goes
    deployment: Deployment,
    name: str,
    pieces: Iterable[Piece],
    origin: Origin,
    *,
    refused: Refused | None = None,
    kept: str | None = None,
) -> Iterator[Message]:
    """The messages that the rows of a stream become in one task, piece by piece.

    Args:
        deployment: What runs where.
        name: The stream.
        pieces: Its rows, with its columns and types.
        origin: Where they come in.
        refused: What was refused before rows came here; malformed rows come as pieces are read.
        kept: Where streams keep their past.
    """
    stream = deployment.streams[name]
    entrances = [deployment.entrance(rows) for rows in deployment.read_by(name)]
    gate = Gate(stream, watermark=origin.watermark)
    gate.refused = gate.refused if refused is None else refused
    needs_ids, keeps = deployment.graph.needs_ids, kept is not None and stream.keep is not None
    writer = _writer(stream, origin, kept or "", gate.refused) if keeps else None
    sampler = Sampler(stream.schema.names)
    home = deployment.pids[origin.task % len(deployment.pids)]
    rows, files, latest = 0, set[int](), None
    for number, frame, file in pieces:
        elements = timed(
            stream,
            frame.drop(UNREAD) if UNREAD in frame.columns else frame,
            first_id=number if needs_ids or keeps else None,
            arrival=origin.now,
            refused=gate.refused,
        )
        rows += frame.height
        files.add(number >> _ROW_BITS)
        yield from _kept(home, gate.refused)
        if elements.is_empty():
            continue
        greatest = elements[START].max()
        assert isinstance(greatest, int), "times are integers"
        latest = greatest if latest is None else max(latest, greatest)
        taken = gate.admit(elements)
        sampler.take(frame, number, taken[START], latest)
        if writer is not None:
            writer.take(taken, number, frame.height, file)
            taken = taken if needs_ids else taken.drop(ID)
        for entrance in entrances:
            for channel, batch in entrance.step(taken):
                for pid, part in spread(channel, batch, deployment.pids, home):
                    yield from deal(deployment, channel, part, pid)
    yield from _kept(home, gate.refused)
    counts: Facts = {
        "rows": rows,
        "files": max(files, default=-1) + 1,
        "notes": len(files),
        "latest": latest,
        "refused": gate.refused.counts,
        "sample": sampler.drain().write(),
        "operators": {k: f for e in entrances for k, f in figures_of(e.drain()).items()},
    }
    yield Message.of_facts(home, Kind.REPORT, f"stream {name}", counts)
    if writer is not None:
        yield writer.report(home)
    for pid in deployment.pids:
        yield Message.of_facts(pid, Kind.PULSE, name, {"latest": latest, "now": origin.now})


def _writer(stream: StreamEntry, origin: Origin, kept: str, refused: Refused) -> PieceWriter:
    when = origin.watermark, origin.now
    return PieceWriter(kept, stream, origin.batch, origin.task, *when, refused)


def _kept(home: int, refused: Refused) -> Iterator[Message]:
    """The rows that were kept since this was asked last."""
    if refused.rows:
        yield Message.of_rows(home, Kind.KEPT, refused.stream.name, refused.held())
        refused.rows.clear()


def spread(
    channel: Channel, batch: Batch, pids: tuple[int, ...], home: int
) -> Iterator[tuple[int, Batch]]:
    """Rows that may go anywhere, in slices, one for each partition from ``home`` on.

    Rows that came one after another stay together: they are likely to share intervals.
    """
    if channel.route is Route.HASH:
        yield home, batch
        return
    first, size = pids.index(home), max(_MESSAGE_ROWS, -(-batch.height // len(pids)))
    for number, part in enumerate(batch.iter_slices(size)):
        yield pids[(first + number) % len(pids)], part


def deal(deployment: Deployment, channel: Channel, batch: Batch, home: int) -> Iterator[Message]:
    """The rows of a channel on their way to their partitions, in messages of bounded size."""
    size = batch.estimated_size()
    if size > _MESSAGE_BYTES and batch.height > 1:
        for part in batch.iter_slices(max(1, int(batch.height * _MESSAGE_BYTES / size))):
            yield from deal(deployment, channel, compact_strings(part), home)
        return
    match channel.route:
        case Route.QUERY:
            yield Message.of_rows(home, Kind.ANSWER, channel.name, batch)
        case Route.STAY:
            yield Message.of_rows(home, Kind.ROWS, channel.name, batch)
        case Route.HASH:
            parts = route(batch, channel.keys, len(deployment.pids))
            for pid, part in zip(deployment.pids, parts, strict=True):
                if not part.is_empty():
                    yield Message.of_rows(pid, Kind.ROWS, channel.name, part)


def first_id(rows: int, *, file: int | None = None, origin: Origin | None = None) -> int:
    """The id of the first of some rows; ids of later files, batches and tasks are greater.

    Args:
        rows: How many rows of the file, or of the task, come before.
        file: The number of the file, if there are files.
        origin: The batch and the task, if there are none.

    >>> first_id(0, file=2) > first_id(7, file=1)
    True

    Raises:
        RunError: There are more rows than ids.
    """
    task = 0 if origin is None else origin.task
    if task >> _TASK_BITS:
        raise RunError(
            f"a batch has more than {1 << _TASK_BITS:,} tasks", hint="read fewer rows in a batch"
        )
    place = file if origin is None else origin.batch << _TASK_BITS | task
    assert place is not None, "rows come from a file or a batch"
    return file_id(place, rows)
