"""A job on Spark: the queries of a catalog, running or run, and what has become of them.

A bounded run ends with one more batch, in which the control stream says that all streams have
ended. A continuous run goes on until it is stopped, at the end of a batch.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl
from pyspark.errors import StreamingQueryException

from tidemill.catalog.entries import QueryEntry, RelationEntry, StreamEntry
from tidemill.engine.fragments import build_graph
from tidemill.engine.ingest import Gate
from tidemill.errors import RunError
from tidemill.lang.statements import ObjectKind
from tidemill.optimizer.implement import implement
from tidemill.optimizer.rewrite import optimize
from tidemill.runtime.answers import Answer
from tidemill.runtime.local.sources import read_source
from tidemill.runtime.spark.checkpoint import Checkpoint, Facts, open_checkpoint
from tidemill.runtime.spark.cluster import open_cluster
from tidemill.runtime.spark.deliver import FileSink, deliver
from tidemill.runtime.spark.deployment import Deployment
from tidemill.runtime.spark.partitions import partition_ids
from tidemill.runtime.spark.pipeline import start_pipeline
from tidemill.runtime.spark.sources import write_control
from tidemill.runtime.spark.wire import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from tidemill.catalog.catalog import Catalog
    from tidemill.engine.fragments import Graph
    from tidemill.runtime.spark.settings import SparkSettings

__all__ = ["SparkJob"]


@dataclass(slots=True)
class SparkJob:
    """The queries of a catalog on Spark.

    Attributes:
        catalog: What is registered.
        memory: The frames that ``memory`` sources name.
        settings: How to run.
        answers: What each query has given, of those that do not write it elsewhere.
        gates: What came on each stream, and what was refused.
    """

    catalog: Catalog
    memory: Mapping[str, pl.DataFrame]
    settings: SparkSettings
    answers: dict[str, Answer] = field(default_factory=dict)
    gates: dict[str, Gate] = field(default_factory=dict)
    _graph: Graph | None = None
    _sinks: dict[str, tuple[FileSink, ...]] = field(default_factory=dict)

    def run(self) -> None:
        """Process everything the sources hold, to the end of the streams.

        Raises:
            RunError: A source or a sink cannot be read or written.
        """
        queries = [e for e in self.catalog.entries(ObjectKind.QUERY) if isinstance(e, QueryEntry)]
        plans = {
            query.name: implement(optimize(query.plan) if self.settings.optimized else query.plan)
            for query in queries
        }
        graph = build_graph(plans)
        self._graph = graph
        for query in queries:
            self.answers[query.name] = Answer(query.plan.schema)
        cluster = open_cluster(self.settings.master, self.settings.memory)
        count = self.settings.partitions or cluster.tasks
        stages = self.settings.stages or max(1, len(graph.fragments) - 1)
        facts = Facts(partition_ids(count, cluster.tasks), stages)
        checkpoint = open_checkpoint(self.settings, facts)
        try:
            deployment = self._deployment(graph, checkpoint)

            def start() -> StreamingQuery:
                return start_pipeline(
                    cluster,
                    deployment,
                    checkpoint,
                    self.memory,
                    self._deliver,
                    every=None,
                    cache_bytes=self.settings.cache_bytes,
                )

            _finish(start())
            write_control(checkpoint.control, "end")
            _finish(start())
            checkpoint.end()
        finally:
            checkpoint.close()

    def _deployment(self, graph: Graph, checkpoint: Checkpoint) -> Deployment:
        streams: dict[str, StreamEntry] = {}
        relations: dict[str, tuple[RelationEntry, bytes]] = {}
        for name in sorted(input_.name for input_ in graph.inputs):
            entry = self.catalog.find(name)
            if isinstance(entry, RelationEntry):
                relations[name] = entry, checkpoint.relation(name, self._reading(name, entry))
            else:
                assert isinstance(entry, StreamEntry), "plans read streams and relations"
                streams[name] = entry
                self.gates[name] = Gate(entry)
        facts = checkpoint.facts
        version = hashlib.sha256(repr(graph).encode()).hexdigest()[:16]
        return Deployment(graph, streams, relations, facts.pids, facts.stages, version)

    def _reading(self, name: str, entry: RelationEntry) -> Callable[[], pl.DataFrame]:
        return lambda: pl.concat(list(read_source(name, entry.source, entry.schema, self.memory)))

    def _deliver(self, results: DataFrame, batch: int) -> None:
        assert self._graph is not None, "results come from a graph"
        for message in deliver(results, batch, self._sinks):
            match message.kind:
                case Kind.ANSWER:
                    for query, channel in self._graph.answers.items():
                        if channel == message.channel:
                            self.answers[query].add([message.rows()])
                case Kind.KEPT:
                    self.gates[message.channel].refused.rows.append(message.rows())
                case Kind.REPORT:
                    self._note(message.channel, message.facts())
                case _:
                    pass

    def _note(self, sender: str, facts: Mapping[str, object]) -> None:
        kind, _, name = sender.partition(" ")
        if kind == "stream":
            gate, rows, refused = self.gates[name], facts["rows"], facts["refused"]
            assert isinstance(rows, int), "a report counts rows"
            assert isinstance(refused, dict), "a report counts what was refused"
            gate.rows += rows
            for reason, count in refused.items():
                gate.refused.count(reason, count)


def _finish(query: StreamingQuery) -> None:
    """Wait until all is read.

    Raises:
        RunError: Something could not be read, computed or written.
    """
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        raise _told(str(error)) from error


def _told(text: str) -> RunError:
    """What went wrong, in the words of whoever found it."""
    found = re.search(r"tidemill\.errors\.\w+: (.*?)(?:\nhint: (.*?))?(?:\n|$)", text)
    if found:
        return RunError(found[1], hint=found[2])
    first = text.strip().splitlines()[0]
    return RunError(f"Spark stopped: {first}", hint="the log of Spark has the whole story")
