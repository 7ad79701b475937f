"""What a window contains at an instant, from the definition: the only part that SQL does not have.

Instants count from 0. A time window of size w that moves every a covers the w instants up to W(t),
the last instant at or before t at which it has moved: W(t) = floor((t + 1) / a) * a - 1. A row
window keeps the last rows of the first floor(n / a) * a elements, of each group if it is
partitioned; NULLs are one group. A session window keeps an element for as long as a time window of
its group has not been empty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from tidemill.lang.windows import WindowClause

__all__ = ["Element", "Inputs", "Row", "Value", "content", "is_now", "value_order"]

Value: TypeAlias = bool | int | float | Decimal | str | date | datetime | None
Row: TypeAlias = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a stream: its instant, its id, and its values."""

    time: int
    id: int
    row: Row


@dataclass(frozen=True, slots=True)
class Inputs:
    """Finite contents for streams and relations, by name in lower case."""

    streams: Mapping[str, Sequence[Element]] = field(default_factory=dict)
    relations: Mapping[str, Sequence[Row]] = field(default_factory=dict)


def is_now(window: WindowClause) -> bool:
    """Whether the window is the one of the present instant."""
    return window.frame == "NOW" or (
        window.frame == "RANGE" and window.size == 1 and window.slide in (None, 1)
    )


def content(
    elements: Iterable[Element], columns: Sequence[str], window: WindowClause, time: int
) -> list[Element]:
    """The elements in the window at an instant, of a stream in the order in which ROWS counts."""
    past = [element for element in elements if element.time <= time]
    if window.frame == "NOW":
        return [element for element in past if element.time == time]
    if window.size is None:
        return past
    slide = window.slide or 1
    if window.frame == "RANGE":
        last = (time + 1) // slide * slide - 1
        return [e for e in past if max(last + 1 - window.size, 0) <= e.time <= last]
    names = [column.name.lower() for column in window.partition_by]
    places = [[column.lower() for column in columns].index(name) for name in names]
    groups: dict[Hashable, list[Element]] = {}
    for element in past:
        key = tuple(_same_group(element.row[place]) for place in places)
        groups.setdefault(key, []).append(element)
    if window.frame == "SESSION":
        return [e for group in groups.values() for e in _session(group, window.size, time)]
    return [e for group in groups.values() for e in _last(group, window.size, slide)]


def _last(group: list[Element], size: int, slide: int) -> list[Element]:
    counted = group[: len(group) // slide * slide]
    return counted[max(len(counted) - size, 0) :]


def _session(group: list[Element], gap: int, time: int) -> list[Element]:
    covered = {instant for e in group for instant in range(e.time, e.time + gap)}
    return [e for e in group if covered.issuperset(range(e.time, time + 1))]


def _same_group(value: Value) -> Hashable:
    return "NaN" if isinstance(value, float) and math.isnan(value) else (value,)


def value_order(row: Row) -> list[tuple[int, Value]]:
    """The key that orders rows of one instant: column by column, NULLs first and NaN last."""
    return [_order(value) for value in row]


def _order(value: Value) -> tuple[int, Value]:
    if value is None:
        return 0, False
    if isinstance(value, float) and math.isnan(value):
        return 2, False
    return 1, value
