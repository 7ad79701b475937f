"""Rstream: every instant is a new element."""

from __future__ import annotations

import pytest

from physical.letters import LETTERS, arriving, assert_stream
from physical.run import run
from tidemill.errors import PlanError
from tidemill.physical.interval.rstream import Rstream


def test_each_instant_of_a_row_is_an_element() -> None:
    output = run(Rstream(LETTERS), arriving("a[1,4) b[2,3)", 2))
    assert_stream(output, "a[1,2) a[2,3) a[3,4) b[2,3)")


def test_what_never_ends_is_one_element_in_the_end() -> None:
    assert_stream(run(Rstream(LETTERS), arriving("a[1,inf)", 3)), "a[1,2) a[2,3) a[3,inf)")


def test_below_a_window_what_never_ends_is_an_error() -> None:
    with pytest.raises(PlanError):
        run(Rstream(LETTERS, must_cut=True), arriving("a[1,inf)", 3))
