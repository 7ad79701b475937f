"""A spanning tree of parts that are to be joined: which conditions lead the order (Z25, Z26).

An edge weighs as much as there are rows when both its ends are joined. The tree gives the order
only: all other conditions are applied as well, and count in the cost. Where no condition links two
parts, all of their pairs match; such Cartesian edges may be used like others, or only where nothing
else holds the parts together. Neither is always better: with them other orders are found, and those
without may be lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.optimizer.search.model import Model

__all__ = ["spanning_tree"]

_DIGITS = 9


def spanning_tree(
    model: Model, parts: Sequence[int], *, cartesian: bool = False
) -> tuple[tuple[int, int], ...]:
    """The edges of the lightest spanning tree, by the numbers of the parts.

    Args:
        model: Which tells the sizes.
        parts: The inputs of each part.
        cartesian: Whether parts that no condition links are as good as others; else such an edge is
            taken only where there is no other.
    """
    edges: list[tuple[int, int]] = []
    # For each part that is not reached: its best edge to one that is.
    best = {number: _edge(model, parts, 0, number, cartesian) for number in range(1, len(parts))}
    while best:
        found = min(best, key=lambda number: (*best[number], number))
        *_, parent = best.pop(found)
        edges.append((parent, found))
        for number, known in best.items():
            best[number] = min(known, _edge(model, parts, found, number, cartesian))
    return tuple(edges)


def _edge(
    model: Model,
    parts: Sequence[int],
    one: int,
    other: int,
    cartesian: bool,  # noqa: FBT001 — for every pair
) -> tuple[bool, float, int]:
    """How bad an edge is, and where it begins."""
    is_cross = not cartesian and not model.is_linked(parts[one], parts[other])
    return is_cross, round(model.log_joined(parts[one], parts[other]), _DIGITS), one
