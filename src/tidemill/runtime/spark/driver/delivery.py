"""Delivery: what is done, batch by batch, with the results of all queries.

1. The batch is computed; its tasks write the files (``sink_writer.py``), and the driver gets what
   it needs: one pass for all queries. It fails if a file was not read that was to be read. What was
   written is flushed, by tasks, by Spark and here.
2. The functions of the session are called, and consoles printed to.
3. What goes to formats of Spark's is appended. Each is another pass; the results are kept for it.
4. What has come of it is told to the report: answers in memory, and counts.

Whatever fails stops the batch, which is then delivered again under its number: files are replaced,
and what is in memory is as it was. Functions come before formats, because a function can know a
batch by its number, and a format takes it twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock, get_ident
from types import MappingProxyType
from typing import TYPE_CHECKING, assert_never

from pyspark.sql import functions

from tidemill.errors import RunError
from tidemill.runtime.callback import CallbackSink
from tidemill.runtime.console import ConsoleSink
from tidemill.runtime.damage import telling_where
from tidemill.runtime.file_sink import FileSink
from tidemill.runtime.shapes import new_rows
from tidemill.runtime.sinks import FormatSink
from tidemill.runtime.spark.driver.run_report import known_channels
from tidemill.runtime.spark.io.formats import append_to_format
from tidemill.runtime.spark.io.places import source_name
from tidemill.runtime.spark.state.damage import require_notes_read
from tidemill.runtime.spark.worker.sink_writer import SinkWriter
from tidemill.runtime.spark.worker.stage import CONTROL, METRICS, WATERMARKS
from tidemill.runtime.spark.worker.wire import Kind, from_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import polars as pl
    from pyspark.sql import DataFrame

    from tidemill.runtime.quarantine import Quarantine
    from tidemill.runtime.sinks import Sink
    from tidemill.runtime.spark.driver.run_report import RunReport
    from tidemill.runtime.spark.io.file_log import FileLog
    from tidemill.runtime.spark.state.batch_log import BatchLog
    from tidemill.runtime.spark.state.flush import SparkFiles
    from tidemill.runtime.spark.worker.wire import Message

__all__ = ["Delivery", "files_read", "has_stepped", "refused_counts", "watermarks"]


@dataclass(frozen=True, slots=True)
class _Routes:
    """Which channel of answers goes where."""

    files: dict[str, tuple[FileSink, ...]] = field(default_factory=dict)
    callbacks: list[tuple[str, CallbackSink]] = field(default_factory=list)
    consoles: list[tuple[str, ConsoleSink]] = field(default_factory=list)
    formats: list[tuple[str, FormatSink]] = field(default_factory=list)
    memory: list[str] = field(default_factory=list)

    def kept(self) -> frozenset[str]:
        """The channels that the driver needs."""
        return frozenset([*(channel for channel, _ in self.called()), *self.memory])

    def called(self) -> list[tuple[str, CallbackSink | ConsoleSink]]:
        """What is called here in the driver, in order."""
        return [*self.callbacks, *self.consoles]

    def sink_writer(self) -> SinkWriter:
        """Where the last stage lets the answers out."""
        return SinkWriter(self.files, self.kept(), (channel for channel, _ in self.formats))


class Delivery:
    """What is done with the results of each batch, as long as the pipeline runs.

    Args:
        channels: The channel of each query's answer.
        sinks: Where the answers go that are not for memory.
        report: Is told what has come of it.
        batch_log: What is known when a batch begins.
        spark_files: What Spark writes meanwhile.
        quarantine: Where rows are kept that were refused.
        file_logs: The files of the streams that are read from files here.
        forget: Is told, in every batch, how many files of each stream Spark never reads again.
        epoch: That of the queries that began last.

    Attributes:
        sink_writer: Where the last stage lets answers out.
        came: When something last came on each stream, in the time of batches.
        error: What stopped the last batch, if something did.
    """

    def __init__(  # noqa: PLR0913 — what a batch goes to
        self,
        channels: Mapping[str, str],
        sinks: Mapping[str, Sink],
        report: RunReport,
        batch_log: BatchLog,
        *,
        spark_files: SparkFiles,
        quarantine: Quarantine,
        file_logs: Mapping[str, FileLog] = MappingProxyType({}),
        forget: Callable[[Mapping[str, int]], None],
        epoch: int,
    ) -> None:
        self.error: Exception | None = None
        self.came: dict[str, int] = {}
        self._forget = forget
        self._epoch = epoch
        self._quarantine = quarantine
        self._file_logs = file_logs
        self._channels = channels
        self._routes = _routes(channels, sinks)
        self.sink_writer = self._routes.sink_writer()
        self._report = report
        self._batch_log = batch_log
        self._spark_files = spark_files
        self._turn = Lock()
        self._thread: int | None = None
        self._is_closed = False

    def __call__(self, results: DataFrame, batch: int) -> None:
        """Deliver the results of a batch.

        Raises:
            RunError: A sink or the checkpoint cannot be written, or the pipeline is being stopped.
        """
        with self._turn:
            if self._is_closed:
                raise RunError("the pipeline is being stopped", hint="start it again")
            self._thread = get_ident()
            try:
                with telling_where(self._spark_files.directory.parent):
                    self._deliver(results, batch)
            except Exception as error:
                self.error = error
                raise
            finally:
                self._thread = None

    def refuse_callbacks(self, what: str) -> None:
        """Refuse what would wait for the end of a batch from within the batch.

        Raises:
            RunError: This is called by a function that gets rows.
        """
        if self._thread == get_ident():
            raise RunError(
                f"a callback cannot {what} the session that calls it",
                hint="leave a mark, and do it elsewhere",
            )

    def close(self) -> None:
        """Deliver nothing more; what is being delivered is delivered in full."""
        with self._turn:
            self._is_closed = True

    def _deliver(self, results: DataFrame, batch: int) -> None:
        routes = self._routes
        self._batch_log.tell(results.sparkSession.sparkContext, batch)
        if routes.formats:
            results = results.persist()  # another pass would compute them again
        try:
            self.sink_writer.clear(batch)
            messages = list(from_arrow(self._for_the_driver(results).toArrow()))
            self._require_all_read(messages, batch)
            self._flush(batch)
            self._keep_refused(messages, batch)
            answers = _answers(messages)
            for channel, sink in routes.called():
                rows = new_rows(sink.schema, answers.get(channel, ()), sink.shape)
                if rows.height:  # changes of one instant may come to nothing
                    sink.take(rows, batch)
            written = {m.channel for m in messages if m.kind is Kind.REPORT}
            for channel, target in routes.formats:
                if channel in answers or f"written {channel}" in written:
                    append_to_format(results, channel, target)
        finally:
            if routes.formats:
                results.unpersist()
        self._report.take(batch, messages, answers, self._channels)
        begun, files = self._batch_log.begin(batch), files_read(messages)
        ran = self._epoch if has_stepped(messages) else None
        self._batch_log.end(batch, watermarks(messages), files, known_channels(messages), ran=ran)
        self.came |= dict.fromkeys(files, begun.now)
        # Spark begins a batch when it has noted that the one before is done.
        self._forget(begun.files)

    def _require_all_read(self, messages: Sequence[Message], batch: int) -> None:
        """Refuse a batch in which a file was not read that was to be read."""
        before, read = self._batch_log.begin(batch).files, notes_read(messages)
        spark = self._spark_files.directory
        for name, file_log in self._file_logs.items():
            first = max(before.get(name, 0), file_log.skipped)
            source = source_name(name)
            require_notes_read(name, spark, source, batch, first, read.get(name, 0))

    def _flush(self, batch: int) -> None:
        """Keep what the batch has written; nothing that was promised is lost with the power."""
        self.sink_writer.settle(batch)
        self._spark_files.flush()

    def _keep_refused(self, messages: Sequence[Message], batch: int) -> None:
        """Keep the rows that were refused, and count them."""
        for stream, counts in refused_counts(messages).items():
            kept = (m for m in messages if m.kind is Kind.KEPT and m.channel == stream)
            self._quarantine.take(stream, batch, counts, (m.rows() for m in kept))
            removed = self._quarantine.removed(stream)
            self._report.refuse(stream, self._quarantine.counts(stream), removed)

    def _for_the_driver(self, results: DataFrame) -> DataFrame:
        """The results, without answers that only formats are to have."""
        others = {channel for channel, _ in self._routes.formats} - self._routes.kept()
        if not others:
            return results
        is_other = functions.col("channel").isin(*others) & (functions.col("kind") == Kind.ANSWER)
        return results.where(~is_other)


def _routes(channels: Mapping[str, str], sinks: Mapping[str, Sink]) -> _Routes:
    routes = _Routes()
    for query, channel in channels.items():
        sink = sinks.get(query)
        match sink:
            case None:
                routes.memory.append(channel)
            case FileSink():
                routes.files[channel] = (*routes.files.get(channel, ()), sink)
            case CallbackSink():
                routes.callbacks.append((channel, sink))
            case ConsoleSink():
                routes.consoles.append((channel, sink))
            case FormatSink():
                routes.formats.append((channel, sink))
            case _:
                assert_never(sink)
    return routes


def watermarks(messages: Iterable[Message]) -> dict[str, int]:
    """How far streams have come, if anybody has told."""
    reports = (m for m in messages if m.kind is Kind.REPORT and m.channel == WATERMARKS)
    facts = (fact for report in reports for fact in report.facts().items())
    return {stream: mark for stream, mark in facts if isinstance(mark, int)}


def has_stepped(messages: Iterable[Message]) -> bool:
    """Whether the partitions have had something in a batch: all have if one has."""
    return any(m.kind is Kind.REPORT and m.channel.startswith(f"{METRICS} ") for m in messages)


def files_read(messages: Iterable[Message]) -> dict[str, int]:
    """How many files of the streams of which something came have been read, and of ``CONTROL``."""
    files: dict[str, int] = {}
    for report in (m for m in messages if m.kind is Kind.REPORT):
        kind, _, name = report.channel.partition(" ")
        sender = name if kind == "stream" else CONTROL if report.channel == CONTROL else None
        if sender is not None:
            count = report.facts()["files"]
            assert isinstance(count, int), "files are counted"
            files[sender] = max(count, files.get(sender, 0))
    return files


def notes_read(messages: Iterable[Message]) -> dict[str, int]:
    """How many notes on files were read of each stream of which something came."""
    notes: dict[str, int] = {}
    for report in (m for m in messages if m.kind is Kind.REPORT):
        kind, _, name = report.channel.partition(" ")
        if kind == "stream":
            count = report.facts()["notes"]
            assert isinstance(count, int), "notes are counted"
            notes[name] = notes.get(name, 0) + count
    return notes


def _answers(messages: Iterable[Message]) -> dict[str, list[pl.DataFrame]]:
    """The new elements of each channel that the driver has."""
    answers: dict[str, list[pl.DataFrame]] = {}
    for message in messages:
        if message.kind is Kind.ANSWER:
            answers.setdefault(message.channel, []).append(message.rows())
    return answers


def refused_counts(messages: Iterable[Message]) -> dict[str, dict[str, int]]:
    """How many rows of each stream were refused in a batch, by reason."""
    found: dict[str, dict[str, int]] = {}
    for message in messages:
        kind, _, stream = message.channel.partition(" ")
        if message.kind is Kind.REPORT and kind == "stream":
            refused = message.facts()["refused"]
            assert isinstance(refused, dict), "a stream tells what was refused"
            counts = found.setdefault(stream, {})
            for reason, count in refused.items():
                assert isinstance(count, int), "rows are counted"
                counts[reason] = counts.get(reason, 0) + count
    return found
