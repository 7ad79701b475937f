"""Strategies: what each promises of its way, and how often they find what there is."""

from __future__ import annotations

from itertools import product
from math import exp, log
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from join_graphs import SHAPES, drawn, graphs, stars
from tidemill.optimizer.search.best import Effort, best_tree
from tidemill.optimizer.search.costs import Costs, Counting, Limits
from tidemill.optimizer.search.exhaustive import best_plans
from tidemill.optimizer.search.extensions import all_trees
from tidemill.optimizer.search.join_graph import JoinGraph
from tidemill.optimizer.search.min_state import min_state
from tidemill.optimizer.search.model import Model
from tidemill.optimizer.search.neighbours import neighbours
from tidemill.optimizer.search.state_removal import state_removal
from tidemill.optimizer.search.state_selection import Rank, state_selection
from tidemill.optimizer.search.strategies import bjtree_init, descent, first_qualified, mjoin_init
from tidemill.optimizer.search.tree_cost import Pricing
from tidemill.physical.joining.tree import JoinTree, flat, leaves, stages, states, text

if TYPE_CHECKING:
    from collections.abc import Iterator

COSTS = [Costs(), Costs(counting=Counting.PAIRS, output=0.5), Costs(insert=20)]
MARGIN = 1 + 1e-6


def kept(model: Model, tree: JoinTree) -> float:
    """How many rows all intermediate states have."""
    return sum(model.size(state.mask) for state in states(tree))


def binary_trees(model: Model) -> Iterator[JoinTree]:
    """All trees of binary joins without products."""
    for tree in all_trees(len(model.graph.inputs)):
        if all(len(one.children) == 2 and model.is_held(one.masks) for one in stages(tree)):
            yield tree


# Min-state


@given(graph=stars(2, 5))
def test_min_state_keeps_least_on_stars(graph: JoinGraph) -> None:
    model = Model(graph, Costs())
    least = min(kept(model, tree) for tree in binary_trees(model))
    assert kept(model, min_state(model)) <= least * MARGIN


def test_min_state_may_keep_more_than_need_be_on_a_chain() -> None:
    edges = {(0, 1): 0.5, (1, 2): 0.5, (2, 3): 0.5}
    model = Model(JoinGraph((10.0, 10.0, 5.0, 10.0), (1.0,) * 4, edges), Costs())
    # The smallest pair is B C with 25 rows; but A B and C D have 50 and 25, and end at once.
    assert text(min_state(model)) == "((0 (1 2)) 3)"
    best = min(binary_trees(model), key=lambda tree: kept(model, tree))
    assert text(best) == "((0 1) (2 3))"
    assert (kept(model, min_state(model)), kept(model, best)) == pytest.approx((150, 75))


# State selection and state removal


@given(graph=graphs(3, 6), costs=st.sampled_from(COSTS), rank=st.sampled_from(Rank), data=st.data())
def test_state_selection_makes_each_plan_cheaper_and_stays_within_memory(
    graph: JoinGraph, costs: Costs, rank: Rank, data: st.DataObject
) -> None:
    pricing = Pricing(graph, costs)
    mjoin = pricing.plan(flat(graph.inputs))
    limits = Limits(memory=mjoin.memory * data.draw(st.sampled_from([1.0, 1.2, 3.0, 100.0])))
    plan = mjoin
    for found in state_selection(pricing, limits, rank=rank):
        assert leaves(found.tree) == tuple(graph.inputs)
        assert found.cpu < plan.cpu
        assert found.memory <= limits.memory
        plan = found


@given(graph=graphs(2, 6), costs=st.sampled_from(COSTS))
def test_state_removal_takes_one_state_after_the_other_down_to_one_stage(
    graph: JoinGraph, costs: Costs
) -> None:
    pricing = Pricing(graph, costs)
    plan = pricing.plan(min_state(pricing.model))
    assert len(states(plan.tree)) == len(graph.inputs) - 2
    for found in state_removal(pricing, plan):
        before, after = ({state.mask for state in states(one.tree)} for one in (plan, found))
        assert after < before
        assert len(after) == len(before) - 1
        assert found.memory <= plan.memory * MARGIN
        plan = found
    assert plan.tree == flat(graph.inputs)


