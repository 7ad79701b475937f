"""Identities of the algebra (K43, K44): plans with the same answer at every instant.

Inside a part of standard operators every identity of bags holds. Windows have rules of their own.
What looks like a rule and is none has a counterexample in ``test_counterexamples.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.strategies import (
    HORIZON,
    PAIR,
    Inputs,
    R,
    S,
    T,
    inputs,
    pairs,
    predicates,
    row_windows,
    time_windows,
)
from streams import assert_same, both, call, cross, equal, number, project, text
from tidemill.algebra.expr import (
    FALSE,
    AggregateCall,
    Call,
    Column,
    Expr,
    Literal,
    Named,
    conjunction,
    replace_columns,
)
from tidemill.algebra.plan import (
    NOW,
    Aggregate,
    AntiJoin,
    Difference,
    Distinct,
    Filter,
    Intersect,
    Join,
    JoinKind,
    MaxUnion,
    NamedAggregate,
    Plan,
    Project,
    RowWindow,
    SemiJoin,
    StrictDifference,
    TimeWindow,
    Unbounded,
    Union,
    Window,
)
from tidemill.model.types import BIGINT, VARCHAR

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

A, B = Column("a", BIGINT), Column("b", VARCHAR)
C, D = Column("c", BIGINT), Column("d", VARCHAR)
NAMES = ("a", "b", "c", "d")
COUNT = AggregateCall("count", None, BIGINT)
COUNT_B = AggregateCall("count", B, BIGINT)
MAX_B = AggregateCall("max", B, VARCHAR)

F: Mapping[str, Expr] = {"a": Call("coalesce", (A, number(1)), BIGINT), "b": B}
G: Mapping[str, Expr] = {
    "a": Call("+", (A, A), BIGINT),
    "b": Call("coalesce", (B, text("x")), VARCHAR),
}
INJECTIVE: Mapping[str, Expr] = {"b": B, "a": Call("+", (A, number(1)), BIGINT)}


@dataclass(frozen=True, slots=True)
class Operands:
    """Any streams x, y and z with the columns (a, b), and any predicates over them."""

    x: Plan
    y: Plan
    z: Plan
    p: Expr
    q: Expr


Law: TypeAlias = "Callable[[Operands], tuple[Plan, Plan]]"


def applied(function: Mapping[str, Expr], expr: Expr) -> Expr:
    """The expression with each column replaced by what the function makes of it."""
    return replace_columns(expr, lambda column: function[column.name])


def renamed(predicate: Expr, **names: str) -> Expr:
    return replace_columns(predicate, lambda column: Column(names[column.name], column.type))


def mapped(plan: Plan, function: Mapping[str, Expr]) -> Project:
    return project(plan, **function)


def joined(left: Plan, right: Plan, condition: Expr, kind: JoinKind = JoinKind.INNER) -> Join:
    return Join(left, right, kind, condition, NAMES)


def grouped(plan: Plan, keys: Mapping[str, Expr], **calls: AggregateCall) -> Aggregate:
    return Aggregate(
        plan,
        tuple(Named(name, expr) for name, expr in keys.items()),
        tuple(NamedAggregate(name, call_) for name, call_ in calls.items()),
    )


def picked(plan: Plan, *names: str) -> Project:
    """Some columns of the plan, in this order."""
    return project(plan, **{name: Column(name, plan.schema[name].type) for name in names})


def empty(plan: Plan) -> Plan:
    return Filter(plan, FALSE)


SAME_A = equal(A, C)
IDENTICAL = both(call("is_not_distinct", A, C), call("is_not_distinct", B, D))
NULLS = (Literal(None, BIGINT), Literal(None, VARCHAR))
GROUPS = (call("is_null", B), equal(B, text("x")), equal(B, text("y")))
"""Every text is in one of these groups."""


def union_of(*plans: Plan) -> Plan:
    first, *others = plans
    for other in others:
        first = Union(first, other)
    return first


# Selection and projection

SELECTION: dict[str, Law] = {
    "a conjunction is two filters": lambda o: (
        Filter(o.x, both(o.p, o.q)),
        Filter(Filter(o.x, o.p), o.q),
    ),
    "filters commute": lambda o: (Filter(Filter(o.x, o.p), o.q), Filter(Filter(o.x, o.q), o.p)),
    "a conjunction of parts is the conjunction": lambda o: (
        Filter(o.x, conjunction(o.p, o.q, o.p)),
        Filter(o.x, both(o.p, o.q)),
    ),
    "a filter passes a union (10.5)": lambda o: (
        Filter(Union(o.x, o.y), o.p),
        Union(Filter(o.x, o.p), Filter(o.y, o.p)),
    ),
    "a filter passes a difference": lambda o: (
        Filter(Difference(o.x, o.y), o.p),
        Difference(Filter(o.x, o.p), Filter(o.y, o.p)),
    ),
    "a filter passes the left of a difference": lambda o: (
        Filter(Difference(o.x, o.y), o.p),
        Difference(Filter(o.x, o.p), o.y),
    ),
    "a filter passes a strict difference": lambda o: (
        Filter(StrictDifference(o.x, o.y), o.p),
        StrictDifference(Filter(o.x, o.p), o.y),
    ),
    "a filter passes an intersection": lambda o: (
        Filter(Intersect(o.x, o.y), o.p),
        Intersect(Filter(o.x, o.p), o.y),
    ),
    "a filter passes a max-union": lambda o: (
        Filter(MaxUnion(o.x, o.y), o.p),
        MaxUnion(Filter(o.x, o.p), Filter(o.y, o.p)),
    ),
    "a filter passes duplicate elimination": lambda o: (
        Filter(Distinct(o.x), o.p),
        Distinct(Filter(o.x, o.p)),
    ),
    "a filter on the left passes a product": lambda o: (
        Filter(cross(o.x, o.y), renamed(o.p, a="l0", b="l1")),
        cross(Filter(o.x, o.p), o.y),
    ),
    "a filter on the right passes a product": lambda o: (
        Filter(cross(o.x, o.y), renamed(o.p, a="r0", b="r1")),
        cross(o.x, Filter(o.y, o.p)),
    ),
    "a filter on the left passes a left join": lambda o: (
        Filter(joined(o.x, o.y, SAME_A, JoinKind.LEFT), o.p),
        joined(Filter(o.x, o.p), o.y, SAME_A, JoinKind.LEFT),
    ),
    "a filter passes a semi-join": lambda o: (
        Filter(SemiJoin(o.x, o.y, SAME_A, NAMES), o.p),
        SemiJoin(Filter(o.x, o.p), o.y, SAME_A, NAMES),
    ),
    "a filter passes an anti-join": lambda o: (
        Filter(AntiJoin(o.x, o.y, SAME_A, NAMES), o.p),
        AntiJoin(Filter(o.x, o.p), o.y, SAME_A, NAMES),
    ),
    "a filter on the keys passes a grouping": lambda o: (
        Filter(grouped(o.x, {"b": B}, n=COUNT), equal(B, text("x"))),
        grouped(Filter(o.x, equal(B, text("x"))), {"b": B}, n=COUNT),
    ),
    "a filter passes a map": lambda o: (
        Filter(mapped(o.x, F), o.p),
        mapped(Filter(o.x, applied(F, o.p)), F),
    ),
    "two maps are one": lambda o: (
        mapped(mapped(o.x, F), G),
        mapped(o.x, {name: applied(F, expr) for name, expr in G.items()}),
    ),
    "a map passes a union": lambda o: (
        mapped(Union(o.x, o.y), F),
        Union(mapped(o.x, F), mapped(o.y, F)),
    ),
    "a projection passes a join that does not need more": lambda o: (
        project(joined(o.x, o.y, SAME_A), b=B),
        project(
            Join(o.x, project(o.y, c=A), JoinKind.INNER, SAME_A, ("a", "b", "c")),
            b=B,
        ),
    ),
}

# Products and joins

JOINS: dict[str, Law] = {
    "products associate (10.4)": lambda o: (
        cross(cross(o.x, o.y), o.z),
        cross(o.x, cross(o.y, o.z)),
    ),
    "products commute": lambda o: (
        cross(o.x, o.y),
        picked(cross(o.y, o.x), "r0", "r1", "l0", "l1"),
    ),
    "a join is a filtered product": lambda o: (
        joined(o.x, o.y, SAME_A),
        Filter(cross(o.x, o.y), equal(Column("l0", BIGINT), Column("r0", BIGINT))),
    ),
    "joins commute": lambda o: (
        joined(o.x, o.y, SAME_A),
        picked(joined(o.y, o.x, SAME_A), "c", "d", "a", "b"),
    ),
    "a right join is a left join of the inputs exchanged": lambda o: (
        joined(o.x, o.y, SAME_A, JoinKind.RIGHT),
        picked(joined(o.y, o.x, SAME_A, JoinKind.LEFT), "c", "d", "a", "b"),
    ),
    "joins associate": lambda o: (
        Join(
            joined(o.x, o.y, SAME_A),
            o.z,
            JoinKind.INNER,
            equal(D, Column("f", VARCHAR)),
            (*NAMES, "e", "f"),
        ),
        Join(
            o.x,
            Join(o.y, o.z, JoinKind.INNER, equal(D, Column("f", VARCHAR)), ("c", "d", "e", "f")),
            JoinKind.INNER,
            SAME_A,
            (*NAMES, "e", "f"),
        ),
    ),
    "a product distributes over a union": lambda o: (
        cross(o.x, Union(o.y, o.z)),
        Union(cross(o.x, o.y), cross(o.x, o.z)),
    ),
    "a semi-join distributes over a union on the left": lambda o: (
        SemiJoin(Union(o.x, o.y), o.z, SAME_A, NAMES),
        Union(SemiJoin(o.x, o.z, SAME_A, NAMES), SemiJoin(o.y, o.z, SAME_A, NAMES)),
    ),
    "an anti-join is what a semi-join leaves (8.16)": lambda o: (
        AntiJoin(o.x, o.y, SAME_A, NAMES),
        Difference(o.x, SemiJoin(o.x, o.y, SAME_A, NAMES)),
    ),
    "an equi-semi-join is a join with the distinct keys": lambda o: (
        SemiJoin(o.x, o.y, SAME_A, NAMES),
        picked(
            Join(o.x, Distinct(project(o.y, c=A)), JoinKind.INNER, SAME_A, ("a", "b", "c")),
            "a",
            "b",
        ),
    ),
    "a semi-join does not see duplicates on the right": lambda o: (
        SemiJoin(o.x, o.y, SAME_A, NAMES),
        SemiJoin(o.x, Distinct(o.y), SAME_A, NAMES),
    ),
    "a left join is a join and the rows without a partner": lambda o: (
        joined(o.x, o.y, SAME_A, JoinKind.LEFT),
        Union(
            joined(o.x, o.y, SAME_A),
            project(AntiJoin(o.x, o.y, SAME_A, NAMES), a=A, b=B, c=NULLS[0], d=NULLS[1]),
        ),
    ),
    "a full join is a left join and the right rows without a partner": lambda o: (
        joined(o.x, o.y, SAME_A, JoinKind.FULL),
        Union(
            joined(o.x, o.y, SAME_A, JoinKind.LEFT),
            project(AntiJoin(o.y, o.x, SAME_A, NAMES), c=NULLS[0], d=NULLS[1], a=A, b=B),
        ),
    ),
}

# Bags

BAGS: dict[str, Law] = {
    "unions commute": lambda o: (Union(o.x, o.y), Union(o.y, o.x)),
    "unions associate": lambda o: (
        Union(Union(o.x, o.y), o.z),
        Union(o.x, Union(o.y, o.z)),
    ),
    "nothing added is nothing changed": lambda o: (Union(o.x, empty(o.y)), o.x),
    "a stream minus itself is nothing": lambda o: (Difference(o.x, o.x), empty(o.x)),
    "a difference takes a union back": lambda o: (Difference(Union(o.x, o.y), o.y), o.x),
    "a difference of a union is two differences": lambda o: (
        Difference(o.x, Union(o.y, o.z)),
        Difference(Difference(o.x, o.y), o.z),
    ),
    "intersections commute": lambda o: (Intersect(o.x, o.y), Intersect(o.y, o.x)),
    "an intersection with itself changes nothing": lambda o: (Intersect(o.x, o.x), o.x),
    "an intersection is what a difference leaves (8.12)": lambda o: (
        Intersect(o.x, o.y),
        Difference(o.x, Difference(o.x, o.y)),
    ),
    "a max-union is both differences and the intersection (8.13)": lambda o: (
        MaxUnion(o.x, o.y),
        union_of(Difference(o.x, o.y), Difference(o.y, o.x), Intersect(o.x, o.y)),
    ),
    "minimum and maximum make up the sum": lambda o: (
        Union(Intersect(o.x, o.y), MaxUnion(o.x, o.y)),
        Union(o.x, o.y),
    ),
    "a strict difference is what a semi-join of equals leaves (8.14)": lambda o: (
        StrictDifference(o.x, o.y),
        Difference(o.x, SemiJoin(o.x, o.y, IDENTICAL, NAMES)),
    ),
    "a strict difference is an anti-join of equals": lambda o: (
        StrictDifference(o.x, o.y),
        AntiJoin(o.x, o.y, IDENTICAL, NAMES),
    ),
    "differences agree where no row is twice": lambda o: (
        StrictDifference(Distinct(o.x), o.y),
        Difference(Distinct(o.x), o.y),
    ),
}

# Duplicates

DUPLICATES: dict[str, Law] = {
    "duplicates are gone after one elimination": lambda o: (Distinct(Distinct(o.x)), Distinct(o.x)),
    "duplicate elimination passes a product (10.6)": lambda o: (
        Distinct(cross(o.x, o.y)),
        cross(Distinct(o.x), Distinct(o.y)),
    ),
    "duplicates may go before a union too": lambda o: (
        Distinct(Union(o.x, o.y)),
        Distinct(Union(Distinct(o.x), Distinct(o.y))),
    ),
    "distinct rows of a union are those of a max-union": lambda o: (
        Distinct(Union(o.x, o.y)),
        Distinct(MaxUnion(o.x, o.y)),
    ),
    "duplicate elimination passes a strict difference": lambda o: (
        Distinct(StrictDifference(o.x, o.y)),
        StrictDifference(Distinct(o.x), o.y),
    ),
    "duplicate elimination passes an intersection": lambda o: (
        Distinct(Intersect(o.x, o.y)),
        Intersect(Distinct(o.x), Distinct(o.y)),
    ),
    "duplicates may go before a map too": lambda o: (
        Distinct(mapped(o.x, F)),
        Distinct(mapped(Distinct(o.x), F)),
    ),
    "duplicate elimination passes an injective map": lambda o: (
        Distinct(mapped(o.x, INJECTIVE)),
        mapped(Distinct(o.x), INJECTIVE),
    ),
    "a grouping has no duplicates": lambda o: (
        Distinct(grouped(o.x, {"b": B}, n=COUNT)),
        grouped(o.x, {"b": B}, n=COUNT),
    ),
    "a grouping without aggregates is duplicate elimination": lambda o: (
        grouped(o.x, {"a": A, "b": B}),
        Distinct(o.x),
    ),
}

# Aggregation

AGGREGATION: dict[str, Law] = {
    "maximum, minimum and distinct count do not see duplicates": lambda o: (
        grouped(
            o.x,
            {"a": A},
            most=MAX_B,
            least=AggregateCall("min", B, VARCHAR),
            n=AggregateCall("count", B, BIGINT, distinct=True),
        ),
        grouped(
            Distinct(o.x),
            {"a": A},
            most=MAX_B,
            least=AggregateCall("min", B, VARCHAR),
            n=AggregateCall("count", B, BIGINT, distinct=True),
        ),
    ),
    "a grouping is a union of scalar aggregates (8.15)": lambda o: (
        grouped(o.x, {"b": B}, n=COUNT),
        union_of(
            *(
                project(grouped(Filter(o.x, group), {}, n=COUNT), b=value, n=Column("n", BIGINT))
                for group, value in zip(GROUPS, (NULLS[1], text("x"), text("y")), strict=True)
            )
        ),
    ),
    "a condition of an aggregate is a filter of its argument": lambda o: (
        grouped(o.x, {}, n=AggregateCall("sum", A, BIGINT, condition=o.p)),
        grouped(
            project(o.x, a=A, p=o.p),
            {},
            n=AggregateCall("sum", A, BIGINT, condition=call("is_true", Column("p", o.p.type))),
        ),
    ),
    "counts of the parts of a union add up": lambda o: (
        grouped(Union(o.x, o.y), {"b": B}, n=COUNT),
        grouped(
            Union(grouped(o.x, {"b": B}, n=COUNT), grouped(o.y, {"b": B}, n=COUNT)),
            {"b": B},
            n=AggregateCall("sum", Column("n", BIGINT), BIGINT),
        ),
    ),
    "a grouping passes a join whose other rows are unique": lambda o: (
        grouped(joined(o.x, Distinct(o.y), SAME_A), {"a": A, "d": D}, n=COUNT_B, most=MAX_B),
        picked(
            Join(
                grouped(o.x, {"a": A}, n=COUNT_B, most=MAX_B),
                Distinct(o.y),
                JoinKind.INNER,
                SAME_A,
                ("a", "n", "most", "c", "d"),
            ),
            "a",
            "d",
            "n",
            "most",
        ),
    ),
    "a maximum passes a join with the distinct other rows": lambda o: (
        grouped(joined(o.x, o.y, SAME_A), {"a": A, "d": D}, most=MAX_B),
        picked(
            Join(
                grouped(o.x, {"a": A}, most=MAX_B),
                Distinct(o.y),
                JoinKind.INNER,
                SAME_A,
                ("a", "most", "c", "d"),
            ),
            "a",
            "d",
            "most",
        ),
    ),
}

LAWS = {**SELECTION, **JOINS, **BAGS, **DUPLICATES, **AGGREGATION}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@given(data=inputs(), x=pairs(1), y=pairs(1), z=pairs(1), p=predicates(PAIR), q=predicates(PAIR))
def test_standard_operators(  # noqa: PLR0913, PLR0917 — a law has as many operands as it has
    law: Law, data: Inputs, x: Plan, y: Plan, z: Plan, p: Expr, q: Expr
) -> None:
    left, right = law(Operands(x, y, z, p, q))
    assert_same(data.reference(), left, right, HORIZON)


# Windows

moving = time_windows() | st.just(Unbounded())


@given(inputs(), pairs())
def test_the_window_of_one_instant_is_the_identity(data: Inputs, x: Plan) -> None:
    assert_same(data.reference(), Window(x, NOW), x, HORIZON)


@given(inputs(), pairs(), predicates(PAIR), moving)
def test_a_filter_passes_a_time_window(
    data: Inputs, x: Plan, p: Expr, window: TimeWindow | Unbounded
) -> None:
    assert_same(
        data.reference(), Filter(Window(x, window), p), Window(Filter(x, p), window), HORIZON
    )


@given(inputs(), pairs(), moving)
def test_a_map_passes_a_time_window(data: Inputs, x: Plan, window: TimeWindow | Unbounded) -> None:
    assert_same(
        data.reference(), mapped(Window(x, window), F), Window(mapped(x, F), window), HORIZON
    )


@given(inputs(), pairs(), pairs(), moving)
def test_a_union_passes_equal_time_windows(
    data: Inputs, x: Plan, y: Plan, window: TimeWindow | Unbounded
) -> None:
    assert_same(
        data.reference(),
        Union(Window(x, window), Window(y, window)),
        Window(Union(x, y), window),
        HORIZON,
    )


@given(inputs(), row_windows(PAIR).filter(lambda window: not window.partition_by))
def test_a_map_passes_a_count_window(data: Inputs, window: RowWindow) -> None:
    assert_same(
        data.reference(), mapped(Window(S, window), F), Window(mapped(S, F), window), HORIZON
    )


@given(inputs(), st.integers(1, 6), st.integers(1, 4))
def test_a_map_that_keeps_the_groups_passes_a_partitioned_window(
    data: Inputs, size: int, slide: int
) -> None:
    window = RowWindow(size, slide, partition_by=("b",))  # F changes the other column
    assert_same(
        data.reference(), mapped(Window(S, window), F), Window(mapped(S, F), window), HORIZON
    )


@given(inputs(), row_windows(PAIR).filter(lambda window: "b" in window.partition_by))
def test_a_filter_on_the_groups_passes_a_partitioned_window(
    data: Inputs, window: RowWindow
) -> None:
    is_x = equal(B, text("x"))
    assert_same(
        data.reference(), Filter(Window(S, window), is_x), Window(Filter(S, is_x), window), HORIZON
    )


@given(inputs(), pairs(), moving)
def test_a_time_window_of_the_groups_is_a_time_window(
    data: Inputs, x: Plan, window: TimeWindow | Unbounded
) -> None:
    parts = union_of(*(Window(Filter(x, group), window) for group in GROUPS))
    assert_same(data.reference(), parts, Window(x, window), HORIZON)


@given(inputs(), st.integers(1, 6), st.integers(1, 4))
def test_a_count_window_of_the_groups_is_a_partitioned_window(
    data: Inputs, size: int, slide: int
) -> None:
    parts = union_of(*(Window(Filter(S, group), RowWindow(size, slide)) for group in GROUPS))
    whole = Window(S, RowWindow(size, slide, partition_by=("b",)))
    assert_same(data.reference(), parts, whole, HORIZON)


@given(inputs(), pairs())
def test_a_time_window_longer_than_the_past_is_unbounded(data: Inputs, x: Plan) -> None:
    assert_same(data.reference(), Window(x, TimeWindow(10**9)), Window(x, Unbounded()), HORIZON)


@given(inputs(), pairs(), st.sampled_from([(), ("a",), ("b", "a")]))
def test_a_count_window_larger_than_the_past_is_unbounded(
    data: Inputs, x: Plan, by: tuple[str, ...]
) -> None:
    window = RowWindow(10**9, partition_by=by)
    assert_same(data.reference(), Window(x, window), Window(x, Unbounded()), HORIZON)


@given(inputs(), pairs(), moving)
def test_a_join_with_a_constant_relation_passes_a_time_window(
    data: Inputs, x: Plan, window: TimeWindow | Unbounded
) -> None:
    assert_same(
        data.reference(),
        joined(Window(x, window), R, SAME_A),
        Window(joined(x, R, SAME_A), window),
        HORIZON,
    )


@given(inputs(), time_windows())
def test_a_time_window_of_a_window_of_all_is_the_other_way_round(
    data: Inputs, window: TimeWindow
) -> None:
    once = TimeWindow(window.size)
    assert_same(
        data.reference(),
        Window(Window(T, once), TimeWindow(3)),
        Window(Window(T, TimeWindow(3)), once),
        HORIZON,
    )
