"""A job on Spark: the queries of a catalog, running or run, and what has become of them.

A bounded run ends with one more batch, in which the control stream says that all streams have
ended. A continuous run goes on until it is stopped, at the end of a batch. When the catalog changes
meanwhile, the pipeline is stopped and started again on the same checkpoint: whatever is the same in
the new plan finds its state.
"""

from __future__ import annotations

from dataclasses import replace
from threading import Event
from types import MappingProxyType
from typing import TYPE_CHECKING

from tidemill.catalog.entries import QueryEntry, StreamEntry
from tidemill.engine.folding import stages_needed
from tidemill.engine.fragments import build_graph
from tidemill.errors import RunError
from tidemill.lang.statements import ObjectKind
from tidemill.physical.plan import Input, begun_in, walk_physical
from tidemill.runtime.file_sink import FileSink
from tidemill.runtime.local.sources import is_there, read_relation
from tidemill.runtime.sinks import FormatSink, sinks_of
from tidemill.runtime.spark.assembly import deployment_of, inputs_of
from tidemill.runtime.spark.checkpoint import Checkpoint, Facts, asked_of, open_checkpoint
from tidemill.runtime.spark.cluster import Cluster, open_cluster
from tidemill.runtime.spark.damage import (
    require_agreement,
    require_words,
    set_aside_torn,
    telling_where,
)
from tidemill.runtime.spark.delivery import Delivery
from tidemill.runtime.spark.failures import failure_of, telling_failures
from tidemill.runtime.spark.flush import SparkFiles
from tidemill.runtime.spark.formats import require_formats
from tidemill.runtime.spark.java import has_ended
from tidemill.runtime.spark.ledger import Ledger
from tidemill.runtime.spark.partitions import partition_ids
from tidemill.runtime.spark.pipeline import start_pipeline
from tidemill.runtime.spark.places import check_sources, feeds_of, places_of, read_only_files
from tidemill.runtime.spark.planning import physical_plans, stages_of_new
from tidemill.runtime.spark.sources import WORDS, write_control
from tidemill.runtime.spark.tally import Tally
from tidemill.runtime.spark.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Mapping

    import polars as pl
    from pyspark.sql.streaming.query import StreamingQuery

    from tidemill.catalog.catalog import Catalog
    from tidemill.catalog.entries import RelationEntry
    from tidemill.engine.ingest import Gate
    from tidemill.physical.plan import PhysicalPlan
    from tidemill.runtime.answers import Answer
    from tidemill.runtime.callback import Callback
    from tidemill.runtime.connectors import Place
    from tidemill.runtime.progress import Progress
    from tidemill.runtime.sinks import Sink
    from tidemill.runtime.spark.deployment import Deployment
    from tidemill.runtime.spark.settings import SparkSettings

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
        self._tally = Tally()
        self._sinks: dict[str, Sink] = {}
        self._checkpoint: Checkpoint | None = None
        self._cluster: Cluster | None = None
        self._query: StreamingQuery | None = None
        self._delivery: Delivery | None = None
        self._watch = Watch({})
        self._compared: set[str] = set()
        self._was_stopped = Event()
        self._lost: str | None = None

    @property
    def gates(self) -> Mapping[str, Gate]:
        """What came on each stream, and what was refused."""
        return self._tally.gates

    def run(self) -> None:
        """Process everything the sources hold, to the end of the streams.

        Raises:
            RunError: A source or a sink cannot be read or written.
        """
        try:
            self._run_to_the_end()
        finally:
            self.close()

    def _run_to_the_end(self) -> None:
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
        if self._was_stopped.is_set():
            return
        write_control(self._checkpoint.control, "end")
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

    def _go_on(self, dropped: Collection[str] = ()) -> None:
        self._was_stopped.clear()
        every = self._settings.trigger
        self._start(every=every, dropped=dropped)
        query = self._query
        if query is None:
            raise _ended(self._settings.checkpoint)
        self._watch.start(every, query.stop)

    def await_idle(self) -> None:
        """Wait until everything there is now has been processed.

        Raises:
            RunError: A source or a sink cannot be read or written.
        """
        if self._delivery is not None:
            self._delivery.refuse_callbacks("wait for")
        query = self._query
        self._watch.look()
        with telling_failures(self._delivery, self._cluster, self._secrets()):
            if query is not None:
                query.processAllAvailable()
        if self._watch.error is not None:
            raise self._watch.error

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
        self._watch.close()
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
            self._go_on(gone)
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
                self._checkpoint.close()
                self._checkpoint = None

    def answer(self, query: str) -> Answer | None:
        """What a query has given so far: from memory, or from the files it goes to.

        Raises:
            RunError: It goes to where it cannot be read back from.
        """
        sink = self._sinks.get(query)
        if sink is None:
            return self._tally.answer(query)
        if isinstance(sink, FileSink):
            answer = sink.answer()
            answer.known, answer.latest = self._tally.known(query), self._tally.latest(query)
            return answer
        raise RunError(
            f'the answer of "{query}" goes to its sink and is not kept',
            hint="leave out INTO, or write INTO parquet(…)",
        )

    def progress(self) -> Progress:
        """How far the run has come."""
        progress = self._tally.progress(self._watch.feeds, self._log())
        watched = None if self._watch.error is None else str(self._watch.error)
        secrets = self._secrets()
        failure = watched or failure_of(self._query, self._delivery, self._cluster, secrets)
        return replace(progress, failure=failure or self._lost)

    def _has_lost_java(self) -> bool:
        return self._cluster is not None and has_ended(self._cluster.java)

    def _log(self) -> str | None:
        log = None if self._cluster is None else self._cluster.log
        return None if log is None else str(log)

    def _secrets(self) -> frozenset[str]:
        return self._catalog.secrets()

    # Starting

    def _start(self, *, every: float | None, dropped: Collection[str] = ()) -> None:
        """Check everything, and only then write anything.

        Args:
            every: How often a batch begins, in seconds; ``None`` to stop when all is read.
            dropped: The names of queries that the session has given up.

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
            self._start_on(cluster, queries, sinks, every, dropped)

    def _connected(self) -> Cluster:
        """The Spark session; a new one if Java has ended."""
        settings, self._lost = self._settings, None
        if self._cluster is None or self._has_lost_java():
            self._cluster = open_cluster(settings.master, settings.memory)
        return self._cluster

    def _start_on(
        self,
        cluster: Cluster,
        queries: list[QueryEntry],
        sinks: dict[str, Sink],
        every: float | None,
        dropped: Collection[str],
    ) -> None:
        require_formats(cluster.spark, (s for s in sinks.values() if isinstance(s, FormatSink)))
        checkpoint = self._opened(cluster, queries)
        facts = checkpoint.facts
        set_aside_torn(checkpoint.directory)
        require_agreement(checkpoint.directory, has_begun=facts.begun)
        require_words(checkpoint.control, WORDS)
        plans = physical_plans(
            queries, self._settings, partitions=len(facts.pids), stages=facts.stages
        )
        asked = {q.name: asked_of(q, plans[q.name], sinks.get(q.name)) for q in queries}
        epochs = checkpoint.check_queries(asked, dropped)
        new = {name for name in plans if name.lower() not in facts.queries}
        if facts.ended:
            _require_known(checkpoint, new, sinks, queries)
        sinks = _owned(sinks, checkpoint, epochs)
        _check_sinks(sinks, new)
        names = {e.name for e in self._catalog.entries(ObjectKind.RELATION)}
        graph = build_graph(
            {name: begun_in(plan, epochs[name], names) for name, plan in plans.items()}
        )
        streams, declared = inputs_of(graph, self._catalog)
        checkpoint.check_streams(streams)
        resumed = plans.keys() - new
        if facts.ended:  # what there is to read is in files, and nothing runs any more
            self._sinks = sinks
            self._tally.begin(queries, sinks, Ledger(checkpoint.ledger).known, resumed)
            self._tally.welcome(streams)
            return
        check_sources(streams, checkpoint, self._memory)
        shared = _names_read(plan for name, plan in plans.items() if name not in new)
        fresh = _names_read(plan for name, plan in plans.items() if name in new)
        known, unread = self._check_relations(checkpoint, declared, shared, fresh)

        # Effects. Each can be the last one before a kill: the next start goes on from there.
        checkpoint.create()
        _claim(sinks, new)  # they know the checkpoint before it knows them
        kept = {name: checkpoint.keep_relation(declared[name], rows) for name, rows in unread}
        relations = {name: (declared[name], rows) for name, rows in {**known, **kept}.items()}
        before = checkpoint.facts
        checkpoint.record({n: (asked[n], epochs[n]) for n in asked}, streams, relations)
        try:
            deployment = deployment_of(graph, streams, relations, facts)
            places = places_of(streams, checkpoint, self._memory)
            self._watch = Watch(feeds_of(places, checkpoint))
            self._watch.look()
            self._sinks = sinks
            ledger = Ledger(checkpoint.ledger)
            self._tally.begin(queries, sinks, ledger.known, resumed)
            self._tally.welcome(streams)
            files = SparkFiles(checkpoint.spark)
            self._delivery = Delivery(graph.answers, sinks, self._tally, ledger, files)
            checkpoint.begin()
            self._query = self._launched(cluster, checkpoint, deployment, places, every)
        except Exception:
            checkpoint.know(before)
            raise

    def _launched(
        self,
        cluster: Cluster,
        checkpoint: Checkpoint,
        deployment: Deployment,
        places: Mapping[str, Place],
        every: float | None,
    ) -> StreamingQuery:
        """The pipeline, started."""
        assert self._delivery is not None, "results go somewhere"
        return start_pipeline(
            cluster,
            deployment,
            checkpoint,
            places,
            self._watch.feeds,
            deliver=self._delivery,
            outlet=self._delivery.outlet,
            every=every,
            cache_bytes=self._settings.cache_bytes,
        )

    def _check_relations(
        self,
        checkpoint: Checkpoint,
        relations: Mapping[str, RelationEntry],
        shared: Container[str],
        fresh: Container[str],
    ) -> tuple[dict[str, bytes], list[tuple[str, pl.DataFrame]]]:
        """The rows of relations that are kept, and of those that are to be kept from now on.

        A relation is what it was as long as a query that has read it goes on. While the job runs it
        is not read again, so that a file that changes does not stop what has read it before.

        Args:
            checkpoint: Where rows are kept.
            relations: All relations that are read, by name.
            shared: Those that queries read which go on.
            fresh: Those that queries read which begin.
        """
        known: dict[str, bytes] = {}
        unread: list[tuple[str, pl.DataFrame]] = []
        for name, relation in relations.items():
            if name not in shared:
                unread.append((name, read_relation(relation, self._memory)))
                continue
            is_due = name in fresh or name not in self._compared
            gone = not is_there(name, relation.source, self._memory)
            now = read_relation(relation, self._memory) if is_due and not gone else None
            known[name] = checkpoint.check_relation(relation, now)
        self._compared = set(relations)
        return known, unread

    def _opened(self, cluster: Cluster, queries: list[QueryEntry]) -> Checkpoint:
        """Where to keep the state; a new place has room for the queries."""
        if self._checkpoint is None:
            settings = self._settings
            count = settings.partitions or cluster.tasks
            stages = stages_of_new(settings, count)
            plans = physical_plans(queries, settings, partitions=count, stages=stages)
            stages = stages or stages_needed(*plans.values())
            facts = Facts(partition_ids(count, cluster.tasks), stages, settings.planning.facts())
            self._checkpoint = open_checkpoint(settings, facts)
        return self._checkpoint


def _names_read(plans: Iterable[PhysicalPlan]) -> set[str]:
    """The names of everything that plans read."""
    return {part.name for part in walk_physical(plans) if isinstance(part, Input)}


def _owned(
    sinks: Mapping[str, Sink], checkpoint: Checkpoint, epochs: Mapping[str, int]
) -> dict[str, Sink]:
    """The sinks as those of this pipeline."""
    pipeline, place = checkpoint.facts.pipeline, checkpoint.lasting_place
    return {
        name: sink.owned_by(pipeline, epochs[name], place) if isinstance(sink, FileSink) else sink
        for name, sink in sinks.items()
    }


def _check_sinks(sinks: Mapping[str, Sink], new: Container[str]) -> None:
    """Refuse a directory that is not there for its query; nothing is written."""
    for name, sink in sinks.items():
        if isinstance(sink, FileSink):
            if name in new:
                sink.check_new()
            else:
                sink.require_owned()


def _claim(sinks: Mapping[str, Sink], new: Container[str]) -> None:
    """Take the directories of queries that begin."""
    for name, sink in sinks.items():
        if isinstance(sink, FileSink) and name in new:
            sink.claim()


def _require_known(
    checkpoint: Checkpoint, new: set[str], sinks: Mapping[str, Sink], queries: list[QueryEntry]
) -> None:
    """Refuse to go on after the end, unless all answers are there, in files."""
    if new or not all(isinstance(sinks.get(query.name), FileSink) for query in queries):
        raise _ended(str(checkpoint.directory))


def _ended(checkpoint: str | None) -> RunError:
    return RunError(
        f'the checkpoint "{checkpoint}" has been run to the end of its streams',
        hint="read the files of its sinks, or choose a new checkpoint",
    )
