"""One query, and every way in which another tree can take over from the one it has.

What a second of rows costs is the least of some turns. Time is that of the streams: the rows of a
second are there when it is over, and what they give is there when the processor has worked for it
as long as it has.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

import polars as pl

from benchmarks.harness.comparable import same_rows
from benchmarks.harness.measure import WrongAnswerError
from benchmarks.migrations.migrating import Migrating, Second
from benchmarks.migrations.trees import SECOND, rows_of
from benchmarks.migrations.ways import Way

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from benchmarks.migrations.trees import Setting

__all__ = ["Course", "courses", "ran"]


@dataclass(frozen=True, slots=True)
class Course:
    """What a query with a tree that changes has taken, second by second.

    Attributes:
        setting: What came.
        length: From the migration on, how far in time the old plan answers, in seconds.
        seconds: What each second has brought.
    """

    setting: Setting
    length: float
    seconds: tuple[Second, ...]

    @property
    def work(self) -> float:
        """How long the processor has worked."""
        return sum(one.cost for one in self.seconds)

    @property
    def during(self) -> tuple[Second, ...]:
        """The seconds in which a plan that runs beside the old one can still do so."""
        at, window = self.setting.at, self.setting.window
        return self.seconds[at : at + window]

    @property
    def before(self) -> tuple[Second, ...]:
        """The seconds before the migration in which windows are full."""
        return self.seconds[self.setting.window : self.setting.at]

    @property
    def after(self) -> tuple[Second, ...]:
        """The seconds after all migrations."""
        return self.seconds[self.setting.at + self.setting.window + 1 :]

    @property
    def batch(self) -> float:
        """How long a normal batch takes."""
        return median(one.cost for one in (*self.before, *self.after))

    def ended(self, slower: float = 1.0) -> list[float]:
        """When the results of each second are there, on a machine that is so many times slower."""
        time, times = 0.0, []
        for number, one in enumerate(self.seconds):
            time = max(time, number + 1.0) + slower * one.cost
            times.append(time)
        return times

    def gap(self, slower: float = 1.0) -> float:
        """The longest time from results to results, from the migration on, in seconds."""
        times = self.ended(slower)
        there = [t for t, one in zip(times, self.seconds, strict=True) if one.results]
        since = times[self.setting.at - 1]
        return max((b - a for a, b in pairwise(there) if b > since), default=0.0)

    @property
    def pause(self) -> float:
        """By how much that is longer than from one second to the next."""
        return max(self.gap() - 1.0, 0.0)

    @property
    def batches(self) -> int:
        """The longest way from a batch with results to the next one, from the migration on."""
        at = self.setting.at - 1
        there = [number for number, one in enumerate(self.seconds) if one.results and number >= at]
        return max((b - a for a, b in pairwise(there)), default=0)

    @property
    def behind(self) -> float:
        """How far the answer was behind the streams at most, from the migration on, in seconds."""
        return max(one.behind for one in self.seconds[self.setting.at :]) / SECOND


def ran(
    setting: Setting, way: Way, rows: dict[str, list[pl.DataFrame]]
) -> tuple[Course, pl.DataFrame]:
    """A query of a setting, and its answer."""
    query, seconds, length = Migrating(setting, way), list[Second](), 0.0
    for number in range(setting.seconds):
        if number == setting.at:
            query.migrate()
            length = max(query.record.parts[-1].since / SECOND - number, 0.0)
        seconds.append(query.step({name: frames[number] for name, frames in rows.items()}))
    query.finish()
    return Course(setting, length, tuple(seconds)), query.answer().elements()


def courses(
    setting: Setting,
    ways: Iterable[Way],
    seed: int,
    *,
    turns: int,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[Way, Course]:
    """What each way takes, of several turns.

    Raises:
        WrongAnswerError: The answer of one is not that of the first.
    """
    rows, wanted = rows_of(setting, seed), list[pl.DataFrame]()
    found: dict[Way, list[Course]] = {way: [] for way in ways}
    for turn in range(turns):
        for way, of_way in found.items():
            progress(f"{setting.name}, {way.value}, {turn + 1} of {turns}")
            course, answer = ran(setting, way, rows)
            if not wanted:
                wanted.append(answer)
            if not same_rows(wanted[0], answer):
                raise WrongAnswerError(f"{setting.name}: {way.value} gives another answer")
            of_way.append(course)
    return {way: _least(of_way) for way, of_way in found.items()}


def _least(turns: Sequence[Course]) -> Course:
    """The least that each second has taken."""
    seconds = zip(*(course.seconds for course in turns), strict=True)
    least = (min(same, key=lambda one: one.cost) for same in seconds)
    return replace(turns[0], seconds=tuple(least))
