"""Zhu's four settings (Table 8.1), and what becomes of a plan that has too little of something.

A plan is followed in simulated time: windows fill, and with them states and what a unit of the
streams' time costs; where that is more than the processor has, what has come waits. There are
``capacity`` comparisons in a second. Pairs that are compared are counted, as a join by nested loops
compares them: by the printed model, which counts those that match, no plan of these is slow.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tidemill.optimizer.search.connected import connected_tree
from tidemill.optimizer.search.costs import Costs, Counting, Limits
from tidemill.optimizer.search.exhaustive import best_plans
from tidemill.optimizer.search.join_graph import JoinGraph
from tidemill.optimizer.search.tree_cost import Pricing
from tidemill.physical.joining.tree import flat

if TYPE_CHECKING:
    from tidemill.optimizer.search.tree_cost import Plan
    from tidemill.physical.joining.tree import JoinTree

__all__ = ["SETTINGS", "Course", "Setting", "followed"]

COSTS = Costs(counting=Counting.PAIRS)
_PARTS = 40


@dataclass(frozen=True)
class Setting:
    """A chain of streams.

    Attributes:
        number: Its number in the table.
        rates: How many rows of each come in a second.
        shares: The selectivities of the links.
        window: In seconds.
        memory: How many rows may be kept.
        capacity: How many comparisons, insertions and deletions there may be in a second.
    """

    number: int
    rates: tuple[float, ...]
    shares: tuple[float, ...]
    window: float
    memory: float
    capacity: float

    def graph(self, filled: float | None = None) -> JoinGraph:
        """The join graph, with windows that are filled so far."""
        window = self.window if filled is None else min(filled, self.window)
        edges = {(i, i + 1): share for i, share in enumerate(self.shares)}
        return JoinGraph(self.rates, (window,) * len(self.rates), edges)

    @cached_property
    def plans(self) -> dict[str, Plan]:
        """One stage of all, the cheapest of binary joins, and what is best within the memory."""
        pricing = Pricing(self.graph(), COSTS)
        every = best_plans(pricing)
        kept = [plan for plan in every if plan.is_qualified(Limits(memory=self.memory))]
        return {
            "mjoin": pricing.plan(flat(pricing.model.graph.inputs)),
            "bjtree": pricing.plan(_binary(pricing)),
            "hybrid": kept[0],
        }


def _binary(pricing: Pricing) -> JoinTree:
    """The cheapest tree of binary joins that conditions hold together."""
    tree = connected_tree(pricing)
    assert tree is not None, "a chain has few pairs"
    return tree


SETTINGS = (
    Setting(1, (20.0,) * 3, (0.05, 0.5), 5.0, 10_000, 200_000),
    Setting(2, (20.0, 20.0, 50.0), (0.02, 0.5), 15.0, 10_000, 800_000),
    Setting(3, (10.0,) * 4, (0.1, 0.15, 0.1), 15.0, 1_500, 4_000_000),
    Setting(4, (20.0,) * 4, (0.02, 0.2, 0.05), 50.0, 30_000, 40_000_000),
)
"""How much CPU and how many rows there may be is not printed; these make what is said of the four:
enough of both, too little CPU for the mjoin, too little memory for the tree, and too little of one
or the other for each."""


@dataclass(frozen=True, slots=True)
class Course:
    """What has become of a plan.

    Attributes:
        results: How many there are at the end.
        early: How many there were when the windows could be full for the first time.
        waiting: How many rows wait at the end.
        rising: Whether still more wait at the end than in the middle.
        state: How many rows are in states in the end.
        over: When more was kept than there may be; never if it is none.
    """

    results: float
    early: float
    waiting: float
    rising: bool
    state: float
    over: float | None


def followed(setting: Setting, tree: JoinTree, *, windows: float = 4.0) -> Course:
    """A plan for some windows of time."""
    end, step = windows * setting.window, setting.window / _PARTS
    time = taken = results = early = state = 0.0
    waiting: list[float] = []
    over: float | None = None
    while time < end:
        taken += step
        graph = setting.graph(taken)
        pricing = Pricing(graph, COSTS)
        plan = pricing.plan(tree)
        began, time = time, max(time + step * plan.cpu / setting.capacity, taken)
        share = min(1.0, (end - began) / (time - began))
        model = pricing.model
        new = model.size(model.everything) * model.turnover(model.everything) * step * share
        results += new
        early += new if time <= setting.window else 0.0
        state = plan.memory
        waiting.append((time - taken) * sum(setting.rates))
        if over is None and plan.memory > setting.memory:
            over = time
    rising = waiting[-1] > 1.1 * waiting[len(waiting) // 2] + 1
    return Course(results, early, waiting[-1], rising, state, over)
