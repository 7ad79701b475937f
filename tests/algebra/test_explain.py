from __future__ import annotations

from textwrap import dedent

import pytest
from hypothesis import given

from laws.strategies import plans
from streams import LETTER, call, column, cross, equal, number, one_column, project, text
from tidemill.algebra.explain import describe, explain
from tidemill.algebra.expr import TRUE, AggregateCall, Call, Column, Named
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
    Rstream,
    SemiJoin,
    SessionWindow,
    Source,
    StrictDifference,
    TimeWindow,
    Unbounded,
    Union,
    Window,
)
from tidemill.algebra.tree import children, share, walk
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT, VARCHAR

S, T = one_column("S"), one_column("T")
BID = Source("Bid", Schema((Field("item", BIGINT), Field("price", BIGINT))))
ITEM, PRICE = Column("item", BIGINT), Column("price", BIGINT)
OTHER = Column("other", VARCHAR)
NAMES = ("letter", "other")
COUNT = AggregateCall("count", None, BIGINT)
SECOND = 1_000_000


def assert_text(actual: str, expected: str) -> None:
    assert actual == dedent(expected).strip()


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (S, "Source S"),
        (Source("my stream", S.schema), 'Source "my stream"'),
        (Relation("R", S.schema), "Relation R"),
        (Window(S, TimeWindow(600 * SECOND)), "Window range=10m"),
        (
            Window(S, TimeWindow(60 * SECOND, slide=5 * SECOND)),
            "Window range=1m slide=5s",
        ),
        (Window(S, RowWindow(3)), "Window rows=3"),
        (
            Window(BID, RowWindow(3, 2, ("item", "price"))),
            "Window rows=3 slide=2 by=item,price",
        ),
        (Window(S, SessionWindow(10 * SECOND)), "Window session=10s"),
        (Window(BID, SessionWindow(5, ("item", "price"))), "Window session=5us by=item,price"),
        (Window(S, Unbounded()), "Window unbounded"),
        (Filter(S, equal(LETTER, text("a"))), "Filter letter = 'a'"),
        (project(BID, price=PRICE, item=ITEM), "Project price, item"),
        (project(BID, cost=PRICE), "Project price AS cost"),
        (
            project(BID, twice=Call("+", (PRICE, PRICE), BIGINT)),
            "Project price + price AS twice",
        ),
        (
            project(BID, **{"price + 1": Call("+", (PRICE, number(1)), BIGINT)}),
            "Project price + 1",
        ),
        (Distinct(S), "Distinct"),
        (
            Aggregate(BID, (Named("item", ITEM),), (NamedAggregate("count(*)", COUNT),)),
            "Aggregate count(*) by item",
        ),
        (
            Aggregate(BID, (), (NamedAggregate("n", COUNT),)),
            "Aggregate count(*) AS n",
        ),
        (Aggregate(BID, (Named("i", ITEM),), ()), "Aggregate by item AS i"),
        (Istream(S), "Istream"),
        (Dstream(S), "Dstream"),
        (Rstream(S), "Rstream"),
        (cross(S, T), "Join inner"),
        (
            Join(S, T, JoinKind.LEFT, equal(LETTER, OTHER), NAMES),
            "Join left on letter = other",
        ),
        (SemiJoin(S, T, equal(LETTER, OTHER), NAMES), "SemiJoin on letter = other"),
        (AntiJoin(S, T, TRUE, NAMES), "AntiJoin"),
        (Union(S, T), "Union"),
        (MaxUnion(S, T), "MaxUnion"),
        (Difference(S, T), "Difference"),
        (StrictDifference(S, T), "StrictDifference"),
        (Intersect(S, T), "Intersect"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_operator_has_one_line(plan: Plan, expected: str) -> None:
    assert describe(plan) == expected


def test_inputs_are_indented_below() -> None:
    plan = Distinct(Union(Filter(S, equal(LETTER, text("a"))), T))
    assert_text(
        explain(plan),
        """
        Distinct
          Union
            Filter letter = 'a'
              Source S
            Source T
        """,
    )


def test_a_shared_part_is_shown_once_with_a_number() -> None:
    window = Window(BID, TimeWindow(600 * SECOND))
    greatest = Aggregate(
        window, (), (NamedAggregate("max(price)", AggregateCall("max", PRICE, BIGINT)),)
    )
    names = ("item", "price", "max(price)")
    is_greatest = equal(PRICE, column(greatest, "max(price)"))
    assert_text(
        explain(SemiJoin(window, greatest, is_greatest, names)),
        """
        SemiJoin on price = max(price)
          [1] Window range=10m
            Source Bid
          Aggregate max(price)
            see [1]
        """,
    )


def test_shared_parts_are_numbered_in_the_order_of_the_text() -> None:
    inner = Distinct(S)
    outer = Union(inner, inner)
    assert_text(
        explain(Difference(outer, Intersect(outer, inner))),
        """
        Difference
          [1] Union
            [2] Distinct
              Source S
            see [2]
          Intersect
            see [1]
            see [2]
        """,
    )


def test_a_shared_leaf_is_shown_each_time() -> None:
    assert_text(
        explain(Union(S, S)),
        """
        Union
          Source S
          Source S
        """,
    )


def test_equal_parts_that_are_not_shared_are_shown_each_time() -> None:
    assert_text(
        explain(Union(Distinct(S), Distinct(S))),
        """
        Union
          Distinct
            Source S
          Distinct
            Source S
        """,
    )


def test_a_note_stands_behind_each_operator() -> None:
    wide = cross(S, T)
    condition = call("<>", column(wide, "l0"), column(wide, "r0"))
    assert_text(
        explain(Filter(wide, condition), lambda plan: f"({len(plan.schema)} columns)"),
        """
        Filter l0 <> r0  (2 columns)
          Join inner  (2 columns)
            Source S  (1 columns)
            Source T  (1 columns)
        """,
    )


@given(plans())
def test_a_shared_plan_has_a_line_for_each_operator_and_each_reference(plan: Plan) -> None:
    shared = share(plan)
    nodes = list(walk(shared))
    edges = sum(len(children(node)) for node in nodes)
    assert len(explain(shared).splitlines()) == edges + 1
