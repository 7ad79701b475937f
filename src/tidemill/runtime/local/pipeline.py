"""The pipeline: what runs on, step by step, over sources that may still grow.

Between two steps nothing is on its way, so that the program can be changed there: operators that
stay keep what they remember, queries that stay keep their answers, and new ones get what comes from
then on, and all rows of relations.

With a checkpoint there is more to a start and to a change (``kept_pipeline.py``).

Law: a change that is refused leaves everything as it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from tidemill.engine.engine import Flow
from tidemill.engine.ingest import Gate, relation_flow
from tidemill.errors import RunError
from tidemill.model.time import END_OF_TIME
from tidemill.physical.plan import Input, walk_physical
from tidemill.runtime.connectors import source_place
from tidemill.runtime.local.archives import Archives, come_on
from tidemill.runtime.local.delivering import Delivery, file_sinks
from tidemill.runtime.local.growing import GrowingFiles, open_source
from tidemill.runtime.local.intake import Intake
from tidemill.runtime.local.program import NOTHING
from tidemill.runtime.local.runner import LocalRunner
from tidemill.runtime.local.silence import pause
from tidemill.runtime.local.sources import is_there, read_relation
from tidemill.runtime.local.stepping import Step, take_stages
from tidemill.runtime.measuring.measured import Measured
from tidemill.runtime.past import Past, kept_rows
from tidemill.runtime.progress import StreamProgress, stream_progress
from tidemill.runtime.record import relation_digest, stream_digest
from tidemill.runtime.runs import Moment
from tidemill.runtime.settling import still_written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import polars as pl

    from tidemill.catalog.entries import RelationEntry
    from tidemill.engine.adapting import Adapting
    from tidemill.history.replay import Leg
    from tidemill.model.time import Time
    from tidemill.runtime.local.growing import Source
    from tidemill.runtime.local.keeping import Keeper
    from tidemill.runtime.local.program import Program
    from tidemill.runtime.local.sources import Arrival
    from tidemill.runtime.metrics import Collector
    from tidemill.runtime.reading.parquet_groups import Wanted

__all__ = ["Opened", "Pipeline"]

_LOOK_EVERY = 0.5
"""How often it is looked for new files, in seconds, while there are others to read."""

_MEASURE_EVERY = 0.25
"""How often, in seconds, it is found out how much is remembered."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A stream that is read: how far it has come, and what is read."""

    gate: Gate
    source: Source


