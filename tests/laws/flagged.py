"""Plans over elements with a flag: Parallel Track and the reference point as they are printed.

An element is a row with the instants at which it is valid, and whether all that it is made of came
after the start of a migration. Small and slow, and made of nothing of the engine.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "Box",
    "Flagged",
    "Inputs",
    "counted",
    "cut_by_time",
    "distinct",
    "joined",
    "parallel_track",
    "reference_point",
    "snapshots",
]


@dataclass(frozen=True, slots=True)
class Flagged:
    """An element.

    Attributes:
        row: Its values.
        start: The first instant at which it is valid.
        end: The first one after.
        is_new: Whether all that it is made of came after the start of the migration.
    """

    row: tuple[int, ...]
    start: int
    end: int
    is_new: bool = False


Elements: TypeAlias = "Sequence[Flagged]"
Inputs: TypeAlias = "Mapping[str, Elements]"
Box: TypeAlias = "Callable[[Inputs], Elements]"


def joined(left: Elements, right: Elements) -> list[Flagged]:
    """Pairs with the same first value, for as long as both are valid."""
    pairs = ((x, y) for x in left for y in right if x.row[0] == y.row[0])
    found = (
        Flagged(x.row + y.row[1:], max(x.start, y.start), min(x.end, y.end), x.is_new and y.is_new)
        for x, y in pairs
    )
    return [one for one in found if one.start < one.end]


def distinct(elements: Elements) -> list[Flagged]:
    """Each row for as long as one like it is valid: of a later element, what is not covered yet."""
    covered: dict[tuple[int, ...], int] = {}
    found: list[Flagged] = []
    for one in sorted(elements, key=lambda e: e.start):
        start = max(one.start, covered.get(one.row, 0))
        if start < one.end:
            found.append(replace(one, start=start))
            covered[one.row] = one.end
    return found


def counted(elements: Elements) -> list[Flagged]:
    """How many there are, from one change to the next."""
    times = sorted({t for one in elements for t in (one.start, one.end)})
    found: list[Flagged] = []
    for start, end in pairwise(times):
        there = [one for one in elements if one.start <= start < one.end]
        if there:
            found.append(Flagged((len(there),), start, end, all(one.is_new for one in there)))
    return found


def parallel_track(old: Box, new: Box, inputs: Inputs, start: int) -> list[Flagged]:
    """What the old plan makes of anything old, and the new plan of what is new (KB61)."""
    marked = {
        name: [replace(one, is_new=one.start >= start) for one in elements]
        for name, elements in inputs.items()
    }
    later = {name: [one for one in es if one.is_new] for name, es in marked.items()}
    return [*(one for one in old(marked) if not one.is_new), *new(later)]


def reference_point(old: Box, new: Box, inputs: Inputs, split: int) -> list[Flagged]:
    """What the old plan makes whole of what starts before, and the new one that starts later."""
    before = {name: [e for e in es if e.start < split] for name, es in inputs.items()}
    after = {
        name: [replace(e, start=max(e.start, split)) for e in es if e.end > split]
        for name, es in inputs.items()
    }
    return [*old(before), *(one for one in new(after) if one.start > split)]


def cut_by_time(old: Box, new: Box, inputs: Inputs, start: int) -> list[Flagged]:
    """What the old plan gives until nothing from before the start is valid, then the new one."""
    came = [one.end for es in inputs.values() for one in es if one.start < start]
    switch = max(came, default=start)
    later = {name: [one for one in es if one.start >= start] for name, es in inputs.items()}
    until = [replace(one, end=min(one.end, switch)) for one in old(inputs)]
    since = [replace(one, start=max(one.start, switch)) for one in new(later)]
    return [one for one in (*until, *since) if one.start < one.end]


def snapshots(elements: Elements, past: int) -> list[Counter[tuple[int, ...]]]:
    """The rows at every instant before one, with how often they are there."""
    found: list[Counter[tuple[int, ...]]] = [Counter() for _ in range(past)]
    for one in elements:
        for time in range(one.start, min(one.end, past)):
            found[time][one.row] += 1
    return found
