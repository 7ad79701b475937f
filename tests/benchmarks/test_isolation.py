"""Isolation: what the simulation gives, the findings C1 to C7, and what Tidemill's readers see."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from benchmarks.isolation.experiments import Sizes, long_scans, measured, mixed, periodic, reached
from benchmarks.isolation.findings import findings, in_order
from benchmarks.isolation.levels import Levels, state_of
from benchmarks.isolation.load import Costs, Load, Workload, workload
from benchmarks.isolation.scheduling import Scheduler
from benchmarks.isolation.simulation import simulate

if TYPE_CHECKING:
    from pathlib import Path

SERIAL, WS, LWS, TTU = Scheduler
LOAD = Load(8, 1_000.0, gap=700.0)


@pytest.fixture(scope="module")
def works() -> list[Workload]:
    return [workload(LOAD, seed) for seed in range(4)]


def test_what_is_drawn_is_the_same_for_a_seed() -> None:
    assert workload(LOAD, 3) == workload(LOAD, 3)
    assert workload(LOAD, 3) != workload(LOAD, 4)


def test_a_run_counts_what_the_queries_and_slides_cost() -> None:
    costs = Costs(read=10, row=0, slide=1, slide_row=0, step=0, test=0)
    load = Load(2, 100.0, groups=1, members=20, windows=1, costs=costs)
    work = workload(load, 1)
    assert [asked.length for asked in work.periodic] == [2]
    # Two reads of 10 ms make an answer; the slide due at 100 ms comes between the fifth and sixth.
    run = simulate(work, TTU)
    given = [answer.given for answer in run.answers]
    assert given == [20, 40, 60, 80, 100, 121, 141, 161, 181, 201]
    assert [answer.staleness for answer in run.answers] == [
        *(20, 40, 60, 80, 100, 21, 41, 61, 81, 101)
    ]
    assert (run.waited, run.aborts) == (0, 0)


@pytest.mark.parametrize("scheduler", [WS, LWS, TTU])
def test_slides_wait_for_no_query(scheduler: Scheduler, works: list[Workload]) -> None:
    for work in works:
        step = max(work.read_cost(work.periodic[0], v) for v in range(len(work.rows)))
        assert simulate(work, scheduler).waited <= step + LOAD.costs.step


def test_with_serial_slides_wait(works: list[Workload]) -> None:
    assert max(simulate(work, SERIAL).waited for work in works) > 100


@pytest.mark.parametrize("scheduler", [WS, LWS, TTU])
def test_a_one_time_query_waits_for_one_step_and_no_more(
    scheduler: Scheduler, works: list[Workload]
) -> None:
    for work in works:
        answers = [answer for answer in simulate(work, scheduler).answers if answer.is_once]
        assert len(answers) > 10
        versions = range(len(work.rows))
        step = max(work.read_cost(work.periodic[0], v) for v in versions) + LOAD.costs.step
        slide = max(map(work.slide_cost, versions)) + 20 * LOAD.costs.test
        free = 0.0
        for answer in answers:
            # What came before goes first.
            waited = answer.began - max(answer.asked, free)
            is_aborted = answer.began - answer.asked > 2 * (step + slide)
            assert waited <= step + slide or (scheduler is LWS and is_aborted)
            free = answer.given


def test_histories_reach_what_their_schedulers_promise() -> None:
    latest = Levels(csr=True, ws=True, strong=True, lws=True, cps=True)
    old = Levels(csr=True, ws=True, strong=True, lws=False, cps=False)
    assert reached(Sizes((5, 8), 2)) == {SERIAL: latest, WS: old, LWS: latest, TTU: latest}


@pytest.mark.parametrize("scheduler", [LWS, TTU])
def test_who_takes_back_aborts_nothing_and_is_latest(scheduler: Scheduler) -> None:
    costs = Costs(read=120, row=0.1)
    load = Load(8, 1_000.0, windows=8, costs=costs)
    for seed in range(3):
        run = simulate(workload(load, seed), scheduler, rereads=True)
        assert run.aborts == 0
        assert run.answers
        assert all(
            max(read.values()) == run.history.latest(run.history.places[query][1])
            and state_of(read.values()) is not None
            for query, read in run.history.reads.items()
        )
    if scheduler is LWS:
        assert run.reread > 0


@pytest.mark.soak
def test_c1_to_c7_are_found_but_for_two_and_why() -> None:
    alone = periodic(Sizes((10, 20, 40, 60), 3))
    both = mixed(Sizes((10, 20, 40), 6))
    shapes = list(findings(alone, both))
    assert [shape.says for shape in shapes if not shape.found] == [
        "C1: LWS aborts about half at worst",
        "C2: staleness grows with their number",
    ]
    assert all(shape.why for shape in shapes if not shape.found)
    assert {shape.says[:2] for shape in shapes} == {f"C{number}" for number in range(1, 8)}


def test_findings_are_lost_if_the_schedulers_change_places() -> None:
    group = periodic(Sizes((20,), 2))[1_000.0, 20]
    assert in_order([group], (TTU, LWS, WS), lambda f: f.staleness)
    swapped = {**group, TTU: group[WS], WS: group[TTU]}
    assert not in_order([swapped], (TTU, LWS, WS), lambda f: f.staleness)


def test_ttu_starves_only_where_a_slide_comes_for_each_read() -> None:
    found = long_scans((4.0, 32.0), 1)
    assert found[4.0][TTU, False].aborts == 0
    assert found[4.0][LWS, False].aborts > 0.5
    assert found[32.0][TTU, False].aborts == 1
    assert found[32.0][WS, False].aborts == 0


def test_figures_of_no_answer_are_zero() -> None:
    none = measured(Load(4, 1_000.0, windows=1, costs=Costs(read=90_000)), TTU, [1])
    assert (none.staleness, none.response, none.throughput, none.aborts) == (0, 0, 0, 0)


def test_a_reader_of_a_running_query_sees_a_window_that_was_and_always_the_same(
    tmp_path: Path,
) -> None:
    """What is read while batches come, in the words of the model: one version an instant."""
    random, n = Random(7), 5  # noqa: S311 — nothing is secret
    (tmp_path / "in").mkdir()
    session = tidemill.connect()
    session.sql(
        f"CREATE STREAM s (v BIGINT, at BIGINT) SOURCE parquet('{tmp_path / 'in'}') ORDERED BY at"
    )
    window = session.query(f"SELECT v FROM s [RANGE {n}]")
    _write(tmp_path, 0, 2 * n)
    session.start()
    try:
        session.await_idle()
        seen: dict[int, frozenset[int]] = {}
        states: list[int] = []
        come = 2 * n
        for _ in range(20):
            more = come + random.randint(1, 40)
            _write(tmp_path, come, more)
            come = more
            for _ in range(20):
                now = frozenset(window.snapshot()["v"].to_list())
                state = state_of(now)
                assert state is not None, "no reader sees what never was"
                assert seen.setdefault(state, now) == now
                states.append(state)
                at = random.randint(n - 1, state)
                assert set(window.snapshot(at)["v"]) == set(range(at - n + 1, at + 1))
            session.await_idle()
            assert state_of(window.snapshot()["v"].to_list()) == come - 2
        assert all(before <= after for before, after in pairwise(states)), "none goes back"
        assert len(set(states)) > 5
    finally:
        session.stop()


def _write(directory: Path, first: int, past: int) -> None:
    """A file of the source, which is there at once and whole."""
    rows = pl.DataFrame({"v": range(first, past), "at": range(first, past)})
    rows.write_parquet(directory / "next")
    (directory / "next").rename(directory / "in" / f"{first:06}.parquet")
