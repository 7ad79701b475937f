"""The tree that is chosen for a join, of however many inputs, under limits (Z23, Z32, Z33).

Looked at are one stage of all inputs; min-state; joins one after the other, in each order that is
found for a stage of all; and the cheapest tree of binary joins, if conditions leave few enough sets
for dynamic programming. Of few inputs all trees are looked at. Of more, the strategies go on from
these plans: state selection, state removal, and the descent from what lacks least; of six, all
trees are looked at if nothing that was found is qualified. All of that in a box: a search that is
too long ends, and the choice says so.

Of the plans that are qualified the cheapest is chosen. If there is none, the choice says what it
would need.

Two inputs that no condition links are joined only where the conditions do not hold all inputs
together, or where it is clearly cheaper, or where nothing else is qualified: estimates are rough,
and a product that was thought to be small may be the end of a query. The same graph always gives
the same tree. Where costs are equal, the tree with the lesser numbers first is chosen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from tidemill.optimizer.search.box import Box
from tidemill.optimizer.search.candidate import Candidate
from tidemill.optimizer.search.choice import Choice, choose
from tidemill.optimizer.search.connected import connected_tree
from tidemill.optimizer.search.costs import Limits
from tidemill.optimizer.search.exhaustive import best_plans
from tidemill.optimizer.search.min_state import min_state
from tidemill.optimizer.search.model import alike
from tidemill.optimizer.search.pareto import best_of
from tidemill.optimizer.search.strategies import bjtree_init, descent, mjoin_init
from tidemill.optimizer.search.tree_cost import Pricing
from tidemill.physical.joining.tree import flat, left_deep, stages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tidemill.optimizer.search.costs import Costs
    from tidemill.optimizer.search.join_graph import JoinGraph
    from tidemill.optimizer.search.model import Model
    from tidemill.optimizer.search.tree_cost import Plan
    from tidemill.physical.joining.tree import JoinTree

__all__ = ["CLEARLY", "EFFORT", "Effort", "best_tree", "has_product"]

_ORDERS = 12
"""How many orders of joining one after the other are looked at."""

CLEARLY = 0.5
"""A plan with a Cartesian product is chosen if it costs less than this share of others."""

ALL_TREES = 5
"""Of so many inputs all trees are looked at: some 10 ms."""

_MORE = 1
"""Of so many more they are if nothing else is qualified: some 70 ms."""

_DESCENTS = 4
"""From so many plans the descent begins, as long as nothing is qualified."""

STEPS = 6_000
"""So many steps of probing are priced beyond the plain plans: less than a tenth of a second."""

_FEW = 20
"""Of so many inputs the search is repeated with products, if nothing is qualified."""

_TWO = 2


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is done to find a plan.

    Attributes:
        all_trees: Of how many inputs all trees are looked at; of one more, if nothing else is
            qualified.
        steps: How many steps of probing are priced beyond the plain plans before the search ends.
        stop: Asked now and then whether to end earlier, as by a clock. It ought never to be needed:
            the choice then depends on when it says so.
    """

    all_trees: int = ALL_TREES
    steps: float = STEPS
    stop: Callable[[], bool] | None = None


EFFORT = Effort()
"""What is done unless something else is asked for."""


def best_tree(  # noqa: PLR0913 — limits and wishes, each of its own kind
    graph: JoinGraph,
    costs: Costs,
    cpu_limit: float | None = None,
    memory_limit: float | None = None,
    *,
    clearly: float = CLEARLY,
    binary: bool = False,
    effort: Effort = EFFORT,
) -> Choice:
    """The tree to join by.

    Args:
        graph: What is joined.
        costs: What is charged.
        cpu_limit: How much CPU it may take; any amount if it is not given.
        memory_limit: How many rows its states may have.
        clearly: A Cartesian product that the conditions do not ask for is chosen if the plan costs
            less than this share of the best one without.
        binary: Whether only joins of two are wanted; limits count, but no tree is searched for
            because of them.
        effort: How much is done to find it.
    """
    limits = Limits(
        inf if cpu_limit is None else cpu_limit, inf if memory_limit is None else memory_limit
    )
    choice = _chosen(graph, costs, limits, clearly, effort, binary=binary)
    if not choice.is_qualified and clearly < 1 and len(graph.inputs) <= _FEW:
        # An order with a product may help a stage.
        half = replace(effort, steps=effort.steps / _TWO)
        return _chosen(graph, costs, limits, 1.0, half, binary=binary)
    return choice


