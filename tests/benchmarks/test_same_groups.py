"""SGB on small loads: what it puts together is the answer, and what would be wrong without it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.migrations.same_groups import (
    COMBINED,
    Counts,
    Load,
    NotDistributiveError,
    compared,
    load,
)


@settings(max_examples=20)
@given(st.integers(0, 1000), st.sampled_from(sorted(COMBINED)))
def test_what_is_put_together_is_the_answer(seed: int, function: str) -> None:
    found = compared(function, load(seed, 20))
    assert found.combined == 0
    assert found.wrong == found.split


def test_a_window_by_hand() -> None:
    """Old: 0 with 1; mixed: 0 with 6, 7 with 1; new: 7 with 6. One window has them all."""
    given_ = Load([(0, 1), (7, 1)], [(1, 1, 10), (6, 1, 20)], 10, 10, start=5, last=10)
    assert compared("SUM", given_) == Counts(1, 1, 1, 0, 1)
    assert compared("MAX", given_) == Counts(1, 1, 1, 0, 0)


def test_an_average_is_refused() -> None:
    with pytest.raises(NotDistributiveError, match="AVG of a whole"):
        compared("AVG", load(1, 5))
