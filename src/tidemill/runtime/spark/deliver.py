"""Delivery: the results of a batch to where they go, all queries in one pass.

Files are written by the tasks, each under a name of its own in the directory of the batch; a batch
that is delivered again replaces it. What goes to memory comes to the driver, with what was kept
aside and the reports.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import TaskContext

from tidemill.runtime.answers import Answer
from tidemill.runtime.spark.wire import COLUMNS, Kind, from_arrow, to_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from tidemill.model.schema import Schema
    from tidemill.runtime.spark.wire import Message

__all__ = ["FileSink", "deliver"]


@dataclass(frozen=True, slots=True)
class FileSink:
    """A directory that takes one directory of Parquet files for each batch."""

    directory: str
    schema: Schema

    def batch_directory(self, batch: int) -> Path:
        """Where the files of a batch are."""
        return Path(self.directory) / f"batch={batch:08d}"


def deliver(
    results: DataFrame, batch: int, sinks: Mapping[str, tuple[FileSink, ...]]
) -> list[Message]:
    """Write the answers that go to files; the messages that are left, for the driver.

    Args:
        results: The messages of the last stage.
        batch: The number of the batch.
        sinks: For each channel of answers, the files it goes to.
    """
    for sink in (sink for some in sinks.values() for sink in some):
        shutil.rmtree(sink.batch_directory(batch), ignore_errors=True)
    left = results.mapInArrow(_writing(dict(sinks), batch), COLUMNS)
    return list(from_arrow(left.toArrow()))


def _writing(
    sinks: Mapping[str, tuple[FileSink, ...]], batch: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        task = context.partitionId() if context else 0
        answers: dict[str, list[Message]] = {}
        for rows in batches:
            left = []
            for message in from_arrow(rows):
                if message.kind is Kind.ANSWER and message.channel in sinks:
                    answers.setdefault(message.channel, []).append(message)
                else:
                    left.append(message)
            yield to_arrow(left)
        for channel, messages in answers.items():
            for sink in sinks[channel]:
                _write(sink, batch, task, messages)

    return run


def _write(sink: FileSink, batch: int, task: int, messages: list[Message]) -> None:
    answer = Answer(sink.schema)
    answer.add(message.rows() for message in messages)
    directory = sink.batch_directory(batch)
    directory.mkdir(parents=True, exist_ok=True)
    unfinished = directory / f".part-{task:05d}"
    answer.results().write_parquet(unfinished)
    unfinished.rename(directory / f"part-{task:05d}.parquet")
