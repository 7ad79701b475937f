"""How the elements of streams arrive, drawn at random, and what the engine makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import polars as pl
from hypothesis import strategies as st

from local import element_batch
from stores import reopen
from tidemill.engine.engine import Flow
from tidemill.model.batch import END, TIME
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.fragments import build_graph
from tidemill.runtime.local.runner import LocalRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hypothesis.strategies import DrawFn

    from tidemill.algebra.snapshot import Element
    from tidemill.engine.engine import Engine
    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema
    from tidemill.physical.plan import PhysicalPlan

__all__ = ["Arrival", "Step", "arrivals", "emitted"]

Step: TypeAlias = "dict[str, tuple[tuple[Element, ...], int]]"
"""For each stream the elements that arrive, and the watermark after them."""


@dataclass(frozen=True)
class Arrival:
    """What arrives in each step."""

    steps: tuple[Step, ...]


@st.composite
def arrivals(draw: DrawFn, streams: Mapping[str, tuple[Element, ...]], last: int) -> Arrival:
    """Elements in any order, in a few steps; watermarks that keep their promise, up to ``last``."""
    count = draw(st.integers(1, 4))
    steps: list[Step] = [{} for _ in range(count)]
    for name, elements in streams.items():
        placed = [(draw(st.integers(0, count - 1)), e) for e in draw(st.permutations(elements))]
        watermark = 0
        for number, step in enumerate(steps):
            later = [e.time for n, e in placed if n > number]
            most = min(later, default=last)
            watermark = draw(st.integers(min(watermark, most), most))
            step[name] = (tuple(e for n, e in placed if n == number), watermark)
    return Arrival(tuple(steps))


def emitted(  # noqa: PLR0913 — a law draws everything
    plan: PhysicalPlan,
    schemas: Mapping[str, Schema],
    relations: Mapping[str, Flow],
    arrival: Arrival,
    partitions: int,
    *,
    reload: bool,
    between: Callable[[LocalRunner], None] | None = None,
) -> list[Batch]:
    """Everything the engine emits for a plan; in the end it must remember nothing.

    Args:
        plan: The plan.
        schemas: The columns of the streams.
        relations: The rows of relations.
        arrival: What arrives.
        partitions: How many partitions there are.
        reload: Whether state is saved and loaded between steps.
        between: What is done with the runner between steps.
    """
    graph = build_graph({"q": plan})
    runner = LocalRunner(graph, partitions=partitions)
    wanted = {input_.name for input_ in graph.inputs}
    out: list[Batch] = []
    ends: Step = dict.fromkeys(schemas, ((), END_OF_TIME))
    for number, step in enumerate([*arrival.steps, ends]):
        flows = {
            name: Flow([element_batch(schemas[name], elements)], Time(watermark))
            for name, (elements, watermark) in step.items()
        }
        for name, flow in relations.items():
            flows[name] = flow if number == 0 else Flow([], END_OF_TIME)
        out += runner.step({name: flows[name] for name in wanted})["q"]
        for engine in (engine for engines in runner.engines for engine in engines):
            assert_nothing_is_kept_past_its_end(engine)
        if between is not None:
            between(runner)
        if reload:
            runner = _reloaded(runner)
    for engines in runner.engines:
        for engine in engines:
            for name, state in engine.states.items():
                assert state.rows() == 0, f"{name} remembers {state.rows()} rows after the end"
    return out


def assert_nothing_is_kept_past_its_end(engine: Engine) -> None:
    """What has ended before the watermark is forgotten, but by those who forget from time to time.

    What ends at the watermark may be there still, since more can happen at that instant.
    """
    operators = {node.name: node.apply.operator for node in engine.fragment.nodes}
    for name, state in engine.states.items():
        operator = operators.get(name)
        lazy = getattr(operator, "evaluation", 0) + getattr(operator, "expiration", 0)
        for kind, table in state.tables.items():
            for column in {END, TIME} & set(table.schema):
                kept = table.all().filter(pl.col(column) < engine.watermarks[name] - lazy)
                assert kept.is_empty(), f"{operator} keeps in {kind} what is over: {kept}"


def _reloaded(runner: LocalRunner) -> LocalRunner:
    """A new runner that goes on where the old one stopped."""
    fresh = LocalRunner(runner.graph, partitions=runner.partitions)
    for old_stage, new_stage in zip(runner.engines, fresh.engines, strict=True):
        for old, new in zip(old_stage, new_stage, strict=True):
            reopen(old, new)
    return fresh
