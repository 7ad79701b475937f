"""For how long nothing is answered while another plan takes over.

The pause is by how much the longest time from results to results is longer than the time from one
second of rows to the next. GENMIG and a tree that changes inside its operator must not hold the
answer up for longer than a normal batch takes. To make a plan and its operators takes some
milliseconds, however few rows there are, so that is asked only where batches take longer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from benchmarks.harness.table import Table
from benchmarks.migrations.courses import courses
from benchmarks.migrations.ways import Way

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.migrations.courses import Course
    from benchmarks.migrations.trees import Setting

__all__ = ["BARRED", "Pauses", "TooLongError", "pauses", "require_short"]

BARRED: Final = (Way.GENMIG, Way.ADAPT)
"""The ways that must not hold the answer up."""

WAYS: Final = (
    Way.OLD,
    Way.GENMIG,
    Way.PARALLEL_TRACK,
    Way.MOVING_STATE,
    Way.REPLAY,
    Way.ADAPTING_OLD,
    Way.ADAPT,
)


_MEANING = (
    "A batch is a second of rows. The pause is what the longest gap between results is longer than"
    " a second. Changes are what is done between two batches: a plan is made, and operators with"
    " their state."
)


class TooLongError(Exception):
    """The answer is held up for longer than it may be."""


@dataclass(frozen=True, slots=True)
class Pauses:
    """What was seen of each way.

    Attributes:
        courses: By way.
        required: Whether batches are large enough for pauses to be short by them.
    """

    courses: Mapping[Way, Course]
    required: bool

    def batch(self, way: Way) -> float:
        """How long a normal batch takes, of the plan that runs when another takes over."""
        tree = way in (Way.ADAPT, Way.ADAPTING_OLD)
        return self.courses[Way.ADAPTING_OLD if tree else Way.OLD].batch

    def is_short(self, way: Way) -> bool:
        """Whether the answer is held up for no longer than a normal batch takes."""
        course = self.courses[way]
        return course.batches == 1 and course.pause <= self.batch(way)

    def table(self) -> Table:
        """The pauses; what must be short is said where it must be."""
        setting = self.courses[Way.OLD].setting
        return Table(
            f"Pauses: {setting.rates[0]:,} rows of each of four streams a second, windows of"
            f" {setting.window} s",
            (
                "way",
                "longest gap, batches",
                "longest gap, s",
                "answer behind at most, s",
                "pause, s",
                "of it changes, s",
                "a normal batch takes, s",
                "pause in batches",
                "at most",
                "ok",
            ),
            tuple(
                (
                    way.value,
                    one.batches,
                    one.gap(),
                    one.behind,
                    one.pause,
                    one.change,
                    self.batch(way),
                    one.pause / self.batch(way),
                    1 if self.required and way in BARRED else None,
                    self.is_short(way) if self.required and way in BARRED else None,
                )
                for way, one in self.courses.items()
            ),
            (_MEANING,),
        )


def pauses(
    setting: Setting,
    seed: int,
    *,
    turns: int,
    required: bool,
    progress: Callable[[str], None] = lambda _: None,
) -> Pauses:
    """The pauses of all ways.

    Args:
        setting: What comes, and what is asked.
        seed: What random numbers begin with.
        turns: Of how many turns the least time counts.
        required: Whether pauses must be short.
        progress: Told what is being done.

    Raises:
        WrongAnswerError: The answer of one is not that of the first.
    """
    return Pauses(courses(setting, WAYS, seed, turns=turns, progress=progress), required)


def require_short(found: Pauses) -> None:
    """Refuse pauses that are too long.

    Raises:
        TooLongError: The answer is held up for longer than a normal batch takes.
    """
    for way in BARRED if found.required else ():
        if not found.is_short(way):
            pause, batch = found.courses[way].pause, found.batch(way)
            raise TooLongError(
                f"{way.value} holds the answer up for {pause:.4f} s; a batch takes {batch:.4f} s"
            )
