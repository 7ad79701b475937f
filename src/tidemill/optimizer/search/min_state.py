"""Min-state: the tree of binary joins that keeps little, found by joining the smallest pair (Z30).

Always the two are joined whose result has the fewest rows. For a star of conditions, without
Cartesian edges, no tree of binary joins keeps less; in general it may keep more than need be. The
printed weights leave the window out, and so compare rates with sizes; here sizes are compared.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import combinations, count
from typing import TYPE_CHECKING

from tidemill.physical.joining.tree import JoinTree, Stage, mask_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidemill.optimizer.search.model import Model

__all__ = ["min_state"]

_DIGITS = 9


def min_state(
    model: Model, parts: Iterable[JoinTree] | None = None, *, cartesian: bool = False
) -> JoinTree:
    """A tree of binary joins with few rows in its intermediate states.

    Args:
        model: Which tells the sizes.
        parts: What is to be joined; all inputs if it is not given.
        cartesian: Whether two that no condition links may be joined like others; else they are
            joined only where there is nothing else.
    """
    trees = dict(enumerate(model.graph.inputs if parts is None else parts))
    heap = [_pair(model, trees, *pair, cartesian=cartesian) for pair in combinations(trees, 2)]
    heapify(heap)
    numbers = count(len(trees))
    while len(trees) > 1:
        *_, one, other = heappop(heap)
        if one in trees and other in trees:
            others, number = set(trees) - {one, other}, next(numbers)
            trees[number] = Stage((trees.pop(one), trees.pop(other)))
            for third in others:
                heappush(heap, _pair(model, trees, third, number, cartesian=cartesian))
    return next(iter(trees.values()))


def _pair(
    model: Model, trees: dict[int, JoinTree], one: int, other: int, *, cartesian: bool
) -> tuple[bool, float, int, int, int, int]:
    """How bad it is to join two: the least pair is joined next, of equal ones by their inputs."""
    masks = mask_of(trees[one]), mask_of(trees[other])
    is_cross = not cartesian and not model.is_linked(*masks)
    size = round(model.log_joined(*masks), _DIGITS)
    first, second = sorted(mask & -mask for mask in masks)
    return is_cross, size, first, second, one, other
