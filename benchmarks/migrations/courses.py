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
from tidemill.model.batch import END, START, Form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from benchmarks.migrations.trees import Setting
    from benchmarks.migrations.ways import Way
    from tidemill.runtime.answers import Answer

__all__ = ["Course", "courses", "ran", "rows_at"]


@dataclass(frozen=True, slots=True)
class Course:
    """What a query with a tree that changes has taken, second by second.

    Attributes:
        setting: What came.
        length: From the migration on, for how long the old plan still answers, in seconds.
        seconds: What each second has brought.
        total: How many results there were, those at the end of the streams included.
    """

    setting: Setting
    length: float
    seconds: tuple[Second, ...]
    total: int

    @property
    def results(self) -> tuple[int, ...]:
        """How many results each second has brought."""
        return tuple(one.results for one in self.seconds)

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
    def both(self) -> int:
        """For how many seconds two plans have run."""
        return sum(one.instances > 1 for one in self.seconds)

    @property
    def batch(self) -> float:
        """How long a batch takes where windows are full; a normal one, if nothing migrates."""
        return median(one.cost for one in self.seconds[self.setting.window :])

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
    def change(self) -> float:
        """How long the longest change of what runs has taken, in seconds."""
        return max(one.change for one in self.seconds)

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
    setting: Setting, way: Way, rows: Mapping[str, Sequence[pl.DataFrame]], *, counts: bool = True
) -> tuple[Course, Answer]:
    """A query of a setting, and its answer.

    Args:
        setting: What comes, and what is asked.
        way: How another tree takes over.
        rows: The rows of each stream, second by second.
        counts: Whether it is found out what is remembered.
    """
    query, seconds, length = Migrating(setting, way), list[Second](), 0.0
    for number in range(setting.seconds):
        if number == setting.at:
            query.migrate()
            length = max(query.record.parts[-1].since / SECOND - number, 0.0)
        came = {name: frames[number] for name, frames in rows.items()}
        seconds.append(query.step(came, counts=counts))
    total = sum(second.results for second in seconds) + query.finish()
    return Course(setting, length, tuple(seconds), total), query.answer()


def rows_at(answer: Answer) -> pl.DataFrame:
    """From when to when each row is there, whatever it was cut into.

    Raises:
        WrongAnswerError: A row is there twice, or is gone for a while; rows are all different here.
    """
    cut = answer.whole(Form.INTERVAL)
    names = [name for name in cut.columns if name not in (START, END)]
    long = (pl.col(END) - pl.col(START)).sum().alias("long")
    found = cut.group_by(names).agg(pl.col(START).min(), pl.col(END).max(), long)
    if found.filter(pl.col("long") != pl.col(END) - pl.col(START)).height:
        raise WrongAnswerError("a result is there more than once, or not all the time")
    return found.drop("long")


def courses(
    setting: Setting,
    ways: Iterable[Way],
    seed: int,
    *,
    turns: int,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[Way, Course]:
    """What each way takes, of several turns. Answers are compared in one before these.

    Raises:
        WrongAnswerError: The answer of one is not that of the first.
    """
    rows = rows_of(setting, seed)
    found: dict[Way, Course] = {}
    wanted: pl.DataFrame | None = None
    total = 0
    for way in ways:
        progress(f"{setting.name}, {way.value}")
        found[way], answer = ran(setting, way, rows)
        own = rows_at(answer)
        if wanted is None:
            wanted, total = own, found[way].total
        if not same_rows(wanted, own) or found[way].total != total:
            raise WrongAnswerError(f"{setting.name}: {way.value} gives another answer")
    timed: dict[Way, list[Course]] = {way: [] for way in found}
    for turn in range(turns):
        for way, courses_ in timed.items():
            progress(f"{setting.name}, {way.value}, {turn + 1} of {turns}")
            courses_.append(ran(setting, way, rows, counts=False)[0])
            if courses_[-1].total != total:
                raise WrongAnswerError(f"{setting.name}: {way.value} gives other results")
    return {way: _timed(course, timed[way]) for way, course in found.items()}


def _timed(course: Course, turns: Sequence[Course]) -> Course:
    """A course in which each second has taken the least that it has in some turns."""
    same = zip(course.seconds, *(turn.seconds for turn in turns), strict=True)
    least = (_least(one, others) for one, *others in same)
    return replace(course, seconds=tuple(least))


def _least(one: Second, others: Sequence[Second]) -> Second:
    cost, change = (min(costs) for costs in zip(*((o.cost, o.change) for o in others), strict=True))
    return replace(one, cost=cost, change=change)
