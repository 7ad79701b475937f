"""Internal consistency: money that only moves adds up to 0 at every instant, for all readers."""

from __future__ import annotations

import doctest

import polars as pl
import pytest

import tidemill
from benchmarks.consistency import transfers
from benchmarks.consistency.ledger import Ledger, Totals, wrong_results
from benchmarks.consistency.runs import in_memory, local, steps_of
from benchmarks.consistency.transfers import VARIANTS, arrivals, truth
from benchmarks.harness.stepped import Stepped
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.planning import Joins, Planning

STEPS = list(steps_of(arrivals(14, accounts=4, seed=2), 9, 2))
CHANGES = ("account", "balance", "time", "sign")
TRUTH = {3: {1: -5, 2: 5}, 8: {1: -5, 2: 2, 3: 3}}


def _changes(*rows: tuple[int, ...]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=CHANGES, orient="row")


def test_examples_run() -> None:
    assert doctest.testmod(transfers) == (0, 2)


@pytest.mark.parametrize("technique", ["direct", "negative", "hybrid", "pattern"])
def test_the_total_is_0_at_every_instant(technique: str) -> None:
    seen = local(VARIANTS[1], technique, 1, STEPS)
    assert (seen.wrong, seen.missing) == (0, 0)
    assert seen.instants > 20


@pytest.mark.parametrize("technique", ["direct", "negative", "hybrid", "pattern"])
def test_an_answer_in_memory_is_whole_whenever_it_is_read(technique: str) -> None:
    steps = list(steps_of(arrivals(40, accounts=6, seed=2), 9, 2))
    seen = in_memory(VARIANTS[0], technique, steps)
    assert seen.wrong == 0
    assert seen.instants > 30


@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize("technique", Technique)
def test_a_lazy_join_in_memory_is_whole_whenever_it_is_read(
    technique: Technique, partitions: int
) -> None:
    session = tidemill.connect()
    for name in "suw":
        session.sql(f"CREATE STREAM {name} (at BIGINT) SOURCE memory('{name}') ORDERED BY at")
    session.sql("CREATE QUERY q AS SELECT s.at FROM s [RANGE 6], u [RANGE 6], w [RANGE 6]")
    planning = Planning(joins=Joins.MULTIWAY, lazy=4, technique=technique)
    stepped = Stepped(session, planning=planning, partitions=partitions)
    for time in range(8):
        row = pl.DataFrame({"at": [time]})
        stepped.step(dict.fromkeys("suw", row))
    heights = [stepped.answers["q"].snapshot(time).height for time in range(7)]
    expected = [min(time + 1, 6) ** 3 for time in range(7)]
    known = heights.index(heights[-1])  # from there on it shows what was known last
    assert known > 2
    assert heights == [*expected[:known], *[expected[known]] * (7 - known)]


def test_the_truth_adds_up_to_0() -> None:
    for variant in VARIANTS:
        found = truth(pl.concat(STEPS), variant)
        assert found
        assert all(sum(balances.values()) == 0 for balances in found.values())


def test_a_ledger_takes_the_changes_of_an_instant_together() -> None:
    ledger = Ledger(TRUTH)
    ledger.take(_changes((1, -5, 3, 1), (2, 5, 3, 1), (2, 5, 8, -1), (2, 2, 8, 1), (3, 3, 8, 1)))
    assert (ledger.instants, ledger.wrong, ledger.missing) == (2, 0, 0)


def test_half_of_an_instant_is_wrong_and_its_other_half_comes_too_late() -> None:
    ledger = Ledger(TRUTH)
    ledger.take(_changes((1, -5, 3, 1)))
    ledger.take(_changes((2, 5, 3, 1)))
    assert (ledger.instants, ledger.wrong) == (2, 2)


def test_other_balances_are_wrong_even_if_they_add_up() -> None:
    ledger = Ledger(TRUTH)
    ledger.take(_changes((1, -4, 3, 1), (2, 4, 3, 1)))
    assert ledger.wrong == 1


def test_a_total_that_is_not_0_for_an_instant_is_wrong() -> None:
    totals = Totals(TRUTH)
    totals.take(pl.DataFrame([(0, 3, 1)], schema=["total", "time", "sign"], orient="row"))
    assert (totals.instants, totals.wrong, totals.missing) == (1, 0, 0)
    totals.take(
        pl.DataFrame([(0, 8, -1), (3, 8, 1)], schema=["total", "time", "sign"], orient="row")
    )
    assert totals.wrong == 1


def test_results_that_do_not_overlap_as_they_should_are_wrong() -> None:
    good = {"account": [1, 2], "balance": [-5, 5], "start": [3, 3], "end": [9, 9]}
    assert wrong_results(pl.DataFrame(good)) == (2, 0)
    assert wrong_results(pl.DataFrame({**good, "end": [9, 8]})) == (3, 1)
