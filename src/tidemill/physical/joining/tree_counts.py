"""What a tree of joins counts as it runs: rows that come, and pairs that are tried and found.

Law: a probe of rows in a table tries as many pairs as there are rows on both sides, and finds those
that match while both are valid. Only what was probed is counted: where a step finds nothing, the
later ones say nothing. So the share that is found is an unbiased one (Z12) of what the combinations
on both sides are, whoever probed whom.

Counts are numbers of the state, so they are saved with it. They follow changes: when they tell of
two spans of the stream's time and of enough rows, all of them are halved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.joining.tree_shape import mask_named, table_name, tree_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidemill.physical.joining.tree import Stage
    from tidemill.physical.operator import State

__all__ = ["Measured", "Met", "count_came", "count_met", "measured", "pass_time"]

SPAN: Final = 60_000_000
"""Counts tell of so many microseconds of the stream's time at least, before they are halved."""

ENOUGH: Final = 8_192
"""And of so many rows."""

_WATERMARK, _PASSED = "watermark", "passed"
_CAME, _TRIED, _FOUND = "came", "tried", "found"


@dataclass(frozen=True, slots=True)
class Met:
    """How many pairs were tried between two sides, and how many matched."""

    tried: int
    found: int

    @property
    def share(self) -> float | None:
        """Which share of the pairs matched; ``None`` if none was tried."""
        return self.found / self.tried if self.tried else None


@dataclass(frozen=True, slots=True)
class Measured:
    """What a tree of joins has counted lately.

    Attributes:
        tree: Its shape now.
        passed: In how many microseconds of the stream's time.
        came: How many rows came in at each input that could have partners.
        rows: How many rows there are in each table now, by the inputs joined in it as a bit mask.
        met: For two sides, each a bit mask of inputs, the lesser one first, what was tried and
            found between them.
    """

    tree: Stage
    passed: int
    came: tuple[int, ...]
    rows: Mapping[int, int]
    met: Mapping[tuple[int, int], Met]


def count_came(state: State, port: int, rows: int) -> None:
    """Rows have come in."""
    _add(state, f"{_CAME} {port}", rows)


def count_met(
    state: State, rows: int, mask: int, probed: Sequence[tuple[int, int]], found: Sequence[int]
) -> None:
    """Rows have probed tables.

    Args:
        state: The state of the join.
        rows: How many rows began.
        mask: The inputs joined in them.
        probed: For each step, the inputs of the table and how many rows it had.
        found: For each step, how many combinations left it.
    """
    for (other, there), left in zip(probed, found, strict=True):
        if not rows:
            return
        edge = f"{table_name(min(mask, other))} {table_name(max(mask, other))}"
        _add(state, f"{_TRIED} {edge}", rows * there)
        _add(state, f"{_FOUND} {edge}", left)
        mask, rows = mask | other, left


def pass_time(state: State, time: Time) -> None:
    """The stream's time has come to a watermark."""
    numbers = state.numbers
    last = numbers.get(_WATERMARK)
    if time == END_OF_TIME:
        return
    numbers[_WATERMARK] = time
    if last is None:
        return
    _add(state, _PASSED, time - last)
    came = sum(count for name, count in numbers.items() if name.startswith(_CAME))
    if numbers.get(_PASSED, 0) >= 2 * SPAN and came >= 2 * ENOUGH:
        halved = {name: count // 2 for name, count in numbers.items() if _is_count(name)}
        kept = {name: count for name, count in numbers.items() if not _is_count(name)}
        state.numbers = kept | {name: count for name, count in halved.items() if count}


def measured(state: State) -> Measured:
    """What a tree of joins has counted lately."""
    numbers, tree = state.numbers, tree_of(state.tables)
    met: dict[tuple[int, int], Met] = {}
    for name, tried in numbers.items():
        kind, *sides = name.split(" ")
        if kind == _TRIED:
            one, other = map(mask_named, sides)
            found = numbers.get(name.replace(_TRIED, _FOUND, 1), 0)
            met[one, other] = Met(tried, found)
    return Measured(
        tree,
        numbers.get(_PASSED, 0),
        tuple(numbers.get(f"{_CAME} {port}", 0) for port in range(tree.mask.bit_count())),
        {mask_named(name): table.rows() for name, table in state.tables.items()},
        met,
    )


def _is_count(name: str) -> bool:
    return name.partition(" ")[0] in (_PASSED, _CAME, _TRIED, _FOUND)


def _add(state: State, name: str, count: int) -> None:
    if count:
        state.numbers[name] = state.numbers.get(name, 0) + count
