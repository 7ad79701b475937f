"""The cheapest tree of binary joins without Cartesian products, by dynamic programming.

The cost of a tree is the sum over its stages, and that of a stage depends on its two sets of
inputs only; so the cheapest tree of a set is made of the cheapest trees of two sets. Each pair of
connected sets that are linked and have nothing in common is looked at once. For a chain of n inputs
there are (n³ - n) / 6 of them, for a star (n - 1) 2^(n - 2), for a clique about 3^n / 2; the search
gives up when there are too many.

The enumeration is that of Moerkotte and Neumann (2006): sets grow by their neighbours, from the
greatest number of an input to the least.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.optimizer.search.model import alike
from tidemill.physical.joining.tree import JoinTree, Stage, bits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.optimizer.search.model import Model
    from tidemill.optimizer.search.tree_cost import Pricing

__all__ = ["MOST_PAIRS", "connected_pairs", "connected_tree"]

MOST_PAIRS = 2_500
"""How many pairs of sets are looked at before the search gives up: some 50 ms."""


def connected_tree(
    pricing: Pricing, mask: int | None = None, *, most: int = MOST_PAIRS
) -> JoinTree | None:
    """The cheapest tree of binary joins of a connected set, or none if there are too many pairs.

    Args:
        pricing: Which tells what stages cost.
        mask: The inputs; all if it is not given.
        most: How many pairs of sets are looked at.
    """
    model = pricing.model
    mask = model.everything if mask is None else mask
    pairs: list[tuple[int, int]] = []
    for pair in connected_pairs(model, mask):
        if len(pairs) == most:
            return None
        pairs.append(pair)
    pairs.sort(key=lambda pair: ((pair[0] | pair[1]).bit_count(), pair))
    best: dict[int, tuple[float, float, JoinTree]] = {1 << i: (0.0, 0.0, i) for i in bits(mask)}
    for one, other in pairs:
        (cpu_one, kept_one, left), (cpu_other, kept_other, right) = best[one], best[other]
        stage_cpu, stage_memory = pricing.binary(one, other)
        cpu = cpu_one + cpu_other + stage_cpu
        memory = kept_one + kept_other + stage_memory
        known = best.get(one | other)
        if known is None or _is_less((cpu, memory), (known[0], known[1])):
            best[one | other] = (cpu, memory, Stage((left, right)))
    return best[mask][2]


def _is_less(one: tuple[float, float], other: tuple[float, float]) -> bool:
    cpu, other_cpu = alike(one[0]), alike(other[0])
    return cpu < other_cpu or (cpu == other_cpu and alike(one[1]) < alike(other[1]))


def connected_pairs(model: Model, mask: int) -> Iterator[tuple[int, int]]:
    """Each pair of connected sets inside a set that are linked and apart, once."""
    for start in reversed(list(bits(mask))):
        for one in _grown(model, 1 << start, ((1 << start) - 1) | ~mask):
            yield from ((one, other) for other in _complements(model, one, mask))


def _complements(model: Model, one: int, mask: int) -> Iterator[int]:
    """The connected sets that are linked to a set, whose least input is above its least one."""
    low = one & -one
    forbidden = (low | (low - 1)) | one | ~mask
    beside = model.neighbours(one) & ~forbidden
    for start in reversed(list(bits(beside))):
        # Sets with a lesser neighbour in them are made from that neighbour.
        yield from _grown(model, 1 << start, forbidden | (beside & ((1 << start) - 1)))


def _grown(model: Model, found: int, forbidden: int) -> Iterator[int]:
    """A connected set, and all that it grows to without what is forbidden."""
    yield found
    beside = model.neighbours(found) & ~forbidden
    for added in _subsets(beside):
        yield from _grown(model, found | added, forbidden | beside)


def _subsets(mask: int) -> Iterator[int]:
    """All subsets but the empty one."""
    subset = -mask & mask
    while subset:
        yield subset
        subset = (subset - mask) & mask
