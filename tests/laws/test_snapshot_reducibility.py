"""Snapshot reducibility (K41, O2): a standard operator looks at one instant only.

The snapshot of the output is the relational operator on the snapshots of the inputs. What each
relational operator means is written here a second time, with plain lists of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.catalogue import HORIZON, Inputs, inputs
from laws.strategies import pairs
from streams import both, call, equal, number, one_column, project, reference, rows, text
from tidemill.algebra.expr import TRUE, AggregateCall, Call, Column, Expr, Named
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
from tidemill.algebra.snapshot import Row, value_order
from tidemill.model.types import BIGINT, VARCHAR

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.model.types import Value

Rows: TypeAlias = list[Row]
Meets: TypeAlias = "Callable[[Row, Row], bool]"

A, B = Column("a", BIGINT), Column("b", VARCHAR)
NAMES = ("a", "b", "c", "d")
SAME = equal(A, Column("c", BIGINT))
LOWER = both(SAME, call("<", B, Column("d", VARCHAR)))


def is_same(left: Row, right: Row) -> bool:
    return left[0] is not None and left[0] == right[0]


def is_lower(left: Row, right: Row) -> bool:
    one, other = left[1], right[1]
    return is_same(left, right) and isinstance(one, str) and isinstance(other, str) and one < other


CONDITIONS: dict[str, tuple[Expr, Meets]] = {
    "all": (TRUE, lambda *_: True),
    "same a": (SAME, is_same),
    "same a and lower b": (LOWER, is_lower),
}
conditions = pytest.mark.parametrize(
    ("condition", "meets"), CONDITIONS.values(), ids=list(CONDITIONS)
)


def assert_reducible(
    data: Inputs, plan: Plan, parts: tuple[Plan, ...], relational: Callable[..., Rows]
) -> None:
    found = data.reference()
    for time in HORIZON:
        snapshots = [list(found.snapshot(part, time).elements()) for part in parts]
        expected = sorted(relational(*snapshots), key=value_order)
        actual = sorted(found.snapshot(plan, time).elements(), key=value_order)
        assert actual == expected, f"at instant {time}"


# One input


@given(inputs(), pairs())
def test_filter(data: Inputs, plan: Plan) -> None:
    predicate = call("or", equal(A, number(1)), call("is_null", B))
    assert_reducible(
        data,
        Filter(plan, predicate),
        (plan,),
        lambda rows: [(a, b) for a, b in rows if a == 1 or b is None],
    )


@given(inputs(), pairs())
def test_project(data: Inputs, plan: Plan) -> None:
    doubled = Call("+", (A, A), BIGINT)
    assert_reducible(
        data,
        project(plan, b=B, twice=doubled),
        (plan,),
        lambda rows: [(b, None if a is None else a + a) for a, b in rows],
    )


@given(inputs(), pairs())
def test_distinct(data: Inputs, plan: Plan) -> None:
    def once(rows: Rows) -> Rows:
        kept: Rows = []
        for row in rows:
            if row not in kept:
                kept.append(row)
        return kept

    assert_reducible(data, Distinct(plan), (plan,), once)


CALLS = (
    AggregateCall("count", None, BIGINT),
    AggregateCall("count", B, BIGINT, distinct=True),
    AggregateCall("sum", A, BIGINT),
    AggregateCall("sum", A, BIGINT, condition=equal(B, text("x"))),
    AggregateCall("min", A, BIGINT),
    AggregateCall("max", B, VARCHAR),
)


def aggregated(rows: Rows) -> Row:
    numbers = [a for a, _ in rows if isinstance(a, int)]
    of_x = [a for a, b in rows if isinstance(a, int) and b == "x"]
    words = [b for _, b in rows if isinstance(b, str)]
    return (
        len(rows),
        len(set(words)),
        sum(numbers) if numbers else None,
        sum(of_x) if of_x else None,
        min(numbers) if numbers else None,
        max(words) if words else None,
    )


@given(inputs(), pairs())
def test_scalar_aggregate(data: Inputs, plan: Plan) -> None:
    calls = tuple(NamedAggregate(f"f{i}", call) for i, call in enumerate(CALLS))
    assert_reducible(
        data,
        Aggregate(plan, (), calls),
        (plan,),
        lambda rows: [aggregated(rows)] if rows else [],
    )


@given(inputs(), pairs())
def test_grouped_aggregate(data: Inputs, plan: Plan) -> None:
    calls = tuple(NamedAggregate(f"f{i}", call) for i, call in enumerate(CALLS))

    def grouped(rows: Rows) -> Rows:
        keys: list[Value] = []
        for _, b in rows:
            if b not in keys:
                keys.append(b)
        return [(key, *aggregated([row for row in rows if row[1] == key])) for key in keys]

    assert_reducible(data, Aggregate(plan, (Named("b", B),), calls), (plan,), grouped)


@given(inputs(), pairs())
def test_rstream(data: Inputs, plan: Plan) -> None:
    assert_reducible(data, Rstream(plan), (plan,), lambda rows: rows)


# Two inputs


def subtracted(left: Rows, right: Rows) -> Rows:
    rest = list(left)
    for row in right:
        if row in rest:
            rest.remove(row)
    return rest


def joined(left: Rows, right: Rows, kind: JoinKind, meets: Meets) -> Rows:
    found = [a + b for a in left for b in right if meets(a, b)]
    if kind in (JoinKind.LEFT, JoinKind.FULL):
        found += [(*a, None, None) for a in left if not any(meets(a, b) for b in right)]
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        found += [(None, None, *b) for b in right if not any(meets(a, b) for a in left)]
    return found


@conditions
@given(data=inputs(), left=pairs(), right=pairs(), kind=st.sampled_from(JoinKind))
def test_join(  # noqa: PLR0913, PLR0917 — a join has as many parts
    data: Inputs, left: Plan, right: Plan, kind: JoinKind, condition: Expr, meets: Meets
) -> None:
    assert_reducible(
        data,
        Join(left, right, kind, condition, NAMES),
        (left, right),
        lambda one, other: joined(one, other, kind, meets),
    )


@conditions
@given(data=inputs(), left=pairs(), right=pairs())
def test_semi_join(data: Inputs, left: Plan, right: Plan, condition: Expr, meets: Meets) -> None:
    assert_reducible(
        data,
        SemiJoin(left, right, condition, NAMES),
        (left, right),
        lambda one, other: [a for a in one if any(meets(a, b) for b in other)],
    )


@conditions
@given(data=inputs(), left=pairs(), right=pairs())
def test_anti_join(data: Inputs, left: Plan, right: Plan, condition: Expr, meets: Meets) -> None:
    assert_reducible(
        data,
        AntiJoin(left, right, condition, NAMES),
        (left, right),
        lambda one, other: [a for a in one if not any(meets(a, b) for b in other)],
    )


@given(inputs(), pairs(), pairs())
def test_union(data: Inputs, left: Plan, right: Plan) -> None:
    assert_reducible(data, Union(left, right), (left, right), lambda one, other: one + other)


@given(inputs(), pairs(), pairs())
def test_max_union(data: Inputs, left: Plan, right: Plan) -> None:
    assert_reducible(
        data,
        MaxUnion(left, right),
        (left, right),
        lambda one, other: one + subtracted(other, one),
    )


@given(inputs(), pairs(), pairs())
def test_difference(data: Inputs, left: Plan, right: Plan) -> None:
    assert_reducible(data, Difference(left, right), (left, right), subtracted)


@given(inputs(), pairs(), pairs())
def test_strict_difference(data: Inputs, left: Plan, right: Plan) -> None:
    assert_reducible(
        data,
        StrictDifference(left, right),
        (left, right),
        lambda one, other: [row for row in one if row not in other],
    )


@given(inputs(), pairs(), pairs())
def test_intersect(data: Inputs, left: Plan, right: Plan) -> None:
    assert_reducible(
        data,
        Intersect(left, right),
        (left, right),
        lambda one, other: subtracted(one, subtracted(one, other)),
    )


# The operators that are not reducible

STREAM = one_column("S")


@pytest.mark.parametrize(
    ("plan", "this", "that"),
    [
        (Window(STREAM, TimeWindow(2)), "aa", "bb"),
        (Window(STREAM, TimeWindow(2, slide=2)), "aa", "bb"),
        (Window(STREAM, Unbounded()), "aa", "bb"),
        (Window(STREAM, RowWindow(3)), "aa", "bb"),
        (Window(STREAM, RowWindow(3, slide=2)), "aa", "bb"),
        (Window(STREAM, RowWindow(1, partition_by=("letter",))), "a", "b"),
        (Window(STREAM, SessionWindow(2)), "aa", "bb"),
        (Dstream(STREAM), "aa", "bb"),
    ],
    ids=[
        *("time", "time slide", "unbounded", "rows", "rows slide", "rows by letter", "session"),
        "dstream",
    ],
)
def test_what_was_an_instant_ago_matters_when_nothing_is_now(
    plan: Plan, this: str, that: str
) -> None:
    one, other = reference(S={1: "aa"}), reference(S={1: "bb"})
    assert one.snapshot(STREAM, 2) == other.snapshot(STREAM, 2) == rows("")
    assert (one.snapshot(plan, 2), other.snapshot(plan, 2)) == (rows(this), rows(that))


def test_istream_depends_on_what_was_an_instant_ago() -> None:
    one, other = reference(S={1: "a", 2: "a"}), reference(S={1: "b", 2: "a"})
    assert one.snapshot(STREAM, 2) == other.snapshot(STREAM, 2) == rows("a")
    changes = Istream(STREAM)
    assert (one.snapshot(changes, 2), other.snapshot(changes, 2)) == (rows(""), rows("a"))
