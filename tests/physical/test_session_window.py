"""Session window in interval form: pauses, groups, when a session is over, the delay, the end."""

from __future__ import annotations

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
from physical.run import Advance, Arrive, Element, Schedule, batch, run
from tidemill.algebra.values import NAN
from tidemill.model.schema import Field, Schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.model.types import DOUBLE
from tidemill.physical import signed
from tidemill.physical.operators.windows.session_window import SessionWindow

NUMBERS = Schema((Field("x", DOUBLE),))


def window(gap: int, *, by: bool = False, delay: int | None = None) -> SessionWindow:
    return SessionWindow(LETTERS, gap, ("letter",) if by else (), max_delay=delay)


@pytest.mark.parametrize("schedule", [together(P3), one_by_one(P3)], ids=["all", "single"])
@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (window(1), "b[1,2) a[3,5) c[4,5) a[7,8) b[10,11)"),
        (window(2), "b[1,6) a[3,6) c[4,6) a[7,9) b[10,12)"),
        (window(3), "b[1,13) a[3,13) c[4,13) a[7,13) b[10,13)"),
        (window(4, by=True), "b[1,5) a[3,11) c[4,8) a[7,11) b[10,14)"),
    ],
    ids=["1", "2", "3", "4 by letter"],
)
def test_fixture(operator: SessionWindow, schedule: Schedule, expected: str) -> None:
    assert_stream(run(operator, schedule), expected)


def test_all_rows_of_one_instant_count() -> None:
    assert_stream(run(window(2), arriving("a@3 a@3 b@3", 9)), "a[3,5) a[3,5) b[3,5)")


def test_a_session_is_over_when_the_watermark_has_passed_its_end() -> None:
    operator = window(3)
    state = operator.new_state()
    assert not list(operator.on_batch(state, 0, batch(LETTERS, [Element(("a",), 1, 2)])))
    assert not list(operator.on_watermark(state, Time(4)))  # a row at 4 would go on with it
    assert operator.held(state) == 1
    (out,) = operator.on_watermark(state, Time(5))
    assert out.rows() == [("a", 1, 4)]
    assert operator.held(state) == END_OF_TIME
    assert not state.rows()


def test_a_row_at_the_end_of_a_session_may_come_last_of_all() -> None:
    assert_stream(run(window(3), arriving("a@1", 4, "b@4", 9)), "a[1,7) b[4,7)")
    assert_stream(run(window(3), arriving("a@1", 5, "b@5", 9)), "a[1,4) b[5,8)")


def test_nulls_are_one_group_and_so_are_nans_and_zeros() -> None:
    sessions = SessionWindow(NUMBERS, 3, ("x",))
    rows = [Element((x,), t, t + 1) for t, x in enumerate((None, NAN, 0.0, None, NAN, -0.0))]
    output = run(sessions, one_by_one(rows, schema=NUMBERS))
    assert sorted((e.start, e.end) for e in output.elements) == [
        (0, 6), (1, 7), (2, 8), (3, 6), (4, 7), (5, 8)
    ]  # fmt: skip


# The end of time


@pytest.mark.parametrize("back", [1, 3, 4])
def test_a_session_at_the_end_of_time_ends_with_it(back: int) -> None:
    start = END_OF_TIME - back
    schedule = together([Element(("a",), start, start + 1)])
    (element,) = run(window(3), schedule).elements
    assert element == Element(("a",), start, min(start, END_OF_TIME - 3) + 3)
    signs = run(signed.SessionWindow(LETTERS, 3), schedule).changes
    assert [(c.start, c.sign) for c in signs] == [(start, 1), (start + 3, -1)][: 1 + (back > 3)]


def test_a_gap_may_be_nearly_as_long_as_time() -> None:
    output = run(window(END_OF_TIME - 1), arriving("a@0", "b@5", 9))
    assert_stream(output, "a[0,inf) b[5,inf)")


# The delay


def test_an_open_session_is_cut_at_the_watermark_and_goes_on() -> None:
    output = run(window(9, by=True, delay=3), arriving("a@1", "b@2", 5, 7, "a@10", 30))
    assert_stream(output, "a[1,5) b[2,7) a[5,19) b[7,11) a[10,19)")


def test_a_cut_element_that_leaves_at_the_cut_has_nothing_left() -> None:
    assert_stream(run(window(3, delay=0), arriving("a@1", 4, 9)), "a[1,4)")


@pytest.mark.parametrize("delay", [None, 0, 1, 5, 100])
def test_every_delay_gives_the_same_snapshots(delay: int | None) -> None:
    plain = run(window(3, by=True), one_by_one(P3))
    cut = run(window(3, by=True, delay=delay), one_by_one(P3))
    for t in range(20):
        assert cut.snapshot(t) == plain.snapshot(t)


# State


def test_state_is_the_open_sessions_and_their_last_instants() -> None:
    rows = tuple(Element((letter,), t, t + 1) for t in range(30) for letter in "abc")
    open_ = Schedule((LETTERS,), (Arrive(0, rows), Advance(32)))
    assert run(window(4, by=True), open_).sizes[0] == 90 + 3
    over = Schedule((LETTERS,), (Arrive(0, rows), Advance(34)))
    assert run(window(4, by=True), over).sizes[0] == 0


def test_one_group_gives_ordered_ends() -> None:
    assert is_end_ordered(run(window(2), one_by_one(P3)))
