"""Up to when an answer is known: before that instant it is final, whatever is still to come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, reject, settings
from hypothesis import strategies as st

import tidemill
from laws.arrivals import arrivals
from laws.catalogue import HORIZON, SOURCES, Inputs, inputs
from laws.derived_streams import dense_inputs
from laws.split_plans import split_plans
from laws.strategies import plans, windows
from laws.strict_plans import SHAPES, strict_plans
from laws.test_engine import relation_inputs, snapshot
from laws.test_stacks import Query, lives
from local import element_batch
from plans import physical
from tidemill.algebra.explain import explain
from tidemill.algebra.expr import AggregateCall, Column, Named
from tidemill.algebra.plan import Aggregate, NamedAggregate, Window
from tidemill.algebra.snapshot import Element
from tidemill.algebra.tree import share
from tidemill.engine.engine import Flow
from tidemill.engine.stacks import stacks_of
from tidemill.errors import PlanError
from tidemill.model.batch import Form
from tidemill.model.time import END_OF_TIME, Time
from tidemill.model.types import BIGINT
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.planning import Joins, Planning
from tidemill.physical.fragments import build_graph
from tidemill.runtime.local.runner import LocalRunner

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

    from laws.arrivals import Step
    from tidemill.algebra.plan import Plan
    from tidemill.model.batch import Batch


def few(plan: SearchStrategy[Plan]) -> SearchStrategy[list[Plan]]:
    return st.lists(plan, min_size=1, max_size=2)


def held_back() -> SearchStrategy[Plan]:
    """Plans whose elements leave when they have ended, in each partition others."""
    return windowed().map(grouped) | st.sampled_from(SHAPES).flatmap(strict_plans)


@st.composite
def windowed(draw: DrawFn) -> Plan:
    source = draw(st.sampled_from(SOURCES))
    return Window(source, draw(windows(source.schema)))


def grouped(plan: Plan) -> Plan:
    """How many rows of each kind there are."""
    keys = tuple(Named(f.name, Column(f.name, f.type)) for f in plan.schema)
    return Aggregate(plan, keys, (NamedAggregate("n", AggregateCall("count", None, BIGINT)),))


@settings(max_examples=4 * settings().max_examples)
@given(
    data=st.data(),
    drawn=st.one_of(lives(), few(plans() | split_plans()), few(held_back())),
    content=inputs() | dense_inputs(),
    partitions=st.integers(1, 3),
    max_delay=st.sampled_from([None, 0, 3]),
    technique=st.sampled_from([Technique.DIRECT, *Technique]),
    answer=st.sampled_from([None, Form.INTERVAL, Form.INTERVAL, Form.SIGNED]),
    multiway=st.booleans(),
    lazy=st.sampled_from([0, 3]),
)
def test_before_it_is_known_an_answer_is_final(  # noqa: PLR0913 — it draws everything
    data: st.DataObject,
    drawn: list[Plan] | list[Query],
    content: Inputs,
    *,
    partitions: int,
    max_delay: int | None,
    technique: Technique,
    answer: Form | None,
    multiway: bool,
    lazy: int,
) -> None:
    logical = {
        f"q{i}": share(query.plan if isinstance(query, Query) else query)
        for i, query in enumerate(drawn)
    }
    arrival = data.draw(arrivals(content.streams, max(HORIZON)))
    joins = Joins.MULTIWAY if multiway else Joins.BINARY
    planning = Planning(
        optimized=False, max_delay=max_delay, technique=technique, joins=joins, lazy=lazy
    )
    plans = {name: physical(plan, planning, answer=answer) for name, plan in logical.items()}
    runner = LocalRunner(build_graph(plans), partitions=partitions)
    reference, relations = content.reference(), relation_inputs(content)
    ends: Step = dict.fromkeys((source.name for source in SOURCES), ((), END_OF_TIME))
    given_: dict[str, list[Batch]] = {name: [] for name in logical}
    for number, step in enumerate([*arrival.steps, ends]):
        flows = {
            source.name: Flow(
                [element_batch(source.schema, step[source.name][0])], Time(step[source.name][1])
            )
            for source in SOURCES
        }
        flows |= {n: f if number == 0 else Flow([], END_OF_TIME) for n, f in relations.items()}
        wanted = {input_.name for input_ in runner.graph.inputs}
        try:
            out = runner.step({name: flows[name] for name in wanted})
        except PlanError as error:
            if "stay for ever" not in str(error):
                raise
            reject()  # a window over rows that never end has no finite answer
        for name, plan in logical.items():
            given_[name] += out[name]
            for time in (t for t in HORIZON if t < runner.known[name]):
                actual = snapshot(given_[name], plan.schema, time)
                assert actual == reference.snapshot(plan, time), f"at {time}:\n{explain(plan)}"
    assert set(runner.known.values()) == {END_OF_TIME}


def test_answers_of_a_stack_are_known_as_far_as_the_oldest_open_row_of_it() -> None:
    text = "SELECT a, COUNT(*) AS n FROM S [RANGE {}] GROUP BY a"
    session = tidemill.connect()
    session.sql("CREATE STREAM S (at BIGINT, a BIGINT) SOURCE memory('s') ORDERED BY at")
    queries = {f"q{size}": session.sql(text.format(size)) for size in (9, 10)}
    planning = Planning(technique=Technique.DIRECT, max_delay=None)
    plans = {
        name: physical(query.plan, planning, answer=Form.INTERVAL)
        for name, query in queries.items()
        if isinstance(query, tidemill.Query)
    }
    graph = build_graph(plans)
    assert [len(s.nodes) for f in graph.fragments for s in stacks_of(f.nodes)] == [2]
    runner = LocalRunner(graph)
    schema = graph.inputs[0].schema
    known = []
    for elements, watermark in (((Element(3, 0, (3, 1)),), 7), ((), 13), ((), 14)):
        runner.step({"S": Flow([element_batch(schema, elements)], Time(watermark))})
        known.append(set(runner.known.values()))
    assert known == [{3}, {3}, {14}], "one has ended at 12, the other at 13"
