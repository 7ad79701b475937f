"""A query as it is expected to run, and as it runs.

It runs once, so that the engine finds out what there is to be known of its inputs, as it does for
any query. With that it is planned, and estimated; then the plan runs step by step. When windows are
full, it is written down what each operator remembers, and how many rows go through it.

What is remembered for ever grows while it is measured; its estimate is that for the middle of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.plan import Relation
from tidemill.algebra.tree import walk
from tidemill.calibration.observe import observe
from tidemill.catalog.entries import QueryEntry, RelationEntry, StreamEntry
from tidemill.engine.engine import Flow
from tidemill.engine.ingest import Gate, relation_flow
from tidemill.model.time import END_OF_TIME, Time
from tidemill.optimizer.cost import plan_cost
from tidemill.optimizer.estimates.flow import Pace
from tidemill.optimizer.explain.physical import describe
from tidemill.optimizer.planned import Context, Target
from tidemill.optimizer.planner import plan
from tidemill.optimizer.planning import PLANNING
from tidemill.physical.fragments import build_graph
from tidemill.physical.plan import Apply, walk_physical
from tidemill.runtime.local.sources import read_relation
from tidemill.runtime.measuring.known import statistics_of
from tidemill.runtime.shapes import answer_form

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import tidemill
    from tidemill.calibration.observe import Observed
    from tidemill.optimizer.cost import PlanCost
    from tidemill.optimizer.planned import Planned

__all__ = ["Case", "Compared", "Figures", "Part", "compared"]

SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Figures:
    """Something that was estimated, and measured."""

    estimate: float
    measured: float

    @property
    def factor(self) -> float | None:
        """The estimate as a multiple of what was measured; nothing where there was nothing."""
        return self.estimate / self.measured if self.measured else None

    def is_within(self, factor: float, few: float) -> bool:
        """Whether one is no more than so many times the other, or both are few."""
        least, most = sorted((self.estimate, self.measured))
        return most <= few or most <= factor * least


@dataclass(frozen=True, slots=True)
class Part:
    """An operator: what it is, the rows that leave it in a second, and those it remembers."""

    text: str
    rows: Figures
    held: Figures


@dataclass(frozen=True, slots=True)
class Compared:
    """A query.

    Attributes:
        held: The rows that are remembered.
        bytes: What they take.
        work: How many rows in a second go into operators and leave them.
        cpu: How many microseconds in a second the processor works.
        parts: The operators.
    """

    held: Figures
    bytes: Figures
    work: Figures
    cpu: Figures
    parts: tuple[Part, ...]

    def is_within(self, factor: float, few: float = 100.0) -> bool:
        """Whether state and work are as they are estimated, up to a factor."""
        rows = (self.held, self.work)
        return all(one.is_within(factor, few) for one in rows) and self.bytes.is_within(
            factor, 50 * few
        )


@dataclass(frozen=True, slots=True)
class Case:
    """What is asked of what comes.

    Attributes:
        sql: The query.
        frames: The rows of the streams.
        time: The column that has their times.
        steps: How many steps of a second there are.
        warm: How many of them come before those that count.
    """

    sql: str
    frames: Mapping[str, pl.DataFrame]
    time: str
    steps: int
    warm: int


def compared(session: tidemill.Session, case: Case) -> Compared:
    """A query as it is estimated, and as it runs; its streams are registered."""
    session.query(f"CREATE QUERY q AS {case.sql}")
    session.run()
    entry = session.catalog.find("q")
    assert isinstance(entry, QueryEntry), "it was just created"
    measured = session._queries.measured()  # noqa: SLF001 — it compares with what was measured
    known = statistics_of(session.catalog, measured)
    target = Target(answer=answer_form(entry), partitions=1)
    made = plan(entry.plan, target, Context(PLANNING, known))
    pace = Pace(horizon=(case.steps + case.warm) / 2)
    relations = {node.name for node in walk(made.bound) if isinstance(node, Relation)}
    cost = plan_cost(made.physical, known, pace=pace, relations=relations)
    seen = observe({"q": made.physical}, _feed(session, made, case), warm=case.warm)
    return _compared(made, cost, seen)


def _compared(made: Planned, cost: PlanCost, seen: Observed) -> Compared:
    parts, work, bytes_ = [], [0.0, 0.0], 0.0
    for part in walk_physical([made.physical]):
        done = seen.operators.get(part.fingerprint)
        if done is None or not isinstance(part, Apply):
            continue
        own = cost.parts[part.fingerprint]
        rows = Figures(own.rows_out, done.rows_out / seen.steps)
        parts.append(Part(describe(part), rows, Figures(own.state_rows, done.state_rows)))
        work[0] += own.rows_in + own.rows_out
        work[1] += (done.rows_in + done.rows_out) / seen.steps
        bytes_ += done.state_bytes
    held = (sum(part.held.estimate for part in parts), sum(part.held.measured for part in parts))
    return Compared(
        Figures(*held),
        Figures(cost.memory, bytes_),
        Figures(*work),
        Figures(cost.cpu, seen.seconds / seen.steps * SECOND),
        tuple(parts),
    )


def _feed(session: tidemill.Session, made: Planned, case: Case) -> Iterator[Mapping[str, Flow]]:
    """What comes in each step, by input."""
    graph = build_graph({"q": made.physical})
    gates: dict[str, Gate] = {}
    relations: dict[str, Flow] = {}
    for name in sorted(one.name for one in graph.inputs):
        entry = session.catalog.find(name)
        if isinstance(entry, RelationEntry):
            relations[name] = relation_flow(entry, read_relation(entry, {}))
        else:
            assert isinstance(entry, StreamEntry), "plans read what is registered"
            gates[name] = Gate(entry, has_ids=graph.needs_ids)
    parts = _cut({name: case.frames[name] for name in gates}, case.time)
    for number in range(case.steps):
        flows = {
            name: gate.take(parts[name][number], Time(number))
            if number in parts[name]
            else Flow([], gate.watermark)
            for name, gate in gates.items()
        }
        yield {**relations, **flows}
        relations = {name: Flow([], END_OF_TIME) for name in relations}


def _cut(frames: Mapping[str, pl.DataFrame], time: str) -> dict[str, dict[int, pl.DataFrame]]:
    """The rows of each second, by stream."""
    times = {name: frame[time].cast(pl.Int64) for name, frame in frames.items()}
    begin = min(int(of_stream.min() or 0) for of_stream in times.values())  # type: ignore[arg-type]
    found: dict[str, dict[int, pl.DataFrame]] = {}
    for name, frame in frames.items():
        seconds = ((times[name] - begin) // SECOND).alias("@second")
        parts = frame.with_columns(seconds).partition_by("@second", as_dict=True)
        found[name] = {int(number): part.drop("@second") for (number,), part in parts.items()}
    return found
