"""A job on Spark: the queries of a catalog, running or run, and what has become of them.

A bounded run ends with one more batch, in which the control stream says that all streams have
ended. A continuous run goes on until it is stopped, at the end of a batch. When the catalog changes
meanwhile, the pipeline is stopped and started again on the same checkpoint: whatever is the same in
the new plan finds its state.
"""

from __future__ import annotations

import hashlib
import re
from threading import Event, Lock
from typing import TYPE_CHECKING

import polars as pl
from pyspark.errors import StreamingQueryException

from tidemill.catalog.entries import QueryEntry, RelationEntry, StreamEntry
from tidemill.engine.fragments import build_graph
from tidemill.engine.ingest import Gate
from tidemill.errors import RunError
from tidemill.lang.statements import ObjectKind
from tidemill.physical.plan import begun_in
from tidemill.runtime.answers import Answer
from tidemill.runtime.files import READERS
from tidemill.runtime.local.sources import read_source
from tidemill.runtime.progress import Progress, QueryProgress, stream_progress
from tidemill.runtime.sinks import FileSink, file_sinks
from tidemill.runtime.spark.checkpoint import Checkpoint, Facts, open_checkpoint
from tidemill.runtime.spark.cluster import Cluster, open_cluster
from tidemill.runtime.spark.deliver import deliver
from tidemill.runtime.spark.deployment import Deployment
from tidemill.runtime.spark.partitions import partition_ids
from tidemill.runtime.spark.pipeline import start_pipeline
from tidemill.runtime.spark.planning import physical_plans, stages_for
from tidemill.runtime.spark.sources import write_control
from tidemill.runtime.spark.wire import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from tidemill.algebra.plan import Plan
    from tidemill.catalog.catalog import Catalog
    from tidemill.engine.fragments import Graph
    from tidemill.runtime.spark.settings import SparkSettings

__all__ = ["SparkJob"]


