"""The pass over the results of a batch: all queries at once.

Files are written by the tasks that have the rows. What the driver needs comes to it, with what was
kept aside and the reports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark import TaskContext

from tidemill.runtime.spark.wire import COLUMNS, Kind, Message, from_arrow, to_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from tidemill.runtime.file_sink import FileSink

__all__ = ["deliver"]


def deliver(
    results: DataFrame,
    batch: int,
    sinks: Mapping[str, tuple[FileSink, ...]],
    *,
    kept: frozenset[str],
) -> list[Message]:
    """Write the answers that go to files; the messages that the driver is to have.

    Args:
        results: The messages of the last stage.
        batch: The number of the batch.
        sinks: For each channel of answers, the files it goes to.
        kept: The channels of answers that the driver is to have; of others it hears how many rows
            there are.
    """
    for sink in (sink for some in sinks.values() for sink in some):
        sink.clear(batch)
    left = results.mapInArrow(_writing(dict(sinks), batch, kept), COLUMNS)
    return list(from_arrow(left.toArrow()))


def _writing(
    sinks: Mapping[str, tuple[FileSink, ...]], batch: int, kept: frozenset[str]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        task = context.partitionId() if context else 0
        answers: dict[str, list[Message]] = {}
        for rows in batches:
            left = []
            for message in from_arrow(rows):
                is_answer = message.kind is Kind.ANSWER
                if not is_answer or message.channel in kept:
                    left.append(message)
                if is_answer and (sinks.get(message.channel) or message.channel not in kept):
                    answers.setdefault(message.channel, []).append(message)
            if left:
                yield to_arrow(left)
        for channel, messages in answers.items():
            frames = [message.rows() for message in messages]
            for sink in sinks.get(channel, ()):
                sink.write(batch, task, frames)
            if channel not in kept:
                facts = {"rows": sum(frame.height for frame in frames)}
                yield to_arrow([Message.of_facts(0, Kind.REPORT, f"written {channel}", facts)])

    return run
