"""The local engine step by step: its driver says what arrives when, and sees what each step gives.

The queries of a session are planned, and their rows timed, as the session's own job does; only the
steps are the caller's.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from benchmarks.harness.plans import physical
from tidemill.catalog.entries import QueryEntry, RelationEntry, StreamEntry
from tidemill.engine.engine import Flow
from tidemill.engine.ingest import Gate, relation_flow
from tidemill.lang.statements import ObjectKind
from tidemill.model.batch import END, SIGN, START, TIME, Form
from tidemill.model.time import END_OF_TIME, Time
from tidemill.optimizer.planning import PLANNING, Planning
from tidemill.physical.fragments import build_graph
from tidemill.runtime.answers import NAMES, Answer, time_names
from tidemill.runtime.local.runner import LocalRunner
from tidemill.runtime.local.sources import read_relation
from tidemill.runtime.shapes import answer_form

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import tidemill
    from tidemill.model.batch import Batch
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["Stepped", "instants", "resident"]


class Stepped:
    """The queries of a session in progress.

    Args:
        session: Whose queries and streams; relations are read from where it says.
        planning: How they are planned.
        partitions: How many partitions state is kept in.
        changed: What a plan becomes before it is run.
    """

    def __init__(
        self,
        session: tidemill.Session,
        *,
        planning: Planning = PLANNING,
        partitions: int = 1,
        changed: Callable[[PhysicalPlan], PhysicalPlan] = lambda plan: plan,
    ) -> None:
        entries = session.catalog.entries(ObjectKind.QUERY)
        queries = [entry for entry in entries if isinstance(entry, QueryEntry)]
        plans = {
            q.name: changed(physical(q.plan, planning, answer=answer_form(q))) for q in queries
        }
        self.runner = LocalRunner(build_graph(plans), partitions=partitions)
        self.answers = {query.name: Answer(query.plan.schema) for query in queries}
        self.schemas = {query.name: query.plan.schema for query in queries}
        self._given: dict[str, list[Batch]] = {query.name: [] for query in queries}
        self._steps = 0
        self._gates: dict[str, Gate] = {}
        self._relations: dict[str, Flow] = {}
        for name in sorted(input_.name for input_ in self.runner.graph.inputs):
            entry = session.catalog.find(name)
            if isinstance(entry, RelationEntry):
                self._relations[name] = relation_flow(entry, read_relation(entry, {}))
            else:
                assert isinstance(entry, StreamEntry), "plans read what is registered"
                self._gates[name] = Gate(entry, has_ids=self.runner.graph.needs_ids)

    @property
    def refused(self) -> int:
        """How many rows were not taken."""
        return sum(sum(gate.refused.counts.values()) for gate in self._gates.values())

    def step(self, frames: Mapping[str, pl.DataFrame]) -> dict[str, list[Batch]]:
        """Process what has arrived on each stream; what each query gives."""
        number = Time(self._steps)
        return self._pass(
            {
                name: gate.take(frames[name], number)
                if name in frames
                else Flow([], gate.watermark)
                for name, gate in self._gates.items()
            }
        )

    def finish(self) -> dict[str, list[Batch]]:
        """All streams end; what each query gives still."""
        out = self._pass({name: gate.finish() for name, gate in self._gates.items()})
        for answer in self.answers.values():
            answer.known = END_OF_TIME
        return out

    def _pass(self, flows: dict[str, Flow]) -> dict[str, list[Batch]]:
        out = self.runner.step({**self._relations, **flows})
        self._relations = {name: Flow([], END_OF_TIME) for name in self._relations}
        self._steps += 1
        for name, batches in out.items():
            self.answers[name].add(batches)
            self._given[name] += batches
        return out

    def forget(self) -> None:
        """Let go of the answers so far."""
        self.answers = {name: Answer(schema) for name, schema in self.schemas.items()}
        self._given = {name: [] for name in self.schemas}

    def elements(self, query: str) -> pl.DataFrame | None:
        """What a query has given, as it was cut; nothing if some of it was in signed form."""
        given = self._given[query]
        if not given or any(SIGN in batch.columns for batch in given):
            return None
        columns = [*self.schemas[query].names, START, END]
        whole = pl.concat([batch.select(columns) for batch in given])
        return whole.rename(
            dict(
                zip(
                    (START, END),
                    time_names(self.schemas[query], *NAMES[Form.INTERVAL]),
                    strict=True,
                )
            )
        )

    def state(self) -> tuple[int, int]:
        """How many rows are remembered, and in how many bytes."""
        engines = [engine for stage in self.runner.engines for engine in stage]
        found = [metrics for engine in engines for metrics in engine.measure().values()]
        return sum(m.state_rows for m in found), sum(m.state_bytes for m in found)


def instants(batches: list[Batch]) -> pl.Series:
    """From when on what has appeared in a step holds, in microseconds: what its results answer."""
    appear = [
        batch.filter(pl.col(SIGN) > 0) if SIGN in batch.columns else batch for batch in batches
    ]
    whole = [batch[TIME if SIGN in batch.columns else START].rename("at") for batch in appear]
    return pl.concat([pl.Series("at", [], pl.Int64), *whole])


def resident() -> int:
    """How many bytes of memory this process has."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
