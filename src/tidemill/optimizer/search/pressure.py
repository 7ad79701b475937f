"""Pressure: when it is time to look for another plan (Z70).

Statistics change all the time, and a plan may be good all the same; so what is watched first is
what a bad plan leads to. Memory comes near its limit, or more and more rows wait. A sudden jump of
what waits is no reason: another plan comes too late for it. If there is no pressure, statistics
that have moved far are a reason, but not more often than once in an interval.

>>> calm = [Reading(time, 100, 5) for time in range(4)]
>>> rising = [Reading(time, 100, 10 * time) for time in range(4)]
>>> jump = [*calm, Reading(4, 100, 500)]
>>> [pressure(readings, memory_limit=1_000) for readings in (calm, rising, jump)]
[None, <Pressure.QUEUES: 'more and more rows wait'>, None]
>>> pressure(calm, memory_limit=110)
<Pressure.MEMORY: 'memory comes near its limit'>
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Pressure", "Reading", "has_moved", "pressure"]

_NEAR = 0.9
_STEADILY = 3
"""So many times one after the other more must wait than before."""


class Pressure(Enum):
    """Why another plan should be looked for."""

    MEMORY = "memory comes near its limit"
    QUEUES = "more and more rows wait"


@dataclass(frozen=True, slots=True)
class Reading:
    """What was seen of a running query.

    Attributes:
        time: When.
        memory: How much its states held.
        waiting: How many rows had come and were not yet taken, in queues between operators too.
    """

    time: float
    memory: float
    waiting: float


def pressure(
    readings: Sequence[Reading], *, memory_limit: float, steadily: int = _STEADILY
) -> Pressure | None:
    """Whether the last readings, the latest last, are a reason to look for another plan."""
    if not readings:
        return None
    if readings[-1].memory >= _NEAR * memory_limit:
        return Pressure.MEMORY
    last = readings[-steadily - 1 :]
    rises = len(last) > steadily and all(a.waiting < b.waiting for a, b in pairwise(last))
    return Pressure.QUEUES if rises else None


def has_moved(
    planned: Mapping[str, float], now: Mapping[str, float], *, factor: float = 2.0
) -> tuple[str, ...]:
    """Which statistics are so many times more or less than those that the plan was made for.

    >>> has_moved({"rate of a": 10, "rate of b": 10}, {"rate of a": 25, "rate of b": 12})
    ('rate of a',)
    """
    assert factor > 1, "what has not changed has not moved"
    both = ((name, planned[name], value) for name, value in now.items() if name in planned)
    return tuple(
        name for name, old, new in both if max(old, new) > factor * max(min(old, new), 0.0)
    )
