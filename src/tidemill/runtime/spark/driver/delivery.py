"""Delivery: what is done, batch by batch, with the results of all queries.

1. The batch is computed; its tasks write the files (``sink_writer.py``), and the driver gets what
   it needs: one pass for all queries. It fails if a file was not read that was to be read. What was
   written is flushed, by tasks, by Spark and here.
2. The functions of the session are called, and consoles printed to.
3. What goes to formats of Spark's is appended. Each is another pass; the results are kept for it.
4. What has come of it is told to the report: answers in memory, and counts.
5. Tables take their rows; they are shown to readers when the batch log says that the batch is done.

Whatever fails stops the batch, which is then delivered again under its number: files are replaced,
and what is in memory is as it was. Functions come before formats, because a function can know a
batch by its number, and a format takes it twice.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Lock, get_ident
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyspark.sql import functions

from tidemill.errors import RunError
from tidemill.model.time import Time
from tidemill.runtime.damage import telling_where
from tidemill.runtime.shapes import new_rows
from tidemill.runtime.spark.driver.routes import routes_of
from tidemill.runtime.spark.driver.run_report import known_channels
from tidemill.runtime.spark.io.formats import append_to_format
from tidemill.runtime.spark.io.places import source_name
from tidemill.runtime.spark.state.batch_log import Ending
from tidemill.runtime.spark.state.damage import require_notes_read
from tidemill.runtime.spark.worker.stage import CONTROL, METRICS, WATERMARKS
from tidemill.runtime.spark.worker.wire import Kind, from_arrow
from tidemill.runtime.tables import Tables, known_up_to

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import polars as pl
    from pyspark.sql import DataFrame

    from tidemill.model.spans import Cut
    from tidemill.runtime.quarantine import Quarantine
    from tidemill.runtime.sinks import Sink
    from tidemill.runtime.spark.driver.replaying import SparkArchives
    from tidemill.runtime.spark.driver.routes import Routes
    from tidemill.runtime.spark.driver.run_report import RunReport
    from tidemill.runtime.spark.io.file_log import FileLog
    from tidemill.runtime.spark.state.batch_log import BatchLog, Beginning
    from tidemill.runtime.spark.state.deployments import Deployments
    from tidemill.runtime.spark.state.flush import SparkFiles
    from tidemill.runtime.spark.worker.deployment import Deployment
    from tidemill.runtime.spark.worker.wire import Message

__all__ = [
    "Delivery",
    "Deployed",
    "files_read",
    "has_stepped",
    "refused_counts",
    "stopping_error",
    "watermarks",
]


@dataclass(frozen=True, slots=True)
class Deployed:
    """What batches are computed with, and where their answers go.

    Attributes:
        deployment: What the workers run.
        sinks: Where the answers of queries go that are not for memory.
        routes: The same by channel.
        cuts: Which instants of each answer are wanted.
        replayed: The inputs that are filled with kept rows: the stream, and from when on.
    """

    deployment: Deployment
    sinks: Mapping[str, Sink]
    routes: Routes
    cuts: Mapping[str, Cut | None] = field(default_factory=dict)
    replayed: Mapping[str, tuple[str, Time]] = field(default_factory=dict)

    def is_recut(self, after: Deployed) -> bool:
        """Whether other instants are wanted of a query that stays, or another plan takes over."""
        both = self.cuts.keys() & after.cuts.keys()
        is_cut = any(self.cuts[name] != after.cuts[name] for name in both)
        return is_cut or not after.deployment.before.keys() <= self.deployment.before.keys()

    @property
    def channels(self) -> Mapping[str, str]:
        """The channel of each query's answer."""
        return self.deployment.graph.answers

    def same(self, other: Deployment) -> dict[str, str]:
        """The channels of those queries that are the same in another deployment.

        A name may have come to mean another query.
        """
        mine = self.channels
        return {name: c for name, c in other.graph.answers.items() if mine.get(name) == c}


