"""Joins of one value in trees of stages, as limits ask for them, answer as the reference does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from laws.arrivals import arrivals, emitted
from laws.catalogue import HORIZON, SOURCES, Inputs, S, T, U, inputs
from laws.strategies import predicates, time_windows
from laws.test_engine import relation_inputs, snapshot
from tidemill.algebra.explain import explain
from tidemill.algebra.expr import Call, Column, conjunction
from tidemill.algebra.plan import Filter, Join, JoinKind, Plan, Window
from tidemill.algebra.tree import share
from tidemill.model.batch import Form
from tidemill.model.types import BIGINT, BOOLEAN
from tidemill.optimizer.planned import Context, Target
from tidemill.optimizer.planner import plan
from tidemill.optimizer.planning import Joins, Open, Planning
from tidemill.optimizer.statistics import Edge, Statistics
from tidemill.physical.operators.join.merging import joining_of
from tidemill.physical.plan import Apply, walk_physical

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

    from tidemill.physical.plan import PhysicalPlan


@st.composite
def stars(draw: DrawFn) -> Plan:
    """Three to five windows that agree on a value, and perhaps on more."""
    count = draw(st.integers(3, 5))
    joined: Plan | None = None
    for number in range(count):
        source = draw(st.sampled_from((S, T, U)))
        window = Window(source, draw(time_windows()))
        if joined is None:
            joined, key = window, window.schema.names[0]
            continue
        names = (*joined.schema.names, *(f"{name}{number}" for name in window.schema.names))
        own = f"{window.schema.names[0]}{number}"
        parts = [Call("=", (Column(key, BIGINT), Column(own, BIGINT)), BOOLEAN)]
        joined = Join(joined, window, JoinKind.INNER, conjunction(*parts), names)
        if draw(st.integers(0, 4)) == 0:
            joined = Filter(joined, draw(predicates(joined.schema)))
    assert joined is not None
    return joined


@st.composite
def known(draw: DrawFn) -> Statistics:
    """Anything that may have been measured."""
    return Statistics(
        {
            source.name: Edge(
                draw(st.floats(0.001, 1)),
                distinct={name: draw(st.floats(1, 1e4)) for name in source.schema.names},
                is_measured=True,
            )
            for source in SOURCES
        }
    )


limits = st.none() | st.floats(1, 1e7)


def planned(  # noqa: PLR0913 — all that decides on a tree
    query: Plan,
    statistics: Statistics,
    memory: float | None,
    cpu: float | None,
    answer: Form | None,
    *,
    multiway: bool = False,
) -> PhysicalPlan:
    joins = Joins.MULTIWAY if multiway else Joins.BINARY
    left_open = frozenset(Open) - ({Open.JOINS} if multiway else set())
    planning = Planning(joins=joins, left_open=left_open, cpu_limit=cpu, memory_limit=memory)
    return plan(query, Target(answer=answer), Context(planning, statistics)).physical


@given(
    query=stars(),
    content=inputs(),
    statistics=known(),
    memory=limits,
    cpu=limits,
    answer=st.none() | st.sampled_from(Form),
    multiway=st.booleans(),
    data=st.data(),
    partitions=st.integers(1, 3),
)
def test_trees_of_stages_give_the_answer_of_the_reference(  # noqa: PLR0913 — it draws everything
    *,
    query: Plan,
    content: Inputs,
    statistics: Statistics,
    memory: float | None,
    cpu: float | None,
    answer: Form | None,
    multiway: bool,
    data: st.DataObject,
    partitions: int,
) -> None:
    query = share(query)
    arrival = data.draw(arrivals(content.streams, max(HORIZON)))
    out = emitted(
        planned(query, statistics, memory, cpu, answer, multiway=multiway),
        {source.name: source.schema for source in SOURCES},
        relation_inputs(content),
        arrival,
        partitions,
        reload=False,
    )
    reference = content.reference()
    for time in HORIZON:
        expected = reference.snapshot(query, time)
        assert snapshot(out, query.schema, time) == expected, f"at {time}:\n{explain(query)}"


def stages(made: PhysicalPlan) -> tuple[int, int]:
    """How many joins of two there are, and of more."""
    applied = [part for part in walk_physical([made]) if isinstance(part, Apply)]
    two = sum(joining_of(part.operator) is not None for part in applied)
    more = sum("MultiJoin" in type(part.operator).__name__ for part in applied)
    return two, more


def test_limits_lead_to_trees_with_stages_of_two_and_of_more() -> None:
    find(
        st.tuples(stars(), known(), limits),
        lambda drawn: min(stages(planned(drawn[0], drawn[1], drawn[2], None, None))) > 0,
        settings=settings(max_examples=2000, deadline=None, phases=[Phase.generate]),
    )
