"""Snapshot reducibility (K41, O2): a standard operator looks at one instant only.

The snapshot of the output is the relational operator on the snapshots of the inputs. What each
relational operator means is written here a second time, with plain lists of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.strategies import HORIZON, PAIR, Inputs, inputs, pairs
from streams import LETTER, both, call, equal, number, one_column, project, reference, rows
from tidemill.algebra.expr import AggregateCall, Call, Column, Expr, Named
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

A, B = Column("a", BIGINT), Column("b", VARCHAR)
NAMES = ("a", "b", "c", "d")
SAME = equal(A, Column("c", BIGINT))
LOWER = both(SAME, call("<", B, Column("d", VARCHAR)))


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


COUNT = AggregateCall("count", None, BIGINT)
COUNT_LETTERS = AggregateCall("count", B, BIGINT, distinct=True)
SUM = AggregateCall("sum", A, BIGINT)
SUM_OF_X = AggregateCall("sum", A, BIGINT, condition=equal(B, Literal_x := Column("b", VARCHAR)))
GREATEST = AggregateCall("max", A, BIGINT)
CALLS = (COUNT, COUNT_LETTERS, SUM, GREATEST)
