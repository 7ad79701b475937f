"""Row window in interval form: fixtures of the paper, ties, groups, SLIDE and the delay."""

from __future__ import annotations

import polars as pl
import pytest

from physical.letters import (
    LETTERS,
    P3,
    arriving,
    assert_stream,
    is_end_ordered,
    one_by_one,
    together,
)
from physical.run import Advance, Arrive, Element, Schedule, run
from tidemill.algebra.expr import Call, Column, Literal
from tidemill.algebra.values import NAN
from tidemill.model.batch import END, ID, START
from tidemill.model.schema import Field, Schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.model.types import BOOLEAN, DOUBLE, VARCHAR
from tidemill.physical import signed
from tidemill.physical.operators.windows.row_window import RowWindow

NUMBERS = Schema((Field("x", DOUBLE),))


def window(rows: int, slide: int = 1, *, by: bool = False, delay: int | None = None) -> RowWindow:
    return RowWindow(LETTERS, rows, slide, ("letter",) if by else (), max_delay=delay)


@pytest.mark.parametrize("schedule", [together(P3), one_by_one(P3)], ids=["all", "single"])
@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (window(1), "b[1,3) a[3,4) c[4,7) a[7,10) b[10,inf)"),
        (window(1, by=True), "b[1,10) a[3,7) c[4,inf) a[7,inf) b[10,inf)"),
        (window(2, 2), "b[3,7) a[3,7) c[7,inf) a[7,inf)"),
        (window(1, 2), "a[3,7) a[7,inf)"),
        (window(3, 2), "b[3,7) a[3,inf) c[7,inf) a[7,inf)"),
        (window(9), "b[1,inf) a[3,inf) c[4,inf) a[7,inf) b[10,inf)"),
        (window(1, 9), ""),
    ],
    ids=["1", "1 by letter", "2 slide 2", "1 slide 2", "3 slide 2", "9", "1 slide 9"],
)
def test_fixture(operator: RowWindow, schedule: Schedule, expected: str) -> None:
    assert_stream(run(operator, schedule, ids=True), expected)


def test_of_elements_of_one_instant_only_the_last_state_is_seen() -> None:
    output = run(window(2), arriving("a@3 b@3 c@3", "d@5", 9), ids=True)
    assert_stream(output, "b[3,5) c[3,inf) d[5,inf)")


def test_ids_order_the_elements_of_one_instant_whatever_the_batches() -> None:
    operator = window(1)
    state = operator.new_state()
    for row in [("a", 3, 4, 8), ("b", 3, 4, 7)]:
        assert list(operator.on_batch(state, 0, _with_ids(row))) == []
    (out,) = operator.on_watermark(state, END_OF_TIME)
    assert out["letter"].to_list() == ["a"]


