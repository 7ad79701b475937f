"""Intake: what a task does with the rows of one stream where they come in.

Rows get their time and id, pass what the queries do before anything must be remembered, and go to
the partitions that their channels say; those that need not meet others are dealt out to all. Every
partition hears, once for each task, how far the stream has come. What is late is found out later,
where the progress of the stream is known: for that the times of all rows (of a stream that keeps
late rows, the rows) go to one partition.

The id of a row is made of its batch, its task and its number there, so that a batch that is
replayed gives every row the id it had.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.engine.engine import Engine, Flow
from tidemill.engine.fragments import Route
from tidemill.engine.ingest import Refused, timed
from tidemill.engine.routing import route
from tidemill.errors import RunError
from tidemill.lang.statements import LatePolicy
from tidemill.model.batch import START
from tidemill.model.time import Time
from tidemill.runtime.spark.wire import Kind, Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import polars as pl

    from tidemill.engine.fragments import Channel
    from tidemill.model.batch import Batch
    from tidemill.runtime.spark.deployment import Deployment

__all__ = ["Origin", "deal", "first_id", "take_in"]

_TASK_BITS, _ROW_BITS = 12, 25

_SLICE = 4096
"""How many rows are worth a message."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where in the run of the pipeline rows come in: batch, task, and the time of the batch."""

    batch: int
    task: int
    now: Time


def take_in(
    deployment: Deployment, name: str, frames: Iterable[pl.DataFrame], origin: Origin
) -> Iterator[Message]:
    """The messages that the rows of a stream become in one task.

    Args:
        deployment: What runs where.
        name: The stream.
        frames: Its rows, with its columns and types.
        origin: Where they come in.
    """
    stream = deployment.streams[name]
    fragment = deployment.intake(name)
    engine, refused = Engine(fragment), Refused(stream)
    home = deployment.pids[origin.task % len(deployment.pids)]
    rows, latest = 0, None
    for frame in frames:
        number = first_id(origin, rows)
        elements = timed(stream, frame, first_id=number, arrival=origin.now, refused=refused)
        rows += frame.height
        if elements.is_empty():
            continue
        greatest = elements[START].max()
        assert isinstance(greatest, int), "times are integers"
        latest = greatest if latest is None else max(latest, greatest)
        keeps_late = stream.late is LatePolicy.QUARANTINE
        arrived = elements if keeps_late else elements.select(START)
        yield Message.of_rows(home, Kind.ARRIVED, name, arrived)
        outputs = engine.step({name: Flow([elements], Time(0))})
        for channel in fragment.writes:
            for batch in outputs[channel.name].batches:
                if channel.route is Route.STAY:
                    yield from _spread(deployment, channel, batch, home)
                else:
                    yield from deal(deployment, channel, batch, home)
    if refused.rows:
        yield Message.of_rows(home, Kind.KEPT, name, refused.kept())
    yield Message.of_facts(
        home, Kind.REPORT, f"stream {name}", {"rows": rows, "refused": refused.counts}
    )
    for pid in deployment.pids:
        yield Message.of_facts(pid, Kind.PULSE, name, {"latest": latest, "now": origin.now})


def _spread(deployment: Deployment, channel: Channel, batch: Batch, home: int) -> Iterator[Message]:
    """Rows that may go anywhere, in slices, one for each partition from ``home`` on.

    Rows that came one after another stay together: they are likely to share intervals.
    """
    pids = deployment.pids
    first, size = pids.index(home), max(_SLICE, -(-batch.height // len(pids)))
    for number, part in enumerate(batch.iter_slices(size)):
        pid = pids[(first + number) % len(pids)]
        yield Message.of_rows(pid, Kind.ROWS, channel.name, part)


def deal(deployment: Deployment, channel: Channel, batch: Batch, home: int) -> Iterator[Message]:
    """The rows of a channel on their way to their partitions."""
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


def first_id(origin: Origin, row: int) -> int:
    """The id of a row of a task; ids of later batches, and of later tasks, are greater.

    >>> first_id(Origin(1, 0, Time(0)), 0) > first_id(Origin(0, 5, Time(0)), 7)
    True

    Raises:
        RunError: The task has more rows than there are ids for.
    """
    if row >> _ROW_BITS or origin.task >> _TASK_BITS:
        raise RunError(
            f"a task has more than {1 << _ROW_BITS:,} rows, or a batch more than "
            f"{1 << _TASK_BITS:,} tasks",
            hint="read fewer files in a batch (files_per_batch)",
        )
    return (origin.batch << _TASK_BITS + _ROW_BITS) | (origin.task << _ROW_BITS) | row
