"""Identities of bags, duplicates and aggregates (K43): the same answer at every instant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.operands import (
    COUNT,
    COUNT_B,
    GROUPS,
    IDENTICAL,
    INJECTIVE,
    MAX_B,
    NAMES,
    NULLS,
    SAME_A,
    A,
    B,
    D,
    F,
    Law,
    assert_law,
    empty,
    grouped,
    joined,
    mapped,
    picked,
    union_of,
)
from streams import call, cross, project, text
from tidemill.algebra.expr import AggregateCall, Column
from tidemill.algebra.plan import (
    AntiJoin,
    Difference,
    Distinct,
    Filter,
    Intersect,
    Join,
    JoinKind,
    MaxUnion,
    SemiJoin,
    StrictDifference,
    Union,
)
from tidemill.model.types import BIGINT, VARCHAR

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

LAWS = {**BAGS, **DUPLICATES, **AGGREGATION}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@given(data=st.data())
def test_identity(law: Law, data: st.DataObject) -> None:
    assert_law(law, data)
