"""The tree that is chosen: without limits, of few and of many inputs, with and without figures."""

from __future__ import annotations

from random import Random
from time import process_time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from join_graphs import SHAPES, chain_of, drawn, graphs
from tidemill.optimizer.search.best import best_tree, has_product
from tidemill.optimizer.search.costs import Costs
from tidemill.optimizer.search.min_state import min_state
from tidemill.optimizer.search.model import Model
from tidemill.optimizer.search.tree_cost import Pricing
from tidemill.physical.joining.tree import flat, leaves

if TYPE_CHECKING:
    from tidemill.optimizer.search.join_graph import JoinGraph


@given(graph=graphs(1, 6))
def test_the_choice_is_the_same_every_time_and_no_dearer_than_the_plain_plans(
    graph: JoinGraph,
) -> None:
    choice = best_tree(graph, Costs(), clearly=1.0)
    assert choice == best_tree(graph, Costs(), clearly=1.0)
    assert choice.is_qualified
    assert leaves(choice.plan.tree) == tuple(graph.inputs)
    pricing = Pricing(graph, Costs())
    for tree in (flat(graph.inputs), min_state(pricing.model)):
        assert choice.plan.cpu <= pricing.plan(tree).cpu * (1 + 1e-6)


@given(count=st.integers(2, 12), data=st.data())
def test_where_nothing_is_known_a_chain_is_joined_along_its_links(
    count: int, data: st.DataObject
) -> None:
    graph = chain_of(tuple(data.draw(st.permutations(range(count)))))
    choice = best_tree(graph, Costs())
    assert not has_product(Model(graph, Costs()), choice.plan.tree)


@pytest.mark.parametrize("shape", [*SHAPES, "class"])
@pytest.mark.parametrize("share", [(0.1, 0.1), (0.001, 1.0)])
def test_sixty_four_inputs_take_less_than_half_a_second(
    shape: str, share: tuple[float, float]
) -> None:
    graph = drawn(Random(5), 64, shape, share=share)  # noqa: S311 — a seed, not a secret
    began = process_time()
    choice = best_tree(graph, Costs())
    assert process_time() - began < 0.5
    assert leaves(choice.plan.tree) == tuple(range(64))
