"""What a tree costs: the printed formulas, a slow account of the same, and what limits allow."""

from __future__ import annotations

from itertools import pairwise, permutations
from math import prod
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from join_graphs import acyclic, graphs
from tidemill.optimizer.search.costs import Costs, Counting, Limits, Purge
from tidemill.optimizer.search.join_graph import JoinGraph
from tidemill.optimizer.search.model import Model
from tidemill.optimizer.search.order import probing_cost
from tidemill.optimizer.search.tree_cost import Pricing
from tidemill.physical.joining.tree import JoinTree, Stage, flat, leaves, mask_of, stages

if TYPE_CHECKING:
    from collections.abc import Iterator

LEFT = Stage((Stage((0, 1)), 2))
ANY = st.floats(0.01, 50)

ALL_COSTS = [
    Costs(counting=counting, purge=purge, output=output, buckets={(0, 1): 5, (1, 2): 8})
    for counting in Counting
    for purge in Purge
    for output in (0.0, 2.0)
]


@given(rates=st.tuples(ANY, ANY, ANY), w=ANY, ab=st.floats(0, 1), bc=st.floats(0, 1), c=st.data())
def test_the_printed_formulas_of_three_inputs(
    rates: tuple[float, float, float], w: float, ab: float, bc: float, c: st.DataObject
) -> None:
    ci, cd, cj = (c.draw(ANY) for _ in range(3))
    costs = Costs(insert=ci, delete=cd, compare=cj)
    graph = JoinGraph(rates, (w,) * 3, {(0, 1): ab, (1, 2): bc})
    pricing = Pricing(graph, costs)
    a, b, d = rates
    both = ab * bc
    # The orders A B C, B A C and C B A are those of the formula, and not always the best.
    orders = {0: (1, 2), 1: (0, 2), 2: (1, 0)}
    mjoin = (a + b + d) * (ci + cd) + cj * sum(
        rates[root] * _matches(graph, root, order) for root, order in orders.items()
    )
    printed = (a + b + d) * (ci + cd) + cj * (
        2 * a * b * ab * w + b * d * bc * w + 3 * a * b * d * both * w**2
    )
    assert mjoin == pytest.approx(printed)
    plan = pricing.plan(flat(range(3)))
    assert plan.memory == pytest.approx((a + b + d) * w)
    assert plan.cpu <= printed * (1 + 1e-9)
    if plan.orders[Stage((0, 1, 2))] == ((1, 2), (0, 2), (1, 0)):
        assert plan.cpu == pytest.approx(printed)
    binary = pricing.plan(LEFT)
    in_the_middle = 2 * a * b * ab * w
    assert binary.cpu == pytest.approx(
        (a + b + d) * (ci + cd) + 3 * a * b * d * both * w**2 * cj + in_the_middle * (cj + ci + cd)
    )
    assert binary.memory == pytest.approx((a + b + d) * w + a * b * ab * w**2)


def _matches(graph: JoinGraph, root: int, order: tuple[int, ...]) -> float:
    """Pairs that match for a row of a root, as the formula for mjoins sums them."""
    found, flow, prefix = 0.0, 1.0, [root]
    for number in order:
        flow *= graph.size({number}) * prod(graph.selectivity(number, one) for one in prefix)
        found += flow
        prefix.append(number)
    return found


@given(graph=graphs(2, 5), data=st.data(), costs=st.sampled_from(ALL_COSTS))
def test_a_tree_costs_what_an_account_row_by_row_says(
    graph: JoinGraph, data: st.DataObject, costs: Costs
) -> None:
    tree = data.draw(trees(list(graph.inputs)))
    plan = Pricing(graph, costs).plan(tree)
    cpu = memory = 0.0
    for stage in stages(tree):
        for child, order in zip(stage.children, plan.orders[stage], strict=True):
            memory += _stored(graph, costs, child)
            rate = sum(_rate(graph, child, one) for one in leaves(child))
            cpu += rate * (costs.insert + costs.delete)
            cpu += rate * _probes(graph, costs, child, [stage.children[i] for i in order])
    assert plan.cpu == pytest.approx(cpu)
    assert plan.memory == pytest.approx(memory)


def _rate(graph: JoinGraph, tree: JoinTree, new: int) -> float:
    """How many results of a tree come because of new rows of an input."""
    return graph.rates[new] * graph.size(leaves(tree)) / graph.rows(new)


def _stored(graph: JoinGraph, costs: Costs, tree: JoinTree) -> float:
    parts = leaves(tree)
    return graph.size(parts) * (len(parts) if costs.purge is Purge.MAX else 1)


def _probes(graph: JoinGraph, costs: Costs, child: JoinTree, others: list[JoinTree]) -> float:
    cost, flow, prefix = 0.0, 1.0, list(leaves(child))
    for other in others:
        pairs = [(a, b) for a in prefix for b in leaves(other)]
        matched = flow * graph.size([*prefix, *leaves(other)]) / graph.size(prefix)
        scanned = flow * _stored(graph, costs, other)
        buckets = prod(_buckets(graph, costs, pairs))
        match costs.counting:
            case Counting.MATCHES:
                compared = matched
            case Counting.PAIRS:
                compared = scanned
            case Counting.BUCKETS:
                compared = max(scanned / buckets, matched)
            case Counting.KEYS:
                compared = scanned * prod(_keys(graph, prefix, leaves(other)))
        cost += costs.compare * compared + costs.output * matched
        flow = matched
        prefix += leaves(other)
    return cost


