"""A job on Spark: the queries of a catalog, running or run, and what has become of them.

A bounded run processes what is there; if the streams are to end, there is one more batch, in which
the control stream says so. A continuous run goes on until it is stopped, at the end of a batch.
When the catalog changes meanwhile, the next batch is computed with another version of what runs:
whatever is the same in it finds its state. Only where a stream is new, or is read no more, Spark's
query is stopped and started again on the same checkpoint.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event, RLock
from types import MappingProxyType
from typing import TYPE_CHECKING

from tidemill.catalog.entries import QueryEntry, StreamEntry
from tidemill.engine.ingest import Refused
from tidemill.errors import RunError
from tidemill.lang.statements import ObjectKind
from tidemill.optimizer.physical.fold import stages_needed
from tidemill.runtime.damage import telling_where
from tidemill.runtime.measuring.known import statistics_of
from tidemill.runtime.measuring.measured import load_measured
from tidemill.runtime.one_time import NotKeptError
from tidemill.runtime.planning import plan_entry, planned_anew
from tidemill.runtime.progress import with_replays
from tidemill.runtime.record import Facts
from tidemill.runtime.settling import still_written
from tidemill.runtime.sinks import FormatSink, sinks_of
from tidemill.runtime.spark.driver.checks import check_place, check_queries
from tidemill.runtime.spark.driver.cluster import Cluster, open_cluster
from tidemill.runtime.spark.driver.control import Word
from tidemill.runtime.spark.driver.delivery import stopping_error
from tidemill.runtime.spark.driver.failures import failure_of, telling_failures
from tidemill.runtime.spark.driver.java import has_ended
from tidemill.runtime.spark.driver.known import Known
from tidemill.runtime.spark.driver.partitions import partition_ids
from tidemill.runtime.spark.driver.run_report import RunReport
from tidemill.runtime.spark.driver.steps import Start, change_steps, know, take_steps
from tidemill.runtime.spark.io.formats import require_formats
from tidemill.runtime.spark.io.places import read_only_files
from tidemill.runtime.spark.state.batch_log import BatchLog
from tidemill.runtime.spark.state.opening import open_checkpoint
from tidemill.runtime.spark.state.orphans import await_orphan, forget_java
from tidemill.runtime.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    import polars as pl

    from tidemill.catalog.catalog import Catalog
    from tidemill.engine.adapting import Adapting
    from tidemill.engine.ingest import Gate
    from tidemill.history.table_view import TableView
    from tidemill.optimizer.planned import Planned
    from tidemill.optimizer.statistics import Statistics
    from tidemill.runtime.answers import Answer
    from tidemill.runtime.callback import Callback
    from tidemill.runtime.measuring.measured import Measured
    from tidemill.runtime.metrics import Adapted, OperatorMetrics
    from tidemill.runtime.progress import Progress
    from tidemill.runtime.runs import Moment
    from tidemill.runtime.sinks import Sink
    from tidemill.runtime.spark.driver.checks import Checked
    from tidemill.runtime.spark.driver.running import Running
    from tidemill.runtime.spark.driver.settings import SparkSettings
    from tidemill.runtime.spark.state.checkpoint import Checkpoint

__all__ = ["SparkJob"]


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
        self._known = Known(self._report, Tables())
        self._checkpoint: Checkpoint | None = None
        self._cluster: Cluster | None = None
        self._running: Running | None = None
        self._compared: set[str] = set()
        self._was_stopped = Event()
        self._stopping = RLock()  # a pipeline that starts again is stopped when it has started
        self._lost: str | None = None
        self._ask: Callable[[Moment], Catalog | None] | None = None
        self._ends = False
        self._is_taken = False  # whether what is in the quarantine has been taken into memory

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
        assert self._running is not None, "a started job runs"
        written = self._running.poller.await_settled()
        if written is not None:
            raise still_written(*written)
        self._checkpoint.begin_to_end()
        self._running.control.say(Word.END)
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
        if self._running is None or self._running.query is None:
            assert self._checkpoint is not None, "it was opened"
            raise self._checkpoint.has_ended_error()
        self._running.follow(every)

    def await_idle(self) -> None:
        """Wait until everything there is now has been processed.

        Raises:
            RunError: A source or a sink cannot be read or written.
        """
        running = self._running
        if running is None:
            return
        running.delivery.refuse_callbacks("wait for")
        with self._stopping:  # one that starts again has started, or has failed to
            running = self._running or running
            query = running.query
        if query is None and not self._was_stopped.is_set():
            raise RunError("the pipeline could not be started again", hint="stop the session first")
        running.poller.await_settled()
        with telling_failures(running.delivery, self._cluster, self._secrets()):
            if query is not None:
                query.processAllAvailable()
        if running.error is not None:
            raise running.error

    def _finish(self) -> None:
        """Wait until all is read."""
        if self._running is not None and (query := self._running.query) is not None:
            with telling_failures(self._running.delivery, self._cluster, self._secrets()):
                query.awaitTermination()

    def stop(self) -> None:
        """Stop at the end of a batch; a batch that has begun but not delivered is undone.

        Raises:
            RunError: This is called by a function that gets rows.
        """
        self._refuse_callbacks()
        with self._stopping:
            self._was_stopped.set()
            query = None if self._running is None else self._running.end()
            if query is None:
                return
            try:
                with telling_failures(None, self._cluster):
                    query.stop()
            except RunError as error:
                if not self._has_lost_java():
                    raise
                self._lost = str(error)  # there is nothing left to stop; progress tells why

    def moment(self) -> Moment:
        """Where the pipeline stands: what it has told with its last batch."""
        moment, running = self._report.moment(), self._running
        if running is None:
            return moment
        delivery = running.delivery
        batches, reached = delivery.batch_log.ended + 1, moment.watermarks
        return replace(moment, kept=delivery.archives.since, batches=batches, reached=reached)

    def past(self) -> Path:
        """The checkpoint, to read from it what streams have kept.

        Raises:
            NotKeptError: It was a temporary one, and is given up.
            RunError: A function that gets rows calls this.
        """
        if self._running is not None:
            self._running.delivery.refuse_callbacks("ask")
        if self._settings.checkpoint is not None:
            return Path(self._settings.checkpoint)  # whether it runs or has stopped
        if self._checkpoint is None or not self._checkpoint.directory.is_dir():
            raise NotKeptError(
                "what streams have kept was given up with the run",
                hint="call session.start(), or connect(checkpoint=…) to keep it",
            )
        return self._checkpoint.directory

    def change(self, decide: Callable[[Moment], Catalog]) -> Catalog:
        """Go on with another catalog; what is the same in it keeps its state and its answer.

        Raises:
            RunError: It is refused, or cannot be written, and the old one goes on; or what runs has
                failed.
        """
        running = self._running
        assert running is not None, "it runs"
        running.delivery.refuse_callbacks("change")
        self._require_sound(running)
        with running.delivery.between_batches():
            catalog = decide(self.moment())
            with telling_where(self._settings.checkpoint):
                checked = self._checked_change(catalog)
                if checked.streams == running.delivery.deployed.deployment.streams:
                    self._take(catalog, checked, running)
                    return catalog
            running.delivery.end_here()  # what has been decided holds for what comes next
        return self._changed_by_restart(lambda _moment: catalog)

    def follow(self, ask: Callable[[Moment], Catalog | None]) -> None:
        """Ask between any two batches, from now on, and go on with the catalog that is given."""
        self._ask = ask

    def _asked(self, running: Running) -> None:
        """Go on with another catalog if there is one; this is called between two batches.

        A stream that is not needed any more is read until the next start: Spark's query cannot be
        stopped from here.
        """
        if running.delivery.archives.replays:
            running.control.say(Word.TICK)  # what is left of them comes in the next batch
        catalog = None if self._ask is None else self._ask(self.moment())
        if catalog is not None:
            streams = running.delivery.deployed.deployment.streams
            checked = self._checked_change(catalog)
            assert checked.streams.keys() <= streams.keys(), "no query has come"
            self._take(catalog, replace(checked, streams=dict(streams)), running)

    def _take(self, catalog: Catalog, checked: Checked, running: Running) -> None:
        """Go on with what was checked from the next batch on."""
        assert self._cluster is not None, "it runs"
        assert self._checkpoint is not None, "it runs"
        start = self._new_start(self._cluster, self._checkpoint, checked, None, is_change=True)
        start.batch_log = running.delivery.batch_log
        change_steps(start, running)
        self._catalog = catalog
        self._known.take(checked)

    def _require_sound(self, running: Running) -> None:
        """Raise what was wrong, if something was."""
        with telling_failures(running.delivery, self._cluster, self._secrets()):
            error = None if running.query is None else running.query.exception()
            if error is not None:
                raise error
        if running.error is not None:
            raise running.error

    def _checked_change(self, catalog: Catalog) -> Checked:
        """A change of what runs, since nothing of it is refused."""
        cluster, checkpoint = self._cluster, self._checkpoint
        assert cluster is not None, "it runs"
        assert checkpoint is not None, "it runs"
        queries = _queries(catalog)
        sinks = sinks_of(queries, self._callbacks)
        require_formats(cluster.spark, (s for s in sinks.values() if isinstance(s, FormatSink)))
        checked = check_queries(
            checkpoint,
            catalog,
            queries,
            sinks,
            self._settings,
            memory=self._memory,
            dropped=_gone(self._catalog, catalog),
            compared=self._compared,
            running=self._known.planned,
            statistics=self.known(catalog),
        )
        self._compared |= set(checked.declared)
        return checked

    def _changed_by_restart(self, decide: Callable[[Moment], Catalog]) -> Catalog:
        """Stop the pipeline, and start it with another catalog on the same checkpoint."""
        with self._stopping:
            if self._checkpoint is None:  # another thread has stopped it before
                raise stopping_error()
            self.stop()
            before = self._catalog
            try:
                catalog = self._catalog = decide(self.moment())
                self._go_on(_gone(before, catalog), is_change=True)
            except Exception:
                self._catalog = before
                self.start()
                raise
            return catalog

    def close(self) -> None:
        """Stop, and forget the state if no later session is to go on with it.

        Raises:
            RunError: This is called by a function that gets rows.
        """
        self._refuse_callbacks()
        with self._stopping:
            try:
                self.stop()
            finally:
                if self._checkpoint is not None:
                    self._report.keep_statistics()
                    if self._checkpoint.is_temporary:
                        self._take_refused()
                    forget_java(self._checkpoint.directory)
                    self._checkpoint.close()
                    self._checkpoint = None

    def _refuse_callbacks(self) -> None:
        if self._running is not None:
            self._running.delivery.refuse_callbacks("stop")

    def quarantine(self, stream: str) -> pl.DataFrame:
        """The rows of a stream that were refused and are kept.

        Raises:
            RunError: They cannot be read.
        """
        gate = self._report.gates[stream]
        if self._running is None or self._is_taken:
            return gate.refused.kept()
        refused = Refused(gate.stream)
        for rows in self._running.quarantine.rows(stream):
            refused.keep(rows)
        return refused.kept()

    def _take_refused(self) -> None:
        """Take what is in the quarantine into memory, before it is removed."""
        if self._running is not None and not self._is_taken:
            for name, gate in self._report.gates.items():
                for rows in self._running.quarantine.rows(name):
                    gate.refused.keep(rows)
            self._is_taken = True

    def answer(self, query: str) -> Answer | None:
        """What a query has given so far: from memory, or from the files it goes to.

        Raises:
            RunError: It goes to where it cannot be read back from.
        """
        return self._known.answer(query)

    def table(self, name: str) -> TableView | None:
        """A table as it is after the last batch that is done, if it was there."""
        return self._known.tables.view(name)

    def planned(self, query: str) -> Planned | None:
        """The plan that a query runs with, if it runs or was run."""
        return self._known.planned.get(query)

    @property
    def partitions(self) -> int:
        """How many partitions state is kept in."""
        assert self._checkpoint is not None, "it runs"
        return len(self._checkpoint.facts.pids)

    def planned_again(self, query: str) -> Planned:
        """The plan that would be made today of a query that runs."""
        entry = next(one for one in _queries(self._catalog) if one.name == query)
        settings, known = self._settings, self.known(self._catalog)
        running = self._known.planned[query]
        return planned_anew(entry, running, settings.planning, known, settings.templates)

    def adapt(self, adapting: Adapting | None) -> None:
        """Let joins change their trees so from the next batch on, and plan new queries for it.

        Raises:
            RunError: What runs has failed, or a function that gets rows calls this.
        """
        planning = replace(self._settings.planning, adaptive=adapting is not None)
        self._settings = replace(self._settings, planning=planning, adapting=adapting)
        if self._running is not None:
            self.change(lambda _moment: self._catalog)

    def adapted(self) -> Sequence[Adapted]:
        """What joins have decided since this was asked last."""
        return self._report.adapted()

    def outdated(self) -> frozenset[str]:
        """The queries whose plans were made with other settings, which make others."""
        return self._known.outdated

    def progress(self) -> Progress:
        """How far the run has come."""
        running = self._running
        progress = self._report.progress(running.poller.file_logs if running else {}, self._log())
        failure = None
        if running is not None and running.error is not None:
            failure = str(running.error)
        elif running is not None:
            query, secrets = running.query, self._secrets()
            failure = failure_of(query, running.delivery, self._cluster, secrets)
        is_starting = self._cluster is None
        if running is not None:
            plans = {name: planned.physical for name, planned in self._known.planned.items()}
            left = running.delivery.archives.rows_left(plans)
            progress = replace(progress, queries=with_replays(progress.queries, left))
        return replace(progress, failure=failure or self._lost, starting=is_starting)

    def metrics(self) -> Mapping[str, OperatorMetrics]:
        """What each operator has done in this run and remembers, by fingerprint."""
        return self._report.metrics()

    def measured(self) -> Measured:
        """What has been found out of what comes in, up to now."""
        return self._report.measured()

    def known(self, catalog: Catalog) -> Statistics:
        """What is known of what comes in, for queries that are planned now."""
        return statistics_of(catalog, self.measured())

    def _has_lost_java(self) -> bool:
        return self._cluster is not None and has_ended(self._cluster.java)

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
        queries = _queries(self._catalog)
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
        self._load_statistics()
        statistics = self.known(self._catalog)  # all that is planned now is planned with the same
        checkpoint = self._opened(cluster, queries, statistics)
        check_place(checkpoint, ends=self._ends)
        checked = check_queries(
            checkpoint,
            self._catalog,
            queries,
            sinks,
            self._settings,
            memory=self._memory,
            dropped=dropped,
            compared=self._compared,
            statistics=statistics,
        )
        self._compared = set(checked.declared)
        if checkpoint.facts.ended:  # what there is to read is in files, and nothing runs any more
            know(self._report, checked, BatchLog(checkpoint.batch_log, self._settings.clock))
            self._known.take(checked)
        else:
            start = self._new_start(cluster, checkpoint, checked, every, is_change=is_change)
            take_steps(start, partial(self._follow, checked))

    def _new_start(
        self,
        cluster: Cluster,
        checkpoint: Checkpoint,
        checked: Checked,
        every: float | None,
        *,
        is_change: bool,
    ) -> Start:
        settings, memory, report = self._settings, self._memory, self._report
        tables = self._known.tables
        return Start(
            cluster, checkpoint, checked, settings, memory, report, every, is_change, tables
        )

    def _follow(self, checked: Checked, running: Running) -> None:
        """Follow a pipeline that is about to start."""
        self._running, self._is_taken = running, False
        running.delivery.between = lambda: self._asked(running)
        self._known.take(checked)

    def _load_statistics(self) -> None:
        """Go on with what an earlier session has found out, once."""
        if self._checkpoint is None and self._settings.checkpoint is not None:
            self._report.statistics = load_measured(Path(self._settings.checkpoint))

    def _opened(
        self, cluster: Cluster, queries: list[QueryEntry], statistics: Statistics
    ) -> Checkpoint:
        """Where to keep the state; a new place has room for the queries."""
        if self._checkpoint is None:
            settings = self._settings
            count = settings.partitions or cluster.tasks
            stages = settings.stages_with(count) or stages_needed(
                *(
                    plan_entry(
                        q,
                        settings.planning,
                        partitions=count,
                        statistics=statistics,
                        templates=settings.templates,
                    ).physical
                    for q in queries
                )
            )
            facts = Facts(partition_ids(count, cluster.tasks), stages, settings.planning.facts())
            checkpoint = open_checkpoint(settings, facts)
            try:
                await_orphan(checkpoint.directory)
            except RunError:
                checkpoint.close()
                raise
            self._checkpoint = checkpoint
            if not checkpoint.is_temporary:
                self._known.tables = Tables(checkpoint.directory)
        return self._checkpoint


def _queries(catalog: Catalog) -> list[QueryEntry]:
    """The queries of a catalog."""
    return [e for e in catalog.entries(ObjectKind.QUERY) if isinstance(e, QueryEntry)]


def _gone(before: Catalog, after: Catalog) -> set[str]:
    """The names of queries that one catalog has and another one has not."""
    return {q.name for q in _queries(before)} - {q.name for q in _queries(after)}