class Pipeline:
    """The queries of a program, in progress.

    Args:
        partitions: How many partitions state is kept in.
        clock: What time it is, in microseconds since 1970.
        memory: The frames that ``memory`` sources name.
        collector: Is told what operators do.
        archives: What streams keep; without it, that is in memory.
        statistics: Is told what comes in.

    Attributes:
        program: What runs.
        delivery: What has become of the answers.
        batches: The number of the next step.
        first: The number of the first step that was taken here.
        closed: What came on streams that are not read any more.
    """

    def __init__(  # noqa: PLR0913, PLR0917 — what a pipeline is made of
        self,
        partitions: int,
        clock: Callable[[], int],
        memory: Mapping[str, pl.DataFrame],
        collector: Collector,
        archives: Archives | None = None,
        statistics: Measured | None = None,
    ) -> None:
        self.program: Program = NOTHING
        self.delivery = Delivery(keeps_all=False)
        self.batches = self.first = 0
        self.closed: dict[str, Gate] = {}
        self._keeper: Keeper | None = None
        self._memory = memory
        self._collector = collector
        self._intake = Intake(clock)
        self._runner = LocalRunner(NOTHING.graph, partitions=partitions)
        self._sources: dict[str, Source] = {}
        self._readers: dict[str, Iterator[Arrival]] = {}
        self._relations: dict[str, pl.DataFrame] = {}
        self._fed: set[str] = set()
        self._archives = Archives() if archives is None else archives
        self._statistics = Measured() if statistics is None else statistics
        self._is_recut = False  # rows may leave that have waited, although nothing comes
        self._looked = self._measured = -_LOOK_EVERY
        self._measures = 0

    @property
    def partitions(self) -> int:
        """How many partitions state is kept in."""
        return self._runner.partitions

    # Steps

    def step(self) -> bool:
        """Take a step, if anything has come or time matters; whether it was so.

        Raises:
            RunError: A source or a sink cannot be read or written.
        """
        self._look()
        unfed, replays = self._unfed(), self._archives.replays
        if not (self._readers or unfed or replays or self._is_recut or self._is_time()):
            self._measure(at_once=True)
            return False
        self._take_step(unfed)
        return True

    def _take_step(self, unfed: Mapping[str, str], *, ends: bool = False) -> None:
        """Take a step with what can be read now.

        Args:
            unfed: The inputs that get the rows of their relations in it, with the relations.
            ends: Whether the streams end with it.
        """
        number, fed = self.batches, frozenset(self._fed | unfed.keys())
        self._archives.start_step(self._leg())
        step = Step(
            number,
            self._intake,
            self._sources,
            self._readers,
            self.program.groups,
            self._relation_flows(unfed),
            self._runner,
            self.delivery,
            self._keeper,
            self.program.epoch,
            fed,
            self._archives,
            {rows: stream for rows, (stream, _) in self.program.replayed.items()},
            ends,
        )
        take_stages(step)
        self._is_recut = False
        self._fed, self.batches = set(fed), number + 1
        self._statistics.take(number, self._intake.samples())
        self._measure()

    def _leg(self) -> Leg | None:
        """How far replays went in the next step when it was taken before, if it was."""
        return None

    def _unfed(self) -> dict[str, str]:
        """The inputs that have not had the rows of their relations, with the relations."""
        return {i.rows: i.name for i in self._relation_inputs() if i.rows not in self._fed}

    def _look(self) -> None:
        """Look for new files, at least where all have been read."""
        if self._readers and monotonic() - self._looked < _LOOK_EVERY:
            return
        for name, source in self._sources.items():
            source.look()
            found = None if name in self._readers else source.new()
            if found is not None:
                self._readers[name] = found
        self._looked = monotonic()

    def _is_time(self) -> bool:
        """Whether an answer may change because time has passed."""
        intake = self._intake
        if intake.follows_the_clock and self._runner.remembers():
            now = intake.clock()
            silence = now - max(intake.seen.values())
            if now - intake.now >= pause(silence):
                return True
        return intake.holds_back(self.program.groups)

    def _relation_inputs(self) -> Iterator[Input]:
        return (i for i in self.program.graph.inputs if i.name in self.program.relations)

    def _relation_flows(self, unfed: Mapping[str, str]) -> dict[str, Flow]:
        """The rows of relations for the inputs that have not had them."""
        flows = {input_.rows: Flow([], END_OF_TIME) for input_ in self._relation_inputs()}
        for rows, name in unfed.items():
            flows[rows] = relation_flow(
                self.program.relations[name],
                self._relations[name],
                has_ids=self.program.graph.intake(rows).needs_ids,
            )
        return flows

    def _measure(self, *, at_once: bool = False) -> None:
        """Find out what operators have done, from time to time."""
        if not at_once and monotonic() - self._measured < _MEASURE_EVERY:
            return
        if at_once and self._measures > self.batches:
            return  # nothing has been done since
        self._measured, self._measures = monotonic(), self._measures + 1
        now = self._runner.drain()
        self._collector.take(self._measures, now.values(), now)
        self._statistics.take_late(self._intake.samples(1))
        if self._statistics.is_due():
            self.keep_statistics()

    def keep_statistics(self) -> None:
        """Keep what was found out of what comes in, if there is a place."""
        self._statistics.take_metrics(self._collector.metrics())
        self._statistics.keep()

    # Changes

    def adapt(self, adapting: Adapting | None) -> None:
        """Let joins change their trees in another way, or not at all, from the next step on."""
        runner = self._runner
        runner.adapt(None if adapting is None else adapting.shared(runner.partitions))

    def change(self, program: Program) -> None:
        """Go on with another program.

        Raises:
            RunError: It is refused, and everything is as it was.
        """
        before = self.program
        relations = {
            name: self._rows_of(entry, program) for name, entry in program.relations.items()
        }
        opened = {
            name: self._opened(program, name)
            for name in sorted(program.streams.keys() - before.streams.keys())
        }
        self._measure(at_once=True)
        for sink in file_sinks(program.new_sinks(before)):
            sink.claim()
        self.delivery.tables.begin(program.new_sinks(before))
        self._go_over(program)
        self._switch(program, opened, relations)

    def _go_over(self, program: Program) -> None:
        """Let operators that are in both programs keep their state, and others get what is moved.

        Raises:
            RunError: A plan that takes over cannot be read.
        """
        moves = program.moves(self._runner.partitions)
        self._runner.change(program.graph, moves, program.moving)

    def _switch(
        self,
        program: Program,
        opened: Mapping[str, Opened],
        relations: dict[str, pl.DataFrame],
    ) -> None:
        """Go on with another program, whose operators run already."""
        before = self.program
        self.keep_statistics()  # operators that are gone tell nothing any more
        self._collector.begin(program.graph)
        self._statistics.follow(program.graph.plans.values(), program.relations)
        for name in relations.keys() - self._relations.keys():
            identity = relation_digest(program.relations[name])
            self._statistics.take_relation(name, identity, relations[name])
        for sink in file_sinks(before.left_sinks(program)):
            sink.flush()
        for name in before.streams.keys() - program.streams.keys():
            self.closed[name] = self._intake.close(name)
            self._sources.pop(name)
            self._readers.pop(name, None)
        for name, stream in opened.items():
            self._intake.open(stream.gate, self._intake.clock())
            self._statistics.open(name, stream_digest(stream.gate.stream))
            self._sources[name] = stream.source
        for gate in self._intake.gates.values():
            gate.has_ids = program.graph.needs_ids
        self._need(program.needed, program.wanted)
        self._archives.open(program.streams, come_on(self._intake.gates), self.batches)
        self._archives.keep_only(program.replayed)
        self._archives.fill(self._to_fill(program), self.batches)
        self._relations = relations
        self._fed &= {input_.rows for input_ in program.graph.inputs}
        self.delivery.tables.open(program.sinks, self.batches)
        known = {name: self._runner.known[name] for name in program.resumed}
        self.delivery.go_on_with(program.queries, program.sinks, program.idle, known)
        self._is_recut |= program.is_recut(before)
        self.program = program

    def _need(self, needed: Mapping[str, frozenset[str]], wanted: Mapping[str, Wanted]) -> None:
        """Read from now on what is needed; what was read ahead is read again.

        Args:
            needed: The columns that are needed of each stream of which not all are.
            wanted: The rows that are wanted of each stream of which not all are.
        """
        self._intake.needed = needed
        for name, source in self._sources.items():
            if not isinstance(source, GrowingFiles):
                continue
            before = source.needed, source.wanted
            source.needed, source.wanted = needed.get(name), wanted.get(name)
            if source.needed != before[0] or _is_more(source.wanted, before[1]):
                again = source.new() if name in self._readers else None
                if again is not None:
                    self._readers[name] = again

    def _to_fill(self, program: Program) -> dict[str, tuple[str, Time]]:
        """The inputs that are new, and begin with rows that have come."""
        there = {input_.rows for input_ in self.program.graph.inputs}
        return {rows: one for rows, one in program.replayed.items() if rows not in there}

    def _opened(self, program: Program, name: str) -> Opened:
        """A stream that is read from now on; what came before queries that begin is not theirs."""
        gate = Gate(program.streams[name], has_ids=program.graph.needs_ids)
        place, refuse = source_place(name, gate.stream.source), gate.refused.add_malformed
        skips = self.batches > 0 and not program.takes_by_time(name)
        return Opened(gate, open_source(gate.stream, place, self._memory, refuse, skips=skips))

    def _rows_of(self, relation: RelationEntry, program: Program) -> pl.DataFrame:
        """The rows of a relation, which are the same for all queries that read it.

        Raises:
            RunError: It has other rows now than queries have read that run.
        """
        kept = self._relations.get(relation.name)
        if kept is None:
            return read_relation(relation, self._memory)
        new = (p.physical for n, p in program.planned.items() if n not in self.program.planned)
        is_read = any(isinstance(p, Input) and p.name == relation.name for p in walk_physical(new))
        if not is_read or not is_there(relation.name, relation.source, self._memory):
            return kept
        if not _same_rows(read_relation(relation, self._memory), kept):
            raise RunError(
                f'relation "{relation.name}" has other rows than queries have read that are '
                "running",
                hint="bring the rows back, give it another name, or drop the queries that read it "
                "and create them again",
            )
        return kept

    # What is known

    def moment(self) -> Moment:
        """Where it stands, between two steps."""
        latest: dict[str, Time] = {}
        watermarks: dict[str, Time] = {}
        # What came before nobody read a stream for a while has come all the same.
        for name, gate in (*self.closed.items(), *self._intake.gates.items()):
            if gate.stream != self.gates[name].stream:
                continue
            watermarks[name] = max(gate.watermark, watermarks.get(name, gate.watermark))
            if gate.newest is not None:
                latest[name] = max(gate.newest, latest.get(name, gate.newest))
        return Moment(
            latest,
            watermarks,
            self._intake.now if self.batches else Moment().now,
            dict(self._runner.known),
            self._archives.since,
            self.batches,
            {name: gate.watermark for name, gate in self._intake.gates.items()},
        )

    def past(self) -> Past:
        """What streams have kept, between two steps."""
        gates, relations = self._intake.gates, self._relations
        return Past(
            self.batches,
            {name: gate.watermark for name, gate in gates.items()},
            {name: gate.newest for name, gate in gates.items() if gate.newest is not None},
            kept_rows(self._archives.by_stream, self.batches),
            lambda relation: relations.get(relation.name),
        )

    @property
    def gates(self) -> dict[str, Gate]:
        """What came on each stream that was read."""
        return {**self.closed, **self._intake.gates}

    def unsettled(self) -> float:
        """For how long files have to settle that are there and may still be written; 0 if none."""
        sources = list(self._sources.values())
        return max((source.settle for source in sources if source.waiting), default=0.0)

    def require_settled(self) -> None:
        """Refuse to end streams whose files may still be written.

        Raises:
            RunError: There is such a file.
        """
        for name, source in self._sources.items():
            for path in source.waiting[:1]:
                raise still_written(name, path)

    def streams(self) -> tuple[StreamProgress, ...]:
        """How far each stream has come."""
        return tuple(self._stream_progress(gate) for gate in list(self._intake.gates.values()))

    def to_replay(self) -> dict[str, int]:
        """About how many kept rows are still to be replayed to each query, of those with any."""
        planned = dict(self.program.planned)
        return self._archives.rows_left({name: one.physical for name, one in planned.items()})

    def _stream_progress(self, gate: Gate) -> StreamProgress:
        source = self._sources.get(gate.stream.name)
        if not isinstance(source, GrowingFiles):
            return stream_progress(gate, gate.watermark)
        files = source.read - source.skipped, len(source.taken) - source.skipped
        return stream_progress(gate, gate.watermark, files, source.warnings())

    def flush(self) -> None:
        """Keep what was written to files.

        Raises:
            RunError: It cannot be kept.
        """
        for sink in file_sinks(self.program.sinks):
            sink.flush()
        self.keep_statistics()


def _is_more(wanted: Wanted | None, before: Wanted | None) -> bool:
    """Whether rows are wanted that may have been left out before."""
    if before is None:
        return False
    return wanted is None or not wanted.conditions <= before.conditions


def _same_rows(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    """Whether two frames have the same rows, in whatever order."""
    if one.schema != other.schema or one.height != other.height:
        return False
    return one.equals(other) or one.sort(one.columns).equals(other.sort(other.columns))
