"""What a join tree costs: CPU and memory of all its stages, with their orders of probing (Z20-Z22).

    CPU(stage) = sum over its children c of
                 rate(c) (insert + delete) + turnover(c) · sum over steps of N(prefix) · C(step)
    CPU(tree) = sum over stages            MEM(tree) = sum over stages and children of the state

The results of the topmost stage are not kept. In which order the rows of a child probe the others
is found for each stage alone: by IK over a spanning tree, with and without Cartesian edges, and
where the conditions form cycles also greedily. Of these the cheapest is taken, by the cost with all
conditions.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, TypeAlias

from tidemill.optimizer.search.box import Box
from tidemill.optimizer.search.costs import NO_LIMITS
from tidemill.optimizer.search.engine_cost import many_parts, two_parts
from tidemill.optimizer.search.model import Model, alike
from tidemill.optimizer.search.order import greedy_order, ik_order, neighbours_of, probing_cost
from tidemill.optimizer.search.probe_orders import probe_orders
from tidemill.optimizer.search.spanning_tree import spanning_tree
from tidemill.physical.joining.tree import JoinTree, Stage, stages, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidemill.optimizer.search.costs import Costs, Limits
    from tidemill.optimizer.search.join_graph import JoinGraph

__all__ = ["Orders", "Plan", "Pricing", "StageCost"]

Orders: TypeAlias = tuple[tuple[int, ...], ...]
"""For each child of a stage, the numbers of the others in the order in which it probes them."""

_Probing: TypeAlias = tuple[float, tuple[int, ...]]
"""What an order of probing costs, and the order."""

_BINARY: Orders = ((1,), (0,))
_GREEDY_PARTS = 16
"""In stages of so many parts, each part has a greedy order of its own."""


@dataclass(frozen=True, slots=True)
class StageCost:
    """What a stage costs.

    Attributes:
        orders: The order of probing for each child.
        cpu: For a unit of time.
        memory: The rows in the states of its children.
    """

    orders: Orders
    cpu: float
    memory: float


@dataclass(frozen=True, slots=True)
class Plan:
    """A join tree with all that is known of it.

    Attributes:
        tree: In which stages is joined.
        orders: The orders of probing of each stage.
        cpu: What it costs for a unit of time.
        memory: How many rows its states have.
    """

    tree: JoinTree
    orders: Mapping[Stage, Orders]
    cpu: float
    memory: float

    def is_qualified(self, limits: Limits = NO_LIMITS) -> bool:
        """Whether it takes no more than is allowed."""
        return limits.allow(self.cpu, self.memory)

    def badness(self, limits: Limits) -> tuple[float, float, float]:
        """How much it lacks to be qualified, and then what it costs; the least is the best."""
        lack = 0.0 if self.is_qualified(limits) else limits.share(self.cpu, self.memory)
        return alike(lack), alike(self.cpu), alike(self.memory)

    @property
    def rating(self) -> tuple[float, float, str]:
        """What is compared to find the cheapest: the CPU, then the memory, then the text."""
        return alike(self.cpu), alike(self.memory), text(self.tree)


class Pricing:
    """Gives trees their costs; stages that were met before are not looked at again."""

    def __init__(
        self, graph: JoinGraph, costs: Costs, *, clearly: float = 1.0, box: Box | None = None
    ) -> None:
        """Price trees of a graph.

        Args:
            graph: What is joined.
            costs: What is charged.
            clearly: An order with a Cartesian step is taken if it costs less than this share of the
                best order without one.
            box: Counts the steps that are priced; searches look when it is over.
        """
        self.model = Model(graph, costs)
        self.clearly = clearly
        self.box = box or Box()
        self.looked_at = 0
        self._known: dict[tuple[int, ...], StageCost] = {}

    def plan(self, tree: JoinTree) -> Plan:
        """A tree with its orders and costs."""
        self.looked_at += 1
        orders, cpu, memory = {}, 0.0, 0.0
        for stage in stages(tree):
            cost = self.stage(stage.masks)
            orders[stage] = cost.orders
            cpu += cost.cpu
            memory += cost.memory
        self.box.steps += len(orders)
        return Plan(tree, orders, cpu, memory)

    def stage(self, parts: tuple[int, ...]) -> StageCost:
        """What a stage of some parts costs."""
        if (known := self._known.get(parts)) is None:
            known = self._known[parts] = self._priced(parts)
        return known

    def binary(self, one: int, other: int) -> tuple[float, float]:
        """The CPU and the memory of a stage of two: of these searches look at most."""
        model, costs = self.model, self.model.costs
        cpu = 2 * costs.step
        for here, there in ((one, other), (other, one)):
            step = costs.insert + costs.delete + model.look_up(here, there)[1]
            cpu += model.rate(here) * step
        if costs.engine is not None:
            cpu += two_parts(model, costs.engine, one, other)
        return cpu, model.held(one) + model.held(other)

    def _priced(self, parts: tuple[int, ...]) -> StageCost:
        model, costs = self.model, self.model.costs
        steps = len(parts) * (len(parts) - 1)
        self.box.steps += steps
        if len(parts) == len(_BINARY):
            return StageCost(_BINARY, *self.binary(*parts))
        probing = self._probing(parts)
        rate = sum(model.rate(part) for part in parts)
        cpu = rate * (costs.insert + costs.delete) + costs.step * steps
        if costs.engine is not None:
            cpu += many_parts(model, costs.engine, parts)
        if costs.apart and not model.meet(parts):
            cpu = inf
        return StageCost(
            orders=tuple(order for _, order in probing),
            cpu=cpu + sum(cost for cost, _ in probing),
            memory=sum(model.held(part) for part in parts),
        )

    def _probing(self, parts: tuple[int, ...]) -> list[_Probing]:
        """For each part, the cheapest order that is found, and its cost."""
        linked, crossing = self._candidates(parts)
        best = []
        for root in range(len(parts)):
            found = min((self._rated(parts, root, orders[root]) for orders in linked), key=_first)
            if crossing is not None:
                cross = self._rated(parts, root, crossing[root])
                if alike(cross[0]) < alike(found[0] * self.clearly):
                    found = cross
            best.append(found)
        return best

    def _rated(self, parts: tuple[int, ...], root: int, order: tuple[int, ...]) -> _Probing:
        return probing_cost(self.model, parts, root, order), order

    def _candidates(self, parts: tuple[int, ...]) -> tuple[list[Orders], Orders | None]:
        """The orders that follow conditions, and those of a tree with a Cartesian edge."""
        edges = spanning_tree(self.model, parts)
        linked = [self._ik(parts, edges)]
        if self._is_cyclic(parts):
            linked.append(self._greedy(parts, edges[0][0]))
        free = spanning_tree(self.model, parts, cartesian=True)
        return linked, None if set(free) == set(edges) else self._ik(parts, free)

    def _ik(self, parts: tuple[int, ...], edges: Sequence[tuple[int, int]]) -> Orders:
        tree = neighbours_of(self.model, parts, edges)
        return tuple(ik_order(tree, root) for root in range(len(parts)))

    def _greedy(self, parts: tuple[int, ...], first: int) -> Orders:
        """For each part the greedy order; where there are many, that of the first one for all."""
        roots = range(len(parts))
        if len(parts) <= _GREEDY_PARTS:
            return tuple(greedy_order(self.model, parts, root) for root in roots)
        return probe_orders((first, *greedy_order(self.model, parts, first)))

    def _is_cyclic(self, parts: tuple[int, ...]) -> bool:
        """Whether more pairs of parts are linked than a tree has edges."""
        reached = (self.model.neighbours(part) for part in parts)
        ends = sum(bool(beyond & part) for beyond in reached for part in parts)
        return ends > 2 * (len(parts) - 1)


def _first(probing: _Probing) -> tuple[float, tuple[int, ...]]:
    """What is compared to find the cheapest order."""
    return alike(probing[0]), probing[1]