def test_operators_are_merged_where_both_resources_fall() -> None:
    chosen = Random(3)  # noqa: S311 — a seed, not a secret
    larger = 0
    for _ in range(60):
        graph = drawn(chosen, 5, "clique", share=(0.01, 1))
        for plan in state_selection(Pricing(graph, COSTS[0])):
            below = (len(stage.children) for stage in states(plan.tree))
            larger += any(count > 2 for count in below)
    assert larger > 0


@given(graph=graphs(2, 5), data=st.data())
def test_a_descent_ends_where_no_neighbour_is_better(graph: JoinGraph, data: st.DataObject) -> None:
    pricing = Pricing(graph, Costs())
    start = pricing.plan(data.draw(st.sampled_from(list(all_trees(len(graph.inputs))))))
    limits = Limits(start.cpu / 2, start.memory)
    end = start
    for plan in descent(pricing, limits, start):
        assert plan.badness(limits) < end.badness(limits)
        end = plan
    assert all(
        pricing.plan(tree).badness(limits) >= end.badness(limits) for tree in neighbours(end.tree)
    )


@pytest.mark.parametrize("inputs", [2, 3, 4])
def test_each_tree_can_be_reached_by_moves(inputs: int) -> None:
    trees = set(map(text, all_trees(inputs)))
    reached, ahead = {text(flat(range(inputs)))}, [flat(range(inputs))]
    for tree in ahead:
        for found in neighbours(tree):
            assert text(found) in trees
            assert text(found) != text(tree)
            if text(found) not in reached:
                reached.add(text(found))
                ahead.append(found)
    assert reached == trees


# How often they find what there is


def settings_of(chosen: Random, inputs: int, shape: str) -> tuple[JoinGraph, Costs, Limits, bool]:
    """A graph as Zhu draws them, limits between what the best plans take, and if one is in them."""
    costs = chosen.choice(COSTS[:2])
    share = chosen.choice([(0.0001, 1.0), (0.001, 0.1), (0.02, 0.5)])
    graph = drawn(chosen, inputs, shape, window=chosen.choice([1.0, 5.0, 15.0]), share=share)
    best = best_plans(Pricing(graph, costs))
    cpu = _between(chosen, best[0].cpu, best[-1].cpu)
    limits = Limits(cpu, _between(chosen, best[-1].memory, best[0].memory))
    return graph, costs, limits, any(plan.is_qualified(limits) for plan in best)


def _between(chosen: Random, least: float, most: float) -> float:
    return exp(chosen.uniform(log(least), log(most))) * MARGIN


@pytest.mark.parametrize("shape", [*SHAPES, "class"])
def test_the_strategies_find_a_plan_in_nine_of_ten_cases_where_there_is_one(shape: str) -> None:
    chosen = Random(f"found {shape}")  # noqa: S311 — a seed, not a secret
    possible = found = of_two = 0
    while possible < 30:
        graph, costs, limits, is_possible = settings_of(chosen, chosen.choice([4, 5]), shape)
        if not is_possible:
            continue
        possible += 1
        pricing = Pricing(graph, costs)
        ways = mjoin_init(pricing, limits), bjtree_init(pricing)
        of_two += any(first_qualified(way, limits) is not None for way in ways)
        few = Effort(all_trees=0)  # the strategies, and not all trees
        choice = best_tree(graph, costs, limits.cpu, limits.memory, effort=few)
        assert choice.is_qualified == choice.plan.is_qualified(limits)
        found += choice.is_qualified
    assert found >= 0.9 * possible
    assert of_two >= 0.6 * possible


@pytest.mark.parametrize("way", ["mjoin-init", "bjtree-init"])
def test_what_a_strategy_calls_qualified_is(way: str) -> None:
    chosen = Random(7)  # noqa: S311 — a seed, not a secret
    for shape, inputs in product((*SHAPES, "class"), (3, 4, 5)):
        graph, costs, limits, _ = settings_of(chosen, inputs, shape)
        pricing = Pricing(graph, costs)
        plans = mjoin_init(pricing, limits) if way == "mjoin-init" else bjtree_init(pricing)
        if (found := first_qualified(plans, limits)) is not None:
            again = Pricing(graph, costs).plan(found.tree)
            assert (again.cpu, again.memory) == (found.cpu, found.memory)
            assert again.cpu <= limits.cpu
            assert again.memory <= limits.memory
