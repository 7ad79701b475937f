"""How often a plan is found where there is one, by the kind of the join graph.

Limits are drawn between the least and the most that the best plans take, so that most of them are
hard: it is not enough to have little of one. Which plans there are, is known from all trees.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise
from math import exp, log
from random import Random
from typing import TYPE_CHECKING

from tidemill.optimizer.search.best import Effort, best_tree
from tidemill.optimizer.search.costs import Costs, Counting, Limits
from tidemill.optimizer.search.exhaustive import best_plans
from tidemill.optimizer.search.join_graph import JoinGraph
from tidemill.optimizer.search.state_selection import Rank
from tidemill.optimizer.search.strategies import bjtree_init, first_qualified, mjoin_init
from tidemill.optimizer.search.tree_cost import Pricing

if TYPE_CHECKING:
    from tidemill.optimizer.search.tree_cost import Plan

__all__ = ["KINDS", "Rates", "rates"]

KINDS = ("chain", "star", "tree", "cycle", "clique", "one value")
_TWO = 2


@dataclass(frozen=True, slots=True)
class Rates:
    """In which share of the settings with a qualified plan something finds one.

    Attributes:
        mjoin: Zhu's strategy mjoin-init.
        bjtree: Zhu's strategy bjtree-init.
        either: One of the two.
        all_strategies: ``best_tree``, without a look at all trees.
        cheapest: In which share that plan costs no more than 5 % above the cheapest qualified one.
    """

    mjoin: float
    bjtree: float
    either: float
    all_strategies: float
    cheapest: float


def rates(kind: str, inputs: int, settings: int, seed: int) -> Rates:
    """What is found in settings that have a qualified plan."""
    chance = Random(f"{seed} {kind} {inputs}")  # noqa: S311 — not for secrets
    counts = [0] * 5
    done = 0
    while done < settings:
        costs = Costs(counting=chance.choice([Counting.MATCHES, Counting.PAIRS]))
        graph = _drawn(chance, kind, inputs)
        best = best_plans(Pricing(graph, costs))
        limits = Limits(
            _between(chance, best[0].cpu, best[-1].cpu),
            _between(chance, best[-1].memory, best[0].memory),
        )
        qualified = [plan for plan in best if plan.is_qualified(limits)]
        if qualified:
            done += 1
            for number, yes in enumerate(_found(graph, costs, limits, qualified[0])):
                counts[number] += yes
    return Rates(*(count / settings for count in counts))


def _found(
    graph: JoinGraph, costs: Costs, limits: Limits, cheapest: Plan
) -> tuple[bool, bool, bool, bool, bool]:
    pricing = Pricing(graph, costs)
    mjoin = first_qualified(mjoin_init(pricing, limits, rank=Rank.FREQUENCY), limits) is not None
    bjtree = first_qualified(bjtree_init(pricing), limits) is not None
    few = Effort(all_trees=0)
    choice = best_tree(graph, costs, limits.cpu, limits.memory, clearly=1.0, effort=few)
    is_cheap = choice.is_qualified and choice.plan.cpu <= 1.05 * cheapest.cpu
    return mjoin, bjtree, mjoin or bjtree, choice.is_qualified, is_cheap


def _drawn(chance: Random, kind: str, inputs: int) -> JoinGraph:
    order = list(range(inputs))
    chance.shuffle(order)
    share = chance.choice([(0.0001, 1.0), (0.001, 0.1), (0.02, 0.5)])
    windows = (chance.choice([1.0, 5.0, 15.0]),) * inputs
    rates = tuple(chance.uniform(1, 100) for _ in order)
    if kind == "one value":
        values = {number: 1 / chance.uniform(*share) for number in order}
        return JoinGraph(rates, windows, {}, classes=(values,))
    match kind:
        case "chain":
            pairs = list(pairwise(order))
        case "star":
            pairs = [(order[0], other) for other in order[1:]]
        case "cycle":
            pairs = [*pairwise(order), *([(order[-1], order[0])] if inputs > _TWO else [])]
        case "clique":
            pairs = list(combinations(order, 2))
        case _:
            pairs = [(order[chance.randrange(i)], order[i]) for i in range(1, inputs)]
    edges = sorted((min(pair), max(pair)) for pair in pairs)
    return JoinGraph(rates, windows, {edge: chance.uniform(*share) for edge in edges})


def _between(chance: Random, least: float, most: float) -> float:
    """A number between two, evenly by its logarithm."""
    return exp(chance.uniform(log(least), log(most))) * (1 + 1e-9)
