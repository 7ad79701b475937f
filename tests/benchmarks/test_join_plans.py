"""Join plans: what is simulated agrees with the engine and with Golab's and Zhu's formulas."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.join_plans.at_random import found
from benchmarks.join_plans.engine import chain_run, one_join
from benchmarks.join_plans.findings import found_in_time
from benchmarks.join_plans.golab import Streams, Technique, joined
from benchmarks.join_plans.golab_experiments import lagging, lost, orders
from benchmarks.join_plans.golab_findings import found_in_losses
from benchmarks.join_plans.settings import SETTINGS, followed
from tidemill.optimizer.search.probe_orders import InputStats, order_cost

FOUR = Streams((4, 1, 2, 1), (40, 20, 40, 20), (4, 3, 6, 5), 300)


def brute_force(streams: Streams) -> int:
    """How many combinations of one row of each stream, of one value, are valid together."""
    sides: list[list[tuple[int, int, int]]] = [[] for _ in streams.rates]
    for stream, time, value in streams.arrivals():
        sides[stream].append((value, time, time + streams.windows[stream]))
    found = sides[0]
    for side in sides[1:]:
        pairs = ((v, max(s, t), min(e, f)) for v, s, e in found for w, t, f in side if v == w)
        found = [one for one in pairs if one[1] < one[2]]
    return len(found)


def test_all_ways_but_one_give_all_results() -> None:
    whole = brute_force(FOUR)
    assert whole > 100
    for way in (Technique.EAGER, Technique.LAZY_EXPIRATION, Technique.RESTORE):
        every = 0 if way is Technique.EAGER else 15
        assert joined(FOUR, (2, 0, 3, 1), way, every=every, buckets=3).results == whole
    assert 0 < joined(FOUR, (2, 0, 3, 1), Technique.LAZY, every=15).results < whole


@pytest.mark.parametrize("every", [0, 15])
def test_the_operator_gives_what_is_counted(every: int) -> None:
    run = one_join(FOUR, (2, 0, 3, 1), step=5, evaluation=every)
    assert run.results == brute_force(FOUR)


@pytest.mark.parametrize("order", [(2, 1, 3, 0), (0, 3, 1, 2)])
def test_an_eager_join_compares_what_the_model_says(order: tuple[int, ...]) -> None:
    rates, windows, values = (0.4, 0.1, 0.3, 0.2), (100, 200, 100, 200), (4, 3, 6, 5)
    stats = [InputStats(*one) for one in zip(rates, windows, values, strict=True)]
    compared = 0
    for seed in range(3):
        compared += joined(
            Streams(rates, windows, values, 4_000, seed), order, Technique.EAGER
        ).compared
    # While windows fill there is less.
    assert compared / 12_000 == pytest.approx(order_cost(stats, order), rel=0.15)


def test_the_ranks_of_orders_are_compared() -> None:
    found = orders(replace(FOUR, rows=60), seeds=2)
    assert found.spread("eager") >= 1
    assert -1 <= found.agreement("lazy") <= 1


def test_plans_of_a_chain_give_the_same_and_keep_what_the_model_says() -> None:
    setting = replace(SETTINGS[0], window=1.0)
    one, other = (chain_run(setting, 1.0, multiway=way, seed=1) for way in (True, False))
    assert one.results == other.results
    assert one.state < other.state
    # Rows that ended within the last step are still there.
    assert one.state == pytest.approx(setting.plans["mjoin"].memory, rel=0.25)


def test_zhus_settings_are_what_is_said_of_them() -> None:
    courses = {
        one.number: {name: followed(one, plan.tree) for name, plan in one.plans.items()}
        for one in SETTINGS
    }
    shapes = list(found_in_time(courses))
    assert all(shape.found for shape in shapes)
    # With as much CPU as it takes, no rows wait for the mjoin of the second setting.
    enough = replace(SETTINGS[1], capacity=4e6)
    courses[2] = {name: followed(enough, plan.tree) for name, plan in enough.plans.items()}
    assert not all(shape.found for shape in found_in_time(courses))


def test_searches_find_what_there_is() -> None:
    few = found(4, 4, 1, all_trees=True)
    assert few.missed == 0
    assert 0 < few.shares["all trees"] <= 1
    assert few.shares["best_tree"] == few.shares["all trees"]


def test_what_is_lost_is_half_of_the_time_between_rounds() -> None:
    shares, lags = (0.25, 1.0), (0, 99)
    losses, late = lost(shares, 40, 1_500, 1), lagging(lags, 100, 20, 600)
    shapes = found_in_losses(shares, losses, [lag / 100 for lag in lags], late)
    assert all(shape.found for shape in shapes)
