"""Migrations that are measured: trees that take over, what each second costs, and who waits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.harness.measure import WrongAnswerError
from benchmarks.migrations import courses as module
from benchmarks.migrations.courses import Course, courses, ran, rows_at
from benchmarks.migrations.findings import found_at_low_rates, found_by_kraemer
from benchmarks.migrations.lengths import length_of
from benchmarks.migrations.migrating import Migrating, Second
from benchmarks.migrations.pauses import Pauses, TooLongError, require_short
from benchmarks.migrations.trees import NAMES, SECOND, Setting, rows_of
from benchmarks.migrations.ways import Way
from benchmarks.questions.migrations import KRAEMER, LEFT_DEEP, ZHU
from tidemill.model.batch import END, START

SMALL = Setting("small", 3, (8, 7, 6, 7), (3, 3, 4, 5), LEFT_DEEP, ZHU, 12, 5)
BESIDE = (Way.OLD, Way.NEW, Way.GENMIG, Way.PARALLEL_TRACK, Way.MOVING_STATE, Way.REPLAY)


def brute_force(setting: Setting, seed: int) -> set[tuple[int, ...]]:
    """Which rows of four streams meet, from when to when."""
    rows = rows_of(setting, seed)
    sides = [
        [row for frame in rows[name] for row in frame.select("k", "v", START).rows()]
        for name in NAMES
    ]
    window = setting.window * SECOND
    found: set[tuple[tuple[int, ...], int, int, int]]
    found = {((v,), k, t, t + window) for k, v, t in sides[0]}
    for side in sides[1:]:
        found = {
            ((*values, v), k, max(start, t), min(end, t + window))
            for values, k, start, end in found
            for other, v, t in side
            if other == k and t < end and start < t + window
        }
    return {(*values, start, end) for values, _, start, end in found}


def test_all_ways_give_what_meets() -> None:
    wanted = brute_force(SMALL, 1)
    assert len(wanted) > 500
    rows = rows_of(SMALL, 1)
    for way in Way:
        course, answer = ran(SMALL, way, rows)
        found = rows_at(answer)
        names = [name for name in found.columns if name not in (START, END)]
        assert set(found.select(*names, START, END).rows()) == wanted
        assert course.total == len(wanted)


def test_another_answer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ran
    lost = rows_of(SMALL, 1)
    lost["a"][-1] = lost["a"][-1].clear()
    monkeypatch.setattr(
        module,
        "ran",
        lambda setting, way, rows, *, counts=True: whole(
            setting, way, lost if way is Way.MOVING_STATE else rows, counts=counts
        ),
    )
    with pytest.raises(WrongAnswerError, match="MOVING STATE gives another answer"):
        courses(SMALL, (Way.OLD, Way.MOVING_STATE), 1, turns=1)


def test_the_new_tree_runs_when_the_old_one_has_answered() -> None:
    rows = rows_of(SMALL, 1)
    old, new, *others = (ran(SMALL, way, rows)[0] for way in BESIDE)
    kept = [second.kept for second in new.seconds]
    assert [second.kept for second in old.seconds] != kept
    for way, course in zip(BESIDE[2:], others, strict=True):
        runs = SMALL.at if way in (Way.MOVING_STATE, Way.REPLAY) else SMALL.at + SMALL.window
        assert [s.kept for s in course.seconds[runs + 1 :]] == kept[runs + 1 :], way
        assert [s.kept for s in course.seconds[: SMALL.at]] == [
            s.kept for s in old.seconds[: SMALL.at]
        ], way
    assert [course.both for course in others] == [SMALL.window, SMALL.window, 0, 1]


def test_intermediate_rows_are_as_many_as_zhu_reckons() -> None:
    setting = Setting("low", 10, (40,) * 4, (40, 40, 200, 200), LEFT_DEEP, ZHU, 40, 30)
    rows = rows_of(setting, 3)
    for way, wanted in ((Way.OLD, 12_000), (Way.NEW, 2_400)):
        course, _ = ran(setting, way, rows)
        between = [second.between for second in course.seconds[11:]]
        assert sum(between) / len(between) == pytest.approx(wanted, rel=0.15)


def test_a_length_is_a_window_and_does_not_depend_on_rates() -> None:
    few, many = (length_of(replace(SMALL, rates=(2, n, n, n)), 1) for n in (10, 30))
    assert few.genmig == many.genmig == SMALL.window
    assert few.track == pytest.approx(SMALL.window, rel=0.1)
    assert few.computed < many.computed
    assert few.moving > 0


def test_a_trial_changes_nothing() -> None:
    rows, query, other = rows_of(SMALL, 1), *(Migrating(SMALL, Way.OLD) for _ in range(2))
    for number in range(6):
        came = {name: frames[number] for name, frames in rows.items()}
        if number == 5:
            assert query.trial() > 0
        assert query.step(came).kept == other.step(came).kept
    assert rows_at(query.answer()).height == rows_at(other.answer()).height


def course_of(*costs: float, silent: tuple[int, ...] = ()) -> Course:
    """A course by hand, with a window of a second and a migration after three."""
    seconds = tuple(
        Second(cost, 0.0, 0 if number in silent else 10, 5, 1, 1, 0)
        for number, cost in enumerate(costs)
    )
    return Course(replace(SMALL, window=1, at=3, seconds=len(costs)), 0.0, seconds, 10)


def test_gaps_by_hand() -> None:
    usual = course_of(0.25, 0.25, 0.25, 0.25, 0.25, 0.25)
    assert (usual.gap(), usual.pause, usual.batches, usual.batch) == (1.0, 0.0, 1, 0.25)
    late = course_of(0.25, 0.25, 0.25, 0.75, 0.25, 0.25)
    assert (late.gap(), late.pause, late.batches) == (1.5, 0.5, 1)
    silent = course_of(0.25, 0.25, 0.25, 0.25, 0.25, 0.25, silent=(3, 4))
    assert (silent.gap(), silent.batches) == (3.0, 3)
    # Four times slower, two seconds of work are done for the fourth, and then the next waits.
    assert usual.ended(8.0) == [3.0, 5.0, 7.0, 9.0, 11.0, 13.0]
    before = course_of(0.25, 0.75, 0.25, 0.25, 0.25, 0.25)
    assert before.pause == 0.0


def test_long_pauses_are_refused() -> None:
    usual, late = course_of(*[0.25] * 6), course_of(0.25, 0.25, 0.25, 0.75, 0.25, 0.25)
    short = {Way.OLD: usual, Way.ADAPTING_OLD: usual, Way.GENMIG: usual, Way.ADAPT: usual}
    require_short(Pauses(short, required=True))
    for way in (Way.GENMIG, Way.ADAPT):
        found = Pauses({**short, way: late}, required=True)
        assert not found.is_short(way)
        with pytest.raises(TooLongError, match="holds the answer up for"):
            require_short(found)
        require_short(replace(found, required=False))


def test_findings_follow_what_is_seen() -> None:
    setting = replace(SMALL, new=KRAEMER)
    found = courses(setting, BESIDE, 1, turns=1)
    low = list(found_at_low_rates(found))
    assert low[2].found, "the same results in every second"
    assert [shape.found for shape in found_by_kraemer(found)][:3] == [True, False, True]
    track = found[Way.PARALLEL_TRACK]
    silent = tuple(
        replace(second, results=0) if number in (5, 6) else second
        for number, second in enumerate(track.seconds)
    )
    longer = replace(track, length=2 * found[Way.GENMIG].length, seconds=silent)
    assert [s.found for s in found_by_kraemer({**found, Way.PARALLEL_TRACK: longer})][:4] == [
        True,
        True,
        True,
        True,
    ]
