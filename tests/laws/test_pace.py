"""Replays take no more than their share of a step, however long rows and steps take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.history.pace import Pace
from tidemill.history.replay import Leg
from tidemill.runtime.local.input_log import Begun, InputLog

if TYPE_CHECKING:
    from pathlib import Path

seconds = st.floats(0.001, 5)


@given(seconds, st.floats(1e-7, 1e-2), st.floats(0.05, 0.95), st.integers(1, 1_000_000))
def test_a_replay_keeps_to_its_share_once_it_knows_what_rows_take(
    live: float, each: float, share: float, most: int
) -> None:
    pace = Pace(most, share, least=10)
    pace.done(live, 0)
    for _ in range(5):
        rows = pace.rows
        assert min(10, most) <= rows <= most
        pace.done(live + rows * each, rows)
    taken = pace.rows * each
    assert pace.rows <= 10 or taken <= (taken + live) * share * 1.01


def test_a_replay_takes_what_it_may_where_nothing_is_known() -> None:
    pace = Pace(1_000, 0.5)
    pace.done(3.0, 1_000)
    assert pace.rows == 1_000  # how long steps take without a replay is not known
    pace.done(0.1, 0)
    pace.done(0.1, 500)
    assert pace.rows == 1_000  # rows take no time


def test_a_replay_that_is_slow_at_first_becomes_faster_with_the_machine() -> None:
    pace = Pace(100_000, 0.5, least=10)
    pace.done(1.0, 0)
    pace.done(11.0, 100)
    assert pace.rows == 10
    for _ in range(20):
        pace.done(1.0 + pace.rows / 100_000, pace.rows)
    assert pace.rows > 50_000


@pytest.mark.parametrize("leg", [None, Leg(7, 3)])
def test_a_step_that_is_taken_again_replays_as_far_as_before(
    tmp_path: Path, leg: Leg | None
) -> None:
    InputLog(tmp_path / "log").note({}, Begun(8, leg=leg))
    read = InputLog(tmp_path / "log").begun
    assert read is not None
    assert read.leg == leg
