"""Window constraints between the inputs of a join, and what follows from them (Z04).

A constraint W on two inputs says that their elements may join only if their starts are at most W
apart. Along a path of constraints the distances add up, so each pair of inputs has the length of
the shortest path between them as its bound, whether it was given one or not.

Law: a combination that meets the given constraints meets all derived ones, so a derived bound
never removes a result; it says earlier what can be forgotten. A pair without a path has no bound.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, TypeAlias

from tidemill.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Windows", "closed_windows", "reach", "refuse_unbounded", "window_closure"]

Windows: TypeAlias = tuple[tuple[int | None, ...], ...]
"""How far the starts of each two inputs' elements may be apart; ``None`` for no bound."""


def window_closure(given: Mapping[tuple[int, int], int], n: int) -> Windows:
    """The tightest bounds that follow from constraints between ``n`` inputs.

    >>> window_closure({(0, 1): 5, (1, 2): 3}, 3)
    ((0, 5, 8), (5, 0, 3), (8, 3, 0))
    >>> window_closure({(0, 1): 5}, 3)
    ((0, 5, None), (5, 0, None), (None, None, 0))
    """
    bounds: list[list[int | None]] = [[0 if i == j else None for j in range(n)] for i in range(n)]
    for (i, j), window in given.items():
        assert 0 <= i < n, f"there is no input {i}"
        assert 0 <= j < n, f"there is no input {j}"
        assert window >= 0, "a distance is not negative"
        bounds[i][j] = bounds[j][i] = _shorter(bounds[i][j], window)
    # Floyd and Warshall: paths by way of the first inputs only, then of one more.
    for by, i, j in product(range(n), repeat=3):
        there, onward = bounds[i][by], bounds[by][j]
        if there is not None and onward is not None:
            bounds[i][j] = _shorter(bounds[i][j], there + onward)
    return tuple(map(tuple, bounds))


def closed_windows(given: Windows) -> Windows:
    """The tightest bounds that follow from a matrix of them."""
    n = len(given)
    pairs = product(range(n), repeat=2)
    return window_closure({(i, j): w for i, j in pairs if (w := given[i][j]) is not None}, n)


def reach(closed: Windows, port: int) -> int | None:
    """How far ahead of an element of an input one of another may start and still join."""
    others = [window for other, window in enumerate(closed[port]) if other != port]
    known = [window for window in others if window is not None]
    return max(known) if len(known) == len(others) else None


def refuse_unbounded(closed: Windows, names: Sequence[str]) -> None:
    """Refuse constraints that leave two inputs without any bound.

    Raises:
        PlanError: No path of constraints joins two of the inputs.
    """
    for (i, one), (j, other) in product(enumerate(names), repeat=2):
        if closed[i][j] is None:
            raise PlanError(
                f'nothing bounds how far "{one}" and "{other}" may be apart',
                hint=f'give a window for "{one}" and "{other}", or one for each and a third',
            )


def _shorter(one: int | None, other: int) -> int:
    return other if one is None else min(one, other)
