"""The best of all trees, by dynamic programming: the yardstick of the other searches (Z34).

The cost of a tree is the sum over its stages, and that of a stage depends on the inputs of its
children only. So of all trees of a set of inputs those are enough that no other dominates: in a
larger tree each of the others could be replaced by one of these. A set is split in all ways into
two or more parts: all sets of 3 to 7 inputs have 7, 36, 171, 813 and 4,012 splits together.

If a plan is qualified, one is found. A part is left out only if it takes too much alone, as then
each tree with it does, too. The printed search leaves out incomplete trees that take too much of
both; but it extends them in the middle, where one more input may make them cheaper.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from tidemill.optimizer.search.costs import NO_LIMITS
from tidemill.optimizer.search.model import alike
from tidemill.physical.joining.tree import JoinTree, Stage, bits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidemill.optimizer.search.costs import Limits
    from tidemill.optimizer.search.tree_cost import Plan, Pricing

__all__ = ["best_plans", "splits"]

_Found: TypeAlias = tuple[float, float, JoinTree]
"""CPU, memory, and a tree that takes them."""

T = TypeVar("T")

_MARGIN = 1 + 1e-9
"""What rounding may add."""


def best_plans(
    pricing: Pricing, limits: Limits = NO_LIMITS, *, products: bool = True
) -> tuple[Plan, ...]:
    """The qualified plans that no plan dominates, the least CPU first; empty if there is none.

    Args:
        pricing: Which tells what stages cost.
        limits: How much a plan may take.
        products: Whether parts are joined that conditions do not hold together.
    """
    everything = pricing.model.everything
    best: dict[int, list[_Found]] = {}
    for size in range(1, everything.bit_count() + 1):
        for numbers in combinations(bits(everything), size):
            mask = sum(1 << number for number in numbers)
            if size == 1:
                best[mask] = [(0.0, 0.0, numbers[0])]
            else:
                best[mask] = _best(pricing, limits, best, mask, products)
    plans = (pricing.plan(tree) for *_, tree in best[everything])
    return tuple(plan for plan in plans if plan.is_qualified(limits))


def _best(
    pricing: Pricing,
    limits: Limits,
    best: dict[int, list[_Found]],
    mask: int,
    products: bool,  # noqa: FBT001 — for every set
) -> list[_Found]:
    """The best trees of a set, given those of all smaller ones."""
    found: list[_Found] = []
    for parts in splits(mask):
        if not all(best[part] for part in parts):
            continue
        if not products and not pricing.model.is_held(parts):
            continue
        cost = pricing.stage(parts)
        sums: list[tuple[float, float, tuple[JoinTree, ...]]] = [(cost.cpu, cost.memory, ())]
        for part in parts:
            sums = _undominated(
                (cpu + more, memory + kept, (*trees, tree))
                for cpu, memory, trees in sums
                for more, kept, tree in best[part]
                if cpu + more <= limits.cpu * _MARGIN and memory + kept <= limits.memory * _MARGIN
            )
        found += [
            (cpu, memory, Stage(trees))
            for cpu, memory, trees in sums
            if cpu <= limits.cpu * _MARGIN and memory <= limits.memory * _MARGIN
        ]
    return _undominated(found)


def _undominated(found: Iterable[tuple[float, float, T]]) -> list[tuple[float, float, T]]:
    best: list[tuple[float, float, T]] = []
    for one in sorted(found, key=lambda each: (alike(each[0]), alike(each[1]))):
        if not best or alike(one[1]) < alike(best[-1][1]):
            best.append(one)
    return best


def splits(mask: int) -> Iterator[tuple[int, ...]]:
    """All ways to split a set into two parts or more, each part a set of its own.

    >>> list(splits(0b111))
    [(1, 2, 4), (1, 6), (3, 4), (5, 2)]
    """
    for parts in _partitions(mask):
        if len(parts) > 1:
            yield parts


def _partitions(mask: int) -> Iterator[tuple[int, ...]]:
    """All ways to split a set, the part with its least input first."""
    if not mask:
        yield ()
        return
    low = mask & -mask
    rest = mask ^ low
    chosen = 0
    while True:
        for parts in _partitions(rest ^ chosen):
            yield (low | chosen, *parts)
        if chosen == rest:
            return
        chosen = (chosen - rest) & rest