class SparkJob:
    """The queries of a catalog on Spark.

    Args:
        catalog: What is registered.
        memory: The frames that ``memory`` sources name.
        settings: How to run.

    Attributes:
        gates: What came on each stream, and what was refused.
    """

    def __init__(
        self, catalog: Catalog, memory: Mapping[str, pl.DataFrame], settings: SparkSettings
    ) -> None:
        self.gates: dict[str, Gate] = {}
        self._answers: dict[str, Answer] = {}
        self._plans: dict[str, Plan] = {}
        self._sinks: dict[str, FileSink] = {}
        self._catalog = catalog
        self._memory = memory
        self._settings = settings
        self._checkpoint: Checkpoint | None = None
        self._cluster: Cluster | None = None
        self._query: StreamingQuery | None = None
        self._batches = 0
        self._watermarks: dict[str, int] = {}
        self._remembered: dict[str, tuple[int, int]] = {}
        self._written: dict[str, int] = {}
        self._delivering = Lock()
        self._stopping = False
        self._was_stopped = Event()

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
        listens = self._reads_only_files()
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
        self._start(every=self._settings.trigger)

    def await_idle(self) -> None:
        """Wait until everything there is now has been processed.

        Raises:
            RunError: A source or a sink cannot be read or written.
        """
        query = self._query
        try:
            if query is not None:
                query.processAllAvailable()
        except StreamingQueryException as error:
            raise _told(str(error), self._log()) from error

    def stop(self) -> None:
        """Stop at the end of a batch; a batch that has begun but not delivered is undone."""
        self._was_stopped.set()
        query, self._query = self._query, None
        if query is None:
            return
        with self._delivering:  # what is being delivered is delivered in full
            self._stopping = True
        query.stop()
        self._stopping = False

    def change(self, catalog: Catalog) -> None:
        """Go on with another catalog; what is the same in it keeps its state and its answer.

        Raises:
            RunError: The new pipeline cannot be started; the old one goes on.
        """
        self.stop()
        before, self._catalog = self._catalog, catalog
        try:
            self.start()
        except RunError:
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
        """What a query has given so far: from memory, or from the files it goes to."""
        sink = self._sinks.get(query)
        return self._answers.get(query) if sink is None else sink.answer()

    def progress(self) -> Progress:
        """How far the run has come."""
        remembered = list(self._remembered.values())
        return Progress(
            self._batches,
            tuple(
                stream_progress(gate, self._watermarks.get(name, 0))
                for name, gate in list(self.gates.items())
            ),
            tuple(
                QueryProgress(name, answer.rows() + self._written.get(name, 0))
                for name, answer in list(self._answers.items())
            ),
            sum(rows for rows, _ in remembered),
            sum(bytes_ for _, bytes_ in remembered),
            self._log(),
        )

    def _log(self) -> str | None:
        log = None if self._cluster is None else self._cluster.log
        return None if log is None else str(log)

    # Starting

    def _reads_only_files(self) -> bool:
        """Whether every source is a directory of files, or in memory."""
        streams = self._catalog.entries(ObjectKind.STREAM)
        return all(
            entry.source.name.text.lower() in (*READERS, "memory")
            for entry in streams
            if isinstance(entry, StreamEntry)
        )

    def _start(self, *, every: float | None) -> None:
        queries = [e for e in self._catalog.entries(ObjectKind.QUERY) if isinstance(e, QueryEntry)]
        sinks = file_sinks(queries, others=())
        cluster, checkpoint = self._places(queries)
        facts = checkpoint.facts
        plans = physical_plans(
            queries, self._settings, partitions=len(facts.pids), stages=facts.stages
        )
        epochs = checkpoint.admit(plans)
        relations = {e.name for e in self._catalog.entries(ObjectKind.RELATION)}
        graph = build_graph(
            {name: begun_in(plan, epochs[name], relations) for name, plan in plans.items()}
        )
        for name in sinks.keys() - self._sinks.keys():
            sinks[name].prepare(anew=not checkpoint.is_resumed)
        self._sinks = sinks
        # A name may have come to mean another query.
        stay = {q.name for q in queries if self._plans.get(q.name) == q.plan}
        self._answers = {
            q.name: self._answers[q.name] if q.name in stay else Answer(q.plan.schema)
            for q in queries
        }
        self._plans = {q.name: q.plan for q in queries}
        self._query = start_pipeline(
            cluster,
            self._deployment(graph, checkpoint),
            checkpoint,
            self._memory,
            self._delivery(graph),
            every=every,
            cache_bytes=self._settings.cache_bytes,
        )

    def _places(self, queries: list[QueryEntry]) -> tuple[Cluster, Checkpoint]:
        """Where to run, and where to keep the state; a new place has room for the queries."""
        settings = self._settings
        if self._cluster is None:
            self._cluster = open_cluster(settings.master, settings.memory)
        if self._checkpoint is None:
            count = settings.partitions or self._cluster.tasks
            plans = physical_plans(queries, settings, partitions=count, stages=settings.stages)
            facts = Facts(
                partition_ids(count, self._cluster.tasks), settings.stages or stages_for(plans)
            )
            self._checkpoint = open_checkpoint(settings, facts)
        return self._cluster, self._checkpoint

    def _deployment(self, graph: Graph, checkpoint: Checkpoint) -> Deployment:
        streams: dict[str, StreamEntry] = {}
        relations: dict[str, tuple[RelationEntry, bytes]] = {}
        for input_ in sorted(graph.inputs, key=lambda input_: input_.rows):
            entry = self._catalog.find(input_.name)
            if isinstance(entry, RelationEntry):
                rows = checkpoint.relation(input_.rows, self._reading(entry))
                relations[input_.rows] = entry, rows
            else:
                assert isinstance(entry, StreamEntry), "plans read streams and relations"
                streams[input_.name] = entry
                self.gates.setdefault(input_.name, Gate(entry))
        facts = checkpoint.facts
        version = hashlib.sha256(repr(graph).encode()).hexdigest()[:16]
        return Deployment(graph, streams, relations, facts.pids, facts.stages, version)

    def _reading(self, entry: RelationEntry) -> Callable[[], pl.DataFrame]:
        return lambda: pl.concat(
            list(read_source(entry.name, entry.source, entry.schema, self._memory))
        )

    # Running

    def _finish(self) -> None:
        """Wait until all is read."""
        query = self._query
        try:
            if query is not None:
                query.awaitTermination()
        except StreamingQueryException as error:
            raise _told(str(error), self._log()) from error

    def _delivery(self, graph: Graph) -> Callable[[DataFrame, int], None]:
        """What is done with the results of a batch."""
        files: dict[str, tuple[FileSink, ...]] = {}
        kept: dict[str, list[Answer]] = {}
        for query, channel in graph.answers.items():
            if query in self._sinks:
                files[channel] = (*files.get(channel, ()), self._sinks[query])
            else:
                kept.setdefault(channel, []).append(self._answers[query])

        def run(results: DataFrame, batch: int) -> None:
            with self._delivering:
                if self._stopping:
                    raise RunError("the pipeline is being stopped", hint="start it again")
                self._batches += 1
                for message in deliver(results, batch, files, kept=frozenset(kept)):
                    match message.kind:
                        case Kind.ANSWER:
                            rows = message.rows()
                            for answer in kept[message.channel]:
                                answer.add([rows])
                        case Kind.KEPT:
                            self.gates[message.channel].refused.rows.append(message.rows())
                        case Kind.REPORT:
                            self._note(message.channel, message.facts())
                        case _:
                            pass

        return run

    def _note(self, sender: str, facts: Mapping[str, object]) -> None:
        match sender.partition(" "), facts:
            case ("stream", _, name), {"rows": int(rows), "refused": dict(refused)}:
                self.gates[name].rows += rows
                for reason, count in refused.items():
                    self.gates[name].refused.count(reason, count)
            case ("state", _, place), {"rows": int(rows), "bytes": int(bytes_)}:
                self._remembered[place] = rows, bytes_
            case ("written", _, query), {"rows": int(rows)}:
                self._written[query] = self._written.get(query, 0) + rows
            case ("watermarks", _, _), marks:
                self._watermarks |= {s: m for s, m in marks.items() if isinstance(m, int)}
            case _:
                raise AssertionError(f"nobody reports {sender}: {facts}")


def _told(text: str, log: str | None) -> RunError:
    """What went wrong, in the words of whoever found it."""
    found = re.search(r"tidemill\.errors\.\w+: (.*?)(?:\nhint: (.*?))?(?:\n|$)", text)
    if found:
        return RunError(found[1], hint=found[2])
    first = text.strip().splitlines()[0]
    return RunError(f"Spark stopped: {first}", hint=f"read {log or 'the log of Spark'}")
