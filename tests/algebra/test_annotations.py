"""Table 12.1 of the thesis (KB05, KB07), with the derived operators added."""

from __future__ import annotations

import pytest

from streams import LETTER, cross, names_of_both, one_column, project
from tidemill.algebra.annotations import (
    is_chronon,
    is_constant,
    is_end_ordered,
    is_snapshot_reducible,
)
from tidemill.algebra.expr import TRUE, AggregateCall, Named
from tidemill.algebra.plan import (
    NOW,
    Aggregate,
    AntiJoin,
    Difference,
    Distinct,
    Dstream,
    Filter,
    Intersect,
    Istream,
    Join,
    JoinKind,
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
    Validity,
    Window,
)

S = one_column("S")
W = Window(S, TimeWindow(5))
PARTITIONED = Window(S, RowWindow(1, partition_by=("letter",)))
R = Relation("R", S.schema)
P = Relation("P", S.schema, Validity("letter"))
COUNT = (NamedAggregate("n", AggregateCall("count", None, LETTER.type)),)


def join(left: Plan, right: Plan, kind: JoinKind) -> Join:
    return Join(left, right, kind, TRUE, names_of_both(left, right))


def semi(left: Plan, right: Plan) -> SemiJoin:
    return SemiJoin(left, right, TRUE, names_of_both(left, right))


def anti(left: Plan, right: Plan) -> AntiJoin:
    return AntiJoin(left, right, TRUE, names_of_both(left, right))


def by_letter(plan: Plan) -> Aggregate:
    return Aggregate(plan, (Named("letter", LETTER),), COUNT)


def of_all(plan: Plan) -> Aggregate:
    return Aggregate(plan, (), COUNT)


CHRONON = {
    "source": S,
    "now": Window(S, NOW),
    "filter of a chronon stream": Filter(S, TRUE),
    "map of a chronon stream": project(S, letter=LETTER),
    "distinct of a chronon stream": Distinct(S),
    "grouping of a chronon stream": by_letter(S),
    "aggregate of a chronon stream": of_all(S),
    "istream": Istream(W),
    "dstream": Dstream(W),
    "rstream": Rstream(W),
    "union of two": Union(S, S),
    "max-union of two": MaxUnion(S, S),
    "product with one on the left": cross(S, W),
    "product with one on the right": cross(W, S),
    "left join with one on the left": join(S, W, JoinKind.LEFT),
    "right join with one on the right": join(W, S, JoinKind.RIGHT),
    "full join of two": join(S, S, JoinKind.FULL),
    "intersection with one": Intersect(W, S),
    "difference with one on the left": Difference(S, W),
    "strict difference with one on the left": StrictDifference(S, W),
    "semi-join with one on the left": semi(S, W),
    "anti-join with one on the left": anti(S, W),
}

NOT_CHRONON = {
    "relation": R,
    "temporal relation": P,
    "time window": W,
    "now over a window": Window(W, NOW),
    "window of one instant that slides by two": Window(S, TimeWindow(1, slide=2)),
    "unbounded window": Window(S, Unbounded()),
    "count window": Window(S, RowWindow(1)),
    "session window": Window(S, SessionWindow(1)),
    "partitioned window": PARTITIONED,
    "filter of a window": Filter(W, TRUE),
    "map of a window": project(W, letter=LETTER),
    "distinct of a window": Distinct(W),
    "grouping of a window": by_letter(W),
    "aggregate of a window": of_all(W),
    "union with one": Union(S, W),
    "max-union with one": MaxUnion(W, S),
    "product of windows": cross(W, W),
    "left join with one on the right": join(W, S, JoinKind.LEFT),
    "right join with one on the left": join(S, W, JoinKind.RIGHT),
    "full join with one": join(S, W, JoinKind.FULL),
    "intersection of windows": Intersect(W, W),
    "difference with one on the right": Difference(W, S),
    "strict difference with one on the right": StrictDifference(W, S),
    "semi-join with one on the right": semi(W, S),
    "anti-join with one on the right": anti(W, S),
}


