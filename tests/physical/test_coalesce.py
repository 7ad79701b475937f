"""Coalesce: the fixture of the paper, multiplicities, and the bound on the length."""

from __future__ import annotations

import pytest

from physical.letters import LETTERS, P2, arriving, assert_stream, one_by_one, stream, together
from physical.run import Element, Output, Schedule, run
from tidemill.algebra.values import NAN
from tidemill.model.schema import Field, Schema
from tidemill.model.types import DOUBLE
from tidemill.physical.operators.rows.coalesce import Coalesce


def coalesce(length: int, schedule: Schedule) -> Output:
    # What ends at the watermark may still meet its neighbour there.
    return run(Coalesce(LETTERS, length), schedule, tight=False)


@pytest.mark.parametrize("schedule", [together(P2), one_by_one(P2)], ids=["all", "single"])
def test_coalesce_20_merges_the_two_bs(schedule: Schedule) -> None:
    assert_stream(coalesce(20, schedule), "b[1,15) d[3,9) a[4,5) e[10,18)")


def test_an_end_meets_one_start_only() -> None:
    output = coalesce(20, together(stream("a[0,3) a[3,6) a[3,5)")))
    assert_stream(output, "a[0,5) a[3,6)")
    output = coalesce(20, together(stream("a[0,3) a[1,3) a[3,6)")))
    assert_stream(output, "a[0,3) a[1,6)")


def test_overlapping_elements_are_not_merged() -> None:
    assert len(coalesce(20, together(stream("a[0,5) a[3,8)"))).elements) == 2


def test_a_neighbour_that_starts_at_the_watermark_is_found() -> None:
    output = coalesce(20, arriving("a[0,3)", 3, "a[3,6)", 4, 7))
    assert_stream(output, "a[0,6)")
    assert output.sizes == [1, 1, 0, 0]


def test_what_can_meet_nothing_any_more_leaves() -> None:
    output = coalesce(20, arriving("a[0,3)", 4))
    assert output.sizes == [0, 0]


def test_a_merge_is_never_longer_than_the_bound() -> None:
    pieces = " ".join(f"a[{t},{t + 3})" for t in range(0, 30, 3))
    for schedule in (arriving(pieces), one_by_one(stream(pieces))):
        output = coalesce(7, schedule)
        assert {e.end - e.start for e in output.elements} == {7, 2}
        assert len(output.elements) == 5


def test_elements_as_long_as_the_bound_pass_at_once() -> None:
    output = coalesce(1, together(stream("a[0,1) a[1,2) b[0,9)")))
    assert_stream(output, "a[0,1) a[1,2) b[0,9)")


def test_nulls_are_equal_and_so_are_nans_and_zeros() -> None:
    numbers = Schema((Field("x", DOUBLE),))
    rows = [Element((x,), 0, 2) for x in (None, NAN, 0.0)]
    rows += [Element((x,), 2, 4) for x in (NAN, -0.0, None)]
    output = run(Coalesce(numbers, 9), together(rows, schema=numbers))
    assert [(e.start, e.end) for e in output.elements] == [(0, 4)] * 3
