"""Time window in interval form: fixtures of the paper, SLIDE, and the end of time."""

from __future__ import annotations

import pytest

from physical.letters import LETTERS, P3, assert_stream, is_chronon, one_by_one, together
from physical.run import Element, Schedule, run
from tidemill.model.time import END_OF_TIME
from tidemill.physical.operators.windows.time_window import TimeWindow


@pytest.mark.parametrize("schedule", [together(P3), one_by_one(P3)], ids=["all", "single"])
@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (TimeWindow(LETTERS, 50), "b[1,51) a[3,53) c[4,54) a[7,57) b[10,60)"),
        (TimeWindow(LETTERS, 1), "b[1,2) a[3,4) c[4,5) a[7,8) b[10,11)"),
        (TimeWindow(LETTERS, None), "b[1,inf) a[3,inf) c[4,inf) a[7,inf) b[10,inf)"),
        (TimeWindow(LETTERS, 50, 10), "b[9,59) a[9,59) c[9,59) a[9,59) b[19,69)"),
        (TimeWindow(LETTERS, 10, 10), "b[9,19) a[9,19) c[9,19) a[9,19) b[19,29)"),
        (TimeWindow(LETTERS, 7, 10), "a[9,19) c[9,19) a[9,19)"),
        (TimeWindow(LETTERS, 5, 2), "b[1,7) a[3,9) c[5,9) a[7,13) b[11,15)"),
        (TimeWindow(LETTERS, None, 10), "b[9,inf) a[9,inf) c[9,inf) a[9,inf) b[19,inf)"),
    ],
    ids=["50", "now", "unbounded", "slide", "tumbling", "slide>size", "5 by 2", "all by 10"],
)
def test_fixture(window: TimeWindow, schedule: Schedule, expected: str) -> None:
    assert_stream(run(window, schedule), expected)


def test_the_now_window_gives_chronons() -> None:
    assert is_chronon(run(TimeWindow(LETTERS, 1), together(P3)))


LATE = END_OF_TIME - 5


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (TimeWindow(LETTERS, 4), [(LATE, END_OF_TIME - 1)]),
        (TimeWindow(LETTERS, 5), [(LATE, END_OF_TIME)]),
        (TimeWindow(LETTERS, 100), [(LATE, END_OF_TIME)]),
        (TimeWindow(LETTERS, END_OF_TIME), [(LATE, END_OF_TIME)]),
        (TimeWindow(LETTERS, 2**70), [(LATE, END_OF_TIME)]),
        (TimeWindow(LETTERS, 100, 3), [(END_OF_TIME - 5, END_OF_TIME)]),
        (TimeWindow(LETTERS, 100, 1000), []),
        (TimeWindow(LETTERS, END_OF_TIME, END_OF_TIME), [(END_OF_TIME - 1, END_OF_TIME)]),
    ],
)
def test_no_time_is_after_the_end(window: TimeWindow, expected: list[tuple[int, int]]) -> None:
    output = run(window, together([Element(("a",), LATE, LATE + 1)]))
    assert [(e.start, e.end) for e in output.elements] == expected
