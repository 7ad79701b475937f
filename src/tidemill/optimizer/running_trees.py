"""The best tree for a join that runs, by what was counted of it, and what its own tree costs.

Sizes of all sets of inputs are counted (``physical/joining/tree_agreeing.py``), rates measured. So
trees are compared by the model of the search with nothing guessed in it but what work costs. A
probe is a call of Polars; so a tree of few rows costs what its steps do.

Costs are in microseconds of work for each microsecond of the stream's time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import floor, inf, log10
from typing import TYPE_CHECKING, Final

from tidemill.optimizer.constants import DEFAULTS, OperatorCost
from tidemill.optimizer.search.best import Effort, best_tree
from tidemill.optimizer.search.costs import Costs, Counting, Engine
from tidemill.optimizer.search.join_graph import JoinGraph
from tidemill.optimizer.search.order import probing_cost
from tidemill.optimizer.search.tree_cost import Pricing
from tidemill.physical.joining.tree import Stage, states

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.optimizer.search.tree_cost import Plan
    from tidemill.physical.joining.tree_plan import StageOrders

__all__ = ["MOST_INPUTS", "Running", "Trees", "compared"]

MOST_INPUTS: Final = 6
"""Trees of more inputs are not searched while they run."""

_EFFORT: Final = Effort(all_trees=4, steps=1_500)
"""All trees of four inputs, some milliseconds; of more, what is found as quickly."""

_DIGITS: Final = 2
"""To so many digits statistics are compared with those of earlier looks."""

_OPERATOR: Final = "interval.JoinTree"
_KEPT: Final = 256
_TWO: Final = 2


@dataclass(frozen=True, slots=True)
class Running:
    """What is known of a join that runs.

    Attributes:
        tree: Its tree.
        orders: In which order the children of each stage probe the others.
        rates: How many rows of each input come in a microsecond.
        sizes: How many combinations there are of each set of inputs, a bit mask.
        rounds: How many steps there are in a microsecond.
        most_rows: How many rows its tables may have.
    """

    tree: Stage
    orders: StageOrders
    rates: tuple[float, ...]
    sizes: Mapping[int, float]
    rounds: float
    most_rows: float = inf


@dataclass(frozen=True, slots=True)
class Trees:
    """A comparison.

    Attributes:
        own: What the tree costs that runs.
        best: The best plan.
        price: What it takes to change to that one, once, in microseconds.
        own_rows: How many rows the tables of the running tree have, as they are estimated.
        is_pressing: Whether the running one has too many rows, and the best one fewer.
    """

    own: float
    best: Plan
    price: float
    own_rows: float
    is_pressing: bool


def compared(running: Running) -> Trees:
    """The tree that runs, and the best one."""
    rates = tuple(map(_rounded, running.rates))
    sizes = tuple((mask, _rounded(size)) for mask, size in sorted(running.sizes.items()))
    most = _rounded(running.most_rows)
    pricing, best = _searched(rates, sizes, _rounded(running.rounds), most)
    own = pricing.plan(running.tree)
    cpu = own.cpu + sum(
        _extra(pricing, own, stage, orders)
        for stage, orders in running.orders.items()
        if len(stage.children) > _TWO
    )
    there = {stage.mask for stage in states(running.tree)}
    assert isinstance(best.tree, Stage), "two inputs or more are joined"
    new = [stage.mask for stage in states(best.tree) if stage.mask not in there]
    cost = DEFAULTS.operators[_OPERATOR]
    made = sum(pricing.model.size(mask) for mask in new)
    price = _TWO * cost.step * len(new) + made * (cost.row_out + DEFAULTS.compared)
    is_pressing = own.memory > most and best.memory < own.memory
    return Trees(cpu, best, price, own.memory, is_pressing)


@lru_cache(maxsize=_KEPT)
def _searched(
    rates: tuple[float, ...], sizes: tuple[tuple[int, float], ...], rounds: float, most: float
) -> tuple[Pricing, Plan]:
    """Prices of trees for some statistics, and the best tree."""
    counted = dict(sizes)
    rows = [counted[1 << port] for port in range(len(rates))]
    windows = tuple(there / rate if rate else 0.0 for there, rate in zip(rows, rates, strict=True))
    standing = tuple(0.0 if rate else there for there, rate in zip(rows, rates, strict=True))
    agree = {port: max(there, 1.0) for port, there in enumerate(rows)}
    graph = JoinGraph(rates, windows, {}, standing, (agree,), counted=counted)
    cost = DEFAULTS.operators[_OPERATOR]
    each = OperatorCost(0.0, cost.row_in, cost.row_out)
    engine = Engine(each, each, OperatorCost(0.0, 0.0, 0.0), DEFAULTS.scanned, rounds)
    costs = Costs(
        insert=0.0,
        delete=0.0,
        compare=DEFAULTS.compared,
        step=cost.step * rounds,
        counting=Counting.KEYS,
        engine=engine,
    )
    choice = best_tree(graph, costs, memory_limit=None if most == inf else most, effort=_EFFORT)
    return Pricing(graph, costs), choice.plan


def _extra(pricing: Pricing, own: Plan, stage: Stage, orders: tuple[tuple[int, ...], ...]) -> float:
    """What the orders in which a stage probes cost more than the best ones."""
    parts = stage.masks
    both = zip(orders, own.orders[stage], strict=True)
    return sum(
        probing_cost(pricing.model, parts, root, now)
        - probing_cost(pricing.model, parts, root, best)
        for root, (now, best) in enumerate(both)
    )


def _rounded(number: float) -> float:
    """A number to two digits: what differs by less is not worth a search."""
    if number in (0.0, inf):
        return number
    return round(number, _DIGITS - 1 - floor(log10(abs(number))))
