"""A job on Spark: the queries of a catalog, running or run, and what has become of them.

A bounded run processes what is there; if the streams are to end, there is one more batch, in which
the control stream says so. A continuous run goes on until it is stopped, at the end of a batch.
When the catalog changes meanwhile, the pipeline is stopped and started again on the same
checkpoint: whatever is the same in the new plan finds its state.
"""

from __future__ import annotations

from dataclasses import replace
from threading import Event
from types import MappingProxyType
from typing import TYPE_CHECKING

from tidemill.catalog.entries import QueryEntry, StreamEntry
from tidemill.engine.ingest import Refused
from tidemill.errors import RunError
from tidemill.lang.statements import ObjectKind
from tidemill.optimizer.physical.fold import stages_needed
from tidemill.runtime.file_sink import FileSink
from tidemill.runtime.planning import plan_entry
from tidemill.runtime.settling import still_written
from tidemill.runtime.sinks import FormatSink, sinks_of
from tidemill.runtime.spark.driver.assembly import deployment_of
from tidemill.runtime.spark.driver.checks import check_start, has_ended_error
from tidemill.runtime.spark.driver.cluster import Cluster, open_cluster
from tidemill.runtime.spark.driver.control import Control, Word
from tidemill.runtime.spark.driver.delivery import Delivery
from tidemill.runtime.spark.driver.failures import failure_of, telling_failures
from tidemill.runtime.spark.driver.java import has_ended
from tidemill.runtime.spark.driver.partitions import partition_ids
from tidemill.runtime.spark.driver.pipeline import start_pipeline
from tidemill.runtime.spark.driver.polling import SourcePoller
from tidemill.runtime.spark.driver.run_report import RunReport
from tidemill.runtime.spark.driver.ticker import Ticker
from tidemill.runtime.spark.io.formats import require_formats
from tidemill.runtime.spark.io.places import (
    file_logs_of,
    places_of,
    read_only_files,
    source_name,
)
from tidemill.runtime.spark.io.source_log import shorten
from tidemill.runtime.spark.state.batch_log import BatchLog
from tidemill.runtime.spark.state.checkpoint import Checkpoint, open_checkpoint
from tidemill.runtime.spark.state.damage import telling_where
from tidemill.runtime.spark.state.flush import SparkFiles
from tidemill.runtime.spark.state.quarantine import Quarantine
from tidemill.runtime.spark.state.record import Facts
from tidemill.runtime.spark.worker.stage import CONTROL

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import polars as pl
    from pyspark.sql.streaming.query import StreamingQuery

    from tidemill.catalog.catalog import Catalog
    from tidemill.engine.ingest import Gate
    from tidemill.optimizer.planner import Planned
    from tidemill.runtime.answers import Answer
    from tidemill.runtime.callback import Callback
    from tidemill.runtime.connectors import Place
    from tidemill.runtime.metrics import OperatorMetrics
    from tidemill.runtime.progress import Progress
    from tidemill.runtime.sinks import Sink
    from tidemill.runtime.spark.driver.checks import Checked
    from tidemill.runtime.spark.driver.settings import SparkSettings
    from tidemill.runtime.spark.io.file_log import FileLog
    from tidemill.runtime.spark.worker.deployment import Deployment

__all__ = ["SparkJob"]

_TIDY_EVERY = 10
"""After how many batches it is seen to it that Spark's notes on files do not grow for ever."""


