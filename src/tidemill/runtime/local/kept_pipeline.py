"""A pipeline with a checkpoint: it goes on from where an earlier session was, and keeps its steps.

A start and a change are checked as a whole before anything is written. What is written then has an
order in which a kill at any moment leaves what the next start goes on from: until the record knows
a query, nothing that is written for it is looked at; and until the commit knows a stream, it has
not been read.

Law: see ``keeping.py``.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from tidemill.engine.ingest import Gate
from tidemill.model.time import Time
from tidemill.runtime.connectors import source_place
from tidemill.runtime.damage import telling_where
from tidemill.runtime.local.archives import Archives
from tidemill.runtime.local.commit import Commit
from tidemill.runtime.local.delivering import Delivery, file_sinks
from tidemill.runtime.local.frames import kept_place
from tidemill.runtime.local.growing import open_source
from tidemill.runtime.local.keeping import stream_commits
from tidemill.runtime.local.pipeline import Opened, Pipeline
from tidemill.runtime.local.program import NOTHING
from tidemill.runtime.local.sources import read_relation
from tidemill.runtime.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import polars as pl

    from tidemill.engine.ingest import Reached
    from tidemill.history.replay import Leg
    from tidemill.runtime.local.input_log import Begun
    from tidemill.runtime.local.job import Settings
    from tidemill.runtime.local.keeping import Keeper
    from tidemill.runtime.local.kept_program import Kept
    from tidemill.runtime.local.program import Program
    from tidemill.runtime.measuring.measured import Measured
    from tidemill.runtime.metrics import Collector
    from tidemill.runtime.runs import Moment

__all__ = ["KeptPipeline"]


class KeptPipeline(Pipeline):
    """The queries of a checkpoint, in progress.

    Args:
        keeper: Keeps what it comes to.
        settings: How to run.
        memory: The frames that ``memory`` sources name.
        collector: Is told what operators do.
        statistics: Is told what comes in.

    Attributes:
        has_ended: Whether the streams have ended.
    """

    def __init__(
        self,
        keeper: Keeper,
        settings: Settings,
        memory: Mapping[str, pl.DataFrame],
        collector: Collector,
        statistics: Measured | None = None,
    ) -> None:
        archives = Archives(keeper.checkpoint.kept, settings.replay_pace)
        partitions = len(keeper.checkpoint.facts.pids)
        super().__init__(partitions, settings.clock, memory, collector, archives, statistics)
        tables = Tables(keeper.checkpoint.directory)
        self.delivery = Delivery(keeps_all=False, tables=tables)
        self.has_ended = False
        self._keeper: Keeper = keeper
        self._again: Begun | None = None
        self._failure: BaseException | None = None

    def _to_fill(self, program: Program) -> dict[str, tuple[str, Time]]:
        """The inputs that are new; of those of a session before, the ones that have not run."""
        found, standing = super()._to_fill(program), self._keeper.standing
        if self.program is not NOTHING or standing is None:
            return found
        begun = {i.rows for i in program.graph.inputs if i.epoch <= standing.ran}
        return {rows: one for rows, one in found.items() if rows not in begun}

    # Steps

    def step(self) -> bool:
        """Take a step, if anything has come or time matters; whether it was so.

        A step that was cut short is taken again first.

        Raises:
            RunError: A source or a sink cannot be read or written, or a step before has failed.
        """
        with self._keeping():
            again = self._again
            if again is None:
                return super().step()
            for name, source in self._sources.items():
                found = source.new()
                if found is not None:
                    self._readers[name] = found
            self._take_step(self._unfed(), ends=again.ends)
            self._replay(None)
            return True

    def end(self) -> None:
        """Take the step with which the streams end, once all has been read.

        Raises:
            RunError: A sink cannot be written.
        """
        if not self.has_ended:
            with self._keeping():
                self._take_step(self._unfed(), ends=True)

    def flush(self) -> None:
        """Only what was found out is left to be kept: files are, batch by batch."""
        self.keep_statistics()

    def _take_step(self, unfed: Mapping[str, str], *, ends: bool = False) -> None:
        super()._take_step(unfed, ends=ends)
        self.has_ended = ends

    def _leg(self) -> Leg | None:
        return None if self._again is None else self._again.leg

    def _replay(self, again: Begun | None) -> None:
        """Take the next step as it was begun, or any other one as it comes."""
        self._again = again
        self._intake.again = None if again is None else again.noted

    @contextmanager
    def _keeping(self) -> Iterator[None]:
        """Let a failure be the last word: what is in memory is not what is in the checkpoint.

        Raises:
            RunError: Something has failed, now or before.
        """
        if self._failure is not None:
            raise self._failure
        try:
            with telling_where(self._keeper.checkpoint.directory):
                yield
        except BaseException as error:
            self._failure = error
            raise

    # Starts and changes

    def go_on_with(self, kept: Kept) -> None:
        """Go on with another program, or with that of an earlier session.

        Raises:
            RunError: It is refused, and everything is as it was.
        """
        program, keeper, checkpoint = kept.program, self._keeper, self._keeper.checkpoint
        before, is_first = self.program, self.program is NOTHING
        again = keeper.again() if is_first else None
        if is_first and keeper.standing is not None:
            self.batches = self.first = keeper.standing.step
        with telling_where(checkpoint.directory):
            relations = {
                name: kept.shared[name] if name in kept.shared else read_relation(e, self._memory)
                for name, e in program.relations.items()
            }
            names = sorted(program.streams.keys() - before.streams.keys())
            files = [name for name in names if not _is_frame(program, name)]
            opened = {name: self._resumed(program, name, again) for name in files}
            if is_first and keeper.standing is not None:
                self._runner.change(program.graph)
                keeper.fill(self._runner, program.moves(self._runner.partitions))
            checkpoint.create()
            # Frames are written to files, which nobody must find who is not to know of them.
            frames = [name for name in names if name not in opened]
            opened |= {name: self._resumed(program, name, again) for name in frames}
            self._measure(at_once=True)
            for sink in file_sinks(program.new_sinks(before)):
                sink.claim()
            self.delivery.tables.begin(program.new_sinks(before))
            relations_kept = kept.keep(checkpoint, relations)
        with self._keeping():
            if not is_first or keeper.standing is None:
                self._go_over(program)
            self._take_up(program, opened, relations, is_first=is_first)
            checkpoint.record_kept(
                kept.known_as,
                program.streams,
                relations_kept,
                epoch=program.epoch,
                planning=kept.planning,
            )
            self._commit(program, opened, is_first=is_first)
        self._replay(again if is_first else self._again)

    def _resumed(self, program: Program, name: str, again: Begun | None) -> Opened:
        """A stream that is read from now on, from where it was if it was read before."""
        keeper, gate = self._keeper, Gate(program.streams[name], has_ids=program.graph.needs_ids)
        is_frame = _is_frame(program, name)
        place = (
            kept_place(name, gate.stream, keeper.checkpoint, self._memory)
            if is_frame
            else source_place(name, gate.stream.source)
        )
        standing = keeper.standing if self.program is NOTHING else None
        stream = None if standing is None else standing.streams.get(name)
        source = open_source(
            gate.stream,
            place,
            self._memory,
            gate.refused.add_malformed,
            skips=stream is None
            and self.batches > 0
            and not (is_frame or program.takes_by_time(name)),
            given=0 if stream is None else stream.position.batches,
        )
        if stream is not None:
            keeper.go_on(name, source, gate, again)
        keeper.begin_counting(name, gate)
        return Opened(gate, source)

    def _take_up(
        self,
        program: Program,
        opened: Mapping[str, Opened],
        relations: dict[str, pl.DataFrame],
        *,
        is_first: bool,
    ) -> None:
        """Go on with a program in memory, and from where an earlier session was."""
        standing = self._keeper.standing if is_first else None
        if standing is not None:
            self._fed = set(standing.fed)
            self._archives.replays = dict(standing.replays)
            self.has_ended = standing.ended
        self._switch(program, opened, relations)
        if standing is not None:
            self._intake.now = Time(standing.now)
            for name in opened.keys() & standing.streams.keys():
                self._intake.go_on(name, standing.streams[name].silent)

    def _commit(self, program: Program, opened: Mapping[str, Opened], *, is_first: bool) -> None:
        """Keep where it stands, between two steps."""
        keeper = self._keeper
        if is_first:
            resumed = {n: sink for n, sink in program.sinks.items() if n in program.owned}
            keeper.tidy(file_sinks(resumed), self._sources)
        else:
            keeper.keep_only(self._sources.keys() - opened.keys())
        keeper.note(self._sources)
        keeper.leave(self._left(is_first=is_first))
        commit = Commit(
            self.batches,
            self._intake.now,
            keeper.ran,
            stream_commits(self._intake, self._sources),
            tuple(sorted(self._fed)),
            self._runner.known,
            self.has_ended,
            self._archives.replays,
            keeper.left,
        )
        keeper.save(commit, self._runner, self._intake.gates)
        keeper.commit()

    def _left(self, *, is_first: bool) -> dict[str, Reached]:
        """How far streams have come that are not read any more."""
        standing = self._keeper.standing if is_first else None
        before = {} if standing is None else standing.streams
        found = {name: one.reached for name, one in before.items() if name not in self._sources}
        return found | {name: gate.reached() for name, gate in self.closed.items()}

    def moment(self) -> Moment:
        """Where it stands, between two steps; what came in earlier sessions has come as well."""
        moment = super().moment()
        latest, watermarks = dict(moment.latest), dict(moment.watermarks)
        for name, reached in self._keeper.left.items():
            watermarks[name] = Time(max(reached.watermark, watermarks.get(name, 0)))
            if reached.latest is not None:
                latest[name] = Time(max(reached.latest, latest.get(name, 0)))
        return replace(moment, latest=latest, watermarks=watermarks)


def _is_frame(program: Program, name: str) -> bool:
    return source_place(name, program.streams[name].source).kind == "memory"
