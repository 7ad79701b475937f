from __future__ import annotations

import pytest

from laws.catalogue import R, S, T
from streams import both, call, equal, project
from tidemill.algebra.expr import TRUE, AggregateCall, Column, Expr, Named
from tidemill.algebra.keys import keys
from tidemill.algebra.plan import (
    Aggregate,
    Difference,
    Distinct,
    Filter,
    Intersect,
    Istream,
    Join,
    JoinKind,
    MaxUnion,
    NamedAggregate,
    Plan,
    RowWindow,
    SemiJoin,
    SessionWindow,
    TimeWindow,
    Union,
    Window,
)
from tidemill.model.types import BIGINT, VARCHAR

A, B = Column("a", BIGINT), Column("b", VARCHAR)
NAMES = ("a", "b", "c", "d")
SAME_A, SAME_B = equal(A, Column("c", BIGINT)), equal(B, Column("d", VARCHAR))
ONE_A = Window(S, RowWindow(1, partition_by=("a",)))
ONE_B = Window(T, RowWindow(1, partition_by=("b",)))
LAST = Window(S, RowWindow(1))
COUNT = (NamedAggregate("n", AggregateCall("count", None, BIGINT)),)


def joined(left: Plan, right: Plan, condition: Expr, kind: JoinKind = JoinKind.INNER) -> Join:
    return Join(left, right, kind, condition, NAMES)


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (S, []),
        (R, []),
        (Window(S, TimeWindow(5)), []),
        (Window(S, RowWindow(2, partition_by=("a",))), []),
        (Window(S, SessionWindow(1, ("a",))), []),
        (ONE_A, ["a"]),
        (LAST, [""]),
        (Window(ONE_A, TimeWindow(2)), []),
        (Distinct(S), ["ab"]),
        (Distinct(ONE_A), ["a"]),
        (Aggregate(S, (Named("k", A),), COUNT), ["k"]),
        (Aggregate(S, (), COUNT), [""]),
        (Filter(ONE_A, TRUE), ["a"]),
        (Istream(ONE_A), ["a"]),
        (project(ONE_A, x=A), ["x"]),
        (project(ONE_A, a=B), []),
        (Union(ONE_A, ONE_A), []),
        (MaxUnion(ONE_A, ONE_A), []),
        (Difference(ONE_A, S), ["a"]),
        (Difference(S, ONE_A), []),
        (Intersect(ONE_A, ONE_B), ["a", "b"]),
        (SemiJoin(ONE_A, ONE_B, TRUE, NAMES), ["a"]),
        (joined(ONE_A, ONE_B, TRUE), ["ad"]),
        (joined(ONE_A, ONE_B, SAME_B), ["a"]),
        (joined(ONE_A, ONE_B, call("is_not_distinct", B, Column("d", VARCHAR))), ["a"]),
        (joined(ONE_A, ONE_B, SAME_A), ["d"]),
        (joined(ONE_A, ONE_B, both(SAME_A, SAME_B)), ["a", "d"]),
        (joined(ONE_A, ONE_B, SAME_B, JoinKind.LEFT), ["a"]),
        (joined(ONE_A, ONE_B, SAME_B, JoinKind.RIGHT), ["ad"]),
        (joined(ONE_A, ONE_B, SAME_B, JoinKind.FULL), []),
        (joined(ONE_A, LAST, TRUE, JoinKind.LEFT), ["a"]),
        (joined(S, LAST, TRUE), []),
    ],
)
def test_keys(plan: Plan, expected: list[str]) -> None:
    assert keys(plan) == {frozenset(key) for key in expected}
