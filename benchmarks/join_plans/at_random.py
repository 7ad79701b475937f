"""Joins drawn at random, as Zhu draws them: how often, how fast and what the strategies find.

Rates are from 1 to 100, selectivities from 0 to 1, links form a tree. Limits are not printed; here
the CPU is the median of what mjoins of as many streams cost, and the memory the median of what
min-state keeps. So about half of the settings have an mjoin, or a tree, that is qualified.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from statistics import fmean, median
from time import process_time
from typing import TYPE_CHECKING

from tidemill.optimizer.search.best import Effort, best_tree
from tidemill.optimizer.search.costs import Costs, Limits
from tidemill.optimizer.search.exhaustive import best_plans
from tidemill.optimizer.search.join_graph import JoinGraph
from tidemill.optimizer.search.min_state import min_state
from tidemill.optimizer.search.strategies import bjtree_init, first_qualified, mjoin_init
from tidemill.optimizer.search.tree_cost import Plan, Pricing
from tidemill.physical.joining.tree import flat

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Found", "found"]

COSTS = Costs()


@dataclass(frozen=True, slots=True)
class Found:
    """What the searches have found for so many streams.

    Attributes:
        streams: How many streams are joined.
        shares: For each search, in which share of the settings it has found a plan.
        missed: How many settings have a plan that ``best_tree`` has not found without looking at
            all trees; none if not all trees were looked at.
        milliseconds: For each search, how long it takes on average.
        memory: What plans of mjoin-init keep, by those of bjtree-init: the median.
        cpu: What they cost, by those of bjtree-init.
    """

    streams: int
    shares: dict[str, float]
    missed: int | None
    milliseconds: dict[str, float]
    memory: float | None
    cpu: float | None


def found(streams: int, settings: int, seed: int, *, all_trees: bool) -> Found:
    """What the searches find in some settings."""
    chance = Random(f"{seed} {streams}")  # noqa: S311 — not for secrets
    graphs = [_drawn(chance, streams) for _ in range(settings)]
    limits = _limits(graphs)
    names = [name for name in SEARCHES if all_trees or name != "all trees"]
    plans: dict[str, list[Plan | None]] = {name: [] for name in names}
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for graph in graphs:
        for name in names:
            began = process_time()
            plans[name].append(SEARCHES[name](graph, limits))
            seconds[name].append(process_time() - began)
    of_both = zip(plans["mjoin-init"], plans["bjtree-init"], strict=True)
    both = [(one, other) for one, other in of_both if one is not None and other is not None]
    missed = None
    if all_trees:
        pairs = zip(plans["best_tree"], plans["all trees"], strict=True)
        missed = sum(one is None and best is not None for one, best in pairs)
    return Found(
        streams,
        {name: fmean(plan is not None for plan in plans[name]) for name in names},
        missed,
        {name: fmean(times) * 1000 for name, times in seconds.items()},
        median(one.memory / other.memory for one, other in both) if both else None,
        median(one.cpu / other.cpu for one, other in both) if both else None,
    )


def _drawn(chance: Random, streams: int) -> JoinGraph:
    """A graph with random rates and links."""
    edges = {
        (chance.randrange(number), number): chance.uniform(0.0, 1.0) for number in range(1, streams)
    }
    rates = tuple(chance.uniform(1, 100) for _ in range(streams))
    return JoinGraph(rates, (1.0,) * streams, edges)


def _limits(graphs: Sequence[JoinGraph]) -> Limits:
    cpu, memory = [], []
    for graph in graphs:
        pricing = Pricing(graph, COSTS)
        cpu.append(pricing.plan(flat(graph.inputs)).cpu)
        memory.append(pricing.plan(min_state(pricing.model)).memory)
    return Limits(median(cpu), median(memory))


def _mjoin_init(graph: JoinGraph, limits: Limits) -> Plan | None:
    return first_qualified(mjoin_init(Pricing(graph, COSTS), limits), limits)


def _bjtree_init(graph: JoinGraph, limits: Limits) -> Plan | None:
    return first_qualified(bjtree_init(Pricing(graph, COSTS)), limits)


def _best_tree(graph: JoinGraph, limits: Limits) -> Plan | None:
    few = Effort(all_trees=0)
    choice = best_tree(graph, COSTS, limits.cpu, limits.memory, clearly=1.0, effort=few)
    return choice.plan if choice.is_qualified else None


def _all_trees(graph: JoinGraph, limits: Limits) -> Plan | None:
    return next(iter(best_plans(Pricing(graph, COSTS), limits)), None)


SEARCHES: dict[str, Callable[[JoinGraph, Limits], Plan | None]] = {
    "mjoin-init": _mjoin_init,
    "bjtree-init": _bjtree_init,
    "best_tree": _best_tree,
    "all trees": _all_trees,
}
