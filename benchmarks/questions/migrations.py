"""How plans take over from plans while rows come, what that takes, and who has to wait for it.

A join of four streams runs in one tree, and goes on in another one (Zhu's E5 and E6, Krämer's X15
to X17). Rows come second by second of the streams' own time, and time that something takes is that
of the processor. All ways give the same answer, or nothing is measured.
"""

from __future__ import annotations

import os

os.environ.setdefault("POLARS_MAX_THREADS", "1")

from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, Final

from benchmarks.harness.question import Question
from benchmarks.harness.table import Table
from benchmarks.migrations.courses import courses
from benchmarks.migrations.findings import (
    OVERLOAD,
    found_at_low_rates,
    found_at_rates,
    found_by_kraemer,
    found_by_window,
    found_when_overloaded,
    slower,
)
from benchmarks.migrations.lengths import length_of
from benchmarks.migrations.pauses import pauses, require_short
from benchmarks.migrations.trees import Setting
from benchmarks.migrations.ways import Way
from benchmarks.techniques.shapes import table_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.harness.question import Context
    from benchmarks.migrations.courses import Course
    from benchmarks.migrations.lengths import Length
    from benchmarks.migrations.trees import Tree

LEFT_DEEP: Final[Tree] = (((0, 1), 2), 3)
ZHU: Final[Tree] = (0, ((1, 2), 3))
KRAEMER: Final[Tree] = (0, (1, (2, 3)))

FIRST = Setting("E5, setting 1", 4, (1, 200, 200, 200), (200, 200, 400, 1_000), LEFT_DEEP, ZHU)
SECOND = replace(FIRST, name="E5, setting 2", window=10)
THIRD = Setting("E5, setting 3", 1, (1, 83, 83, 83), (10,) * 4, LEFT_DEEP, ZHU)
LOW = Setting("E6, low", 10, (10,) * 4, (10, 10, 50, 50), LEFT_DEEP, ZHU, 45, 15)
HIGH = Setting("E6, high", 10, (4,) * 4, (5, 5, 20, 20), LEFT_DEEP, ZHU, 45, 15)
FIFTEEN = Setting(
    "X15", 10, (100,) * 4, (501, 501, 1_001, 1_001), LEFT_DEEP, KRAEMER, 50, 20, poisson=False
)
PAUSES = Setting(
    "pauses", 5, (1_000,) * 4, (5_000, 5_000, 10_000, 10_000), LEFT_DEEP, KRAEMER, 12, 6
)

BESIDE = (Way.OLD, Way.NEW, Way.GENMIG, Way.PARALLEL_TRACK, Way.MOVING_STATE, Way.REPLAY)


_LENGTHS = (
    "PARALLEL TRACK and GENMIG in the streams' time, MOVING STATE in that of the processor. A has"
    " one row a second, which makes few results and changes nothing of what is moved. Rates and"
    " numbers of keys of settings 1 and 2 are ten to twenty times Zhu's, so that a row meets about"
    " as many; windows of setting 2 are of ten seconds."
)


def answers(context: Context) -> Iterator[Table]:
    """How long migrations are, what comes meanwhile, what they take, and who waits for them.

    Raises:
        WrongAnswerError: The answer of a way is another one.
        TooLongError: GENMIG or a tree that changes holds the answer up.
    """
    first, second, third = _lengths(context)
    yield _length_table((*first, *second, *third))
    yield table_of("E5", (*found_by_window(first, third), *found_at_rates(second)))
    scales = (20, 40, 20) if context.full else (4, 10, 4)
    settings = (LOW, HIGH, FIFTEEN)
    turns = 5 if context.full else 2
    low, high, fifteen = (
        courses(setting.scaled(scale), BESIDE, context.seed, turns=turns, progress=context.progress)
        for setting, scale in zip(settings, scales, strict=True)
    )
    for course in (low, high, fifteen):
        yield _course_table(course)
    yield _overload_table(high)
    yield table_of("E6", (*found_at_low_rates(low), *found_when_overloaded(high)))
    yield table_of("X15 to X17", found_by_kraemer(fifteen))
    for scale in (1, 32) if context.full else (1, 12):
        found = pauses(
            PAUSES.scaled(scale),
            context.seed,
            turns=turns + 1,
            required=scale > 1,
            progress=context.progress,
        )
        yield found.table()
        require_short(found)


def _lengths(context: Context) -> tuple[list[Length], list[Length], list[Length]]:
    full = context.full
    windows = {FIRST: (4, 8, 16, *((24, 32, 48) if full else ()))}
    windows[THIRD] = (1, 2, 3, *((4, 5) if full else ()))
    rates = (50, 100, 200, 400)
    by_window: dict[Setting, list[Length]] = {}
    for setting, some in windows.items():
        for window in some:
            context.progress(f"{setting.name}, {window} s")
            found = length_of(replace(setting, window=window), context.seed)
            by_window.setdefault(setting, []).append(found)
    by_rate = []
    for rate in rates:
        context.progress(f"{SECOND.name}, {rate} rows a second")
        one, _, *others = SECOND.rates
        by_rate.append(length_of(replace(SECOND, rates=(one, rate, *others)), context.seed))
    return by_window[FIRST], by_rate, by_window[THIRD]


def _length_table(lengths: Sequence[Length]) -> Table:
    return Table(
        "How long migrations are",
        (
            "setting",
            "window, s",
            "rows of B a second",
            "PARALLEL TRACK, s",
            "windows",
            "GENMIG, s",
            "GENMIG / PARALLEL TRACK",
            "MOVING STATE, s",
            "rows it computes",
        ),
        tuple(
            (
                one.setting.name,
                one.setting.window,
                one.setting.rates[1],
                one.track,
                one.track / one.setting.window,
                one.genmig,
                one.genmig / one.track,
                one.moving,
                one.computed,
            )
            for one in lengths
        ),
        (_LENGTHS,),
    )


def _course_table(found: Mapping[Way, Course]) -> Table:
    setting = found[Way.OLD].setting
    new = found[Way.NEW].work
    return Table(
        f"{setting.name}: {setting.rates[0]:,} rows of each stream a second, windows of"
        f" {setting.window} s, migration after {setting.at} s",
        (
            "way",
            "both run, s",
            "behind at most, s",
            "seconds without results",
            "results a second",
            "intermediate rows before",
            "during",
            "after",
            "rows kept before",
            "at most during",
            "after",
            "work, s",
            "of the new plan's",
        ),
        tuple(
            (
                way.value,
                one.both,
                one.behind,
                sum(not second.results for second in one.during),
                fmean(second.results for second in one.during),
                *(fmean(s.between for s in part) for part in (one.before, one.during, one.after)),
                fmean(second.kept for second in one.before),
                max(second.kept for second in one.during),
                fmean(second.kept for second in one.after),
                one.work,
                one.work / new,
            )
            for way, one in found.items()
        ),
        ("During: for a window from the migration on. Work is that of all seconds.",),
    )


def _overload_table(high: Mapping[Way, Course]) -> Table:
    slow = slower(high)
    return Table(
        f"E6, high, on a machine that takes {OVERLOAD} s with the old plan for a second of rows",
        ("way", "all is done after, s", "longest time without results, s"),
        tuple((way.value, one.ended(slow)[-1], one.gap(slow)) for way, one in high.items()),
        (f"What each second of rows took, times {slow:,.0f}. Rows come for 45 s.",),
    )


QUESTION = Question("migrations", "How plans take over, and who waits for it", answers)
