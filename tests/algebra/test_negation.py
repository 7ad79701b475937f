"""Which plans have results that hold for their own snapshots only."""

from __future__ import annotations

import pytest

from streams import cross, names_of_both, one_column
from tidemill.algebra.expr import TRUE
from tidemill.algebra.negation import negation
from tidemill.algebra.plan import (
    Aggregate,
    AntiJoin,
    Difference,
    Distinct,
    Filter,
    Intersect,
    Istream,
    Join,
    JoinKind,
    Plan,
    Relation,
    SemiJoin,
    StrictDifference,
    TimeWindow,
    Union,
    Validity,
    Window,
)

S = one_column("S")
FIVE = Window(S, TimeWindow(5))
R = Relation("R", S.schema)
P = Relation("P", S.schema, Validity("letter"))


def join(left: Plan, right: Plan, kind: JoinKind) -> Join:
    return Join(left, right, kind, TRUE, names_of_both(left, right))


def semi(left: Plan, right: Plan) -> SemiJoin:
    return SemiJoin(left, right, TRUE, names_of_both(left, right))


def anti(left: Plan, right: Plan) -> AntiJoin:
    return AntiJoin(left, right, TRUE, names_of_both(left, right))


NEGATIONS: dict[str, Plan] = {
    "distinct": Distinct(FIVE),
    "bag difference": Difference(FIVE, FIVE),
    # How often a row is left depends on how often it is there.
    "bag difference with what never changes": Difference(FIVE, R),
    "strict difference": StrictDifference(FIVE, FIVE),
    "anti-join": anti(FIVE, FIVE),
    "anti-join with a temporal relation": anti(FIVE, P),
    "left join": join(FIVE, FIVE, JoinKind.LEFT),
    "right join": join(FIVE, FIVE, JoinKind.RIGHT),
    "left join of what never changes": join(R, FIVE, JoinKind.LEFT),
    "full join with what never changes": join(FIVE, R, JoinKind.FULL),
}

OTHERS: dict[str, Plan] = {
    "stream": S,
    "window": FIVE,
    "join": cross(FIVE, FIVE),
    "semi-join": semi(FIVE, FIVE),
    "semi-join with distinct rows": semi(FIVE, Distinct(FIVE)),
    "intersection": Intersect(FIVE, FIVE),
    "what never changes": Distinct(R),
    "anti-join with what never changes": anti(FIVE, R),
    "strict difference with what never changes": StrictDifference(FIVE, R),
    "left join with what never changes": join(FIVE, R, JoinKind.LEFT),
    "right join with what never changes": join(R, FIVE, JoinKind.RIGHT),
    "window over distinct rows": Window(Distinct(FIVE), TimeWindow(2)),
    "insertions of distinct rows": Istream(Distinct(FIVE)),
}


@pytest.mark.parametrize("plan", NEGATIONS.values(), ids=NEGATIONS)
def test_these_are_negations(plan: Plan) -> None:
    assert negation(plan) is plan


@pytest.mark.parametrize("plan", OTHERS.values(), ids=OTHERS)
def test_these_are_not(plan: Plan) -> None:
    assert negation(plan) is None


def test_a_negation_is_found_below_other_operators() -> None:
    found = Distinct(FIVE)
    above = (
        Filter(found, TRUE),
        Aggregate(found, (), ()),
        Union(FIVE, found),
        Intersect(found, FIVE),
        cross(FIVE, found),
        join(found, R, JoinKind.LEFT),
        semi(found, FIVE),
        semi(FIVE, anti(FIVE, FIVE)),
        anti(found, R),
    )
    for plan in above:
        assert isinstance(negation(plan), Distinct | AntiJoin)
