"""SGB: what two plans give for one group is combined, while both run (Z50).

Two streams are joined by a key in windows that slide, and grouped by it. From a start on a second
plan runs beside the first one: the first gives the groups of all pairs with an old row, the second
those of pairs of new rows. A group whose pairs are split has a row of each, which SGB puts together
with the function that puts together parts. AVG has no such function.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["COMBINED", "Counts", "Load", "NotDistributiveError", "compared", "load"]

Key: TypeAlias = "tuple[int, int]"
"""A window, by its last instant, and a group."""

Groups: TypeAlias = "Mapping[Key, float]"

FUNCTIONS: Final[Mapping[str, Callable[[Sequence[int]], float]]] = {
    "SUM": sum,
    "COUNT": len,
    "MIN": min,
    "MAX": max,
    "AVG": lambda values: sum(values) / len(values),
}

COMBINED: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "SUM": sum,
    "COUNT": sum,
    "MIN": min,
    "MAX": max,
}
"""How parts of a group are put together, of those functions for which that can be done."""


class NotDistributiveError(ValueError):
    """A function of a whole that does not follow from those of its parts."""


@dataclass(frozen=True, slots=True)
class Load:
    """Rows of two streams: times and keys of the left one, times, keys and values of the right one.

    Attributes:
        left: Of the left one.
        right: Of the right one.
        size: How long windows are.
        slide: By how much they move.
        start: When the second plan starts.
        last: The last instant.
    """

    left: Sequence[tuple[int, int]]
    right: Sequence[tuple[int, int, int]]
    size: int
    slide: int
    start: int
    last: int


@dataclass(frozen=True, slots=True)
class Counts:
    """What is found for a function.

    Attributes:
        groups: How many groups there are, over all windows.
        split: How many of them have pairs of both plans.
        wrong: How many are wrong if the rows of both plans are given as they are.
        combined: How many are wrong if SGB puts them together.
        mixed: How many are wrong if the first plan has an aggregate below its join whose groups
            have old rows and new ones, and SGB puts together what is given.
    """

    groups: int
    split: int
    wrong: int
    combined: int
    mixed: int


def load(seed: int, rows: int, size: int = 40, slide: int = 10) -> Load:
    """Rows at random instants; the second plan starts in the middle."""
    chance, last = Random(seed), 10 * size  # noqa: S311 — not for secrets
    left = [(chance.randrange(last), chance.randrange(5)) for _ in range(rows)]
    right = [
        (chance.randrange(last), chance.randrange(5), chance.randrange(100)) for _ in range(rows)
    ]
    return Load(left, right, size, slide, last // 2, last)


def compared(function: str, given: Load) -> Counts:
    """What is found for a function.

    Raises:
        NotDistributiveError: Parts of it cannot be put together.
    """
    if function not in COMBINED:
        raise NotDistributiveError(
            f"{function} of a whole does not follow from {function} of parts"
        )
    start = given.start
    whole = _groups(function, given, lambda _pair: True)
    old = _groups(function, given, lambda pair: min(pair.left, pair.right) < start)
    new = _groups(function, given, lambda pair: min(pair.left, pair.right) >= start)
    mixed = _groups(function, given, lambda pair: min(pair.left, pair.oldest) < start)
    return Counts(
        len(whole),
        len(old.keys() & new.keys()),
        sum(one in old and one in new for one in whole),
        _differing(whole, _combined(function, old, new)),
        _differing(whole, _combined(function, mixed, new)),
    )


@dataclass(frozen=True, slots=True)
class Pair:
    """A pair of rows in a window.

    Attributes:
        left: The time of the left row.
        right: That of the right one.
        oldest: That of the oldest right row in the window that has the same key.
    """

    left: int
    right: int
    oldest: int


def _groups(function: str, given: Load, counts: Callable[[Pair], bool]) -> Groups:
    """The groups of each window, of the pairs that count."""
    found: dict[Key, list[int]] = {}
    for end in range(given.slide - 1, given.last + given.size, given.slide):
        there = range(end - given.size + 1, end + 1)
        right = [row for row in given.right if row[0] in there]
        oldest: dict[int, int] = {}
        for time, key, _ in right:
            oldest[key] = min(time, oldest.get(key, time))
        for at, own in given.left:
            for time, key, value in right if at in there else ():
                if key == own and counts(Pair(at, time, oldest[key])):
                    found.setdefault((end, key), []).append(value)
    return {key: FUNCTIONS[function](values) for key, values in found.items()}


def _combined(function: str, old: Groups, new: Groups) -> Groups:
    """SGB: groups of one window that both plans give, put together; others as they are."""
    put = COMBINED[function]
    keys = old.keys() | new.keys()
    return {key: put([one[key] for one in (old, new) if key in one]) for key in keys}


def _differing(whole: Groups, found: Groups) -> int:
    """How many groups are missing, too many or other than they should be."""
    return sum(whole.get(key) != found.get(key) for key in whole.keys() | found.keys())
