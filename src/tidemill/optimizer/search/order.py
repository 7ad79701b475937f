"""In which order a row probes the parts of a stage: IK, and the greedy one (Z24, Z27).

For the row of a root, and parts in an order, the cost of a sequence is

    C(S1 S2) = C(S1) + T(S1) C(S2)        T(S1 S2) = T(S1) T(S2)        rank = (T - 1) / C

where T of a part is how many matches a row finds in it, and C what it costs to find them. Two
sequences that follow each other may change places: C(A S1 S2 B) <= C(A S2 S1 B) if and only if
rank(S1) <= rank(S2). So, on a tree of edges, the algorithm of Ibaraki and Kameda finds the cheapest
order in which each part comes after its parent.

>>> first, second = Module((1,), 10.0, 10.0), Module((2,), 0.5, 0.5)
>>> first.then(second).cost, second.then(first).cost, first.rank > second.rank
(15.0, 5.5, True)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from tidemill.optimizer.charges import looked_up
from tidemill.optimizer.search.model import alike

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.optimizer.search.model import Model

__all__ = ["Module", "Neighbours", "greedy_order", "ik_order", "neighbours_of", "probing_cost"]

_LEAST_COST = 1e-300
_MOST = 1e200


@dataclass(frozen=True, slots=True)
class Module:
    """Parts that are probed one after the other, with nothing in between.

    Attributes:
        parts: Their numbers, in their order.
        growth: How many results a row has after them: T.
        cost: What they cost for a row: C.
        rank: How soon they should come.
    """

    parts: tuple[int, ...]
    growth: float
    cost: float
    rank: float = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rank", alike((self.growth - 1) / max(self.cost, _LEAST_COST)))

    def then(self, other: Module) -> Module:
        """This, then another."""
        growth = min(self.growth * other.growth, _MOST)
        cost = min(self.cost + self.growth * other.cost, _MOST)
        return Module(self.parts + other.parts, growth, cost)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """A spanning tree of the parts of a stage.

    Attributes:
        parts: The inputs of each part.
        of: For each part, those beside it.
        steps: For a part and one beside it, the module of probing the second from the first.
    """

    parts: tuple[int, ...]
    of: tuple[tuple[int, ...], ...]
    steps: dict[tuple[int, int], Module] = field(compare=False)


def neighbours_of(
    model: Model, parts: Sequence[int], edges: Sequence[tuple[int, int]]
) -> Neighbours:
    """A spanning tree with what its steps find and cost."""
    beside: list[list[int]] = [[] for _ in parts]
    steps = {}
    for one, other in edges:
        beside[one].append(other)
        beside[other].append(one)
        for start, end in ((one, other), (other, one)):
            steps[start, end] = Module((end,), *model.look_up(parts[start], parts[end]))
    return Neighbours(tuple(parts), tuple(tuple(sorted(one)) for one in beside), steps)


def ik_order(tree: Neighbours, root: int) -> tuple[int, ...]:
    """The cheapest order for rows of a root in which each part follows its parent in the tree."""
    return tuple(chain.from_iterable(module.parts for module in _chain(tree, root, None)))


def _chain(tree: Neighbours, part: int, parent: int | None) -> list[Module]:
    """The modules of what is below a part, and it before them, by rank."""
    below = (_chain(tree, child, part) for child in tree.of[part] if child != parent)
    merged = sorted(chain.from_iterable(below), key=lambda one: (one.rank, one.parts))
    if parent is None:
        return merged
    head, taken = tree.steps[parent, part], 0
    # A part that must come first drags along what should have come before it, and what is equal:
    # ranks then rise, and sorting cannot put a part before its parent.
    while taken < len(merged) and merged[taken].rank <= head.rank:
        head = head.then(merged[taken])
        taken += 1
    return [head, *merged[taken:]]


def greedy_order(model: Model, parts: Sequence[int], root: int) -> tuple[int, ...]:
    """Always the part of the lowest rank next, of those that are linked if there are any.

    All conditions between a part and the prefix count. It does not look beyond a step: a part with
    a high rank may hide one with a very low rank.
    """
    prefix, order = parts[root], []
    left = [number for number in range(len(parts)) if number != root]
    while left:
        reached = model.neighbours(prefix)
        linked = [number for number in left if parts[number] & reached] or left
        steps = (Module((number,), *model.look_up(prefix, parts[number])) for number in linked)
        found = min(steps, key=lambda one: (one.rank, one.parts)).parts[0]
        order.append(found)
        prefix |= parts[found]
        left.remove(found)
    return tuple(order)


def probing_cost(model: Model, parts: Sequence[int], root: int, order: Sequence[int]) -> float:
    """What the probes of a root's rows cost in a unit of time, all conditions applied."""
    prefix, cost, rows = parts[root], 0.0, model.size(parts[root])
    turnover, scanned = model.turnover(parts[root]), 0.0
    for number in order:
        found, step = model.look_up(prefix, parts[number])
        scanned += model.scanned(parts[root], rows * turnover, prefix, parts[number])
        cost += rows * step
        rows = min(rows * found, _MOST)
        prefix |= parts[number]
    return cost * turnover + looked_up(model.costs, 0.0, scanned)
