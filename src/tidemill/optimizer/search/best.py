"""The tree that is chosen for a join, of however many inputs (Z32).

Looked at are one stage of all inputs; min-state; joins one after the other, in each order that is
found for a stage of all; and the cheapest tree of binary joins, if conditions leave few enough sets
for dynamic programming. The cheapest of them is made cheaper still by merging stages, as long as
that helps.

Two inputs that no condition links are joined only where the conditions do not hold all inputs
together, or where it is clearly cheaper: estimates are rough, and a product that was thought to be
small may be the end of a query. The same graph always gives the same tree. Where costs are equal,
the tree with the lesser numbers first is chosen.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from tidemill.optimizer.search.choice import Candidate, Choice, choose
from tidemill.optimizer.search.connected import connected_tree
from tidemill.optimizer.search.costs import Limits
from tidemill.optimizer.search.min_state import min_state
from tidemill.optimizer.search.model import alike
from tidemill.optimizer.search.tree import JoinTree, flat, left_deep, stages
from tidemill.optimizer.search.tree_cost import Plan, Pricing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.optimizer.search.costs import Costs
    from tidemill.optimizer.search.join_graph import JoinGraph
    from tidemill.optimizer.search.model import Model

__all__ = ["CLEARLY", "best_tree", "has_product"]

_ORDERS = 12
"""How many orders of joining one after the other are looked at."""

CLEARLY = 0.5
"""A plan with a Cartesian product is chosen if it costs less than this share of others."""


def best_tree(
    graph: JoinGraph,
    costs: Costs,
    cpu_limit: float | None = None,
    memory_limit: float | None = None,
    *,
    clearly: float = CLEARLY,
) -> Choice:
    """The tree to join by.

    Args:
        graph: What is joined.
        costs: What is charged.
        cpu_limit: How much CPU it may take; any amount if it is not given.
        memory_limit: How many rows its states may have.
        clearly: A Cartesian product that the conditions do not ask for is chosen if the plan costs
            less than this share of the best one without.
    """
    limits = Limits(
        inf if cpu_limit is None else cpu_limit, inf if memory_limit is None else memory_limit
    )
    pricing = Pricing(graph, costs, clearly=clearly)
    candidates = list(_candidates(pricing))
    return choose(_without_needless_products(pricing.model, candidates, clearly), limits)


def has_product(model: Model, tree: JoinTree) -> bool:
    """Whether a stage joins parts that conditions do not hold together, though they could be."""
    return any(not _is_held(model, stage.masks) for stage in stages(tree))


def _is_held(model: Model, parts: tuple[int, ...]) -> bool:
    reached, left = parts[0], list(parts[1:])
    while left:
        beside = [part for part in left if model.is_linked(reached, part)]
        if not beside:
            return False
        for part in beside:
            reached |= part
            left.remove(part)
    return True


def _candidates(pricing: Pricing) -> Iterator[Candidate]:
    model = pricing.model
    mjoin = pricing.plan(flat(model.graph.inputs))
    yield Candidate("one stage", mjoin)
    yield Candidate("min-state", pricing.plan(min_state(model)))
    yield Candidate("min-state with products", pricing.plan(min_state(model, cartesian=True)))
    yield Candidate("one after the other", _cheapest_left_deep(pricing, mjoin))
    parts = [connected_tree(pricing, component) for component in model.components()]
    trees = [part for part in parts if part is not None]
    if len(trees) == len(parts):
        yield Candidate("dynamic programming", pricing.plan(min_state(model, trees)))


def _cheapest_left_deep(pricing: Pricing, mjoin: Plan) -> Plan:
    """The cheapest of the trees that join in an order in which a stage of all is probed."""
    if isinstance(mjoin.tree, int):
        return mjoin
    orders = [(root, *order) for root, order in enumerate(mjoin.orders[mjoin.tree])]
    # Where there are many, those that begin with few rows.
    orders.sort(key=lambda order: (alike(pricing.model.graph.rows(order[0])), order))
    plans = [pricing.plan(left_deep(order)) for order in orders[:_ORDERS]]
    return min(plans, key=lambda plan: plan.rating)


def _without_needless_products(
    model: Model, candidates: list[Candidate], clearly: float
) -> list[Candidate]:
    """Those with a product only if they cost clearly less than any without."""
    if len(list(model.components())) > 1:
        return candidates
    held = [one for one in candidates if not has_product(model, one.plan.tree)]
    least = min(one.plan.cpu for one in held)
    return held + [
        one
        for one in candidates
        if has_product(model, one.plan.tree) and one.plan.cpu < clearly * least
    ]
