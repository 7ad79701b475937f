"""Crowds: rows that many members of a tagged aggregation look at, each at some of them.

Law:    what ``insert`` remembers is what the aggregation would remember of each row once for each
        member that looks at it, with the member's tag.

What a row contributes is computed once, and so is which rows become one pane. Then the rows of each
member lie in order, pane by pane, and are added up without a look at their keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from tidemill.model.batch import END, START
from tidemill.physical.frames import framed, pick
from tidemill.physical.grouping.bags import Bag
from tidemill.physical.grouping.contributions import Contributions
from tidemill.physical.grouping.extremes import Extreme
from tidemill.physical.kernels.segments import Addends
from tidemill.physical.operators.aggregate.aggregate import counters_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tidemill.physical.operator import State
    from tidemill.physical.operators.aggregate.aggregate import Aggregate

__all__ = ["Contributed", "Crowd", "Panes", "crowd_contributions"]

_LOOKED_AT = 1 << 21
"""How many rows are looked at at a time, at about the most."""

_PANE = "@pane"


def crowd_contributions(operator: Aggregate) -> Contributions:
    """What rows contribute to a tagged aggregation, whatever the member is."""
    keys = tuple(key.expr for key in operator.keys[:-1])
    return Contributions(keys, tuple(aggregate.call for aggregate in operator.aggregates))


class Contributed:
    """What rows contribute, whenever they are valid.

    Args:
        operator: The tagged aggregation.
        contributions: Those of the operator's crowds.
        looks: What its members look at, with ``START`` and ``END``: once for each way to look.

    Attributes:
        elements: What they contribute.
        keys: The keys of their groups.
        firsts: Where the rows of each look begin.
        kept: The rows whose values are kept, by what keeps them.
    """

    def __init__(
        self, operator: Aggregate, contributions: Contributions, looks: Sequence[pl.DataFrame]
    ) -> None:
        self.elements = contributions.of(pl.concat(looks)).drop(START, END)
        self.keys = pick(self.elements, contributions.key_columns())
        heights = [look.height for look in looks]
        self.firsts = [sum(heights[:i]) for i in range(len(looks))]
        self._heights = heights
        parts = (part for part in operator.parts if isinstance(part, Bag))
        kept = ((part, part.keeps(self.elements).to_numpy()) for part in parts)
        self.kept = {part: mask for part, mask in kept if mask.any()}

    def keys_of(self, look: int) -> pl.DataFrame:
        """The keys of the rows of a look."""
        return self.keys.slice(self.firsts[look], self._heights[look])


@dataclass(frozen=True)
class Panes:
    """Rows that have the keys, and the validity, of others.

    Attributes:
        rows: Their numbers, pane by pane.
        numbers: The number of the pane of each.
        times: The start and the end of each.
        count: How many panes there are; ``None`` if each row is remembered by itself.
    """

    rows: NDArray[np.intp]
    numbers: NDArray[np.intp]
    times: pl.DataFrame
    count: int | None

    @property
    def most(self) -> int:
        """How many rows, or panes, a member has at the most."""
        return len(self.rows) if self.count is None else self.count

    @classmethod
    def of(cls, keys: pl.DataFrame, shown: NDArray[np.intp] | None, times: pl.DataFrame) -> Panes:
        """The panes of rows that a window shows.

        Args:
            keys: The keys of all rows.
            shown: The numbers of the rows that it shows; ``None`` for all.
            times: The start and the end of each of these.
        """
        known = keys if shown is None or not keys.width else keys[pl.Series(shown)]
        frame = framed([*known.get_columns(), *times.get_columns()])
        first = pl.col(_PANE).first().over(frame.columns).cast(pl.Int64)
        numbers = frame.with_row_index(_PANE).select(first).to_series().to_numpy()
        order = np.argsort(numbers, kind="stable")
        numbers = numbers[order]
        rows = order if shown is None else shown[order]
        count = int(np.count_nonzero(np.diff(numbers, prepend=-1)))
        return cls(rows, numbers, times[pl.Series(order)], count)

    @classmethod
    def single(cls, shown: NDArray[np.intp] | None, times: pl.DataFrame) -> Panes:
        """Rows that are remembered one by one."""
        numbers = np.arange(times.height)
        return cls(numbers if shown is None else shown, numbers, times, None)


@dataclass(frozen=True)
class _Looking:
    """Members that look at rows in the same way, through the same window.

    Attributes:
        look: The way.
        panes: The rows that the window shows.
        masks: Which rows each member looks at.
        tags: The members.
    """

    look: int
    panes: Panes
    masks: list[NDArray[np.bool_]] = field(default_factory=list)
    tags: list[int] = field(default_factory=list)


class _Picked(NamedTuple):
    """Rows, each as often as a member looks at it.

    Attributes:
        rows: Their numbers among all rows that contribute.
        times: The numbers of their starts and ends.
        panes: The numbers of their panes, rising.
        tags: The members.
    """

    rows: NDArray[np.intp]
    times: NDArray[np.intp]
    panes: NDArray[np.intp]
    tags: NDArray[np.int64]


class Crowd:
    """The rows that members of a tagged aggregation look at in a step.

    Args:
        operator: The tagged aggregation.
        given: What the rows contribute.
    """

    def __init__(self, operator: Aggregate, given: Contributed) -> None:
        self._operator = operator
        self._tag = f"@key{len(operator.keys) - 1}"
        self._given = given
        self._looking: dict[tuple[int, int], _Looking] = {}

    def add(self, look: int, panes: Panes, mask: NDArray[np.bool_], tag: int) -> None:
        """Add a member, how it looks, and at which rows."""
        own = self._looking.setdefault((look, id(panes)), _Looking(look, panes))
        own.masks.append(mask)
        own.tags.append(tag)

    @property
    def rows(self) -> int:
        """How many rows, or panes, are remembered, at the most."""
        return sum(
            min(int(np.count_nonzero(mask)), own.panes.most)
            for own in self._looking.values()
            for mask in own.masks
        )

    def insert(self, state: State) -> None:
        """Remember what the members look at."""
        for is_single in (False, True):
            every = [
                own for own in self._looking.values() if (own.panes.count is None) == is_single
            ]
            for some in _portions(every):
                times = pl.concat([own.panes.times for own in some])
                picked = _picked(some, self._given.firsts)
                if len(picked.rows):
                    self._take(state, picked, times, is_single=is_single)

    def _take(self, state: State, picked: _Picked, times: pl.DataFrame, *, is_single: bool) -> None:
        is_first = np.diff(picked.panes, prepend=-1) != 0
        starts = np.arange(len(is_first)) if is_single else np.flatnonzero(is_first)
        panes = self._tagged(self._given.keys, picked, starts, times)
        for part in self._operator.parts:
            match part:
                case Bag() if part in self._given.kept:
                    kept = np.flatnonzero(self._given.kept[part][picked.rows])
                    values = self._tagged(self._given.elements, picked, kept, times)
                    part.insert(state, values, panes=not is_single)
                case Extreme():
                    number = np.arange(len(starts)) if is_single else picked.panes
                    best = self._best(part, number, picked.rows)
                    part.insert(state, panes.hstack([best]), panes=False)
                case _:
                    pass
        pending = state.tables["pending"]
        counters = (self._given.elements.get_column(name) for name in counters_of(pending))
        summed = [Addends(counter).sums(picked.rows, starts) for counter in counters]
        pending.insert(panes.hstack(summed))

    def _tagged(
        self, frame: pl.DataFrame, picked: _Picked, some: NDArray[np.intp], times: pl.DataFrame
    ) -> pl.DataFrame:
        """Some of the rows of a frame with their times and the members that they are for."""
        own = [
            *times[pl.Series(picked.times[some])].get_columns(),
            pl.Series(self._tag, picked.tags[some], pl.Int64),
        ]
        return frame[pl.Series(picked.rows[some])].hstack(own) if frame.width else framed(own)

    def _best(
        self, extreme: Extreme, number: NDArray[np.intp], rows: NDArray[np.intp]
    ) -> pl.Series:
        """The least or greatest value of each pane."""
        values = self._given.elements.get_column(extreme.column).gather(pl.Series(rows))
        frame = values.to_frame().hstack([pl.Series(_PANE, number).set_sorted()])
        best = frame.group_by(_PANE, maintain_order=True).agg(extreme.best(extreme.column))
        return best.get_column(extreme.column)


def _portions(every: Sequence[_Looking]) -> Iterator[list[_Looking]]:
    """Members in portions of bounded size."""
    some: list[_Looking] = []
    left = _LOOKED_AT
    for own in every:
        size = max(1, _LOOKED_AT // max(len(own.panes.rows), 1))
        for first in range(0, len(own.masks), size):
            part = slice(first, first + size)
            portion = _Looking(own.look, own.panes, own.masks[part], own.tags[part])
            left -= len(portion.masks) * len(own.panes.rows)
            if some and left < 0:
                yield some
                some, left = [], _LOOKED_AT
            some.append(portion)
    if some:
        yield some


def _picked(some: Sequence[_Looking], firsts: Sequence[int]) -> _Picked:
    """The rows that members look at."""
    found: list[_Picked] = []
    time, pane = 0, 0
    for own in some:
        shown, height = own.panes.rows, len(own.masks[0])
        member, row = np.nonzero(np.stack(own.masks)[:, shown])
        panes = own.panes.numbers[row] + member * height + pane
        tags = np.array(own.tags, np.int64)[member]
        found.append(_Picked(shown[row] + firsts[own.look], row + time, panes, tags))
        time += len(shown)
        pane += len(own.masks) * height
    return _Picked(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