def _with_ids(*rows: tuple[str, int, int, int]) -> pl.DataFrame:
    schema = {"letter": pl.String, START: pl.Int64, END: pl.Int64, ID: pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def test_without_ids_values_order_the_elements_of_one_instant() -> None:
    rows = [Element((x,), 3, 4) for x in (NAN, 1.0, None, 2.0)]
    by_value = RowWindow(NUMBERS, 3, by_id=False)
    output = run(by_value, together(rows, schema=NUMBERS))
    assert sorted(map(str, (e.row[0] for e in output.elements))) == ["1.0", "2.0", "nan"]
    nulls_first = RowWindow(NUMBERS, 2, 3, by_id=False)
    output = run(nulls_first, together(rows, schema=NUMBERS))
    assert [e.row for e in output.elements] == [(1.0,), (2.0,)]


def test_nulls_are_one_group_and_so_are_nans_and_zeros() -> None:
    latest = RowWindow(NUMBERS, 1, partition_by=("x",))
    rows = [Element((x,), t, t + 1) for t, x in enumerate((None, NAN, 0.0, None, NAN, -0.0))]
    output = run(latest, one_by_one(rows, schema=NUMBERS), ids=True)
    assert sorted((e.start, e.end) for e in output.elements) == [
        (0, 3), (1, 4), (2, 5), (3, END_OF_TIME), (4, END_OF_TIME), (5, END_OF_TIME)
    ]  # fmt: skip


IS_B = Call("=", (Column("letter", VARCHAR), Literal("b", VARCHAR)), BOOLEAN)


@pytest.mark.parametrize("kind", [RowWindow, signed.RowWindow])
def test_an_element_that_is_not_seen_displaces_the_one_before_it(kind: type[RowWindow]) -> None:
    output = run(kind(LETTERS, 1, unless=IS_B), arriving("a@1 b@3", 4, "b@5 c@7 b@7", 9), ids=True)
    assert [output.snapshot(time).total() for time in range(9)] == [0, 1, 1, 0, 0, 0, 0, 0, 0]
    again = run(kind(LETTERS, 1, unless=IS_B), arriving("a@1 b@3", 4, "b@5 a@5 c@7", 9), ids=True)
    shown = "".join("".join(str(*row) for row in again.snapshot(time)) or "-" for time in range(9))
    assert shown == "-aa--aacc"


def test_a_group_whose_last_element_is_not_seen_is_forgotten() -> None:
    operator = RowWindow(LETTERS, 1, partition_by=("letter",), unless=IS_B)
    output = run(operator, arriving("a@1 b@2", 4, "b@5", 6, "c@7", 8), ids=True)
    assert output.sizes[:3] == [
        2,
        2,
        4,
    ]  # of a, and then of c: the element, and how many there were


def test_an_open_element_holds_the_promise_back_and_a_queued_one_does_not() -> None:
    operator = window(1, 2)
    state = operator.new_state()
    assert list(operator.on_batch(state, 0, _with_ids(("a", 1, 2, 0)))) == []
    assert list(operator.on_watermark(state, Time(5))) == []
    assert operator.held(state) == END_OF_TIME
    assert list(operator.on_batch(state, 0, _with_ids(("b", 6, 7, 1)))) == []
    assert list(operator.on_watermark(state, Time(8))) == []
    assert operator.held(state) == 6


# The delay


def test_a_quiet_group_is_cut_at_the_watermark_and_goes_on() -> None:
    output = run(window(1, by=True, delay=3), arriving("a@1", "b@2", 5, 20, "a@30"), ids=True)
    assert_stream(output, "a[1,5) b[2,20) a[5,20) a[20,30) b[20,inf) a[30,inf)")


def test_a_cut_element_that_leaves_at_the_cut_has_nothing_left() -> None:
    output = run(window(1, delay=0), arriving("a@1", 4, "b@4"), ids=True)
    assert_stream(output, "a[1,4) b[4,inf)")


def test_a_cut_element_keeps_its_place_in_the_window() -> None:
    output = run(window(2, delay=3), arriving("a@1", "b@4", 5, "c@6", 7, "d@8"), ids=True)
    assert_stream(output, "a[1,5) a[5,6) b[4,8) c[6,inf) d[8,inf)")


@pytest.mark.parametrize("delay", [None, 0, 1, 5, 100])
def test_every_delay_gives_the_same_snapshots(delay: int | None) -> None:
    plain = run(window(2, by=True), one_by_one(P3), ids=True)
    cut = run(window(2, by=True, delay=delay), one_by_one(P3), ids=True)
    for t in range(20):
        assert cut.snapshot(t) == plain.snapshot(t)


# State


def test_state_is_the_windows_the_queues_and_a_count_of_each_group() -> None:
    rows = tuple(Element((letter,), t, t + 1) for t in range(30) for letter in "abc")
    schedule = Schedule((LETTERS,), (Arrive(0, rows), Advance(100)))
    assert run(window(4, by=True), schedule, ids=True).sizes[0] == 12 + 3
    # Of 30 elements of each letter 28 have come in, and 2 wait for the next move.
    assert run(window(4, 7, by=True), schedule, ids=True).sizes[0] == 18 + 3


def test_one_group_gives_ordered_ends() -> None:
    output = run(window(3, 2), one_by_one(P3), ids=True)
    assert is_end_ordered(output)