class Delivery:
    """What is done with the results of each batch, as long as the pipeline runs.

    Args:
        deployed: What batches are computed with, until it is changed.
        deployments: What other batches were computed with.
        report: Is told what has come of it.
        batch_log: What is known when a batch begins.
        spark_files: What Spark writes meanwhile.
        quarantine: Where rows are kept that were refused.
        archives: What streams keep of their past.
        file_logs: The files of the streams that are read from files here.
        forget: Is told, in every batch, how many files of each stream Spark never reads again.
        tables: Where tables are; without it, in memory.

    Attributes:
        deployed: What the next batch is computed with.
        tables: Where tables are.
        between: Is called after each batch, before the next one begins.
        batch_log: What is known when a batch begins.
        came: When something last came on each stream, in the time of batches.
        error: What stopped the last batch, if something did.
    """

    def __init__(  # noqa: PLR0913 — what a batch goes to
        self,
        deployed: Deployed,
        deployments: Deployments,
        report: RunReport,
        batch_log: BatchLog,
        *,
        spark_files: SparkFiles,
        quarantine: Quarantine,
        archives: SparkArchives,
        file_logs: Mapping[str, FileLog] = MappingProxyType({}),
        forget: Callable[[Mapping[str, int]], None],
        tables: Tables | None = None,
    ) -> None:
        self.tables = Tables() if tables is None else tables
        self.error: Exception | None = None
        self.came: dict[str, int] = {}
        self.deployed = deployed
        self.between: Callable[[], None] = lambda: None
        self._deployments = deployments
        self._forget = forget
        self._quarantine = quarantine
        self.archives = archives
        self._file_logs = file_logs
        self._report = report
        self.batch_log = batch_log
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
                raise stopping_error()
            self._thread = get_ident()
            try:
                with telling_where(self._spark_files.directory.parent):
                    self._deliver(results, batch)
                    self.between()
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

    @contextmanager
    def between_batches(self) -> Iterator[None]:
        """Keep the next batch from beginning meanwhile.

        Raises:
            RunError: The pipeline is being stopped.
        """
        with self._turn:
            if self._is_closed:
                raise stopping_error()
            yield

    def end_here(self) -> None:
        """Deliver nothing more; who calls this is between two batches."""
        self._is_closed = True

    def _deployed_for(self, batch: int) -> Deployed:
        """What a batch is computed with: one that was delivered before, what it was then.

        Sinks have all of that one, so they get nothing of it again: an instance of a query may be
        gone since then whose rows are in the same files as those of others.
        """
        version, now = self.batch_log.version_of(batch), self.deployed
        if version is None or version == now.deployment.version:
            return now
        before = self._deployments.open(version)
        routes = routes_of({q: c for q, c in now.same(before).items() if q not in now.sinks}, {})
        deployment = replace(before, sink_writer=routes.sink_writer())
        self._deployments.keep(deployment)
        return Deployed(deployment, now.sinks, routes, now.cuts)

    def _deliver(self, results: DataFrame, batch: int) -> None:
        deployed = self._deployed_for(batch)
        deployment, routes = deployed.deployment, deployed.routes
        is_new = self.batch_log.version_of(batch) is None
        if is_new:
            self._begin_replays(batch, deployed)
        self.batch_log.tell(results.sparkSession.sparkContext, batch, deployment.version)
        if routes.formats:
            results = results.persist()  # another pass would compute them again
        try:
            deployment.sink_writer.clear(batch)
            begun = self.batch_log.begin(batch)
            self.archives.run(results.sparkSession, deployment, self._deployments, batch, begun)
            messages = list(from_arrow(_for_the_driver(results, routes).toArrow()))
            self._require_all_read(messages, batch)
            # What was promised is not lost with the power.
            deployment.sink_writer.settle(batch)
            self._spark_files.flush()
            self._keep_refused(messages, batch)
            answers = _answers(messages)
            _call(routes, answers, batch)
            written = {m.channel for m in messages if m.kind is Kind.REPORT}
            for route in routes.formats.values():
                if any(c in answers or f"written {c}" in written for c in route.channels):
                    append_to_format(results, route.channels, route.sink)
        finally:
            if routes.formats:
                results.unpersist()
        self._report.take(batch, messages, answers, self.deployed.same(deployment))
        self._take_tables(batch, deployed, messages, answers)
        files = files_read(messages)
        if is_new:
            self.archives.take(batch, messages, {**begun.watermarks, **watermarks(messages)})
        self.batch_log.end(batch, self._ending(messages, deployed, begun))
        self.archives.replays = dict(self.batch_log.replays)
        self.tables.publish()
        if self._report.statistics.is_due():
            self._report.keep_statistics()
        self.came |= dict.fromkeys(files, begun.now)
        # Spark begins a batch when it has noted that the one before is done.
        self._forget(begun.files)

    def _take_tables(
        self,
        batch: int,
        deployed: Deployed,
        messages: Sequence[Message],
        answers: Mapping[str, list[pl.DataFrame]],
    ) -> None:
        """Let tables take what the batch has given."""
        known = known_channels(messages)
        for name, route in deployed.routes.tables.items():
            if not all(channel in known for channel in route.channels):
                continue  # partitions had nothing
            mine = [q for q, channel in deployed.channels.items() if channel in route.channels]
            reached = [(deployed.cuts.get(q), Time(known[deployed.channels[q]])) for q in mine]
            reads = [t for t in map(self._report.last_read, mine) if t is not None]
            self.tables.take(
                batch,
                name,
                [frame for channel in route.channels for frame in answers.get(channel, ())],
                known=known_up_to(reached),
                read=max(reads, default=None),
            )

    def _begin_replays(self, batch: int, deployed: Deployed) -> None:
        """Decide what is replayed in a batch that is still to be delivered."""
        self.archives.start_step()
        self.batch_log.begin(batch)
        if not (deployed.replayed or self.batch_log.replays):
            return
        epochs = {input_.rows: input_.epoch for input_ in deployed.deployment.graph.inputs}
        self.archives.begin(batch, deployed.replayed, epochs, self.batch_log)

    def _ending(self, messages: Sequence[Message], deployed: Deployed, begun: Beginning) -> Ending:
        """How far a batch has come."""
        left = self.archives.left(begun) if has_stepped(messages) else None
        return Ending(
            watermarks(messages),
            files_read(messages),
            known_channels(messages),
            deployed.deployment.graph.epoch if has_stepped(messages) else None,
            latest_times(messages),
            deployed.deployment.version,
            left,
        )

    def _require_all_read(self, messages: Sequence[Message], batch: int) -> None:
        """Refuse a batch in which a file was not read that was to be read."""
        before, read = self.batch_log.begin(batch).files, notes_read(messages)
        spark = self._spark_files.directory
        for name, file_log in self._file_logs.items():
            first = max(before.get(name, 0), file_log.skipped)
            source = source_name(name)
            require_notes_read(name, spark, source, batch, first, read.get(name, 0))

    def _keep_refused(self, messages: Sequence[Message], batch: int) -> None:
        """Keep the rows that were refused, and count them."""
        for stream, counts in refused_counts(messages).items():
            kept = (m for m in messages if m.kind is Kind.KEPT and m.channel == stream)
            self._quarantine.take(stream, batch, counts, (m.rows() for m in kept))
            removed = self._quarantine.removed(stream)
            self._report.refuse(stream, self._quarantine.counts(stream), removed)


