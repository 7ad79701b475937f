"""The tree that is chosen: without limits, of few and of many inputs, with and without figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from join_graphs import chain_of, graphs
from tidemill.optimizer.search.best import best_tree, has_product
from tidemill.optimizer.search.costs import Costs
from tidemill.optimizer.search.min_state import min_state
from tidemill.optimizer.search.model import Model
from tidemill.optimizer.search.tree import flat, leaves
from tidemill.optimizer.search.tree_cost import Pricing

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
