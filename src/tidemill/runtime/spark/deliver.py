"""Delivery: the results of a batch to where they go, all queries in one pass.

Files are written by the tasks of the last stage, which have the rows. What goes to memory comes to
the driver, with what was kept aside and the reports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.runtime.spark.wire import Kind, Message, from_arrow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import polars as pl
    from pyspark.sql import DataFrame

    from tidemill.runtime.sinks import FileSink

__all__ = ["Outlet", "deliver"]


class Outlet:
    """Where the answers go that the last stage gives.

    Args:
        files: For each channel of answers, the files it goes to.
        kept: The channels of answers that the driver is to have.
    """

    def __init__(self, files: Mapping[str, tuple[FileSink, ...]], kept: frozenset[str]) -> None:
        self.files = dict(files)
        self.kept = kept

    def let_out(self, messages: Iterable[Message], batch: int, pid: int) -> Iterator[Message]:
        """Write the answers of a partition that go to files; the messages for the driver.

        Args:
            messages: What the last stage gives.
            batch: The number of the batch.
            pid: The partition.
        """
        answers: dict[str, list[pl.DataFrame]] = {}
        for message in messages:
            if message.kind is Kind.ANSWER and message.channel in self.files:
                answers.setdefault(message.channel, []).append(message.rows())
            if message.kind is not Kind.ANSWER or message.channel in self.kept:
                yield message
        for channel, frames in answers.items():
            rows = sum(frame.height for frame in frames)
            for sink in self.files[channel] if rows else ():
                sink.write(batch, pid, frames)
                yield Message.of_facts(pid, Kind.REPORT, f"written {sink.query}", {"rows": rows})


def deliver(results: DataFrame, batch: int, outlet: Outlet) -> list[Message]:
    """Let a batch be computed and its files be written; the messages that the driver is to have.

    Args:
        results: The messages of the last stage, which are computed now.
        batch: The number of the batch.
        outlet: Where the last stage lets answers out.
    """
    for sink in (sink for some in outlet.files.values() for sink in some):
        sink.clear(batch)
    return list(from_arrow(results.toArrow()))
