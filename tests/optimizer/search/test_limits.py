"""Trees under limits: the cheapest qualified plan, and what is said where there is none."""

from __future__ import annotations

from math import inf
from random import Random
from time import process_time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from join_graphs import SHAPES, drawn, graphs
from tidemill.optimizer.search.best import Effort, best_tree
from tidemill.optimizer.search.candidate import Candidate
from tidemill.optimizer.search.choice import Choice, choose
from tidemill.optimizer.search.costs import Costs, Limits
from tidemill.optimizer.search.extensions import all_trees
from tidemill.optimizer.search.join_graph import JoinGraph
from tidemill.optimizer.search.pareto import best_of, dominates
from tidemill.optimizer.search.tree_cost import Plan, Pricing
from tidemill.physical.joining.tree import leaves, stages

if TYPE_CHECKING:
    from collections.abc import Callable

MARGIN = 1 + 1e-6
SHARES = st.sampled_from([0.5, 0.9, 1.0001, 2.0])
FIGURES = st.sampled_from([1.0, 2.0, 3.0, 5.0])
PLANS = st.lists(st.builds(Plan, st.just(0), st.just({}), FIGURES, FIGURES), min_size=1)


# Dominance


@given(plans=PLANS)
def test_what_is_best_is_not_dominated_and_all_else_is_dominated_or_the_same(
    plans: list[Plan],
) -> None:
    best = [one.plan for one in best_of(Candidate("", plan) for plan in plans)]
    assert not any(dominates(one, other) for one in best for other in best)
    for plan in plans:
        same = ((plan.cpu, plan.memory) == (one.cpu, one.memory) for one in best)
        assert any(same) != any(dominates(one, plan) for one in best)


def test_neither_dominates_if_each_takes_less_of_something() -> None:
    one, other = Plan(0, {}, 1, 5), Plan(0, {}, 2, 4)
    assert not dominates(one, other)
    assert not dominates(other, one)
    assert not dominates(one, one)
    assert dominates(Plan(0, {}, 1, 4), other)


# The choice


def limited(graph: JoinGraph, limits: Limits, clearly: float = 0.5) -> Choice:
    return best_tree(graph, Costs(), limits.cpu, limits.memory, clearly=clearly)


