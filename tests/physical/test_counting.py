"""Set operations on the physical streams of the thesis, and where its algorithms went wrong."""

from __future__ import annotations

import re

import pytest

from physical.letters import arriving, assert_stream
from physical.run import Element, at_once, batch, run
from tidemill.model.schema import Field, Schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.model.types import DOUBLE, VARCHAR
from tidemill.physical.operators.rows.changes import Change, Changes
from tidemill.physical.operators.sets.counting import Counting, Multiplicity

LETTERS = Schema((Field("letter", VARCHAR),))
P1 = "c[1,8) a[5,11) d[6,14) a[9,10) b[12,17)"
P2 = "b[1,7) d[3,9) a[4,5) b[7,15) e[10,18)"

_PERIOD = re.compile(r"(\w)\[(\d+),(\d+|inf)\)")


def stream(text: str) -> list[Element]:
    """The elements of a physical stream of letters."""
    return [
        Element((letter,), int(start), END_OF_TIME if end == "inf" else int(end))
        for letter, start, end in _PERIOD.findall(text)
    ]


def ordered(text: str) -> str:
    """The same elements in the order of their times."""
    parts = sorted(_PERIOD.findall(text), key=lambda part: (int(part[1]), part[2], part[0]))
    return " ".join(f"{letter}[{start},{end})" for letter, start, end in parts)


def counted(function: Multiplicity, left: str, right: str) -> str:
    operator = Counting(function, (LETTERS, LETTERS), LETTERS)
    schedule = at_once((LETTERS, stream(left)), (LETTERS, stream(right)))
    return ordered(run(operator, schedule, tight=False).text())


def changed(change: Change, text: str) -> str:
    schedule = at_once((LETTERS, stream(text)))
    return ordered(run(Changes(change, LETTERS), schedule, tight=False).text())


def test_difference() -> None:
    # The thesis cuts a[5,11) and a[9,10); we cut where the multiplicity changes.
    expected = "c[1,8) a[5,9) a[9,10) a[9,10) a[10,11) d[9,14) b[15,17)"
    assert counted(Multiplicity.DIFFERENCE, P1, P2) == ordered(expected)


@pytest.mark.parametrize(
    ("left", "right", "left_rest", "right_rest"),
    [
        ("a[3,10)", "a[2,8) a[5,12)", "", "a[2,3) a[5,8) a[10,12)"),
        ("a[0,10)", "a[3,5) a[3,7)", "a[0,3) a[7,10)", "a[3,5)"),
        ("a[0,inf)", "a[4,inf)", "a[0,4)", ""),
    ],
)
def test_difference_cancels_copy_by_copy(
    left: str, right: str, left_rest: str, right_rest: str
) -> None:
    assert counted(Multiplicity.DIFFERENCE, left, right) == left_rest
    assert counted(Multiplicity.DIFFERENCE, right, left) == right_rest


def test_strict_difference_takes_all_copies_or_none() -> None:
    found = counted(Multiplicity.STRICT_DIFFERENCE, "a[0,9) a[2,9)", "a[4,6)")
    assert found == ordered("a[0,2) a[2,4) a[2,4) a[6,9) a[6,9)")


def test_intersect_and_max_union() -> None:
    left, right = "a[0,6) a[2,6) b[0,2)", "a[3,8)"
    assert counted(Multiplicity.INTERSECT, left, right) == "a[3,6)"
    found = counted(Multiplicity.MAX_UNION, left, right)
    assert found == ordered("a[0,2) a[2,6) a[2,6) a[6,8) b[0,2)")


def test_nothing_is_cut_where_only_a_counter_changes() -> None:
    assert counted(Multiplicity.MAX_UNION, "a[0,4) a[4,9)", "a[1,5) a[5,9)") == "a[0,9)"


def test_an_open_segment_holds_the_watermark_back_and_an_absent_one_does_not() -> None:
    operator = Counting(Multiplicity.DIFFERENCE, (LETTERS, LETTERS), LETTERS)
    state = operator.new_state()
    for port, text in enumerate(("a[2,9)", "b[1,9)")):
        assert not list(operator.on_batch(state, port, batch(LETTERS, stream(text))))
    assert not list(operator.on_watermark(state, Time(5)))
    assert operator.held(state) == 2


def test_an_open_segment_is_cut_when_it_is_overdue_and_goes_on() -> None:
    operator = Counting(Multiplicity.DIFFERENCE, (LETTERS, LETTERS), LETTERS, max_delay=3)
    assert_stream(run(operator, arriving("a[2,20)", 5, 6, 8, 9, 10)), "a[2,6) a[6,10) a[10,20)")


def test_nan_is_one_value_and_so_is_zero() -> None:
    schema = Schema((Field("x", DOUBLE),))
    nan = float("nan")
    left, right = (
        (schema, [Element((x,), 0, 4) for x in values])
        for values in ((nan, 0.0, None), (-nan, -0.0, None))
    )
    operator = Counting(Multiplicity.INTERSECT, (schema, schema), schema)
    assert len(run(operator, at_once(left, right), tight=False).elements) == 3


def test_istream_and_dstream() -> None:
    text = "a[1,4) a[4,6) b[2,inf)"
    assert changed(Change.INSERTED, text) == "a[1,2) b[2,3)"
    assert changed(Change.DELETED, text) == "a[6,7)"


@pytest.mark.parametrize("name", ["^a$", "*"])
def test_a_column_may_have_a_name_that_polars_takes_for_a_pattern(name: str) -> None:
    schema = Schema((Field(name, VARCHAR),))
    schedule = at_once((schema, stream("a[1,4) a[2,5)")))
    difference = Counting(Multiplicity.DIFFERENCE, (schema, schema), schema)
    assert run(difference, schedule, tight=False).text() == "a[1,2) a[2,4) a[2,4) a[4,5)"
    inserted = Changes(Change.INSERTED, schema)
    assert run(inserted, schedule, tight=False).text() == "a[1,2) a[2,3)"
