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
from tidemill.physical.forms import remembers_what_it_withdraws
from tidemill.physical.plan import begun_in
from tidemill.runtime.file_sink import FileSink
from tidemill.runtime.sinks import FormatSink, sinks_of
from tidemill.runtime.spark.assembly import deployment_of
from tidemill.runtime.spark.checkpoint import Checkpoint, Facts, open_checkpoint
from tidemill.runtime.spark.cluster import Cluster, open_cluster
from tidemill.runtime.spark.delivery import Delivery
from tidemill.runtime.spark.failures import failure_of, telling_failures
from tidemill.runtime.spark.formats import require_formats
from tidemill.runtime.spark.ledger import Ledger
from tidemill.runtime.spark.partitions import partition_ids
from tidemill.runtime.spark.pipeline import start_pipeline
from tidemill.runtime.spark.places import feeds_of, places_of, read_only_files
from tidemill.runtime.spark.planning import physical_plans, stages_of_new
from tidemill.runtime.spark.sources import write_control
from tidemill.runtime.spark.tally import Tally
from tidemill.runtime.spark.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl
    from pyspark.sql.streaming.query import StreamingQuery

    from tidemill.catalog.catalog import Catalog
    from tidemill.engine.ingest import Gate
    from tidemill.runtime.answers import Answer
    from tidemill.runtime.callback import Callback
    from tidemill.runtime.progress import Progress
    from tidemill.runtime.sinks import Sink
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
        self._was_stopped = Event()

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
        self._was_stopped.clear()
        every = self._settings.trigger
        self._start(every=every)
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
        with telling_failures(self._delivery, self._log()):
            if query is not None:
                query.processAllAvailable()
        if self._watch.error is not None:
            raise self._watch.error

    def _finish(self) -> None:
        """Wait until all is read."""
        query = self._query
        with telling_failures(self._delivery, self._log()):
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
        query.stop()

    def change(self, catalog: Catalog) -> None:
        """Go on with another catalog; what is the same in it keeps its state and its answer.

        Raises:
            RunError: The new pipeline cannot be started; the old one goes on.
        """
        self.stop()
        before, self._catalog = self._catalog, catalog
        try:
            self.start()
        except Exception:
            self._catalog = before
            self.start()
            raise

    def close(self) -> None:
        """Stop, and forget the state if nobody is to take it up again."""
        self.stop()
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
            answer, checkpoint = sink.answer(), self._checkpoint
            known = checkpoint is not None and checkpoint.facts.ended
            answer.has_ended = known or self._tally.has_ended
            return answer
        raise RunError(
            f'the answer of "{query}" goes to its sink and is not kept',
            hint="leave out INTO, or write INTO parquet(…)",
        )

    def progress(self) -> Progress:
        """How far the run has come."""
        progress = self._tally.progress(self._watch.feeds, self._log())
        watched = None if self._watch.error is None else str(self._watch.error)
        failure = watched or failure_of(self._query, self._delivery, self._log())
        return replace(progress, failure=failure, starting=self._cluster is None)

    def _log(self) -> str | None:
        log = None if self._cluster is None else self._cluster.log
        return None if log is None else str(log)

    # Starting

    def _start(self, *, every: float | None) -> None:
        queries = [e for e in self._catalog.entries(ObjectKind.QUERY) if isinstance(e, QueryEntry)]
        sinks = sinks_of(queries, self._callbacks)
        settings = self._settings
        cluster = self._cluster = self._cluster or open_cluster(settings.master, settings.memory)
        require_formats(cluster.spark, (s for s in sinks.values() if isinstance(s, FormatSink)))
        checkpoint = self._opened(cluster, queries)
        facts = checkpoint.facts
        plans = physical_plans(
            queries, self._settings, partitions=len(facts.pids), stages=facts.stages
        )
        new = checkpoint.newcomers(plans)
        if facts.ended:
            _require_known(checkpoint, new, sinks, queries)
        for name, sink in sinks.items():
            if isinstance(sink, FileSink) and (name in new or name not in self._sinks):
                sink.prepare(anew=name in new)
        epochs = checkpoint.admit(plans)
        relations = {e.name for e in self._catalog.entries(ObjectKind.RELATION)}
        graph = build_graph(
            {
                name: begun_in(plan, epochs[name], relations, remembers_what_it_withdraws)
                for name, plan in plans.items()
            }
        )
        self._sinks = sinks
        self._tally.begin(queries, sinks)
        self._delivery = Delivery(graph.answers, sinks, self._tally, Ledger(checkpoint.ledger))
        deployment = deployment_of(graph, self._catalog, checkpoint, self._memory)
        self._tally.welcome(deployment.streams)
        checkpoint.recognize(deployment.streams)
        places = places_of(deployment.streams, checkpoint, self._memory)
        self._watch = Watch(feeds_of(places, checkpoint))
        if checkpoint.facts.ended:
            return
        self._watch.look()
        self._query = start_pipeline(
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