def stopping_error() -> RunError:
    """The error that says that nothing more is done."""
    return RunError("the pipeline is being stopped", hint="start it again")


def _for_the_driver(results: DataFrame, routes: Routes) -> DataFrame:
    """The results, without answers that only formats are to have."""
    others = routes.only_formats()
    if not others:
        return results
    is_other = functions.col("channel").isin(*others) & (functions.col("kind") == Kind.ANSWER)
    return results.where(~is_other)


def _call(routes: Routes, answers: Mapping[str, list[pl.DataFrame]], batch: int) -> None:
    """Call the functions and consoles that get rows in this batch."""
    for route in routes.called():
        sink = route.sink
        frames = [frame for channel in route.channels for frame in answers.get(channel, ())]
        rows = new_rows(sink.schema, frames, sink.shape)
        if rows.height:  # changes of one instant may come to nothing
            sink.take(rows, batch)


def watermarks(messages: Iterable[Message]) -> dict[str, int]:
    """How far streams have come, if anybody has told."""
    reports = (m for m in messages if m.kind is Kind.REPORT and m.channel == WATERMARKS)
    facts = (fact for report in reports for fact in report.facts().items())
    return {stream: mark for stream, mark in facts if isinstance(mark, int)}


def latest_times(messages: Iterable[Message]) -> dict[str, int]:
    """The latest time of the rows of each stream of which some came."""
    found: dict[str, int] = {}
    for report in (m for m in messages if m.kind is Kind.REPORT):
        kind, _, name = report.channel.partition(" ")
        latest = report.facts()["latest"] if kind == "stream" else None
        if isinstance(latest, int):
            found[name] = max(latest, found.get(name, latest))
    return found


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
