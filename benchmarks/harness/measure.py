"""How long something takes: several times, in turns with what it is compared with.

Law: no time counts before all sides have given the same output, and none of a run whose output is
another one. The sides take turns, so that a machine that is busy for a while is busy for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Timing", "WrongAnswerError", "measured"]

T = TypeVar("T")


class WrongAnswerError(Exception):
    """Two sides do not give the same output."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How long something took, each time.

    Attributes:
        seconds: In the order of the runs.
    """

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The one in the middle."""
        return median(self.seconds)

    @property
    def best(self) -> float:
        """The shortest."""
        return min(self.seconds)

    @property
    def spread(self) -> float:
        """How far the longest is from the shortest, by the median."""
        return (max(self.seconds) - min(self.seconds)) / self.median

    def __str__(self) -> str:
        return f"{self.median:.3f} s ±{self.spread * 50:.0f} %"


def measured(
    sides: Mapping[str, Callable[[], Callable[[], T]]],
    *,
    same: Callable[[T, T], bool],
    repeat: int = 5,
    warm_up: int = 1,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Timing]:
    """How long each side takes.

    Args:
        sides: What is measured, by name. Each gives a function for its output, and how long that
            takes does not count.
        same: Whether two outputs are the same.
        repeat: How often each is measured.
        warm_up: How often each runs before that.
        progress: Told what is being done.

    Raises:
        WrongAnswerError: A side gives another output than the first one.
    """
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    wanted: list[T] = []
    for turn in range(-warm_up, repeat):
        for name, run in sides.items():
            progress(f"{name}, {'warm-up' if turn < 0 else f'{turn + 1} of {repeat}'}")
            began = perf_counter()
            given = run()
            took = perf_counter() - began
            output = given()
            if not wanted:
                wanted.append(output)
            elif not same(wanted[0], output):
                raise WrongAnswerError(f"{name} gives another output than {next(iter(sides))}")
            if turn >= 0:
                seconds[name].append(took)
    return {name: Timing(tuple(times)) for name, times in seconds.items()}