def _chosen(  # noqa: PLR0913 — what is asked for
    graph: JoinGraph, costs: Costs, limits: Limits, clearly: float, effort: Effort, *, binary: bool
) -> Choice:
    pricing = Pricing(graph, costs, clearly=clearly, box=Box(effort.steps, effort.stop))
    candidates = list(_plain(pricing, limits, binary=binary))
    if not binary and len(graph.inputs) > _TWO:
        candidates += _searched(pricing, limits, candidates, effort.all_trees)
    return choose(
        _without_needless_products(pricing.model, candidates, limits, clearly),
        limits,
        others=candidates,
        looked_at=pricing.looked_at,
        ended_by=pricing.box.ended_by,
    )


def has_product(model: Model, tree: JoinTree) -> bool:
    """Whether a stage joins parts that conditions do not hold together, though they could be."""
    return not all(model.is_held(stage.masks) for stage in stages(tree))


def _plain(pricing: Pricing, limits: Limits, *, binary: bool) -> Iterator[Candidate]:
    """The plans that are looked at in any case."""
    model = pricing.model
    mjoin = pricing.plan(flat(model.graph.inputs))
    if not binary or len(model.graph.inputs) <= _TWO:
        yield Candidate("one stage", mjoin)
    yield Candidate("min-state", pricing.plan(min_state(model)))
    yield Candidate("min-state with products", pricing.plan(min_state(model, cartesian=True)))
    yield Candidate("one after the other", _cheapest_left_deep(pricing, mjoin, limits))
    parts = [connected_tree(pricing, component) for component in model.components()]
    trees = [part for part in parts if part is not None]
    if len(trees) == len(parts):
        yield Candidate("dynamic programming", pricing.plan(min_state(model, trees)))


def _cheapest_left_deep(pricing: Pricing, mjoin: Plan, limits: Limits) -> Plan:
    """The cheapest of the trees that join in an order in which a stage of all is probed."""
    if isinstance(mjoin.tree, int):
        return mjoin
    orders = [(root, *order) for root, order in enumerate(mjoin.orders[mjoin.tree])]
    # Where there are many, those that begin with few rows.
    orders.sort(key=lambda order: (alike(pricing.model.graph.rows(order[0])), order))
    plans = [pricing.plan(left_deep(order)) for order in orders[:_ORDERS]]
    return min(plans, key=lambda plan: (plan.badness(limits)[0], plan.rating))


def _searched(
    pricing: Pricing, limits: Limits, plain: list[Candidate], all_trees: int
) -> Iterator[Candidate]:
    """What is found beyond the plain plans."""
    count = len(pricing.model.graph.inputs)
    if count <= all_trees:
        yield from _all_trees(pricing)
        return
    found = list(plain)
    for one in _strategies(pricing, limits, plain):
        found.append(one)
        yield one
    if count <= all_trees + _MORE and not any(one.plan.is_qualified(limits) for one in found):
        yield from _all_trees(pricing)


def _strategies(pricing: Pricing, limits: Limits, plain: list[Candidate]) -> Iterator[Candidate]:
    """The plans on the ways of the strategies: a plan of each in turn, then the descent."""
    box = pricing.box
    half = box.most / _TWO  # the descent has the other half
    box.most = box.steps + half
    binary = [one.plan for one in plain if one.found_by != "one stage"]
    found = [one.plan for one in plain]
    cheapest = min(binary, key=lambda plan: plan.rating)
    ways = {
        "mjoin-init": mjoin_init(pricing, limits),
        "bjtree-init": bjtree_init(pricing),
        "bjtree-init from the cheapest": bjtree_init(pricing, cheapest),
    }
    while ways:
        for name in list(ways):
            plan = next(ways[name], None)
            if plan is None:
                del ways[name]
            else:
                found.append(plan)
                yield Candidate(name, plan)
    box.most, box.ended_by = box.steps + half, ""
    undominated = [one.plan for one in best_of(Candidate("", plan) for plan in found)]
    for start in sorted(undominated, key=lambda plan: plan.badness(limits))[:_DESCENTS]:
        end = start
        for end in descent(pricing, limits, start):
            yield Candidate("descent", end)
        if end.is_qualified(limits):
            return


def _all_trees(pricing: Pricing) -> Iterator[Candidate]:
    """All plans that none dominates, first those without needless products."""
    if len(list(pricing.model.components())) == 1:
        for plan in best_plans(pricing, products=False):
            yield Candidate("all trees without products", plan)
    for plan in best_plans(pricing):
        yield Candidate("all trees", plan)


def _without_needless_products(
    model: Model, candidates: list[Candidate], limits: Limits, clearly: float
) -> list[Candidate]:
    """Those with a product only if they cost clearly less than others, or if no other will do."""
    qualified = [one for one in candidates if one.plan.is_qualified(limits)] or candidates
    if len(list(model.components())) > 1:
        return qualified
    held = [one for one in qualified if not has_product(model, one.plan.tree)]
    least = min((one.plan.cpu for one in held), default=inf)
    return held + [
        one
        for one in qualified
        if has_product(model, one.plan.tree) and one.plan.cpu < clearly * least
    ]
