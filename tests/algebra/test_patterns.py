"""The propagation rules for update patterns (G-21), and where ours are finer."""

from __future__ import annotations

import pytest

from streams import LETTER, cross, names_of_both, one_column, project
from tidemill.algebra.expr import TRUE, AggregateCall
from tidemill.algebra.patterns import UpdatePattern, lifetime, update_pattern
from tidemill.algebra.plan import (
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
ALL = Window(S, Unbounded())
FIVE, SIX = Window(S, TimeWindow(5)), Window(S, TimeWindow(6))
UNEVEN = Window(S, TimeWindow(5, slide=2))
LAST = Window(S, RowWindow(3))
R = Relation("R", S.schema)
P = Relation("P", S.schema, Validity("letter"))


def join(left: Plan, right: Plan, kind: JoinKind) -> Join:
    return Join(left, right, kind, TRUE, names_of_both(left, right))


def semi(left: Plan, right: Plan) -> SemiJoin:
    return SemiJoin(left, right, TRUE, names_of_both(left, right))


def anti(left: Plan, right: Plan) -> AntiJoin:
    return AntiJoin(left, right, TRUE, names_of_both(left, right))


def count(plan: Plan) -> Aggregate:
    return Aggregate(plan, (), (NamedAggregate("n", AggregateCall("count", None, LETTER.type)),))


MONOTONIC = {
    "unbounded window": ALL,
    "constant relation": R,
    "aggregate of a constant relation": count(R),
    "difference of constant relations": Difference(R, R),
    "filter of an unbounded window": Filter(ALL, TRUE),
    "distinct of an unbounded window": Distinct(ALL),
    "union of unbounded windows": Union(ALL, ALL),
    "join of unbounded windows": cross(ALL, ALL),
    "join of an unbounded window and a relation": cross(ALL, R),
    "semi-join of unbounded windows": semi(ALL, ALL),
    "max-union of unbounded windows": MaxUnion(ALL, ALL),
    # What INTERNAL windows make of any query (G-17).
    "insertions of a join, kept for ever": Window(Istream(cross(FIVE, SIX)), Unbounded()),
    "insertions of an aggregate, kept for ever": Window(Istream(count(LAST)), Unbounded()),
    # A non-retroactive relation stands below the window (G-16).
    "unbounded window over a join with a temporal relation": Window(cross(S, P), Unbounded()),
}

WEAKEST = {
    "time window": FIVE,
    "time window that slides by a part of its size": Window(S, TimeWindow(6, slide=2)),
    "time window over anything": Window(count(LAST), TimeWindow(2)),
    "filter of a time window": Filter(FIVE, TRUE),
    "map of a time window": project(FIVE, letter=LETTER),
    "union of time windows of one size": Union(FIVE, Window(S, TimeWindow(5))),
    "join with a constant relation on the right": cross(FIVE, R),
    "join with a constant relation on the left": cross(R, FIVE),
    "left join with a constant relation": join(FIVE, R, JoinKind.LEFT),
    "right join with a constant relation": join(R, FIVE, JoinKind.RIGHT),
    "semi-join with a constant relation": semi(FIVE, R),
    "anti-join with a constant relation": anti(FIVE, R),
    # A non-retroactive relation stands below the window (G-16).
    "time window over a join with a temporal relation": Window(cross(S, P), TimeWindow(5)),
    "time window over a left join with one": Window(join(S, P, JoinKind.LEFT), TimeWindow(5)),
    "filter of a time window over such a join": Filter(Window(cross(S, P), TimeWindow(5)), TRUE),
    # What lives for one instant is WEAKEST whatever made it.
    "stream": S,
    "aggregate of a stream": count(S),
    "difference of a stream and a count window": Difference(S, LAST),
    "join of a stream and a count window": cross(S, LAST),
    "insertions": Istream(count(FIVE)),
    "deletions": Dstream(LAST),
}

WEAK = {
    "join of time windows": cross(FIVE, FIVE),
    "distinct of a time window": Distinct(FIVE),
    "intersection of time windows": Intersect(FIVE, FIVE),
    "max-union of time windows": MaxUnion(FIVE, FIVE),
    "semi-join of time windows": semi(FIVE, SIX),
    "temporal relation": P,
    "join with a temporal relation": cross(FIVE, P),
    "join of a time window and an unbounded one": cross(FIVE, ALL),
    "filter of a join": Filter(cross(FIVE, FIVE), TRUE),
    "union with a join": Union(FIVE, Distinct(FIVE)),
    # A union of windows of different size is not first in first out.
    "union of time windows of two sizes": Union(FIVE, SIX),
    "union of a time window and an unbounded one": Union(FIVE, ALL),
    "union of a time window and a relation": Union(FIVE, R),
    # Of two rows that appear together one lives longer.
    "time window that slides unevenly": UNEVEN,
    "time window that slides by more than its size": Window(S, TimeWindow(2, slide=3)),
    "union of uneven windows of two sizes": Union(UNEVEN, Window(S, TimeWindow(7, slide=2))),
    "union of anti-joins of two sizes": Union(anti(FIVE, R), anti(SIX, R)),
}

STRICT = {
    "count window": LAST,
    "partitioned window": Window(S, RowWindow(1, partition_by=("letter",))),
    "session window": Window(S, SessionWindow(5)),
    "filter of a count window": Filter(LAST, TRUE),
    "distinct of a count window": Distinct(LAST),
    "union with a count window": Union(FIVE, LAST),
    "join with a count window": cross(FIVE, LAST),
    "count window and a constant relation": cross(LAST, R),
    "aggregate of a time window": count(FIVE),
    "aggregate of an unbounded window": count(ALL),
    "difference of time windows": Difference(FIVE, FIVE),
    "strict difference of time windows": StrictDifference(FIVE, FIVE),
    "anti-join of time windows": anti(FIVE, FIVE),
    "left join of time windows": join(FIVE, FIVE, JoinKind.LEFT),
    "right join of time windows": join(FIVE, FIVE, JoinKind.RIGHT),
    "full join with a constant relation": join(FIVE, R, JoinKind.FULL),
    "left join of a constant relation": join(R, FIVE, JoinKind.LEFT),
}


@pytest.mark.parametrize("plan", MONOTONIC.values(), ids=MONOTONIC)
def test_monotonic(plan: Plan) -> None:
    assert update_pattern(plan) is UpdatePattern.MONOTONIC


@pytest.mark.parametrize("plan", WEAKEST.values(), ids=WEAKEST)
def test_weakest(plan: Plan) -> None:
    assert update_pattern(plan) is UpdatePattern.WEAKEST


@pytest.mark.parametrize("plan", WEAK.values(), ids=WEAK)
def test_weak(plan: Plan) -> None:
    assert update_pattern(plan) is UpdatePattern.WEAK


@pytest.mark.parametrize("plan", STRICT.values(), ids=STRICT)
def test_strict(plan: Plan) -> None:
    assert update_pattern(plan) is UpdatePattern.STRICT


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (S, 1),
        (Istream(FIVE), 1),
        (FIVE, 5),
        (Window(S, TimeWindow(6, slide=3)), 6),
        (UNEVEN, None),
        (Filter(FIVE, TRUE), 5),
        (Union(FIVE, FIVE), 5),
        (Union(FIVE, SIX), None),
        (cross(FIVE, R), 5),
        (cross(R, SIX), 6),
        (anti(SIX, R), 6),
        (join(FIVE, R, JoinKind.LEFT), 5),
        (join(R, FIVE, JoinKind.RIGHT), 5),
        (cross(FIVE, FIVE), None),
        (Distinct(FIVE), None),
        (LAST, None),
        (ALL, None),
        (R, None),
    ],
)
def test_lifetime(plan: Plan, expected: int | None) -> None:
    assert lifetime(plan) == expected
