"""The optimizer keeps every snapshot, keeps the columns, and comes to an end."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws.catalogue import HORIZON, PAIR, Inputs, S, T, inputs
from laws.strategies import plans, predicates
from streams import assert_same, call
from tidemill.algebra.expr import (
    FALSE,
    TRUE,
    AggregateCall,
    Call,
    Column,
    Expr,
    Literal,
    Named,
    conjunction,
)
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
    Project,
    RowWindow,
    SemiJoin,
    SessionWindow,
    StrictDifference,
    TimeWindow,
    Union,
    Window,
)
from tidemill.algebra.tree import transform_up
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT, BOOLEAN, VARCHAR
from tidemill.optimizer.logical.rewrite import optimize, rewrite
from tidemill.optimizer.logical.rules import PATTERN_RULES, RULES, Negation, Phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import DataObject, DrawFn, SearchStrategy

ALONE: dict[str, Phase] = {
    rule.__name__: (rule,)
    for phase in (*RULES, *PATTERN_RULES.values())
    if isinstance(phase, tuple)
    for rule in phase
}
ALONE |= {phase.__name__: phase for phase in RULES if not isinstance(phase, tuple)}

thorough = settings(max_examples=3 * settings().max_examples)
often = settings(max_examples=2 * settings().max_examples)

_ONE, _TWO = Literal(1, BIGINT), Literal(2, BIGINT)
CONSTANTS: tuple[Expr, ...] = (
    TRUE,
    FALSE,
    Literal(None, BOOLEAN),
    Call("<", (_ONE, _TWO), BOOLEAN),
    Call("=", (_ONE, Literal(None, BIGINT)), BOOLEAN),
)


@st.composite
def filtered_plans(draw: DrawFn, depth: int = 3) -> Plan:
    """Plans with more filters than ``plans`` draws: above many operators, with constants."""
    plan = draw(plans(depth))

    def with_filter(node: Plan) -> Plan | None:
        if draw(st.integers(0, 2)):
            return None
        predicate = draw(predicates(node.schema))
        if draw(st.integers(0, 3)) == 0:
            function = draw(st.sampled_from(["and", "or"]))
            predicate = Call(function, (predicate, draw(st.sampled_from(CONSTANTS))), BOOLEAN)
        return Filter(node, predicate)

    filtered = transform_up(plan, with_filter)
    return Filter(filtered, draw(predicates(filtered.schema)))


def assert_schema_kept(before: Plan, after: Plan) -> None:
    assert after.schema.names == before.schema.names
    assert after.schema.types == before.schema.types
    for old, new in zip(before.schema, after.schema, strict=True):
        assert old.nullable or not new.nullable, f"{old.name} became nullable"


@thorough
@given(inputs(), plans() | filtered_plans())
def test_the_optimizer_keeps_snapshots_and_columns(data: Inputs, plan: Plan) -> None:
    optimized = optimize(plan)
    assert_schema_kept(plan, optimized)
    assert_same(data.reference(), plan, optimized, HORIZON)


@often
@given(plans(4) | filtered_plans())
def test_an_optimized_plan_stays_as_it_is(plan: Plan) -> None:
    optimized = optimize(plan)
    assert optimize(optimized) == optimized


@pytest.mark.parametrize("name", ALONE)
@given(inputs(), filtered_plans(1) | filtered_plans(2))
def test_a_rule_alone_keeps_snapshots_and_columns(name: str, data: Inputs, plan: Plan) -> None:
    rewritten = rewrite(plan, (ALONE[name],)).plan
    assert_schema_kept(plan, rewritten)
    assert_same(data.reference(), plan, rewritten, HORIZON)


# A filter directly above one operator: plans drawn at random are rarely of the shape a rule is for.

NAMES = ("l0", "l1", "r0", "r1")
LEFT = Schema(tuple(Field(name, f.type) for name, f in zip(NAMES[:2], PAIR, strict=True)))
RIGHT = Schema(tuple(Field(name, f.type) for name, f in zip(NAMES[2:], PAIR, strict=True)))
SAME = call("=", Column("l0", BIGINT), Column("r0", BIGINT))
A, B = Column("a", BIGINT), Column("b", VARCHAR)
COUNT = NamedAggregate("n", AggregateCall("count", None, BIGINT))
MOST = NamedAggregate("m", AggregateCall("max", B, VARCHAR))
X, Y = Window(S, TimeWindow(6)), Window(T, TimeWindow(6))

JOINS: dict[str, Callable[[Expr], Plan]] = {
    kind.value: partial(lambda kind, on: Join(X, Y, kind, on, NAMES), kind) for kind in JoinKind
} | {
    "semi": lambda on: SemiJoin(X, Y, on, NAMES),
    "anti": lambda on: AntiJoin(X, Y, on, NAMES),
}
OTHERS: dict[str, Plan] = {
    "union": Union(X, Y),
    "max union": MaxUnion(X, Y),
    "difference": Difference(X, Y),
    "strict difference": StrictDifference(X, Y),
    "intersect": Intersect(X, Y),
    "distinct": Distinct(X),
    "istream": Istream(X),
    "dstream": Dstream(X),
    "aggregate": Aggregate(X, (Named("k", A),), (COUNT, MOST)),
    "scalar aggregate": Aggregate(X, (), (COUNT, MOST)),
    "time window": Window(S, TimeWindow(4, slide=3)),
    "count window": Window(S, RowWindow(2)),
    "partitioned window": Window(S, RowWindow(2, partition_by=("a",))),
    "window on a derived stream": Window(Union(S, T), RowWindow(2, partition_by=("b",))),
    "session window": Window(S, SessionWindow(2)),
    "partitioned session window": Window(S, SessionWindow(2, ("a",))),
    "session window on a derived stream": Window(Union(S, T), SessionWindow(2, ("b",))),
    "project": Project(X, (Named("x", Call("+", (A, A), BIGINT)), Named("y", B))),
}


@st.composite
def conditions(draw: DrawFn, *schemas: Schema) -> Expr:
    """One to three conditions that must all hold, each over the columns of one schema."""
    parts = st.one_of(*(predicates(schema) for schema in schemas))
    return conjunction(*draw(st.lists(parts, min_size=1, max_size=3)))


def single_columns(schema: Schema) -> list[Schema]:
    return [Schema((field,)) for field in schema]


def assert_same_when_filtered(data: DataObject, plan: Plan) -> None:
    """Fail unless a filter above the plan, and one column of it, mean the same when optimized."""
    filtered = Filter(plan, data.draw(conditions(plan.schema, *single_columns(plan.schema))))
    field = data.draw(st.sampled_from(plan.schema.fields))
    narrow = Project(filtered, (Named(field.name, Column(field.name, field.type)),))
    found = data.draw(inputs()).reference()
    assert_same(found, filtered, optimize(filtered), HORIZON)
    assert_same(found, narrow, optimize(narrow), HORIZON)


@pytest.mark.parametrize("name", JOINS)
@often
@given(st.data())
def test_a_filter_above_a_join_keeps_its_meaning(name: str, data: DataObject) -> None:
    condition = data.draw(st.just(SAME) | conditions(LEFT, RIGHT))
    assert_same_when_filtered(data, JOINS[name](conjunction(SAME, condition)))


@pytest.mark.parametrize("name", OTHERS)
@given(st.data())
def test_a_filter_above_an_operator_keeps_its_meaning(name: str, data: DataObject) -> None:
    assert_same_when_filtered(data, OTHERS[name])


# An anti-join beside a join: it keeps its meaning above and below.

SHORT, LONG, LAST_ROWS = Window(S, TimeWindow(2)), Window(T, TimeWindow(6)), Window(S, RowWindow(2))
BESIDE = ("x0", "x1", "y0", "y1")
JOINED = Schema(tuple(Field(name, f.type) for name, f in zip(BESIDE, (*PAIR, *PAIR), strict=True)))
WHOLE = Schema(tuple(Field(n, f.type) for n, f in zip(NAMES, (*PAIR, *PAIR), strict=True)))
inner = partial(Join, kind=JoinKind.INNER, names=BESIDE)


@st.composite
def joins_of_anti_joins(draw: DrawFn) -> Join:
    """Inner joins with an anti-join on the left, on the right, or on both sides."""
    inputs_: SearchStrategy[Plan] = st.sampled_from([SHORT, LONG, LAST_ROWS, X, S])
    on = conditions(WHOLE, *single_columns(WHOLE)) | st.just(SAME)
    anti: SearchStrategy[Plan] = st.builds(AntiJoin, inputs_, inputs_, on, st.just(NAMES))
    sides = draw(st.sampled_from([(anti, inputs_), (inputs_, anti), (anti, anti)]))
    condition = draw(conditions(JOINED))
    return inner(draw(sides[0]), draw(sides[1]), condition=condition)


@often
@given(inputs(), joins_of_anti_joins())
def test_an_anti_join_pulled_and_pushed_keeps_its_meaning(data: Inputs, plan: Join) -> None:
    pulled = rewrite(plan, (PATTERN_RULES["pulled"],)).plan
    assert isinstance(pulled, AntiJoin)
    assert_schema_kept(plan, pulled)
    assert_same(data.reference(), plan, pulled, HORIZON)
    pushed = rewrite(pulled, (PATTERN_RULES["pushed"],)).plan
    assert isinstance(pushed, Join)
    assert_schema_kept(plan, pushed)
    assert_same(data.reference(), plan, pushed, HORIZON)


@pytest.mark.parametrize("negation", PATTERN_RULES)
@given(inputs(), joins_of_anti_joins() | plans())
def test_the_optimizer_keeps_snapshots_wherever_negation_goes(
    negation: Negation, data: Inputs, plan: Plan
) -> None:
    optimized = optimize(plan, negation=negation)
    assert_schema_kept(plan, optimized)
    assert_same(data.reference(), plan, optimized, HORIZON)
