"""All trees: how many there are, and that dynamic programming finds the best of them."""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from join_graphs import graphs
from tidemill.optimizer.search.choice import Candidate
from tidemill.optimizer.search.costs import Costs, Counting, Limits
from tidemill.optimizer.search.exhaustive import best_plans, splits
from tidemill.optimizer.search.extensions import all_trees, extensions
from tidemill.optimizer.search.join_graph import JoinGraph
from tidemill.optimizer.search.pareto import best_of
from tidemill.optimizer.search.tree_cost import Pricing
from tidemill.physical.joining.tree import leaves, stages, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.optimizer.search.tree_cost import Plan

MARGIN = 1 + 1e-6
COSTS = [Costs(), Costs(counting=Counting.PAIRS, output=0.5), Costs(insert=20, step=3)]
SHARES = st.sampled_from([0.9, 1.0001, 1.5, 4.0])


def of_all(pricing: Pricing) -> list[Plan]:
    """The plans of all trees, one by one: what dynamic programming is compared with."""
    return [pricing.plan(tree) for tree in all_trees(len(pricing.model.graph.inputs))]


@pytest.mark.parametrize(
    ("inputs", "printed"), [(1, 1), (2, 1), (3, 4), (4, 26), (5, 236), (6, 2_752)]
)
def test_there_are_so_many_trees_and_none_twice(inputs: int, printed: int) -> None:
    trees = list(all_trees(inputs))
    assert len(trees) == printed
    # Children stand in one order, so that equal trees have one text.
    assert len({text(tree) for tree in trees}) == printed
    assert all(leaves(tree) == tuple(range(inputs)) for tree in trees)


@pytest.mark.parametrize("inputs", [1, 2, 3, 4, 5])
def test_a_tree_of_m_leaves_and_k_stages_is_extended_in_m_plus_2k_ways(inputs: int) -> None:
    for tree in all_trees(inputs):
        assert len(list(extensions(tree, inputs))) == inputs + 2 * len(list(stages(tree)))


def test_a_set_is_split_in_as_many_ways_as_there_are_partitions() -> None:
    bell = [1, 1]
    for n in range(2, 8):
        bell.append(sum(comb(n - 1, k) * bell[k] for k in range(n)))
        found = list(splits((1 << n) - 1))
        assert len(found) == len({frozenset(parts) for parts in found}) == bell[n] - 1
        assert all(sum(parts) == (1 << n) - 1 for parts in found)


@settings(max_examples=max(5, settings().max_examples // 2))
@given(graph=graphs(1, 5), costs=st.sampled_from(COSTS), data=st.data())
def test_a_qualified_plan_is_found_whenever_there_is_one(
    graph: JoinGraph, costs: Costs, data: st.DataObject
) -> None:
    plans = of_all(Pricing(graph, costs))
    some = data.draw(st.sampled_from(plans))
    limits = Limits(some.cpu * data.draw(SHARES), some.memory * data.draw(SHARES))
    check_qualified(plans, best_plans(Pricing(graph, costs), limits), limits)


def check_qualified(plans: list[Plan], found: tuple[Plan, ...], limits: Limits) -> None:
    """What is found is within the limits, and something is if something clearly is."""
    assert all(plan.cpu <= limits.cpu and plan.memory <= limits.memory for plan in found)
    for plan in plans:
        if plan.is_qualified(Limits(limits.cpu / MARGIN, limits.memory / MARGIN)):
            assert any(
                one.cpu <= plan.cpu * MARGIN and one.memory <= plan.memory * MARGIN for one in found
            )


@settings(max_examples=max(5, settings().max_examples // 4))
@given(graph=graphs(1, 5), costs=st.sampled_from(COSTS))
def test_without_limits_the_best_plans_are_those_of_all_trees(
    graph: JoinGraph, costs: Costs
) -> None:
    wanted = best_of(Candidate("", plan) for plan in of_all(Pricing(graph, costs)))
    found = best_plans(Pricing(graph, costs))
    assert [plan.cpu for plan in found] == pytest.approx([one.plan.cpu for one in wanted])
    assert [plan.memory for plan in found] == pytest.approx([one.plan.memory for one in wanted])


@given(graph=graphs(2, 5))
def test_without_products_all_stages_are_held_together(graph: JoinGraph) -> None:
    pricing = Pricing(graph, Costs())
    found = best_plans(pricing, products=False)
    if len(list(pricing.model.components())) == 1:
        assert found
    assert all(pricing.model.is_held(stage.masks) for plan in found for stage in stages(plan.tree))


# What the law says of the printed search, and of other shortcuts


def as_printed(pricing: Pricing, limits: Limits) -> tuple[Plan, ...]:
    """The search as it is listed: an incomplete plan that takes too much of both is dropped."""
    count = len(pricing.model.graph.inputs)
    plans = [pricing.plan(0)]
    for plan in plans:
        new = max(leaves(plan.tree)) + 1
        for tree in extensions(plan.tree, new) if new < count else ():
            extended = pricing.plan(tree)
            if new + 1 == count and extended.is_qualified(limits):
                return (extended,)
            if extended.memory <= limits.memory or extended.cpu <= limits.cpu:
                plans.append(extended)
    return ()


def cheapest_parts(pricing: Pricing, limits: Limits) -> tuple[Plan, ...]:
    """Only the cheapest of all plans is looked at."""
    best = best_plans(pricing)[0]
    return (best,) if best.is_qualified(limits) else ()


# A row of 3 matches little: in the end it makes everything small, from below.
LATE = JoinGraph((1.0, 1.0, 10.0, 1.0), (1.0,) * 4, {(0, 1): 0.1, (0, 3): 0.1, (2, 3): 0.001})


@pytest.mark.parametrize("search", [as_printed, cheapest_parts])
def test_the_law_finds_what_is_wrong(
    search: Callable[[Pricing, Limits], tuple[Plan, ...]],
) -> None:
    pricing = Pricing(LATE, Costs())
    plans = of_all(pricing)
    end = -1 if search is cheapest_parts else 0
    wanted = best_plans(pricing)[end]
    limits = Limits(wanted.cpu * 1.0001, wanted.memory * 1.0001)
    check_qualified(plans, best_plans(pricing, limits), limits)
    with pytest.raises(AssertionError):
        check_qualified(plans, search(pricing, limits), limits)