@pytest.mark.parametrize("plan", CHRONON.values(), ids=CHRONON)
def test_every_element_lives_for_one_instant(plan: Plan) -> None:
    assert is_chronon(plan)


@pytest.mark.parametrize("plan", NOT_CHRONON.values(), ids=NOT_CHRONON)
def test_elements_may_live_longer(plan: Plan) -> None:
    assert not is_chronon(plan)


@pytest.mark.parametrize("plan", CHRONON.values(), ids=CHRONON)
def test_a_chronon_stream_is_in_the_order_of_its_ends(plan: Plan) -> None:
    assert is_end_ordered(plan)


ENFORCED = {
    "time window": W,
    "time window that slides": Window(S, TimeWindow(3, slide=2)),
    "time window of what is not ordered": Window(Distinct(W), TimeWindow(2)),
    "unbounded window": Window(S, Unbounded()),
    "count window": Window(S, RowWindow(3)),
    "count window that slides": Window(S, RowWindow(3, slide=2)),
    "session window": Window(S, SessionWindow(3)),
    "scalar aggregate": of_all(PARTITIONED),
    "constant relation": R,
}


@pytest.mark.parametrize("plan", ENFORCED.values(), ids=ENFORCED)
def test_ends_are_in_order(plan: Plan) -> None:
    assert is_end_ordered(plan)


@pytest.mark.parametrize("plan", ENFORCED.values(), ids=ENFORCED)
def test_filter_and_map_keep_ends_in_order(plan: Plan) -> None:
    assert is_end_ordered(Filter(plan, TRUE))
    assert is_end_ordered(project(plan, always=TRUE))


DESTROYED = {
    "partitioned window": PARTITIONED,
    "partitioned session window": Window(S, SessionWindow(3, ("letter",))),
    "temporal relation": P,
    "union": Union(W, W),
    "max-union": MaxUnion(W, W),
    "join": cross(W, W),
    "distinct": Distinct(W),
    "difference": Difference(W, W),
    "strict difference": StrictDifference(W, W),
    "intersection": Intersect(W, W),
    "semi-join": semi(W, W),
    "anti-join": anti(W, W),
    "grouping": by_letter(W),
    "filter of what is not ordered": Filter(Distinct(W), TRUE),
    "map of what is not ordered": project(Distinct(W), letter=LETTER),
}


@pytest.mark.parametrize("plan", DESTROYED.values(), ids=DESTROYED)
def test_ends_may_be_in_any_order(plan: Plan) -> None:
    assert not is_end_ordered(plan)


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (R, True),
        (Filter(R, TRUE), True),
        (of_all(R), True),
        (cross(R, R), True),
        (Difference(R, R), True),
        (P, False),
        (S, False),
        (W, False),
        (cross(R, W), False),
        (cross(R, P), False),
        # Every instant of a relation is an element of its own for these.
        (Window(R, TimeWindow(2)), False),
        (Rstream(R), False),
    ],
)
def test_only_what_is_made_of_constant_relations_is_constant(plan: Plan, expected: bool) -> None:  # noqa: FBT001
    assert is_constant(plan) is expected


@pytest.mark.parametrize(
    "plan", [S, R, Filter(W, TRUE), of_all(W), cross(W, W), Difference(W, W), Window(S, NOW)]
)
def test_standard_operators_are_snapshot_reducible(plan: Plan) -> None:
    assert is_snapshot_reducible(plan)


@pytest.mark.parametrize(
    "plan",
    [
        W,
        Window(S, TimeWindow(1, slide=2)),
        Window(S, Unbounded()),
        Window(S, RowWindow(1)),
        Window(S, SessionWindow(1)),
        Istream(S),
        Dstream(S),
        Rstream(S),
    ],
)
def test_windows_and_streams_of_changes_are_not_snapshot_reducible(plan: Plan) -> None:
    assert not is_snapshot_reducible(plan)