@settings(max_examples=max(5, settings().max_examples // 2))
@given(graph=graphs(1, 5), data=st.data())
def test_up_to_five_inputs_the_cheapest_qualified_plan_is_chosen(
    graph: JoinGraph, data: st.DataObject
) -> None:
    pricing = Pricing(graph, Costs())
    plans = [pricing.plan(tree) for tree in all_trees(len(graph.inputs))]
    some = data.draw(st.sampled_from(plans))
    limits = Limits(some.cpu * data.draw(SHARES), some.memory * data.draw(SHARES))
    check(limited(graph, limits, clearly=1.0), plans, limits)


def check(choice: Choice, plans: list[Plan], limits: Limits) -> None:
    """The choice is the cheapest of all that is qualified, or says what there would have to be."""
    qualified = [plan.cpu for plan in plans if plan.is_qualified(limits)]
    assert choice.is_qualified == bool(qualified)
    if qualified:
        assert choice.plan.cpu == pytest.approx(min(qualified))
        return
    needs = choice.needs
    with_memory = [plan.cpu for plan in plans if plan.memory <= limits.memory]
    with_cpu = [plan.memory for plan in plans if plan.cpu <= limits.cpu]
    assert needs.cpu == pytest.approx(min(with_memory, default=inf))
    assert needs.memory == pytest.approx(min(with_cpu, default=inf))
    assert choice.plan.is_qualified(needs.both)
    share = min(limits.share(plan.cpu, plan.memory) for plan in plans)
    assert limits.share(choice.plan.cpu, choice.plan.memory) == pytest.approx(share)


def first(plans: list[Candidate], limits: Limits) -> Candidate:
    return next((one for one in plans if one.plan.is_qualified(limits)), plans[0])


def without_memory(plans: list[Candidate], limits: Limits) -> Candidate:
    return min(plans, key=lambda one: (one.plan.cpu > limits.cpu, one.plan.cpu))


@pytest.mark.parametrize("wrong", [first, without_memory])
def test_the_law_finds_what_is_wrong(
    wrong: Callable[[list[Candidate], Limits], Candidate],
) -> None:
    chosen = Random(11)  # noqa: S311 — a seed, not a secret
    found = 0
    for _ in range(20):
        graph = drawn(chosen, 4, "chain", share=(0.01, 1))
        pricing = Pricing(graph, Costs())
        plans = [pricing.plan(tree) for tree in all_trees(4)]
        some = chosen.choice(plans)
        limits = Limits(some.cpu * 1.2, some.memory * 1.2)
        candidates = [Candidate("", plan) for plan in plans]
        check(choose(candidates, limits), plans, limits)
        mistaken = choose([wrong(candidates, limits)], limits)
        try:
            check(mistaken, plans, limits)
        except AssertionError:
            found += 1
    assert found > 0


@given(graph=graphs(1, 7), cpu=st.sampled_from([1.0, 1e3, inf]), memory=FIGURES)
def test_the_choice_is_the_same_every_time_and_truthful(
    graph: JoinGraph, cpu: float, memory: float
) -> None:
    limits = Limits(cpu, memory * 100)
    choice = limited(graph, limits)
    assert choice == limited(graph, limits)
    assert leaves(choice.plan.tree) == tuple(graph.inputs)
    again = Pricing(graph, Costs()).plan(choice.plan.tree)
    assert again.memory == choice.plan.memory
    assert choice.is_qualified == choice.plan.is_qualified(limits)
    assert all(one.plan.is_qualified(limits) for one in choice.best)
    assert bool(choice.best) == choice.is_qualified


@given(graph=graphs(2, 6))
def test_if_only_joins_of_two_are_wanted_there_are_no_others(graph: JoinGraph) -> None:
    choice = best_tree(graph, Costs(), binary=True)
    assert all(len(stage.children) == 2 for stage in stages(choice.plan.tree))


def test_a_product_is_made_where_nothing_else_is_qualified() -> None:
    # The ends are small, what is between them is large: their product is less than either link.
    graph = JoinGraph((2.0, 500.0, 2.0), (1.0,) * 3, {(0, 1): 0.9, (1, 2): 0.9})
    free = best_tree(graph, Costs(), clearly=1.0)
    held = best_tree(graph, Costs(), clearly=0.0001)
    assert free.plan.cpu < held.plan.cpu
    between = (free.plan.cpu + held.plan.cpu) / 2
    choice = best_tree(graph, Costs(), between, clearly=0.0001)
    assert choice.is_qualified
    assert choice.plan.tree == free.plan.tree


def test_why_says_what_there_would_have_to_be() -> None:
    graph = JoinGraph((10.0, 10.0, 10.0), (10.0,) * 3, {(0, 1): 0.01, (1, 2): 0.1})
    mjoin = best_tree(graph, Costs(), memory_limit=301).plan
    binary = best_tree(graph, Costs()).plan
    assert (mjoin.memory, binary.memory) == pytest.approx((300, 400))
    choice = best_tree(graph, Costs(), (mjoin.cpu + binary.cpu) / 2, 350)
    assert not choice.is_qualified
    assert choice.needs.cpu == pytest.approx(mjoin.cpu)
    assert choice.needs.memory == pytest.approx(binary.memory)
    assert f"it would need CPU {mjoin.cpu:.4g} or memory 400" in choice.why
    assert best_tree(graph, Costs(), mjoin.cpu, 350).is_qualified
    assert best_tree(graph, Costs(), choice.limits.cpu, 401).is_qualified
    nothing = best_tree(graph, Costs(), 1, 1)
    assert "CPU" in nothing.needs.text()
    assert "and memory 3" in nothing.needs.text() or "and memory 4" in nothing.needs.text()


# The box


def test_a_search_that_is_too_long_ends_and_says_so() -> None:
    graph = drawn(Random(5), 12, "clique", share=(0.001, 1))  # noqa: S311 — a seed
    short = best_tree(graph, Costs(), 1e5, 1e3, effort=Effort(steps=500))
    assert "the search ended by its number of steps" in short.why
    assert short == best_tree(graph, Costs(), 1e5, 1e3, effort=Effort(steps=500))
    long = best_tree(graph, Costs(), 1e5, 1e3, effort=Effort(steps=1e6))
    assert long.looked_at > short.looked_at
    assert long.plan.badness(long.limits) <= short.plan.badness(long.limits)


def test_a_clock_can_end_it_earlier_and_is_told_of() -> None:
    graph = drawn(Random(5), 12, "clique", share=(0.001, 1))  # noqa: S311 — a seed
    choice = best_tree(graph, Costs(), 1e5, 1e3, effort=Effort(stop=lambda: True))
    assert choice.ended_by == "a clock"


@pytest.mark.parametrize("shape", [*SHAPES, "class"])
def test_twelve_inputs_under_limits_take_less_than_a_second(shape: str) -> None:
    graph = drawn(Random(5), 12, shape, share=(0.001, 1))  # noqa: S311 — a seed, not a secret
    free = best_tree(graph, Costs())
    for cpu, memory in ((2.0, 1.5), (1.01, 0.5), (0.1, 0.1)):
        began = process_time()
        best_tree(graph, Costs(), free.plan.cpu * cpu, free.plan.memory * memory)
        assert process_time() - began < 1
