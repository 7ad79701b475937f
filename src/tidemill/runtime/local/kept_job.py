"""A job with a checkpoint: it goes on from where an earlier one was, whatever became of that one.

A bounded run leaves the streams open for the next one, unless it is told to end them; a checkpoint
whose streams have ended takes nothing more. The checkpoint is this job's alone from ``run`` or
``start`` until it is stopped.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

from tidemill.engine.ingest import Refused
from tidemill.model.time import Time
from tidemill.runtime.damage import telling_where
from tidemill.runtime.local.checkpoint import open_local
from tidemill.runtime.local.delivering import Delivery
from tidemill.runtime.local.job import Job
from tidemill.runtime.local.keeping import Keeper
from tidemill.runtime.local.kept_pipeline import KeptPipeline
from tidemill.runtime.local.kept_program import kept_program
from tidemill.runtime.measuring.measured import load_measured
from tidemill.runtime.planning import outdated_in, planned_for
from tidemill.runtime.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from tidemill.catalog.catalog import Catalog
    from tidemill.runtime.local.kept_program import Kept
    from tidemill.runtime.local.pipeline import Pipeline
    from tidemill.runtime.past import Past

__all__ = ["KeptJob"]


@dataclass(slots=True)
class KeptJob(Job):
    """The queries of a checkpoint, and what has become of them."""

    _keeper: Keeper | None = None

    def run(self, *, end: bool | None = None) -> None:
        """Process what is there, from where an earlier run was.

        Args:
            end: Whether the streams end then; if it is not said, they do not.

        Raises:
            RunError: Something is refused, or a source or sink cannot be read or written.
        """
        with self._opening(ends=bool(end)) as keeper:
            pipeline = self._resumed(keeper)
            if pipeline is not None:
                self._pipeline, self._program = pipeline, pipeline.program
                pipeline.adapt(self._adapting)
                self._run_on(pipeline, keeper, ends=bool(end))
        keeper.checkpoint.close()

    def _run_on(self, pipeline: KeptPipeline, keeper: Keeper, *, ends: bool) -> None:
        """Take steps until all is read; then end the streams, if they are to."""
        self._take_all(pipeline)
        pipeline.keep_statistics()
        if ends and not self._was_stopped:
            pipeline.require_settled()
            keeper.checkpoint.begin_to_end()
            pipeline.end()
        if pipeline.has_ended:
            keeper.checkpoint.end()

    def _take_all(self, pipeline: KeptPipeline) -> None:
        """Take steps until everything there is has been read, or it is stopped."""
        idle_since: float | None = None
        while not (self._was_stopped or pipeline.has_ended):
            if pipeline.step() or self._asked():
                continue
            seconds = pipeline.unsettled()
            idle_since = monotonic() if idle_since is None else idle_since
            if not seconds or monotonic() - idle_since >= 2 * seconds:
                return
            sleep(min(max(seconds / 4, 0.01), 0.5))

    def close(self) -> None:
        """Stop at the end of a step, and let others have the checkpoint.

        Raises:
            RunError: Files cannot be kept, or a function that gets rows of a run that goes on calls
                this.
        """
        if self._loop is None:
            Job.close(self)  # a run that goes on lets go of it itself
            return
        self._loop.refuse_callbacks("stop")
        try:
            Job.close(self)
        finally:
            if self._keeper is not None:
                self._keeper.checkpoint.close()

    def past(self) -> Past | Path:
        """What streams have kept, at the last boundary; or the checkpoint to read that from.

        Raises:
            RunError: A function that gets rows calls this.
        """
        is_over = self._was_stopped or (self._loop is not None and self._loop.error is not None)
        return self._past_of_run() if is_over else Job.past(self)

    def _past_of_run(self) -> Past | Path:
        """Others may have gone on with the checkpoint since."""
        assert self.settings.checkpoint is not None, "there is a checkpoint"
        return Path(self.settings.checkpoint)

    def outdated(self) -> frozenset[str]:
        """The queries whose plans were made with other settings, which make others."""
        assert self._keeper is not None, "it was started"
        facts = self._keeper.checkpoint.facts
        return outdated_in(self._program.planned, facts, self.settings.planning)

    def quarantine(self, stream: str) -> pl.DataFrame:
        """The rows of a stream that were refused and are kept.

        Raises:
            RunError: They cannot be read.
        """
        refused = Refused(self.gates[stream].stream)
        assert self._keeper is not None, "a stream that was read has a checkpoint"
        for rows in self._keeper.quarantine.rows(stream):
            refused.keep(rows)
        return refused.kept()

    def _new_pipeline(self) -> Pipeline:
        """A pipeline that goes on from where an earlier one was."""
        with self._opening(ends=False) as keeper:
            pipeline = self._resumed(keeper)
            if pipeline is None:
                raise keeper.checkpoint.has_ended_error()
            return pipeline

    def _change_pipeline(self, pipeline: Pipeline, catalog: Catalog) -> None:
        """Let what runs on go on with another catalog."""
        assert isinstance(pipeline, KeptPipeline), "it was made here"
        assert self._keeper is not None, "it runs"
        pipeline.go_on_with(self._kept(catalog, self._keeper))

    @contextmanager
    def _opening(self, *, ends: bool) -> Iterator[Keeper]:
        """The checkpoint, which is closed if something goes wrong.

        Args:
            ends: Whether its streams are to end.
        """
        settings = self.settings
        assert settings.checkpoint is not None, "there is a checkpoint"
        with telling_where(settings.checkpoint):
            checkpoint = open_local(
                settings.checkpoint, settings.planning, settings.partitions, settings.take_lock
            )
            try:
                checkpoint.require_open(ends=ends)
                self._keeper = Keeper(checkpoint)
                self.statistics = load_measured(checkpoint.directory)
                yield self._keeper
            except BaseException:
                checkpoint.close()
                raise

    def _resumed(self, keeper: Keeper) -> KeptPipeline | None:
        """The pipeline as it was left, or a new one; ``None`` if its streams have ended."""
        kept = self._kept(self.catalog, keeper)
        if keeper.checkpoint.facts.ended:
            known = {} if keeper.standing is None else keeper.standing.known
            resumed = {name: Time(known.get(name, 0)) for name in kept.program.resumed}
            program = kept.program
            tables, done = Tables(keeper.checkpoint.directory), 0
            if keeper.standing is not None:
                done = keeper.standing.step
            tables.open(program.sinks, done)
            self._delivery = Delivery(keeps_all=False, tables=tables)
            self._delivery.go_on_with(program.queries, program.sinks, program.idle, resumed)
            self._program = kept.program
            return None
        settings = self.settings
        pipeline = KeptPipeline(keeper, settings, self.memory, self._collector, self.statistics)
        pipeline.go_on_with(kept)
        return pipeline

    def _kept(self, catalog: Catalog, keeper: Keeper) -> Kept:
        settings = self.settings
        return kept_program(
            catalog,
            self._program,
            keeper.checkpoint,
            settings.planning,
            self.callbacks,
            self.memory,
            self.known(catalog),
            settings.templates,
            planned_for(len(keeper.checkpoint.facts.pids)),
        )
