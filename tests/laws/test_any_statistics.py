"""Whatever is known, or believed, of inputs: a plan has the same snapshots."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import Phase, find, given, reject, settings
from hypothesis import strategies as st

from laws.arrivals import arrivals, emitted
from laws.catalogue import HORIZON, SOURCES, Inputs, inputs
from laws.strategies import plans
from laws.test_engine import relation_inputs, snapshot
from laws.test_join_orders import blocks
from streams import assert_same, differing
from tidemill.algebra.plan import Join, Plan, Relation, Source
from tidemill.algebra.tree import share, transform_up, walk
from tidemill.errors import PlanError
from tidemill.optimizer.planned import Context, Planned, Target
from tidemill.optimizer.planner import plan
from tidemill.optimizer.planning import PLANNING
from tidemill.optimizer.statistics import (
    Edge,
    Statistics,
    read_statistics,
    write_statistics,
)

often = settings(max_examples=2 * settings().max_examples)

amounts = st.sampled_from([1e-9, 1e-3, 1.0, 7.5, 1e4, 1e12, 1e300])
counts = amounts | st.just(0.0)


@st.composite
def edges(draw: st.DrawFn, columns: tuple[str, ...]) -> Edge:
    """What may be believed of an input, possible or not."""
    return Edge(
        draw(amounts | st.just(inf)),
        draw(amounts),
        draw(amounts),
        draw(counts),
        draw(amounts),
        {name: draw(counts) for name in columns if draw(st.booleans())},
        draw(st.booleans()),
        draw(counts | st.just(inf)),
        {name: draw(counts) for name in columns if draw(st.booleans())},
    )


@st.composite
def beliefs(draw: st.DrawFn, query: Plan) -> Statistics:
    """What may be believed of what a query reads."""
    read = {n.name: n.schema.names for n in walk(query) if isinstance(n, Source | Relation)}
    known = {name: draw(edges(columns)) for name, columns in read.items() if draw(st.booleans())}
    shares = draw(st.dictionaries(st.sampled_from(["S.a = T.c", "S.a IS NULL"]), counts))
    return Statistics(known, shares)


def planned(query: Plan, statistics: Statistics) -> Planned:
    return plan(query, Target(), Context(PLANNING, statistics))


@often
@given(inputs(), blocks() | plans(), st.data())
def test_a_plan_has_the_same_snapshots_with_any_statistics(
    data: Inputs, query: Plan, more: st.DataObject
) -> None:
    made = planned(query, more.draw(beliefs(query)))
    assert_same(data.reference(), query, made.logical, HORIZON)


@given(inputs(), blocks() | plans(), st.integers(1, 3), st.data())
def test_its_operators_give_the_answer_of_the_reference_in_partitions(
    data: Inputs, query: Plan, partitions: int, more: st.DataObject
) -> None:
    query = share(query)
    target = Target(partitions=None if partitions == 1 else partitions, whole=False)
    made = plan(query, target, Context(PLANNING, more.draw(beliefs(query))))
    arrival = more.draw(arrivals(data.streams, max(HORIZON)))
    schemas = {source.name: source.schema for source in SOURCES}
    rows = relation_inputs(data)
    try:
        out = emitted(made.physical, schemas, rows, arrival, partitions, reload=False)
    except PlanError as error:
        if "stay for ever" not in str(error):
            raise
        reject()  # a window over rows that never end has no finite answer
    reference = data.reference()
    for time in HORIZON:
        assert snapshot(out, query.schema, time) == reference.snapshot(query, time), time


@given(blocks(), st.data())
def test_a_query_is_planned_alike_with_the_same_statistics(
    query: Plan, more: st.DataObject
) -> None:
    known = more.draw(beliefs(query))
    one = planned(query, known)
    again = planned(query, read_statistics(write_statistics(one.statistics)))
    assert one.version == again.version
    assert one.decisions == again.decisions


def harmed(query: Plan) -> Plan:
    """The query with the inputs of a join exchanged, and the names as they were."""

    def exchanged(node: Plan) -> Plan | None:
        if isinstance(node, Join) and node.left.schema.types == node.right.schema.types:
            return Join(node.right, node.left, node.kind, node.condition, node.names)
        return None

    return transform_up(query, exchanged)


def test_the_law_finds_what_is_wrong() -> None:
    find(
        st.tuples(inputs(), blocks()),
        lambda drawn: bool(differing(drawn[0].reference(), drawn[1], harmed(drawn[1]), HORIZON)),
        settings=settings(max_examples=4000, deadline=None, phases=[Phase.generate]),
    )


@pytest.mark.parametrize("share", [-1.0, 0.0, 5.0])
def test_a_share_that_cannot_be_is_taken_as_one_that_can(share: float) -> None:
    known = Statistics({}, {"S.a IS NULL": share})
    assert read_statistics(write_statistics(known)) == known
