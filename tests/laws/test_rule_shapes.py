"""Rules keep snapshots where they apply, and laws find rules that apply where they must not."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from laws.catalogue import HORIZON, Inputs, S, inputs
from laws.rule_shapes import SHAPES, conditions, filled_joins, last_rows, sides
from laws.strategies import plans
from laws.test_optimizer import assert_schema_kept
from streams import assert_same
from tidemill.algebra.bounds import unbounded_state
from tidemill.algebra.explain import explain
from tidemill.algebra.expr import Call, Column, Expr
from tidemill.algebra.plan import NOW, Filter, Join, JoinKind, Plan, RowWindow, TimeWindow, Window
from tidemill.algebra.tree import children, share, transform_up, walk
from tidemill.errors import PlanError
from tidemill.model.types import BIGINT, BOOLEAN
from tidemill.optimizer.cost import logical_cost
from tidemill.optimizer.logical import conjunctions, known
from tidemill.optimizer.logical.conjunctions import merged
from tidemill.optimizer.logical.context import CONTEXT
from tidemill.optimizer.logical.empty import is_empty
from tidemill.optimizer.logical.known import holds
from tidemill.optimizer.logical.rewrite import optimize, rewrite
from tidemill.optimizer.logical.rewrite_by_cost import CLEARLY, rewrite_by_cost
from tidemill.optimizer.logical.rules import DEPENDING, SAVING, CostedRule
from tidemill.optimizer.statistics import Edge, Statistics

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

COSTED: tuple[CostedRule, ...] = (*SAVING, *DEPENDING)
A = Column("a", BIGINT)
often = settings(max_examples=2 * settings().max_examples)


@pytest.mark.parametrize("shape", SHAPES)
@often
@given(data=st.data())
def test_the_optimizer_keeps_snapshots_where_rules_apply(shape: str, data: st.DataObject) -> None:
    assert_kept(data.draw(inputs()), share(data.draw(SHAPES[shape]())))


def assert_kept(content: Inputs, plan: Plan) -> None:
    optimized = optimize(plan)
    assert_schema_kept(plan, optimized)
    assert_same(content.reference(), plan, optimized, HORIZON)
    assert optimize(optimized) == optimized
    assert unbounded_state(plan) is not None or unbounded_state(optimized) is None


@pytest.mark.parametrize("shape", SHAPES)
@given(content=inputs(), data=st.data())
def test_all_that_costed_rules_offer_keeps_snapshots(
    shape: str, content: Inputs, data: st.DataObject
) -> None:
    assert_offers_kept(content, share(data.draw(SHAPES[shape]())))


def assert_offers_kept(content: Inputs, plan: Plan) -> None:
    found = content.reference()
    for before in (plan, optimize(plan)):
        for after in offers(before):
            assert_schema_kept(before, after)
            assert_same(found, before, after, HORIZON)
            assert_same(found, before, optimize(after), HORIZON)


def offers(plan: Plan) -> list[Plan]:
    """The plan with each part in the place of a node that a rule offers for it."""
    return [
        replaced(plan, node, new)
        for rule in COSTED
        for node in walk(plan)
        for new in rule(node, CONTEXT)
    ]


def replaced(plan: Plan, node: Plan, new: Plan) -> Plan:
    return transform_up(plan, lambda part: new if part is node else None)


# What it costs


@st.composite
def statistics(draw: DrawFn) -> Statistics:
    """Anything known of the streams and of the values in them."""
    distances = st.sampled_from([0.01, 1.0, 100.0, 10_000.0])
    values = st.sampled_from([1.0, 2.0, 1_000.0, 1e9])
    return Statistics(
        {
            name: Edge(draw(distances), distinct={c: draw(values) for c in ("a", "b", "c")})
            for name in "STU"
        }
    )


@pytest.mark.parametrize("shape", SHAPES)
@given(content=inputs(), data=st.data(), given_=statistics())
def test_what_is_chosen_costs_no_more_and_means_the_same(
    shape: str, content: Inputs, data: st.DataObject, given_: Statistics
) -> None:
    plan = optimize(share(data.draw(SHAPES[shape]())))
    assume(unbounded_state(plan) is None)

    def cost(one: Plan) -> float:
        return logical_cost(one, given_, relations=("R", "P")).cpu

    after, choices = rewrite_by_cost(plan, cost, rewrite)
    assert_same(content.reference(), plan, after, HORIZON)
    assert unbounded_state(after) is None
    assert cost(after) <= cost(plan)
    for choice in choices:
        assert choice.cost < choice.before
        assert choice.cost < CLEARLY * choice.before or choice.rule.rule in {
            rule.__name__ for rule in SAVING
        }
    assert rewrite_by_cost(plan, cost, rewrite)[0] == after, "the same whenever it is asked"


@given(content=inputs(), data=st.data(), numbers=st.randoms(use_true_random=False))
def test_it_ends_whatever_things_are_said_to_cost(
    content: Inputs, data: st.DataObject, numbers: object
) -> None:
    plan = optimize(share(data.draw(st.one_of(*(shape() for shape in SHAPES.values())))))
    prices: dict[str, float] = {}

    def cost(one: Plan) -> float:
        return prices.setdefault(explain(one), hash((str(numbers), explain(one))) % 1000 + 1.0)

    after, _ = rewrite_by_cost(plan, cost, rewrite)
    assert_same(content.reference(), plan, after, HORIZON)


def test_nothing_is_priced_where_no_rule_offers_anything() -> None:
    def cost(_: Plan) -> float:
        raise AssertionError("no plan is worth a price")

    plan = share(Filter(Window(S, NOW), Call("=", (A, A), BOOLEAN)))
    assert rewrite_by_cost(plan, cost, rewrite) == (plan, ())


# What is known of rows


@often
@given(content=inputs(), plan=sides(), data=st.data())
def test_merged_conditions_are_true_of_the_same_rows(
    content: Inputs, plan: Plan, data: st.DataObject
) -> None:
    predicate = data.draw(conditions(plan))
    parts = [predicate, *data.draw(st.lists(conditions(plan), max_size=2))]
    before = plan
    for part in parts:
        before = Filter(before, part)
    after = plan
    for part in merged(one for whole in parts for one in _conjuncts(whole)):
        after = Filter(after, part)
    assert_same(content.reference(), before, after, HORIZON)


def _conjuncts(predicate: Expr) -> tuple[Expr, ...]:
    match predicate:
        case Call("and", (one, other)):
            return (*_conjuncts(one), *_conjuncts(other))
        case _:
            return (predicate,)


@often
@given(content=inputs(), plan=st.one_of(plans(2), *(shape() for shape in SHAPES.values())))
def test_what_is_known_of_rows_is_true_of_them(content: Inputs, plan: Plan) -> None:
    found = content.reference()
    for node in walk(optimize(plan)):
        for part in known.conditions(node):
            assert_same(found, node, Filter(node, part), HORIZON)
            if not isinstance(node, Filter):
                continue
            assert holds(node, part)


@often
@given(content=inputs(), plan=st.one_of(*(shape() for shape in SHAPES.values())), data=st.data())
def test_what_holds_is_true(content: Inputs, plan: Plan, data: st.DataObject) -> None:
    plan = optimize(plan)
    condition = data.draw(conditions(plan))
    if holds(plan, condition):
        assert_same(content.reference(), plan, Filter(plan, condition), HORIZON)


# With a precondition left out, the laws fail

_RULES = "tidemill.optimizer.logical.rules"


def always(*_: object) -> bool:
    return True


def as_it_is(plan: Plan) -> Plan:
    return plan


def every_column(_: Plan, join: Join) -> frozenset[str]:
    return frozenset(join.names)


def any_window(side: Plan) -> tuple[object, Plan] | None:
    return (TimeWindow(3), side.input) if isinstance(side, Window) else None


def windows_of_rows(side: Plan) -> tuple[object, Plan] | None:
    is_of_rows = isinstance(side, Window) and isinstance(side.spec, RowWindow)
    return (side.spec, side.input) if isinstance(side, Window) and is_of_rows else None


def weaker(one: Expr, other: Expr) -> bool:
    return not IS_STRONGER(one, other)


IS_STRONGER = conjunctions._is_stronger  # noqa: SLF001 — a mutant goes where nobody else does

MUTATED = {**SHAPES, "filled joins": filled_joins, "last rows": last_rows}
"""Some mistakes are in few of the plans of a shape, and would take long to be found."""

MUTANTS: dict[str, tuple[str, str, object, str]] = {
    "one of two copies that a join makes is enough for any aggregate": (
        "aggregates of joins",
        "tidemill.optimizer.logical.eager.counts_no_copies",
        always,
        "offers",
    ),
    "the keys of an aggregate determine all columns of a join": (
        "aggregates of joins",
        "tidemill.optimizer.logical.eager._determined",
        every_column,
        "offers",
    ),
    "counts are put together by counting them": (
        "aggregates of joins",
        "tidemill.optimizer.logical.eager._put_together",
        lambda call: call.function,
        "offers",
    ),
    "windows of other sizes are equal": (
        "unions of windows",
        f"{_RULES}.merge_windows_of_union._apart",
        any_window,
        "offers",
    ),
    "windows of rows pass a union": (
        "unions of windows",
        f"{_RULES}.merge_windows_of_union._apart",
        windows_of_rows,
        "offers",
    ),
    "all streams are ordered by ids": (
        "last rows",
        f"{_RULES}.push_project_through_window.carries_ids",
        always,
        "offers",
    ),
    "an input that is dropped leaves the order as it is": (
        "empty inputs",
        f"{_RULES}.drop_empty_input.as_derived",
        as_it_is,
        "kept",
    ),
    "a union is empty if one side is": (
        "empty inputs",
        f"{_RULES}.replace_empty._has_no_rows",
        lambda plan: any(map(is_empty, children(plan))),
        "kept",
    ),
    "the weaker of two bounds is left": (
        "filters",
        "tidemill.optimizer.logical.conjunctions._is_stronger",
        weaker,
        "kept",
    ),
    "bounds that meet in a value exclude each other": (
        "filters",
        "tidemill.optimizer.logical.conjunctions._is_apart",
        always,
        "kept",
    ),
    "every filter refuses NULLs": (
        "outer joins",
        f"{_RULES}.replace_outer_join._refuses_nulls",
        always,
        "kept",
    ),
    "joins lose all rows without a partner": (
        "filled joins",
        f"{_RULES}.share_condition_across_join._TO_LEFT",
        tuple(JoinKind),
        "kept",
    ),
    "every column is compared with itself": (
        "self joins",
        f"{_RULES}.drop_redundant_semi_join._column",
        lambda *_: A,
        "kept",
    ),
    "every row is there once": (
        "distinct rows",
        f"{_RULES}.drop_distinct_of_unique.keys",
        always,
        "kept",
    ),
    "no aggregate counts copies": (
        "distinct rows",
        f"{_RULES}.drop_distinct_below.counts_no_copies",
        always,
        "kept",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_law_finds_what_is_wrong(name: str) -> None:
    shape, place, mutant, law = MUTANTS[name]
    check = assert_kept if law == "kept" else assert_offers_kept

    @settings(max_examples=2_000, phases=[Phase.generate], database=None)
    @given(content=inputs(), data=st.data())
    def holds_for_all(content: Inputs, data: st.DataObject) -> None:
        check(content, share(data.draw(MUTATED[shape]())))

    module, _, attribute = place.rpartition(".")
    with (
        patch.object(import_module(module), attribute, mutant),
        pytest.raises((AssertionError, PlanError, ExceptionGroup)),
    ):
        holds_for_all()
