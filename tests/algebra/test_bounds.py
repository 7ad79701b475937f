"""Which plans need unbounded memory (K50), and which do not although a window is unbounded."""

from __future__ import annotations

import pytest

from streams import LETTER, cross, names_of_both, one_column, project
from tidemill.algebra.bounds import UnboundedState, growing_window, unbounded_state
from tidemill.algebra.expr import TRUE, AggregateCall, Named
from tidemill.algebra.plan import (
    Aggregate,
    AntiJoin,
    Difference,
    Distinct,
    Dstream,
    Filter,
    Intersect,
    Istream,
    MaxUnion,
    NamedAggregate,
    Plan,
    Relation,
    RowWindow,
    Rstream,
    SemiJoin,
    SessionWindow,
    StrictDifference,
    TimeWindow,
    Unbounded,
    Union,
    Window,
)
from tidemill.model.types import BIGINT, DOUBLE, VARCHAR

S = one_column("S")
ALL = Window(S, Unbounded())
FIVE = Window(S, TimeWindow(5))
R = Relation("R", S.schema)


def semi(left: Plan, right: Plan) -> SemiJoin:
    return SemiJoin(left, right, TRUE, names_of_both(left, right))


def anti(left: Plan, right: Plan) -> AntiJoin:
    return AntiJoin(left, right, TRUE, names_of_both(left, right))


def aggregate(call: AggregateCall) -> Aggregate:
    return Aggregate(ALL, (Named("letter", LETTER),), (NamedAggregate("value", call),))


COUNT = AggregateCall("count", None, BIGINT)

REFUSED: dict[str, Plan] = {
    "join": cross(ALL, FIVE),
    "join on the right": cross(FIVE, ALL),
    "semi-join": semi(ALL, FIVE),
    "semi-join on the right": semi(FIVE, ALL),
    "anti-join": anti(ALL, FIVE),
    "distinct": Distinct(ALL),
    "difference": Difference(ALL, FIVE),
    "difference on the right": Difference(FIVE, ALL),
    "strict difference": StrictDifference(ALL, FIVE),
    "intersection": Intersect(FIVE, ALL),
    "max-union": MaxUnion(FIVE, ALL),
    "time window": Window(ALL, TimeWindow(5)),
    "count window": Window(ALL, RowWindow(1)),
    "session window": Window(ALL, SessionWindow(1)),
    "rstream": Rstream(ALL),
    "count of distinct values": aggregate(AggregateCall("count", LETTER, BIGINT, distinct=True)),
    "median": aggregate(AggregateCall("median", LETTER, DOUBLE)),
}


@pytest.mark.parametrize("plan", REFUSED.values(), ids=REFUSED)
def test_an_operator_that_remembers_its_input_is_refused(plan: Plan) -> None:
    assert unbounded_state(plan) == UnboundedState(plan, ALL)


ALLOWED: dict[str, Plan] = {
    "unbounded window": ALL,
    "filter": Filter(ALL, TRUE),
    "map": project(ALL, letter=LETTER),
    "union": Union(ALL, FIVE),
    "insertions": Istream(ALL),
    "deletions": Dstream(ALL),
    "join with a constant relation": cross(ALL, R),
    "semi-join with a constant relation": semi(ALL, R),
    "constant relation and what comes": semi(R, ALL),
    "anti-join with a constant relation": anti(ALL, R),
    "count": aggregate(COUNT),
    "maximum": aggregate(AggregateCall("max", LETTER, VARCHAR)),
    "join above an aggregate": cross(aggregate(COUNT), FIVE),
    "join above insertions": cross(Istream(ALL), FIVE),
    "join of bounded windows": cross(FIVE, Window(S, RowWindow(3))),
    "distinct of a session window": Distinct(Window(S, SessionWindow(3))),
    "distinct of a stream": Distinct(S),
    "median of a bounded window": Aggregate(
        FIVE, (), (NamedAggregate("m", AggregateCall("median", LETTER, DOUBLE)),)
    ),
}


@pytest.mark.parametrize("plan", ALLOWED.values(), ids=ALLOWED)
def test_what_remembers_little_is_allowed(plan: Plan) -> None:
    assert unbounded_state(plan) is None


def test_the_operator_nearest_to_the_leaves_is_named() -> None:
    inner = Distinct(Filter(ALL, TRUE))
    assert unbounded_state(cross(inner, FIVE)) == UnboundedState(inner, ALL)


@pytest.mark.parametrize(
    "plan",
    [ALL, Filter(ALL, TRUE), Union(FIVE, ALL), cross(R, ALL), anti(ALL, FIVE), Rstream(ALL)],
)
def test_a_plan_grows_with_an_unbounded_window_below(plan: Plan) -> None:
    assert growing_window(plan) is ALL


@pytest.mark.parametrize(
    "plan",
    [S, R, FIVE, aggregate(COUNT), Istream(ALL), Dstream(ALL), Window(ALL, RowWindow(3))],
)
def test_a_plan_does_not_grow_where_rows_go_or_are_summed_up(plan: Plan) -> None:
    assert growing_window(plan) is None


@pytest.mark.parametrize("plan", [semi(FIVE, ALL), anti(FIVE, ALL), Difference(FIVE, ALL)])
def test_a_plan_does_not_grow_with_its_right_where_rows_come_from_the_left(plan: Plan) -> None:
    assert growing_window(plan) is None
