"""A job: the queries of a catalog in this process, run to the end of their sources or running on.

A bounded run reads what the sources hold, to the end of the streams. A continuous run goes on with
what comes, in a thread of its own, until it is stopped; its queries can change meanwhile. One with
a checkpoint is in ``kept_job.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain
from time import perf_counter
from typing import TYPE_CHECKING
from uuid import uuid4

from tidemill.engine.engine import Flow
from tidemill.engine.ingest import Gate, readable, relation_flow
from tidemill.errors import RunError
from tidemill.history.pace import REPLAY_ROWS, REPLAY_SHARE, Pace
from tidemill.model.time import END_OF_TIME
from tidemill.optimizer.planning import PLANNING, Planning
from tidemill.optimizer.templates import Templates
from tidemill.runtime.clock import now
from tidemill.runtime.local.archives import Archives, come_on
from tidemill.runtime.local.delivering import Delivery, file_sinks
from tidemill.runtime.local.intake import Intake
from tidemill.runtime.local.loop import Loop
from tidemill.runtime.local.pipeline import Pipeline
from tidemill.runtime.local.program import NOTHING, next_program
from tidemill.runtime.local.runner import LocalRunner
from tidemill.runtime.local.sources import read_relation, read_source
from tidemill.runtime.lock import take_lock
from tidemill.runtime.measuring.known import statistics_of
from tidemill.runtime.measuring.measured import Measured
from tidemill.runtime.metrics import Collector
from tidemill.runtime.past import Past, kept_rows
from tidemill.runtime.planning import planned_anew, planned_for
from tidemill.runtime.progress import Progress, stream_progress, with_replays
from tidemill.runtime.record import relation_digest, stream_digest
from tidemill.runtime.runs import Moment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import polars as pl

    from tidemill.catalog.catalog import Catalog
    from tidemill.engine.adapting import Adapting
    from tidemill.history.table_view import TableView
    from tidemill.optimizer.planned import Planned
    from tidemill.optimizer.statistics import Statistics
    from tidemill.runtime.answers import Answer
    from tidemill.runtime.callback import Callback
    from tidemill.runtime.local.program import Program
    from tidemill.runtime.local.sources import Arrival
    from tidemill.runtime.lock import Lock
    from tidemill.runtime.metrics import Adapted, OperatorMetrics

__all__ = ["Job", "Settings"]

_MEASURE_EVERY = 0.25
"""How often, in seconds, it is found out how much is remembered."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How queries are run.

    Attributes:
        partitions: How many partitions state is kept in; ``None`` for as many as the checkpoint
            has, or one.
        planning: How queries are planned; the answers are the same.
        clock: What time it is, in microseconds since 1970.
        checkpoint: Where state is kept for a later run; ``None`` forgets it after the session.
        take_lock: Takes the lock of the checkpoint; a session that has it already gives a share.
        replay_rows: About how many kept rows are replayed in a step at most.
        replay_share: Which share of the time of a step that may take.
        templates: The plans of alike queries of the session.
    """

    partitions: int | None = None
    planning: Planning = PLANNING
    clock: Callable[[], int] = now
    checkpoint: str | None = None
    take_lock: Callable[[Path], Lock] = take_lock
    replay_rows: int = REPLAY_ROWS
    replay_share: float = REPLAY_SHARE
    templates: Templates = field(default_factory=Templates, compare=False)

    @property
    def replay_pace(self) -> Pace:
        """How many kept rows are replayed in a step."""
        return Pace(self.replay_rows, self.replay_share)


@dataclass(slots=True)
class Job:
    """The queries of a catalog and what has become of them.

    Attributes:
        catalog: What is registered.
        memory: The frames that ``memory`` sources name.
        settings: How to run.
        callbacks: The functions that ``callback`` sinks name.
        statistics: What is found out of what comes in.
    """

    catalog: Catalog
    memory: Mapping[str, pl.DataFrame]
    settings: Settings
    callbacks: Mapping[str, Callback] = field(default_factory=dict)
    statistics: Measured = field(default_factory=Measured)
    _run: str = field(default_factory=lambda: uuid4().hex)
    _program: Program = NOTHING
    _intake: Intake = field(init=False)
    _delivery: Delivery = field(default_factory=lambda: Delivery(keeps_all=True))
    _pipeline: Pipeline | None = None
    _loop: Loop | None = None
    _batches: int = 0
    _was_stopped: bool = False
    _measured: int = 0
    _ask: Callable[[Moment], Catalog | None] | None = None
    _collector: Collector = field(default_factory=Collector)
    _adapting: Adapting | None = None
    _archives: Archives = field(default_factory=Archives)
    _relations: dict[str, pl.DataFrame] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._intake = Intake(self.settings.clock)

    @property
    def gates(self) -> Mapping[str, Gate]:
        """What came on each stream, and what was refused."""
        return self._intake.gates if self._pipeline is None else self._pipeline.gates

    # A bounded run

    def run(self, *, end: bool | None = None) -> None:
        """Process everything the sources hold, to the end of the streams.

        Args:
            end: Whether the streams end then, which they do.

        Raises:
            RunError: A source or sink cannot be read or written, or the streams are not to end.
        """
        if end is False:
            raise RunError(
                "without a checkpoint nothing is kept that a later run could go on from",
                hint="call session.run(), or connect(checkpoint=…)",
            )
        program = self._next_program(self.catalog)
        self._program = program
        runner = LocalRunner(program.graph, partitions=self.settings.partitions or 1)
        runner.adapt(self._shared(runner.partitions))
        self._collector.begin(runner.graph)
        self.statistics.follow(runner.graph.plans.values(), program.relations)
        arriving = self._flows(program)
        # A source that cannot be read at all is found before a sink is taken.
        first = next(arriving)
        for sink in file_sinks(program.sinks):
            sink.claim()
        self._delivery.tables.begin(program.sinks)
        self._delivery.go_on_with(program.queries, program.sinks, program.idle)
        measured = perf_counter()
        for number, flows in enumerate(chain([first], arriving)):
            kept = self._intake.kept
            answers = runner.step(flows)
            self._delivery.deliver(number, answers, runner.known, self._intake.gates)
            self._archives.take(number, kept, self._intake.gates)
            self._delivery.publish()
            self.statistics.take(number, self._intake.samples())
            self._batches = number + 1
            if self._was_stopped:
                break
            if perf_counter() - measured > _MEASURE_EVERY:
                self._measure(runner)
                measured = perf_counter()
        for sink in file_sinks(program.sinks):
            sink.flush()
        self._measure(runner)

    def _next_program(self, catalog: Catalog) -> Program:
        """What is to run with a catalog; all that is planned for it is planned with the same."""
        settings = self.settings
        return next_program(
            catalog,
            self._program,
            settings.planning,
            self.callbacks,
            self._run,
            self.known(catalog),
            settings.templates,
            planned_for(settings.partitions),
        )

    def _flows(self, program: Program) -> Iterator[dict[str, Flow]]:
        """What arrives on every input, step by step, the ends of the streams last."""
        relations: dict[str, Flow] = {}
        readers: dict[str, Iterator[Arrival]] = {}
        for name in sorted({*program.relations, *program.streams}):
            if name in program.relations:
                entry = program.relations[name]
                self._relations[name] = read_relation(entry, self.memory)
                self.statistics.take_relation(name, relation_digest(entry), self._relations[name])
                relations[name] = relation_flow(
                    entry, self._relations[name], has_ids=program.graph.intake(name).needs_ids
                )
                continue
            stream = program.streams[name]
            gate = Gate(stream, has_ids=program.graph.needs_ids)
            readers[name] = read_source(
                name,
                stream.source,
                readable(stream),
                self.memory,
                gate.refused.add_malformed,
                needed=program.needed.get(name),
                wanted=program.wanted.get(name),
            )
            self._intake.open(gate)
            self.statistics.open(name, stream_digest(stream))
        self._intake.needed = program.needed
        self._archives.open(program.streams, come_on(self._intake.gates), 0)
        yield {**relations, **self._intake.take(readers, ends=True)}
        over = {name: Flow([], END_OF_TIME) for name in relations}
        while readers:
            yield {**over, **self._intake.take(readers, ends=True)}

    def _measure(self, runner: LocalRunner) -> None:
        self._measured += 1
        now = runner.drain()
        self._collector.take(self._measured, now.values(), now)
        self.statistics.take_late(self._intake.samples(1))

    # A continuous run

    def start(self) -> None:
        """Process what comes, until it is stopped.

        Raises:
            RunError: Something is refused, or a source cannot be read.
        """
        self._pipeline = self._new_pipeline()
        self._pipeline.adapt(self._adapting)
        self._program = self._pipeline.program
        self._loop = Loop(self._pipeline, self._asked)
        self._loop.start()

    def _new_pipeline(self) -> Pipeline:
        """What is to run on."""
        settings = self.settings
        count = settings.partitions or 1
        archives = Archives(pace=settings.replay_pace)
        pipeline = Pipeline(
            count, settings.clock, self.memory, self._collector, archives, self.statistics
        )
        self._change_pipeline(pipeline, self.catalog)
        return pipeline

    def _change_pipeline(self, pipeline: Pipeline, catalog: Catalog) -> None:
        """Let what runs on go on with another catalog."""
        pipeline.change(self._next_program(catalog))

    def await_idle(self) -> None:
        """Wait until everything there is now has been processed.

        Raises:
            RunError: A source or a sink cannot be read or written, or a function that gets rows
                calls this.
        """
        if self._loop is not None:
            self._loop.refuse_callbacks("wait for")
            self._loop.await_idle()

    def moment(self) -> Moment:
        """Where it stands, between two steps.

        Raises:
            RunError: What runs has failed.
        """
        if self._pipeline is None or self._loop is None:
            return Moment()
        if self._loop.is_in_callback():
            return self._pipeline.moment()  # it is in a step itself, and would wait for its end
        with self._loop.between_steps():
            return self._pipeline.moment()

    def past(self) -> Past | Path:
        """What streams have kept, at the last boundary.

        Raises:
            RunError: What runs has failed, or a function that gets rows calls this.
        """
        if self._pipeline is None or self._loop is None:
            return self._past_of_run()
        self._loop.refuse_callbacks("ask")
        with self._loop.between_steps():
            return self._pipeline.past()

    def _past_of_run(self) -> Past | Path:
        """What a bounded run has left."""
        gates, relations = self._intake.gates, self._relations
        return Past(
            self._batches,
            {name: gate.watermark for name, gate in gates.items()},
            {name: gate.newest for name, gate in gates.items() if gate.newest is not None},
            kept_rows(self._archives.by_stream, self._batches),
            lambda relation: relations.get(relation.name),
        )

    def change(self, decide: Callable[[Moment], Catalog]) -> Catalog:
        """Go on with another catalog; what is the same in it keeps its state and its answer.

        Raises:
            RunError: It is refused, and everything goes on as it was; what runs has failed; or a
                function that gets rows calls this.
        """
        if self._pipeline is None or self._loop is None:
            self.catalog = decide(Moment())  # the next run takes it
            return self.catalog
        self._loop.refuse_callbacks("change")
        with self._loop.between_steps():
            catalog = decide(self._pipeline.moment())
            self._change_pipeline(self._pipeline, catalog)
            self.catalog, self._program = catalog, self._pipeline.program
        return catalog

    def follow(self, ask: Callable[[Moment], Catalog | None]) -> None:
        """Ask between any two steps, from now on, and go on with the catalog that is given."""
        self._ask = ask

    def _asked(self) -> bool:
        """Whether there is another catalog to go on with; it is taken, in the thread of steps."""
        pipeline = self._pipeline
        assert pipeline is not None, "it takes steps"
        catalog = None if self._ask is None else self._ask(pipeline.moment())
        if catalog is None:
            return False
        self._change_pipeline(pipeline, catalog)
        self.catalog, self._program = catalog, pipeline.program
        return True

    def adapt(self, adapting: Adapting | None) -> None:
        """Let joins change their trees so from the next step on, and plan new queries for it.

        Raises:
            RunError: What runs has failed, or a function that gets rows calls this.
        """
        planning = replace(self.settings.planning, adaptive=adapting is not None)
        self.settings = replace(self.settings, planning=planning)
        self._adapting = adapting
        if self._pipeline is not None and self._loop is not None:
            self._loop.refuse_callbacks("change")
            with self._loop.between_steps():
                self._pipeline.adapt(adapting)

    def adapted(self) -> Sequence[Adapted]:
        """What joins have decided since this was asked last."""
        return self._collector.adapted()

    def _shared(self, partitions: int) -> Adapting | None:
        return None if self._adapting is None else self._adapting.shared(partitions)

    def close(self) -> None:
        """Stop at the end of a step; what was written to files is kept.

        Raises:
            RunError: Files cannot be kept, or a function that gets rows of a run that goes on calls
                this.
        """
        self._was_stopped = True
        if self._loop is not None and self._pipeline is not None:
            self._loop.refuse_callbacks("stop")
            self._loop.stop()
            self._pipeline.flush()

    # What has become of it

    def progress(self) -> Progress:
        """How far the run has come."""
        pipeline, loop = self._pipeline, self._loop
        if pipeline is None:
            return Progress(
                self._batches,
                tuple(stream_progress(g, g.watermark) for g in list(self.gates.values())),
                self._delivery.progress(),
                *self._collector.state(),
            )
        return Progress(
            pipeline.batches - pipeline.first,
            pipeline.streams(),
            with_replays(pipeline.delivery.progress(), pipeline.to_replay()),
            *self._collector.state(),
            failure=None if loop is None or loop.error is None else str(loop.error),
        )

    def metrics(self) -> Mapping[str, OperatorMetrics]:
        """What each operator has done, by fingerprint; found out from time to time."""
        return self._collector.metrics()

    def measured(self) -> Measured:
        """What has been found out of what comes in, up to now."""
        self.statistics.take_metrics(self._collector.metrics())
        return self.statistics

    def known(self, catalog: Catalog) -> Statistics:
        """What is known of what comes in, for queries that are planned now."""
        return statistics_of(catalog, self.measured())

    def answer(self, query: str) -> Answer | None:
        """What a query has given, if it was there.

        Raises:
            RunError: Its answer goes to where it cannot be read back from.
        """
        delivery = self._delivery if self._pipeline is None else self._pipeline.delivery
        return delivery.answer(query)

    def table(self, name: str) -> TableView | None:
        """A table as it is after the last step that is done, if it was there."""
        delivery = self._delivery if self._pipeline is None else self._pipeline.delivery
        return delivery.tables.view(name)

    def planned(self, query: str) -> Planned | None:
        """The plan that a query runs with, if it runs or was run."""
        return self._program.planned.get(query)

    @property
    def partitions(self) -> int:
        """How many partitions state is kept in."""
        return (
            (self.settings.partitions or 1) if self._pipeline is None else self._pipeline.partitions
        )

    def planned_again(self, query: str) -> Planned:
        """The plan that would be made today of a query that runs."""
        entry, running = self._program.queries[query], self._program.planned[query]
        settings, known = self.settings, self.known(self.catalog)
        return planned_anew(entry, running, settings.planning, known, settings.templates)

    def outdated(self) -> frozenset[str]:
        """The queries whose plans were made with other settings: none, without a checkpoint."""
        return frozenset()

    def quarantine(self, stream: str) -> pl.DataFrame:
        """The rows of a stream that were refused and are kept."""
        return self.gates[stream].refused.kept()
