"""Identities of filters, maps and joins (K43): plans with the same answer at every instant.

What looks like an identity and is none is in ``test_counterexamples.py``.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.operands import (
    COUNT,
    NAMES,
    NULLS,
    SAME_A,
    A,
    B,
    D,
    F,
    G,
    Law,
    applied,
    assert_law,
    grouped,
    joined,
    mapped,
    picked,
    renamed,
)
from streams import both, cross, equal, project, text
from tidemill.algebra.expr import Column, conjunction
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

LAWS = {**SELECTION, **JOINS}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@given(data=st.data())
def test_identity(law: Law, data: st.DataObject) -> None:
    assert_law(law, data)