class SparkJob:
    """The queries of a catalog on Spark.

    Args:
        catalog: What is registered.
        memory: The frames that ``memory`` sources name.
        settings: How to run.
        callbacks: The functions that ``callback`` sinks name; looked up at every start.
    """

    def __init__(
        self,
        catalog: Catalog,
        memory: Mapping[str, pl.DataFrame],
        settings: SparkSettings,
        callbacks: Mapping[str, Callback] = MappingProxyType({}),
    ) -> None:
        self._catalog = catalog
        self._memory = memory
        self._settings = settings
        self._callbacks = callbacks
        self._report = RunReport()
        self._sinks: dict[str, Sink] = {}
        self._planned: dict[str, Planned] = {}
        self._checkpoint: Checkpoint | None = None
        self._cluster: Cluster | None = None
        self._query: StreamingQuery | None = None
        self._delivery: Delivery | None = None
        self._poller = SourcePoller({})
        self._quarantine: Quarantine | None = None
        self._control: Control | None = None
        self._ticker: Ticker | None = None
        self._compared: set[str] = set()
        self._was_stopped = Event()
        self._delivered = 0
        self._lost: str | None = None
        self._ends = False

    @property
    def gates(self) -> Mapping[str, Gate]:
        """What came on each stream, and what was refused."""
        return self._report.gates

    def run(self, *, end: bool | None = None) -> None:
        """Process everything the sources hold.

        Args:
            end: Whether the streams end then; if it is not said, they do without a checkpoint.

        Raises:
            RunError: A source or a sink cannot be read or written.
        """
        self._ends = self._settings.checkpoint is None if end is None else end
        try:
            self._run_bounded(end=self._ends)
        finally:
            self.close()

    def _run_bounded(self, *, end: bool) -> None:
        # Starting costs seconds, so it is done once where the sources say when all is read.
        streams = self._catalog.entries(ObjectKind.STREAM)
        listens = read_only_files(s for s in streams if isinstance(s, StreamEntry))
        self._start(every=0 if listens else None)
        assert self._checkpoint is not None, "a started job has a checkpoint"
        if self._checkpoint.facts.ended or self._was_stopped.is_set():
            return
        if listens:
            self.await_idle()
        else:
            self._finish()
        if not end or self._was_stopped.is_set():
            return
        written = self._poller.await_settled()
        if written is not None:
            raise still_written(*written)
        assert self._control is not None, "a started job has a control stream"
        self._checkpoint.begin_to_end()
        self._control.say(Word.END)
        if listens:
            self.await_idle()
        else:
            self._start(every=None)
            self._finish()
        if not self._was_stopped.is_set():
            self._checkpoint.end()

    def start(self) -> None:
        """Process what comes, until it is stopped."""
        is_first = self._checkpoint is None
        try:
            self._go_on()
        except BaseException:
            if is_first:
                self.close()  # the next one who tries must be able to open it
            raise

    def _go_on(self, dropped: Collection[str] = (), *, is_change: bool = False) -> None:
        self._was_stopped.clear()
        every = self._settings.trigger
        self._start(every=every, dropped=dropped, is_change=is_change)
        query = self._query
        if query is None:
            raise has_ended_error(self._settings.checkpoint)
        self._poller.start(every, query.stop)
        assert self._ticker is not None, "a started job has a ticker"
        self._ticker.start(query.stop)

    def await_idle(self) -> None:
        """Wait until everything there is now has been processed.

        Raises:
            RunError: A source or a sink cannot be read or written.
        """
        if self._delivery is not None:
            self._delivery.refuse_callbacks("wait for")
        query = self._query
        self._poller.await_settled()
        with telling_failures(self._delivery, self._cluster, self._secrets()):
            if query is not None:
                query.processAllAvailable()
        if (error := self._error()) is not None:
            raise error

    def _finish(self) -> None:
        """Wait until all is read."""
        query = self._query
        with telling_failures(self._delivery, self._cluster, self._secrets()):
            if query is not None:
                query.awaitTermination()

    def stop(self) -> None:
        """Stop at the end of a batch; a batch that has begun but not delivered is undone.

        Raises:
            RunError: This is called by a function that gets rows.
        """
        if self._delivery is not None:
            self._delivery.refuse_callbacks("stop")
        self._was_stopped.set()
        query, self._query = self._query, None
        if query is None:
            return
        self._poller.close()
        if self._ticker is not None:
            self._ticker.close()
        if self._delivery is not None:
            self._delivery.close()
        try:
            with telling_failures(None, self._cluster):
                query.stop()
        except RunError as error:
            if not self._has_lost_java():
                raise
            self._lost = str(error)  # there is nothing left to stop; progress tells why

    def change(self, catalog: Catalog) -> None:
        """Go on with another catalog; what is the same in it keeps its state and its answer.

        Raises:
            RunError: The new pipeline cannot be started; the old one goes on.
        """
        self.stop()
        before, self._catalog = self._catalog, catalog
        names = {entry.name for entry in catalog.entries(ObjectKind.QUERY)}
        gone = {entry.name for entry in before.entries(ObjectKind.QUERY)} - names
        try:
            self._go_on(gone, is_change=True)
        except Exception:
            self._catalog = before
            self.start()
            raise

    def close(self) -> None:
        """Stop, and forget the state if nobody is to take it up again.

        Raises:
            RunError: This is called by a function that gets rows.
        """
        if self._delivery is not None:
            self._delivery.refuse_callbacks("stop")
        try:
            self.stop()
        finally:
            if self._checkpoint is not None:
                if self._checkpoint.is_temporary:
                    self._take_refused()
                self._checkpoint.close()
                self._checkpoint = None

    def quarantine(self, stream: str) -> pl.DataFrame:
        """The rows of a stream that were refused and are kept.

        Raises:
            RunError: They cannot be read.
        """
        if self._quarantine is not None:
            refused = Refused(self._report.gates[stream].stream)
            for rows in self._quarantine.rows(stream):
                refused.keep(rows)
            return refused.kept()
        return self._report.gates[stream].refused.kept()

    def _take_refused(self) -> None:
        """Take what is in the quarantine into memory, before it is removed."""
        if self._quarantine is None:
            return
        for name, gate in self._report.gates.items():
            for rows in self._quarantine.rows(name):
                gate.refused.keep(rows)
        self._quarantine = None

    def answer(self, query: str) -> Answer | None:
        """What a query has given so far: from memory, or from the files it goes to.

        Raises:
            RunError: It goes to where it cannot be read back from.
        """
        sink = self._sinks.get(query)
        if sink is None:
            return self._report.answer(query)
        if isinstance(sink, FileSink):
            answer = sink.answer()
            answer.known = self._report.known(query)
            answer.last_read = self._report.last_read(query)
            return answer
        raise RunError(
            f'the answer of "{query}" goes to its sink and is not kept',
            hint="leave out INTO, or write INTO parquet(…)",
        )

    def planned(self, query: str) -> Planned | None:
        """The plan that a query runs with, if it runs or was run."""
        return self._planned.get(query)

    def progress(self) -> Progress:
        """How far the run has come."""
        progress = self._report.progress(self._poller.file_logs, self._log())
        error, secrets = self._error(), self._secrets()
        told = None if error is None else str(error)
        failure = told or failure_of(self._query, self._delivery, self._cluster, secrets)
        is_starting = self._cluster is None
        return replace(progress, failure=failure or self._lost, starting=is_starting)

    def metrics(self) -> Mapping[str, OperatorMetrics]:
        """What each operator has done in this run and remembers, by fingerprint."""
        return self._report.metrics()

    def _has_lost_java(self) -> bool:
        return self._cluster is not None and has_ended(self._cluster.java)

    def _error(self) -> RunError | None:
        """What was wrong in a thread beside the pipeline."""
        return self._poller.error or (None if self._ticker is None else self._ticker.error)

    def _log(self) -> str | None:
        log = None if self._cluster is None else self._cluster.log
        return None if log is None else str(log)

    def _secrets(self) -> frozenset[str]:
        return self._catalog.secrets()

    # Starting

    def _start(
        self, *, every: float | None, dropped: Collection[str] = (), is_change: bool = False
    ) -> None:
        """Check everything, and only then write anything.

        Args:
            every: How often a batch begins, in seconds; ``None`` to stop when all is read.
            dropped: The names of queries that the session has given up.
            is_change: Whether a pipeline that was running goes on with other queries.

        Raises:
            RunError: Something is refused, and everything is as it was; or Spark cannot start.
        """
        # Checks: they write nothing, neither to the checkpoint nor to a sink.
        queries = [e for e in self._catalog.entries(ObjectKind.QUERY) if isinstance(e, QueryEntry)]
        sinks = sinks_of(queries, self._callbacks)
        cluster = self._connected()
        with (
            telling_failures(None, cluster, self._secrets()),
            telling_where(self._settings.checkpoint),
        ):
            self._start_on(cluster, queries, sinks, every, dropped, is_change=is_change)

    def _connected(self) -> Cluster:
        """The Spark session; a new one if Java has ended."""
        settings, self._lost = self._settings, None
        if self._cluster is None or self._has_lost_java():
            self._cluster = open_cluster(settings.master, settings.memory)
        return self._cluster

    def _start_on(  # noqa: PLR0913 — what a start is told
        self,
        cluster: Cluster,
        queries: list[QueryEntry],
        sinks: dict[str, Sink],
        every: float | None,
        dropped: Collection[str],
        *,
        is_change: bool,
    ) -> None:
        require_formats(cluster.spark, (s for s in sinks.values() if isinstance(s, FormatSink)))
        checkpoint = self._opened(cluster, queries)
        start = check_start(
            checkpoint,
            self._catalog,
            queries,
            sinks,
            self._settings,
            memory=self._memory,
            dropped=dropped,
            compared=self._compared,
            ends=self._ends,
        )
        self._compared = set(start.declared)
        if checkpoint.facts.ended:  # what there is to read is in files, and nothing runs any more
            self._know(start, BatchLog(checkpoint.batch_log, self._settings.clock))
            return
        # Effects. Each can be the last one before a kill: the next start goes on from there.
        checkpoint.create()
        start.claim_sinks()  # they know the checkpoint before it knows them
        relations = start.keep_relations(checkpoint)
        start.keep_plans(checkpoint)
        places = places_of(start.streams, checkpoint, self._memory)
        batch_log = BatchLog(checkpoint.batch_log, self._settings.clock)
        file_logs = file_logs_of(places, checkpoint, batch_log)
        if batch_log.has_delivered:
            self._skip_what_came_before(file_logs, start, batch_log, is_change=is_change)
        before = checkpoint.facts
        checkpoint.record(start.known_as, start.streams, relations)
        try:
            deployment = deployment_of(start.graph, start.streams, relations, checkpoint.facts)
            self._poller = SourcePoller(file_logs)
            self._query = self._launched(
                cluster,
                checkpoint,
                start,
                deployment=deployment,
                places=places,
                batch_log=batch_log,
                every=every,
            )
        except Exception:
            checkpoint.know(before)
            raise

    @staticmethod
    def _skip_what_came_before(
        file_logs: Mapping[str, FileLog], start: Checked, batch_log: BatchLog, *, is_change: bool
    ) -> None:
        """Let queries that begin later have what they would have if others read their streams.

        While a pipeline runs, others would have read all that is there. When it starts again, they
        would read what has come since it was stopped: if the stream was read before, that is known,
        and if not, nothing of what is there can be told to be new. A frame in memory does not come
        at some time, so it is for all.
        """
        for name in file_logs.keys() & start.unshared:
            if start.streams[name].source.name.text.lower() != "memory":
                was_read = not is_change and name in batch_log.delivered
                file_logs[name].skip(batch_log.delivered[name] if was_read else None)

    def _know(self, start: Checked, batch_log: BatchLog) -> None:
        """Know the queries from now on."""
        self._sinks, self._planned = start.sinks, start.planned
        channels = start.graph.answers.items()
        known = {query: batch_log.known[c] for query, c in channels if c in batch_log.known}
        self._report.begin(start.queries, start.sinks, known, start.resumed)
        self._report.add_streams(start.streams)
        self._report.add_operators(start.graph)

    def _launched(  # noqa: PLR0913 — all that a pipeline is made of
        self,
        cluster: Cluster,
        checkpoint: Checkpoint,
        start: Checked,
        *,
        deployment: Deployment,
        places: Mapping[str, Place],
        batch_log: BatchLog,
        every: float | None,
    ) -> StreamingQuery:
        """The pipeline, started, with all that works beside it in the driver."""
        self._control = Control(checkpoint.control, committed=batch_log.committed.get(CONTROL, 0))
        if every is None:
            self._poller.await_settled()  # what is not there at the start is not read
        else:
            self._poller.look()
        self._know(start, batch_log)
        self._quarantine = Quarantine(checkpoint.quarantine)
        for name in start.streams:
            counts, removed = self._quarantine.counts(name), self._quarantine.removed(name)
            self._report.refuse(name, counts, removed)
        self._delivery = Delivery(
            start.graph.answers,
            start.sinks,
            self._report,
            batch_log,
            spark_files=SparkFiles(checkpoint.spark),
            quarantine=self._quarantine,
            file_logs=self._poller.file_logs,
            forget=self._forget,
            epoch=start.graph.epoch,
        )
        self._ticker = self._new_ticker(deployment, batch_log, self._delivery)
        checkpoint.begin()
        return start_pipeline(
            cluster,
            deployment,
            checkpoint,
            places,
            self._poller.file_logs,
            deliver=self._delivery,
            sink_writer=self._delivery.sink_writer,
            every=every,
            cache_bytes=self._settings.cache_bytes,
        )

    def _new_ticker(
        self, deployment: Deployment, batch_log: BatchLog, delivery: Delivery
    ) -> Ticker:
        assert self._control is not None, "the control stream is there"
        return Ticker(
            deployment.streams,
            deployment.groups,
            self._control,
            batch_log,
            clock=self._settings.clock,
            seen=lambda: (dict(delivery.came), self._report.remembered),
        )

    def _forget(self, committed: Mapping[str, int]) -> None:
        """Remove the notes on files and words that Spark never reads again."""
        self._poller.forget(committed)
        if self._control is not None:
            self._control.forget(committed.get(CONTROL, 0))
        self._delivered += 1
        if self._checkpoint is not None and self._delivered % _TIDY_EVERY == 0:
            sources = ["control", *map(source_name, self._poller.file_logs)]
            shorten(self._checkpoint.spark / "sources", sources)

    def _opened(self, cluster: Cluster, queries: list[QueryEntry]) -> Checkpoint:
        """Where to keep the state; a new place has room for the queries."""
        if self._checkpoint is None:
            settings = self._settings
            count = settings.partitions or cluster.tasks
            stages = settings.stages_with(count) or stages_needed(
                *(plan_entry(q, settings.planning, partitions=count).physical for q in queries)
            )
            facts = Facts(partition_ids(count, cluster.tasks), stages, settings.planning.facts())
            self._checkpoint = open_checkpoint(settings, facts)
        return self._checkpoint
