"""Whole plans on the engine: the answer is that of the reference, however the input is cut.

Drawn are a plan, inputs, the step in which each element arrives, watermarks that keep their
promise, and the number of partitions.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import polars as pl
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from laws.catalogue import HORIZON, SOURCES, Inputs, P, R, inputs
from laws.strategies import plans
from local import element_batch
from tidemill.algebra.explain import explain
from tidemill.algebra.tree import share
from tidemill.catalog.entries import RelationEntry
from tidemill.engine.engine import Flow
from tidemill.engine.fragments import build_graph
from tidemill.engine.ingest import relation_flow
from tidemill.errors import PlanError
from tidemill.lang.statements import ConnectorCall, Name
from tidemill.model.batch import END, START, polars_schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.optimizer.implement import implement
from tidemill.physical.plan import Input
from tidemill.runtime.local.runner import LocalRunner

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

    from tidemill.algebra.plan import Plan
    from tidemill.algebra.snapshot import Bag, Element
    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema


Step: TypeAlias = "dict[str, tuple[tuple[Element, ...], int]]"
"""For each stream the elements that arrive, and the watermark after them."""


@dataclass(frozen=True)
class Arrival:
    """What arrives in each step."""

    steps: tuple[Step, ...]


@st.composite
def arrivals(draw: DrawFn, given_inputs: Inputs) -> Arrival:
    count = draw(st.integers(1, 4))
    steps: list[Step] = [{} for _ in range(count)]
    for source in SOURCES:
        elements = given_inputs.streams[source.name]
        placed = [(draw(st.integers(0, count - 1)), e) for e in draw(st.permutations(elements))]
        watermark = 0
        for number, step in enumerate(steps):
            later = [e.time for n, e in placed if n > number]
            most = min(later, default=max(HORIZON))
            watermark = draw(st.integers(min(watermark, most), most))
            step[source.name] = (tuple(e for n, e in placed if n == number), watermark)
    return Arrival(tuple(steps))


def relation_inputs(content: Inputs) -> dict[str, Flow]:
    flows = {}
    for relation in (R, P):
        entry = RelationEntry(
            relation.name, relation.schema, ConnectorCall(Name("memory")), relation.validity
        )
        rows = list(content.relations[relation.name])
        frame = pl.DataFrame(rows, schema=polars_schema(relation.schema), orient="row")
        flows[relation.name] = relation_flow(entry, frame)
    return flows


def answer(  # noqa: PLR0913 — a law draws everything
    plan: Plan,
    content: Inputs,
    arrival: Arrival,
    partitions: int,
    *,
    max_delay: int | None,
    reload: bool,
) -> list[Batch]:
    """Everything the engine emits for a plan; its state is saved and loaded between steps."""
    graph = build_graph({"q": implement(plan, max_delay=max_delay)})
    runner = LocalRunner(graph, partitions=partitions)
    wanted = {input_.name for input_ in graph.inputs}
    schemas = {source.name: source.schema for source in SOURCES}
    relations = relation_inputs(content)
    out: list[Batch] = []
    ends: Step = {source.name: ((), END_OF_TIME) for source in SOURCES}
    for number, step in enumerate([*arrival.steps, ends]):
        flows = {
            name: Flow([element_batch(schemas[name], elements)], Time(watermark))
            for name, (elements, watermark) in step.items()
        }
        for name, flow in relations.items():
            flows[name] = flow if number == 0 else Flow([], END_OF_TIME)
        out += runner.step({name: flows[name] for name in wanted})["q"]
        if reload:
            runner = reloaded(runner)
    for engines in runner.engines:
        for engine in engines:
            for node in engine.fragment.nodes:
                rows = engine.states[node.name].rows()
                assert rows == 0, f"{node.apply.operator} remembers {rows} rows after the end"
    return out


def reloaded(runner: LocalRunner) -> LocalRunner:
    """A new runner that goes on where the old one stopped."""
    fresh = LocalRunner(runner.graph, partitions=runner.partitions)
    for old_stage, new_stage in zip(runner.engines, fresh.engines, strict=True):
        for old, new in zip(old_stage, new_stage, strict=True):
            new.load(old.save())
    return fresh


def snapshot(batches: list[Batch], schema: Schema, time: int) -> Bag:
    bag: Bag = Counter()
    for part in batches:
        valid = part.filter((pl.col(START) <= time) & (pl.col(END) > time))
        bag.update(valid.select(schema.names).rows())
    return bag


@settings(max_examples=4 * settings().max_examples)
@given(
    data=st.data(),
    plan=plans(),
    content=inputs(),
    partitions=st.integers(1, 4),
    max_delay=st.sampled_from([None, 0, 1, 3]),
    reload=st.booleans(),
)
def test_the_engine_gives_the_answer_of_the_reference(  # noqa: PLR0913 — it draws everything
    data: st.DataObject,
    plan: Plan,
    content: Inputs,
    partitions: int,
    max_delay: int | None,
    *,
    reload: bool,
) -> None:
    plan = share(plan)
    arrival = data.draw(arrivals(content))
    try:
        out = answer(plan, content, arrival, partitions, max_delay=max_delay, reload=reload)
    except PlanError as error:
        if "stay for ever" not in str(error):
            raise
        reject()  # a window over rows that never end has no finite answer
    reference = content.reference()
    for time in HORIZON:
        expected = reference.snapshot(plan, time)
        assert snapshot(out, plan.schema, time) == expected, f"at {time}:\n{explain(plan)}"


def test_an_input_is_an_answer() -> None:
    graph = build_graph({"q": Input("S", SOURCES[0].schema)})
    assert graph.answers == {"q": "answer S"}
