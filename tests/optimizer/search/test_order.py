"""Orders of probing: IK against all orders, the law of its ranks, and the greedy order."""

from __future__ import annotations

from itertools import permutations
from math import isclose
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from join_graphs import acyclic
from tidemill.optimizer.search.costs import Costs, Counting
from tidemill.optimizer.search.join_graph import JoinGraph
from tidemill.optimizer.search.model import Model
from tidemill.optimizer.search.order import (
    Module,
    greedy_order,
    ik_order,
    neighbours_of,
    probing_cost,
)
from tidemill.optimizer.search.spanning_tree import spanning_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

COSTS = [Costs(), Costs(counting=Counting.PAIRS, output=0.5), Costs(compare=0, output=1)]
SAME = 1e-9


def followed(graph: JoinGraph, root: int) -> Iterator[tuple[int, ...]]:
    """All orders in which each input is linked to one before it."""
    others = [number for number in graph.inputs if number != root]
    for order in permutations(others):
        before = [root]
        for number in order:
            if not any(graph.is_linked(number, one) for one in before):
                break
            before.append(number)
        else:
            yield order


def cost_of(graph: JoinGraph, costs: Costs, root: int, order: tuple[int, ...]) -> float:
    """What a row of a root costs, step by step."""
    cost, flow, before = 0.0, graph.rates[root], [root]
    for number in order:
        share = 1.0
        for one in before:
            share *= graph.selectivity(number, one)
        rows = graph.size({number})
        compared = rows if costs.counting is Counting.PAIRS else rows * share
        cost += flow * (costs.compare * compared + costs.output * rows * share)
        flow *= rows * share
        before.append(number)
    return cost


@settings(max_examples=3 * settings().max_examples)
@given(graph=acyclic(1, 6), costs=st.sampled_from(COSTS))
def test_ik_is_the_best_of_all_orders_along_the_conditions(graph: JoinGraph, costs: Costs) -> None:
    check(graph, costs)


@settings(max_examples=max(2, settings().max_examples // 8))
@given(graph=acyclic(7, 8), costs=st.sampled_from(COSTS))
def test_ik_is_the_best_up_to_eight(graph: JoinGraph, costs: Costs) -> None:
    check(graph, costs)


def check(graph: JoinGraph, costs: Costs) -> None:
    model = Model(graph, costs)
    parts = tuple(1 << i for i in graph.inputs)
    tree = neighbours_of(model, parts, spanning_tree(model, parts))
    for root in graph.inputs:
        found = ik_order(tree, root)
        best = min(cost_of(graph, costs, root, order) for order in followed(graph, root))
        assert isclose(cost_of(graph, costs, root, found), best, rel_tol=SAME)
        assert isclose(probing_cost(model, parts, root, found), best, rel_tol=1e-6)
        greedy = greedy_order(model, parts, root)
        assert sorted(greedy) == sorted(found)
        assert cost_of(graph, costs, root, greedy) >= best * (1 - SAME)


def test_the_greedy_order_does_not_look_behind_what_grows() -> None:
    # A grows by 3 and hides B, which shrinks to a thousandth; C grows by 2 and hides nothing.
    graph = JoinGraph(
        (1.0, 30.0, 10.0, 20.0), (1.0,) * 4, {(0, 1): 0.1, (1, 2): 0.0001, (0, 3): 0.1}
    )
    model = Model(graph, Costs())
    parts = tuple(1 << i for i in graph.inputs)
    tree = neighbours_of(model, parts, spanning_tree(model, parts))
    assert greedy_order(model, parts, 0) == (3, 1, 2)
    assert ik_order(tree, 0) == (1, 2, 3)
    assert cost_of(graph, Costs(), 0, (1, 2, 3)) < cost_of(graph, Costs(), 0, (3, 1, 2))


NUMBERS = st.floats(0.01, 100)
MODULES = st.builds(Module, st.just((0,)), NUMBERS, NUMBERS)


@given(before=MODULES, one=MODULES, other=MODULES, after=MODULES)
def test_neighbours_change_places_by_their_ranks(
    before: Module, one: Module, other: Module, after: Module
) -> None:
    first = before.then(one).then(other).then(after).cost
    second = before.then(other).then(one).then(after).cost
    if not isclose(first, second, rel_tol=1e-6):
        assert (first < second) == (one.rank < other.rank)


@given(one=MODULES, other=MODULES, third=MODULES)
def test_it_does_not_matter_how_modules_are_put_together(
    one: Module, other: Module, third: Module
) -> None:
    left, right = one.then(other).then(third), one.then(other.then(third))
    assert isclose(left.cost, right.cost, rel_tol=SAME)
    assert isclose(left.growth, right.growth, rel_tol=SAME)
