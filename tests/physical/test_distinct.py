"""Duplicate elimination on the streams of the papers, and what it emits when."""

from __future__ import annotations

import pytest

from physical.letters import LETTERS, P1, arriving, assert_stream, together
from physical.run import Advance, Arrive, Element, Schedule, at_once, batch, elements_of, run
from tidemill.model.schema import Field, Schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.model.types import DOUBLE, VARCHAR
from tidemill.physical.operators.sets.distinct import LAST, Distinct

DISTINCT = Distinct(LETTERS)
WINDOW = 6
FIXTURE = {2: "a", 4: "d", 6: "a", 7: "d", 8: "a"}


def emissions(schedule: Schedule) -> dict[int, str]:
    """What is emitted at each watermark, if anything."""
    state, found = DISTINCT.new_state(), {}
    for event in schedule.events:
        if isinstance(event, Arrive):
            assert not list(DISTINCT.on_batch(state, 0, batch(LETTERS, event.elements)))
            continue
        parts = DISTINCT.on_watermark(state, Time(event.time))
        emitted = sorted((e for p in parts for e in elements_of(LETTERS, p)), key=str)
        if emitted:
            found[event.time] = " ".join(f"{e.row[0]}[{e.start},{e.end})" for e in emitted)
    return found


def fixture(*watermarks: int) -> Schedule:
    """The windowed stream of H14, each element just before the first watermark that passes it."""
    events: list[Arrive | Advance] = []
    waiting = {t: Element((letter,), t, t + WINDOW) for t, letter in FIXTURE.items()}
    for watermark in watermarks:
        due = [t for t in waiting if t < watermark]
        events += [Arrive(0, tuple(waiting.pop(t) for t in due)), Advance(watermark)]
    assert not waiting
    return Schedule((LETTERS,), tuple(events))


def test_each_row_once() -> None:
    assert_stream(run(DISTINCT, together(P1)), "c[1,8) a[5,11) d[6,14) b[12,17)")


def test_intervals_that_touch_are_one_and_others_are_not() -> None:
    output = run(DISTINCT, arriving("a[0,2) a[2,4) a[5,7) a[5,6) a[6,9)"))
    assert_stream(output, "a[0,4) a[5,9)")


def test_it_remembers_what_it_has_covered() -> None:
    # The thesis forgets a[5,11) when it stores the tail [11,20), and emits a at 9 twice.
    schedule = arriving("a[5,11)", 6, "a[9,20) a[9,10)", 10, 12)
    assert_stream(run(DISTINCT, schedule), "a[5,11) a[11,20)")


def test_of_duplicates_the_one_that_ends_last_is_kept() -> None:
    # G-22 in print keeps the youngest: after a[1,30), a[2,20) would lose a from 20 on.
    schedule = arriving("a[0,10)", 1, "a[1,30)", 2, "a[2,20)", 3, 10, 20, 30)
    output = run(DISTINCT, schedule)
    assert_stream(output, "a[0,10) a[10,30)")
    assert output.sizes == [1, 1, 1, 1, 1, 0, 0]


def test_a_duplicate_that_ends_no_later_is_forgotten() -> None:
    schedule = arriving("a[0,10)", 1, "a[1,8) a[1,10)", 2, 10)
    output = run(DISTINCT, schedule)
    assert_stream(output, "a[0,10)")
    assert output.sizes == [1, 1, 0, 0]


def test_an_end_is_known_up_to_where_it_is_known() -> None:
    state = DISTINCT.new_state()
    for event in arriving("a[0,10)", 1, "a[1,30)", 2).events:
        if isinstance(event, Arrive):
            list(DISTINCT.on_batch(state, 0, batch(LETTERS, event.elements)))
        else:
            list(DISTINCT.on_watermark(state, Time(event.time)))
    assert state.tables["covered"].all().rows() == [("a", 10, 30)]
    assert state.tables["covered"].all().columns[-1] == LAST
    assert DISTINCT.held(state) == END_OF_TIME


def test_a_watermark_at_every_instant_emits_a_replacement_where_one_ends() -> None:
    assert emissions(fixture(*range(3, 16))) == {
        3: "a[2,8)",
        5: "d[4,10)",
        8: "a[8,12)",
        10: "d[10,13)",
        12: "a[12,14)",
    }


def test_rare_watermarks_make_fewer_pieces() -> None:
    assert emissions(fixture(7, 9, 20)) == {7: "a[2,12) d[4,10)", 20: "a[12,14) d[10,13)"}
    assert emissions(fixture(20)) == {20: "a[2,14) d[4,13)"}


@pytest.mark.parametrize("watermarks", [tuple(range(3, 16)), (7, 9, 20), (9, 13, 14), (20,)])
def test_snapshots_of_the_fixture(watermarks: tuple[int, ...]) -> None:
    output = run(DISTINCT, fixture(*watermarks))
    for t in range(20):
        expected = {("a",): 2 <= t < 14, ("d",): 4 <= t < 13}
        assert output.snapshot(t) == {row: 1 for row, there in expected.items() if there}, t


def test_a_row_that_never_ends_is_emitted_at_once() -> None:
    schedule = arriving("a[0,4) b[2,inf)", 3, "a[3,inf) b[5,9)", 6)
    assert emissions(schedule) == {
        3: "a[0,4) b[2,9223372036854775807)",
        6: "a[4,9223372036854775807)",
    }
    assert_stream(run(DISTINCT, schedule), "a[0,4) a[4,inf) b[2,inf)")


def test_nan_is_one_value_and_so_is_zero() -> None:
    schema = Schema((Field("x", DOUBLE),))
    nan = float("nan")
    rows = [Element((x,), 0, 4) for x in (nan, -nan, 0.0, -0.0, None, None)]
    assert len(run(Distinct(schema), at_once((schema, rows))).elements) == 3


def test_a_row_without_columns_is_a_row() -> None:
    nothing = Schema(())
    events = Arrive(0, (Element((), 0, 4), Element((), 2, 6))), Advance(1), Advance(3), Advance(5)
    output = run(Distinct(nothing), Schedule((nothing,), events))
    assert [(e.start, e.end) for e in output.elements] == [(0, 4), (4, 6)]


@pytest.mark.parametrize("name", ["^a$", "*"])
def test_a_column_may_have_a_name_that_polars_takes_for_a_pattern(name: str) -> None:
    schema = Schema((Field(name, VARCHAR),))
    rows = [Element(("a",), 1, 4), Element(("a",), 2, 5)]
    assert run(Distinct(schema), at_once((schema, rows))).text() == "a[1,5)"
