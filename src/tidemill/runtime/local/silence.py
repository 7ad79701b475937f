"""Silence: what the passing of time does where no rows come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.model.time import Time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet

__all__ = ["pause", "reached_by_idle"]

_LEAST_PAUSE, _MOST_PAUSE = 250_000, 1_000_000


def reached_by_idle(
    marks: Mapping[str, Time], groups: Iterable[frozenset[str]], idle: AbstractSet[str]
) -> dict[str, Time]:
    """How far idle streams have come: as far as those they are read with that are awake.

    Where all streams that are read together are idle, none of them goes on.

    Args:
        marks: How far each stream has come.
        groups: The streams that are read together.
        idle: Those that have been silent for long enough.

    >>> reached_by_idle({"a": Time(5), "b": Time(9)}, [frozenset("ab")], {"a"})
    {'a': 9}
    """
    reached: dict[str, Time] = {}
    for group in groups:
        awake = [marks[name] for name in group - idle]
        for name in sorted(group & idle) if awake else ():
            reached[name] = max(reached.get(name, Time(0)), min(awake))
    return reached


def pause(silence: int) -> int:
    """How long to wait between two ticks of the clock, if so long nothing has come.

    >>> pause(0), pause(2_000_000), pause(60_000_000)
    (250000, 500000, 1000000)
    """
    return min(max(silence // 4, _LEAST_PAUSE), _MOST_PAUSE)
