"""The driver: it walks, repeats, keeps what is shared, and stops."""

from __future__ import annotations

import pytest

from streams import LETTER, call, column, equal, one_column, project, text
from tidemill.algebra.expr import TRUE, walk_expr
from tidemill.algebra.plan import Distinct, Filter, Plan, Project, TimeWindow, Union, Window
from tidemill.algebra.tree import share, walk
from tidemill.errors import PlanError
from tidemill.optimizer.logical.context import CONTEXT, Context
from tidemill.optimizer.logical.rewrite import Step, rewrite
from tidemill.optimizer.logical.rules.drop_true_filter import drop_true_filter
from tidemill.optimizer.logical.rules.merge_filters import merge_filters
from tidemill.optimizer.logical.rules.push_filter_through_window import push_filter_through_window

S = one_column("S")
IS_A, IS_B = equal(LETTER, text("a")), equal(LETTER, text("b"))


def pull_filter_out_of_window(plan: Plan, _context: Context) -> Plan | None:
    """The opposite of a push, for a driver that would never end."""
    match plan:
        case Window(Filter(source, predicate), spec):
            return Filter(Window(source, spec), predicate)
        case _:
            return None


def build_again(plan: Plan, _context: Context) -> Plan | None:
    return Distinct(plan.input) if isinstance(plan, Distinct) else None


def test_a_phase_is_repeated_until_nothing_changes() -> None:
    windows = Window(Window(Window(S, TimeWindow(2)), TimeWindow(3)), TimeWindow(4))
    below = Window(Window(Window(Filter(S, IS_A), TimeWindow(2)), TimeWindow(3)), TimeWindow(4))
    rewritten = rewrite(Filter(windows, IS_A), ((push_filter_through_window,),))
    assert rewritten.plan == below
    assert [step.rule for step in rewritten.steps] == ["push_filter_through_window"] * 3


def test_a_plan_no_rule_applies_to_is_the_same_object() -> None:
    plan = Union(Window(S, TimeWindow(2)), Distinct(S))
    rewritten = rewrite(plan)
    assert rewritten.plan is plan
    assert rewritten.steps == ()


def test_rules_that_undo_each_other_are_named() -> None:
    plan = Filter(Window(S, TimeWindow(2)), IS_A)
    rules = (merge_filters, push_filter_through_window, pull_filter_out_of_window)
    with pytest.raises(PlanError) as caught:
        rewrite(plan, (rules[:2], rules[1:]))
    assert '"push_filter_through_window", "pull_filter_out_of_window"' in str(caught.value)
    assert "merge_filters" not in str(caught.value)


def test_a_rule_that_builds_the_same_again_is_named() -> None:
    with pytest.raises(PlanError, match='circles with "build_again"'):
        rewrite(Distinct(S), ((build_again,),))


def test_a_shared_part_is_rewritten_once_and_stays_shared() -> None:
    part = Filter(Filter(S, IS_A), IS_B)
    rewritten = rewrite(Union(Distinct(part), part), ((merge_filters,),))
    assert len(rewritten.steps) == 1
    assert isinstance(rewritten.plan, Union)
    assert isinstance(rewritten.plan.left, Distinct)
    assert rewritten.plan.left.input is rewritten.plan.right


def test_what_becomes_equal_becomes_shared() -> None:
    one, other = Distinct(Filter(S, TRUE)), Distinct(S)
    rewritten = rewrite(Union(one, other), ((drop_true_filter,),)).plan
    assert isinstance(rewritten, Union)
    assert rewritten.left is rewritten.right


def test_a_step_has_the_node_before_and_after() -> None:
    plan = Distinct(Filter(Filter(S, IS_A), IS_B))
    merged = Filter(S, call("and", IS_A, IS_B))
    (step,) = rewrite(plan, ((merge_filters,),)).steps
    assert step == Step("merge_filters", Filter(Filter(S, IS_A), IS_B), merged)


def test_a_condition_that_doubles_in_every_view_stays_small() -> None:
    plan: Plan = project(S, flag=IS_A)
    for _ in range(40):
        flag = column(plan, "flag")
        plan = project(plan, flag=call("is_distinct", flag, flag))
    pushed = rewrite(Filter(plan, column(plan, "flag"))).plan
    (filter_,) = (node for node in walk(pushed) if isinstance(node, Filter))
    assert isinstance(filter_.input, Project), "it stands between two views"
    assert len(list(walk_expr(filter_.predicate))) <= CONTEXT.largest_expression


def test_a_large_condition_that_does_not_grow_is_pushed() -> None:
    plan = project(S, other=LETTER)
    many = call("in", column(plan, "other"), *(text(str(i)) for i in range(1000)))
    pushed = rewrite(Filter(plan, many)).plan
    assert isinstance(pushed, Project)
    assert isinstance(pushed.input, Filter)


def test_shared_input_is_shared_before_any_rule() -> None:
    plan = Union(Distinct(one_column("S")), Distinct(one_column("S")))
    assert rewrite(plan, ()).plan == share(plan)
    assert len(list(walk(rewrite(plan, ()).plan))) == 3
