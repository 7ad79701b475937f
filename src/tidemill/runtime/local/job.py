"""A job: all queries of a catalog over everything their bounded sources hold."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain
from time import perf_counter
from typing import TYPE_CHECKING
from uuid import uuid4

import polars as pl

from tidemill.catalog.entries import QueryEntry, RelationEntry, StreamEntry
from tidemill.engine.engine import Flow
from tidemill.engine.ingest import Gate, latest_row, readable, relation_flow
from tidemill.errors import RunError
from tidemill.lang.statements import ObjectKind
from tidemill.model.time import END_OF_TIME, Time
from tidemill.optimizer.planning import PLANNING, Planning
from tidemill.physical.fragments import build_graph
from tidemill.runtime.answers import Answer
from tidemill.runtime.clock import now
from tidemill.runtime.file_sink import FileSink
from tidemill.runtime.local.runner import LocalRunner
from tidemill.runtime.local.sources import read_relation, read_source
from tidemill.runtime.metrics import Collector
from tidemill.runtime.planning import plan_entry
from tidemill.runtime.progress import Progress, QueryProgress, stream_progress
from tidemill.runtime.runs import Moment
from tidemill.runtime.shapes import new_rows
from tidemill.runtime.sinks import FormatSink, sinks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tidemill.catalog.catalog import Catalog
    from tidemill.model.batch import Batch
    from tidemill.optimizer.planner import Planned
    from tidemill.physical.fragments import Graph
    from tidemill.runtime.callback import Callback, CallbackSink
    from tidemill.runtime.console import ConsoleSink
    from tidemill.runtime.local.sources import Arrival
    from tidemill.runtime.metrics import OperatorMetrics
    from tidemill.runtime.sinks import Sink

__all__ = ["Job", "Settings"]

_MEASURE_EVERY = 0.25
"""How often, in seconds, it is found out how much is remembered."""

_STEP_ROWS, _STEP_BYTES = 100_000, 64 << 20
"""How many rows are worth a step, and how many bytes: many small files are taken together."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How queries are run.

    Attributes:
        partitions: How many partitions state is kept in.
        planning: How queries are planned; the answers are the same.
        clock: What time it is, in microseconds since 1970.
    """

    partitions: int = 1
    planning: Planning = PLANNING
    clock: Callable[[], int] = now


@dataclass(slots=True)
class Job:
    """The queries of a catalog and what has become of them.

    Attributes:
        catalog: What is registered.
        memory: The frames that ``memory`` sources name.
        settings: How to run.
        callbacks: The functions that ``callback`` sinks name.
        answers: What each query has given.
        gates: The progress of each stream.
    """

    catalog: Catalog
    memory: Mapping[str, pl.DataFrame]
    settings: Settings
    callbacks: Mapping[str, Callback] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    gates: dict[str, Gate] = field(default_factory=dict)
    _now: Time = field(default=Time(0))
    _came: dict[str, tuple[int, Time]] = field(default_factory=dict)
    _batches: int = 0
    _was_stopped: bool = False
    _measured: int = 0
    _collector: Collector = field(default_factory=Collector)
    _planned: dict[str, Planned] = field(default_factory=dict)

    def run(self, *, end: bool | None = None) -> None:
        """Process everything the sources hold, to the end of the streams.

        Raises:
            RunError: A source or sink cannot be read or written, or the streams are not to end.
        """
        if end is False:
            raise RunError(
                "the local engine keeps nothing that a later run could go on from",
                hint='call session.run(), or connect(engine="spark", checkpoint=…)',
            )
        queries = [e for e in self.catalog.entries(ObjectKind.QUERY) if isinstance(e, QueryEntry)]
        sinks = _local_sinks(sinks_of(queries, self.callbacks))
        for sink in _file_sinks(sinks):
            sink.check_new()
        self._planned = {q.name: plan_entry(q, self.settings.planning) for q in queries}
        graph = build_graph({name: planned.physical for name, planned in self._planned.items()})
        runner = LocalRunner(graph, partitions=self.settings.partitions)
        self._collector.begin(runner.graph)
        arriving = self._flows(runner.graph)
        # A source that cannot be read at all is found before a sink is taken.
        first = next(arriving)
        for sink in _file_sinks(sinks):
            sink.claim()
        self.answers = {query.name: Answer(query.plan.schema) for query in queries}
        logical = {query.name: query.plan for query in queries}
        measured = perf_counter()
        for number, flows in enumerate(chain([first], arriving)):
            for name, batches in runner.step(flows).items():
                self.answers[name].add(batches)
                self.answers[name].known = runner.known[name]
                self.answers[name].last_read = latest_row(logical[name], self.gates)
                if name in sinks and any(batch.height for batch in batches):
                    _deliver(sinks[name], number, batches)
            self._batches = number + 1
            if self._was_stopped:
                break
            if perf_counter() - measured > _MEASURE_EVERY:
                self._measure(runner)
                measured = perf_counter()
        for sink in _file_sinks(sinks):
            sink.flush()
        self._measure(runner)

    def progress(self) -> Progress:
        """How far the run has come."""
        return Progress(
            self._batches,
            tuple(stream_progress(gate, gate.watermark) for gate in list(self.gates.values())),
            tuple(QueryProgress(n, answer.rows()) for n, answer in list(self.answers.items())),
            *self._collector.state(),
        )

    def metrics(self) -> Mapping[str, OperatorMetrics]:
        """What each operator has done, by fingerprint; found out from time to time."""
        return self._collector.metrics()

    def answer(self, query: str) -> Answer | None:
        """What a query has given, if it was there."""
        return self.answers.get(query)

    def planned(self, query: str) -> Planned | None:
        """The plan that a query runs with, if it runs or was run."""
        return self._planned.get(query)

    def quarantine(self, stream: str) -> pl.DataFrame:
        """The rows of a stream that were refused and are kept."""
        return self.gates[stream].refused.kept()

    def start(self) -> None:
        """Refused: here everything is bounded.

        Raises:
            RunError: Always.
        """
        raise RunError(
            "the local engine only runs to the end of its sources",
            hint='call session.run(), or connect(engine="spark")',
        )

    def await_idle(self) -> None:
        """Nothing runs."""

    def change(self, decide: Callable[[Moment], Catalog]) -> Catalog:
        """Nothing runs; the next run takes the catalog of its time."""
        self.catalog = decide(Moment())
        return self.catalog

    def close(self) -> None:
        """Stop at the end of the batch, if it runs in another thread."""
        self._was_stopped = True

    def _flows(self, graph: Graph) -> Iterator[dict[str, Flow]]:
        """What arrives on every input, step by step, the ends of the streams last."""
        relations: dict[str, Flow] = {}
        readers: dict[str, Iterator[Arrival]] = {}
        for name in sorted(input_.name for input_ in graph.inputs):
            entry = self.catalog.find(name)
            assert isinstance(entry, StreamEntry | RelationEntry), "plans read what is registered"
            if isinstance(entry, RelationEntry):
                relations[name] = relation_flow(entry, read_relation(entry, self.memory))
            else:
                gate = self.gates[name] = Gate(entry, has_ids=graph.needs_ids)
                readers[name] = read_source(
                    name, entry.source, readable(entry), self.memory, gate.refused.add_malformed
                )
        yield {**relations, **self._arrivals(readers)}
        while readers:
            yield {**_empty(relations), **self._arrivals(readers)}

    def _arrivals(self, readers: dict[str, Iterator[Arrival]]) -> dict[str, Flow]:
        """What is read next; streams at their end leave the readers.

        It is read where time has come least far, so that no stream runs ahead of those it may be
        joined with, until there are rows enough to be worth a step.
        """
        found: dict[str, list[Batch]] = {name: [] for name in self.gates}
        rows, size = 0, 0.0
        while readers and rows < _STEP_ROWS and size < _STEP_BYTES:
            name = min(readers, key=lambda stream: self.gates[stream].watermark)
            gate = self.gates[name]
            try:
                arrival = next(readers[name])
            except StopIteration:
                del readers[name]
                gate.finish()
                continue
            except RunError as error:
                if not rows:
                    raise
                readers[name] = _failing(error)  # what was read before is not lost
                break
            rows += arrival.rows.height
            size += int(arrival.rows.estimated_size())
            found[name].append(gate.take_piece(arrival.rows, self._time_of(name, arrival.batch)))
            if arrival.is_last:
                gate.end_batch()
        return {
            name: Flow([pl.concat(batches)] if batches else [], self.gates[name].watermark)
            for name, batches in found.items()
        }

    def _time_of(self, stream: str, batch: int) -> Time:
        """When a batch of a stream has come; no two batches have come at the same time."""
        known, time = self._came.get(stream, (-1, Time(0)))
        if known == batch:
            return time
        self._now = Time(max(self._now + 1, self.settings.clock()))
        self._came[stream] = batch, self._now
        return self._now

    def _measure(self, runner: LocalRunner) -> None:
        self._measured += 1
        now = {
            f"{stage} {partition}": engine.drain()
            for stage, engines in enumerate(runner.engines)
            for partition, engine in enumerate(engines)
        }
        self._collector.take(self._measured, now.values(), now)


def _local_sinks(sinks: Mapping[str, Sink]) -> dict[str, FileSink | ConsoleSink | CallbackSink]:
    """The sinks, none of which is a format of Spark's; files belong to this run."""
    run = uuid4().hex
    local: dict[str, FileSink | ConsoleSink | CallbackSink] = {}
    for query, sink in sinks.items():
        assert not isinstance(sink, FormatSink), "they are refused when a query is created"
        # What cannot be taken up again need not be kept batch by batch.
        if isinstance(sink, FileSink):
            local[query] = replace(sink.owned_by(run), at_end=True)
        else:
            local[query] = sink
    return local


def _file_sinks(sinks: Mapping[str, Sink]) -> Iterator[FileSink]:
    return (sink for sink in sinks.values() if isinstance(sink, FileSink))


def _deliver(
    sink: FileSink | ConsoleSink | CallbackSink, number: int, batches: list[Batch]
) -> None:
    """Give the new rows of a step to a sink."""
    if isinstance(sink, FileSink):
        sink.write(number, 0, batches)
        sink.settle(number)
        return
    rows = new_rows(sink.schema, batches, sink.shape)
    if rows.height:  # changes of one instant may come to nothing
        sink.take(rows, number)


def _failing(error: RunError) -> Iterator[Arrival]:
    """A reader that fails when it is asked."""
    yield from ()
    raise error


def _empty(relations: Mapping[str, Flow]) -> dict[str, Flow]:
    return {name: Flow([], END_OF_TIME) for name in relations}
