"""Granularity: the vector of KB41, and the end of time."""

from __future__ import annotations

from physical.letters import LETTERS, P1, arriving, assert_stream, together
from physical.run import Element, run
from tidemill.model.time import END_OF_TIME
from tidemill.physical.operators.rows.granularity import Granularity


def test_granule_2() -> None:
    output = run(Granularity(LETTERS, 2), together(P1))
    assert_stream(output, "c[2,8) a[6,12) d[6,14) b[12,18)")


def test_granule_1_changes_nothing() -> None:
    output = run(Granularity(LETTERS, 1), together(P1))
    assert_stream(output, "c[1,8) a[5,11) d[6,14) a[9,10) b[12,17)")


def test_what_never_ends_does_not_end() -> None:
    assert_stream(run(Granularity(LETTERS, 10), arriving("a[1,inf)")), "a[10,inf)")


def test_no_time_is_after_the_end() -> None:
    late = Element(("a",), END_OF_TIME - 3, END_OF_TIME - 1)
    assert run(Granularity(LETTERS, 1000), together([late])).elements == []
