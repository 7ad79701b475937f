"""What migrations cost: the printed formulas and their vectors, and the units of this engine."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.optimizer.constants import DEFAULTS
from tidemill.optimizer.migration_costs import (
    Terms,
    joined_rate,
    matching,
    moving,
    moving_pause,
    moving_state,
    new_box_rate,
    new_box_work,
    old_box_work,
    parallel_track,
    recomputing,
)

TERMS = Terms(compare=0.5, cursor=2.0, join=3.0, insert=5.0)
RATES = st.floats(0.5, 50)


def chain(rate: float, window: float, pair: float, triple: float) -> float:
    """Moving State from ((A⋈B)⋈C)⋈D to A⋈((B⋈C)⋈D): BC and BCD are computed (16.1)."""
    rows, joined = rate * window, joined_rate(rate, rate, window, pair) * window
    unmatched = recomputing(rows, rows, pair, TERMS), recomputing(joined, rows, triple, TERMS)
    return moving_state(3, 3, unmatched, TERMS)


@given(RATES, RATES, st.floats(0, 1), st.floats(0, 1))
def test_the_instance_of_the_experiments(
    rate: float, window: float, pair: float, triple: float
) -> None:
    states = rate**2 * window**2 * (TERMS.join + TERMS.insert * pair)
    states += 2 * rate**3 * window**3 * (TERMS.join * pair + TERMS.insert * pair * triple)
    overhead = 4 * 3 * 3 * 0.5 + 2 * 3 * 2.0
    assert chain(rate, window, pair, triple) == pytest.approx(overhead + states)


def test_matching_and_moving_by_hand() -> None:
    assert matching(3, 4, TERMS) == 24.0
    assert moving(3, 4, TERMS) == 12.0
    assert recomputing(10, 20, 0.1, TERMS) == 200 * 3 + 20 * 5
    assert joined_rate(2, 3, 10, 0.5) == 60.0


def test_moving_state_grows_with_the_window_and_parallel_track_is_as_long_as_it() -> None:
    """Polynomial against linear: with long windows the tracks are over first (E12)."""
    lengths = [parallel_track(window, 3, ends_first=False) for window in (10.0, 20.0)]
    assert lengths == [20.0, 40.0]
    assert chain(10, 20, 0.1, 0.1) > 4 * chain(10, 10, 0.1, 0.1)


@pytest.mark.parametrize(
    ("height", "ends_first", "length"), [(1, False, 7), (2, False, 14), (1, True, 7), (3, True, 7)]
)
def test_the_length_of_parallel_track(height: int, length: int, *, ends_first: bool) -> None:
    """Two windows only where a pair is kept for a window after its last row (Z11, Z44)."""
    assert parallel_track(7, height, ends_first=ends_first) == length


@given(RATES, RATES, RATES)
def test_the_work_of_both_boxes(left: float, right: float, window: float) -> None:
    """In full windows the new box does what the old one does; before, what the integral says."""
    first, second = new_box_work(left, right, window, TERMS)
    assert old_box_work(left, right, window, TERMS) == pytest.approx(2 * second)
    steps = 2_000
    probed = sum(
        2 * left * right * (n + 0.5) * window / steps * window / steps for n in range(steps)
    )
    put = (left + right) * window
    assert first == pytest.approx(TERMS.join * probed + TERMS.insert * put, rel=1e-6)
    assert first < second


def test_the_new_box_gives_more_until_its_windows_are_full() -> None:
    rates = [new_box_rate(2, 3, 0.5, 10, time) for time in (0, 5, 10, 15)]
    assert rates == [0, 30, 60, 60]
    assert rates[-1] == joined_rate(2, 3, 10, 0.5)


def test_the_pause_is_in_proportion_to_the_state() -> None:
    assert moving_pause(0, DEFAULTS) == 0
    assert moving_pause(2_000, DEFAULTS) == pytest.approx(2 * moving_pause(1_000, DEFAULTS))
    assert moving_pause(10, replace(DEFAULTS, scanned=5.0)) > moving_pause(10, DEFAULTS)