def _keys(graph: JoinGraph, prefix: list[int], part: tuple[int, ...]) -> Iterator[float]:
    """The shares of pairs with equal keys: of edges, and of classes with what is left of values."""
    yield from (graph.keys.get((min(a, b), max(a, b)), 1.0) for a in prefix for b in part)
    for class_ in graph.classes:
        sides = [[class_[i] for i in side if i in class_] for side in (prefix, part)]
        yield 1 / max(map(min, sides)) if all(sides) else 1.0


def _buckets(graph: JoinGraph, costs: Costs, pairs: list[tuple[int, int]]) -> Iterator[float]:
    """The number of buckets by each condition: an edge, or a class, whose value is hashed once."""
    ordered = [(min(pair), max(pair)) for pair in pairs]
    yield from (costs.buckets.get(pair, 1) for pair in ordered if pair in graph.selectivities)
    for class_ in graph.classes:
        inside = [pair for pair in ordered if class_.keys() >= set(pair)]
        yield max((costs.buckets.get(pair, 1) for pair in inside), default=1)


@st.composite
def trees(draw: st.DrawFn, inputs: list[int]) -> JoinTree:
    """Any tree of some inputs."""
    if len(inputs) == 1:
        return inputs[0]
    cuts = draw(st.lists(st.integers(1, len(inputs) - 1), min_size=1, unique=True))
    ends = [0, *sorted(cuts), len(inputs)]
    order = draw(st.permutations(inputs))
    groups = [order[a:b] for a, b in pairwise(ends)]
    return Stage(tuple(draw(trees(group)) for group in groups))


def test_cartesian_edges_find_the_order_of_the_example() -> None:
    graph = JoinGraph((100.0, 1.0, 10.0), (5.0,) * 3, {(0, 1): 0.5, (0, 2): 0.04})
    costs = Costs(insert=0, delete=0)
    free = Pricing(graph, costs).plan(flat(range(3)))
    held = Pricing(graph, costs, clearly=0).plan(flat(range(3)))
    stage = Stage((0, 1, 2))
    # A row of B: B A C makes 250 + 500 pairs, B C A makes 50 + 500.
    assert (held.orders[stage][1], free.orders[stage][1]) == ((0, 2), (2, 0))
    model, parts = Model(graph, costs), (1, 2, 4)
    for order, printed in (((0, 2), 750), ((2, 0), 550)):
        assert probing_cost(model, parts, 1, order) == pytest.approx(printed)
        assert _matches(graph, 1, order) == pytest.approx(printed)
    assert free.cpu < held.cpu


@given(graph=graphs(2, 5))
def test_a_cartesian_edge_never_makes_it_dearer(graph: JoinGraph) -> None:
    held, free = (Pricing(graph, Costs(), clearly=c).plan(flat(graph.inputs)) for c in (0, 1))
    assert free.cpu <= held.cpu * (1 + 1e-9)


@given(graph=acyclic(2, 5), costs=st.sampled_from(ALL_COSTS[:6]))
def test_with_the_orders_of_a_stage_no_other_order_along_conditions_is_cheaper(
    graph: JoinGraph, costs: Costs
) -> None:
    plan = Pricing(graph, costs).plan(flat(graph.inputs))
    for root, order in enumerate(plan.orders[next(stages(plan.tree))]):
        cost = _probes(graph, costs, root, list(order))
        for other in permutations(order):
            prefix = {root}
            for number in other:
                if not any(graph.is_linked(number, one) for one in prefix):
                    break
                prefix.add(number)
            else:
                assert cost <= _probes(graph, costs, root, list(other)) * (1 + 1e-9)


def test_sixty_four_inputs_are_numbers_yet() -> None:
    edges = {(i, j): 1e-6 for i in range(64) for j in range(i + 1, 64)}
    for shares in ({}, edges):
        graph = JoinGraph((1e6,) * 64, (1e3,) * 64, shares)
        plan = Pricing(graph, Costs()).plan(LEFT)
        whole = Pricing(graph, Costs()).model.size(mask_of(flat(range(64))))
        assert 0 <= whole < float("inf")
        assert 0 < plan.cpu < float("inf")


def test_a_plan_is_qualified_up_to_the_limits() -> None:
    plan = Pricing(JoinGraph((2.0, 3.0), (1.0, 1.0), {}), Costs()).plan(Stage((0, 1)))
    assert plan.cpu == pytest.approx(22)
    assert plan.memory == pytest.approx(5)
    exactly = Limits(plan.cpu, plan.memory)
    assert plan.is_qualified()
    assert plan.is_qualified(exactly)
    assert not plan.is_qualified(Limits(plan.cpu * 0.99, plan.memory))
    assert not plan.is_qualified(Limits(plan.cpu, plan.memory * 0.99))
    assert exactly.share(plan.cpu / 2, plan.memory / 4) == pytest.approx(0.5)
