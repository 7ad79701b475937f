"""How late answers are, in the time of the streams (H05, X1, X4): by input, and by the clock.

The driver is that of ``benchmarks/techniques/delays.py``. A sample has less than a hundred rows,
whence the tolerances; its random numbers are fixed.
"""

from __future__ import annotations

import math

import pytest

from benchmarks.techniques.delays import LOADS, Load, by_input, by_the_clock
from tidemill.optimizer.physical.techniques import Technique


@pytest.mark.parametrize(("rate", "selectivity"), LOADS)
def test_triggered_by_input_an_answer_waits_for_the_next_row_that_passes(
    rate: float, selectivity: float
) -> None:
    gap = 1 / (rate * selectivity)
    delays = by_input(Load(rate, selectivity, rows=80, window=10 * gap), Technique.PATTERN)
    assert delays.mean == pytest.approx(gap, rel=0.25)
    # The greatest of n exponential times is about ln n of them.
    assert 0.5 < delays.greatest / (math.log(delays.count) * gap) < 2


@pytest.mark.parametrize("technique", Technique, ids=lambda t: t.value)
def test_by_the_clock_no_answer_waits_for_longer_than_a_tick(technique: Technique) -> None:
    """With ``direct`` an answer leaves when it has ended, and the delay is that after its end."""
    gap = 1 / (10 * 0.25)
    load = Load(rate=10, selectivity=0.25, rows=24, window=8 * gap)
    delays = by_the_clock(load, technique, gap / 2)
    assert delays.count > 24
    assert delays.greatest <= gap / 2
    assert delays.mean < gap / 2
