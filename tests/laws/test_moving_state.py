"""Whichever plan goes over to which, whenever, by moving state: the answer is the reference's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from laws.arrivals import arrivals
from laws.catalogue import HORIZON, SOURCES, Inputs, inputs
from laws.moving import Moving, Star, emitted_while_moving, plans_of, stars
from laws.strategies import aggregate
from laws.test_engine import relation_inputs, snapshot
from tidemill.algebra.plan import Aggregate, Distinct
from tidemill.model.batch import Form
from tidemill.optimizer.physical.techniques import Technique
from tidemill.physical.fragments import build_graph
from tidemill.runtime.local.runner import LocalRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hypothesis.strategies import SearchStrategy

    from tidemill.algebra.plan import Plan
    from tidemill.engine.engine import Flow
    from tidemill.physical.plan import PhysicalPlan

SCHEMAS = {source.name: source.schema for source in SOURCES}


def assert_answers(  # noqa: PLR0913 — a law draws everything
    data: st.DataObject,
    made: SearchStrategy[PhysicalPlan],
    query: Plan,
    content: Inputs,
    partitions: int,
    *,
    reload: bool,
) -> Moving:
    """Let plans take over from each other, and require the answer of the reference."""
    arrival = data.draw(arrivals(content.streams, max(HORIZON)))
    moving = Moving(data.draw(made), partitions, reload=reload)
    few = st.lists(made, min_size=1, max_size=2)
    numbers = st.integers(0, len(arrival.steps) - 1)
    others = data.draw(st.dictionaries(numbers, few, min_size=1, max_size=2))
    relations = relation_inputs(content)
    out = emitted_while_moving(moving, others, SCHEMAS, relations, arrival)
    reference = content.reference()
    for time in HORIZON:
        assert snapshot(out, query.schema, time) == reference.snapshot(query, time), f"at {time}"
    return moving


@given(
    star=stars(),
    content=inputs(),
    data=st.data(),
    partitions=st.sampled_from([1, 3]),
    reload=st.booleans(),
)
def test_any_plan_of_a_join_goes_over_to_any_other(
    *, star: Star, content: Inputs, data: st.DataObject, partitions: int, reload: bool
) -> None:
    assert_answers(data, plans_of(star), star.plan, content, partitions, reload=reload)


@settings(max_examples=settings().max_examples // 2)
@given(
    star=stars(),
    content=inputs(),
    data=st.data(),
    partitions=st.sampled_from([1, 3]),
    answer=st.none() | st.sampled_from(Form),
    reload=st.booleans(),
)
def test_what_stands_above_a_join_is_carried(  # noqa: PLR0913 — it draws everything
    *,
    star: Star,
    content: Inputs,
    data: st.DataObject,
    partitions: int,
    answer: Form | None,
    reload: bool,
) -> None:
    grouped = data.draw(st.composite(aggregate)(star.plan))
    assert isinstance(grouped, Aggregate), "it was asked for"
    above: tuple[Callable[[Plan], Plan], ...] = (
        lambda plan: plan,
        Distinct,
        lambda plan: replace(grouped, input=plan),
    )
    stands = data.draw(st.sampled_from(above))
    technique = data.draw(st.sampled_from(Technique))
    made = plans_of(star, stands, answer=answer, techniques=[technique])
    assert_answers(data, made, stands(star.plan), content, partitions, reload=reload)


@settings(max_examples=settings().max_examples // 2)
@given(
    star=stars(conditions=0),
    content=inputs(),
    data=st.data(),
    partitions=st.sampled_from([1, 3]),
    reload=st.booleans(),
)
def test_state_is_that_of_a_plan_that_ran_from_the_start(
    *, star: Star, content: Inputs, data: st.DataObject, partitions: int, reload: bool
) -> None:
    made, relations = plans_of(star), relation_inputs(content)
    arrival = data.draw(arrivals(content.streams, max(HORIZON)))
    after, step = data.draw(made), data.draw(st.integers(0, len(arrival.steps) - 1))
    moving = Moving(data.draw(made), partitions, reload=reload)
    whole = LocalRunner(build_graph({"q": after}), partitions=partitions)

    before: list[int] = [0]

    def stepped(flows: Mapping[str, Flow]) -> None:
        wanted = {input_.name for input_ in whole.graph.inputs}
        whole.step({name: flows[name] for name in wanted})
        if before[-1]:  # it has taken over before this step
            moving.remembers_as(whole)
        before.append(moving.moved)

    emitted_while_moving(moving, {step: [after]}, SCHEMAS, relations, arrival, stepped)
