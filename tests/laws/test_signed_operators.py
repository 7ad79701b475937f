"""Operators in signed form obey the laws of their relations, whatever form their inputs have.

Their answers are computed here from what comes in, instant by instant. What appears and what is
withdrawn need not come together, nor in the order of time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace
from itertools import product
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws.aggregations import SAMPLE, aggregations, assert_same_groups, meaning, sample_rows
from laws.test_join_operator import CONDITIONS, LEFT_PAIR, NAMES, RIGHT_PAIR, equality, pairs
from laws.test_sweep_operators import MEANINGS, NUMBER, OTHER, PAIR
from laws.test_window_operators import (
    INSTANTS,
    TIMES,
    last_rows,
    row_windows,
    session_rows,
    session_windows,
)
from physical.run import Arrive, Element, Schedule, batch, normal, run, schedules
from physical.searching import searching
from streams import call
from tidemill.algebra.evaluate import evaluate
from tidemill.algebra.expr import Column, conjunction
from tidemill.model.batch import TIME, Form
from tidemill.model.time import END_OF_TIME, Time
from tidemill.model.types import BIGINT, DOUBLE, VARCHAR
from tidemill.physical import interval, signed
from tidemill.physical.interval import Change, Changes, Multiplicity
from tidemill.physical.operator import State

if TYPE_CHECKING:
    from tidemill.algebra.expr import Expr
    from tidemill.physical.operator import Operator

AnyOperator = TypeVar("AnyOperator", bound="Operator")

SIGNED = (Form.SIGNED,)
SEARCHED = st.sampled_from([None, 1, 3])
"""How many rows a segment has at least that is searched by its keys."""

FORMS = st.sampled_from(Form)
TWO_FORMS = st.tuples(FORMS, FORMS)
GIVES = st.sampled_from((interval.Counting, signed.Counting))


@given(schedule=schedules(PAIR) | schedules(NUMBER), reload=st.booleans())
def test_to_signed_keeps_every_snapshot(schedule: Schedule, *, reload: bool) -> None:
    output = run(signed.ToSigned(schedule.schemas[0]), schedule, reload=reload)
    assert not output.elements
    for t in schedule.times():
        assert output.snapshot(t) == schedule.snapshot(0, t), t


@given(
    schedule=schedules(PAIR, forms=SIGNED) | schedules(NUMBER, forms=SIGNED),
    delay=st.sampled_from((None, 0, 1, 3)),
    reload=st.booleans(),
)
def test_to_intervals_keeps_every_snapshot(
    schedule: Schedule, delay: int | None, *, reload: bool
) -> None:
    operator = signed.ToIntervals(schedule.schemas[0], delay)
    output = run(operator, schedule, reload=reload, tight=False)
    assert not output.changes
    for t in schedule.times():
        assert output.snapshot(t) == schedule.snapshot(0, t), t


@given(
    schedule=schedules(PAIR, forms=SIGNED) | schedules(NUMBER, forms=SIGNED), reload=st.booleans()
)
def test_hold_keeps_every_snapshot(schedule: Schedule, *, reload: bool) -> None:
    output = run(signed.Hold(schedule.schemas[0]), schedule, reload=reload, tight=False)
    assert not output.elements
    for t in schedule.times():
        assert output.snapshot(t) == schedule.snapshot(0, t), t


@given(elements=st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6)), max_size=6))
def test_hold_lets_go_what_the_watermark_has_passed_and_nothing_ahead_of_it(
    elements: list[tuple[int, int]],
) -> None:
    operator = signed.Hold(NUMBER)
    state = operator.new_state()
    for start, length in elements:
        batch_ = batch(NUMBER, [Element((1.0,), start, start + length)])
        for part in signed.ToSigned(NUMBER).on_batch(State(), 0, batch_):
            assert not list(operator.on_batch(state, 0, part))
    seen = 0
    for watermark in (3, 4, 9, END_OF_TIME):
        for part in operator.on_watermark(state, Time(watermark)):
            times = part[TIME].to_list()
            assert all(seen <= time < watermark for time in times)
            assert len(times) == len(set(times)), "the changes of a row at one time are one"
        seen = watermark


@pytest.mark.parametrize("function", MEANINGS, ids=lambda f: f.name.lower())
@given(
    schedule=TWO_FORMS.flatmap(lambda forms: schedules(PAIR, OTHER, forms=forms)),
    gives=GIVES,
    reload=st.booleans(),
)
def test_a_set_operation_counts_rows_at_every_instant(
    function: Multiplicity, schedule: Schedule, gives: type[interval.Counting], *, reload: bool
) -> None:
    output = run(gives(function, (PAIR, OTHER), PAIR), schedule, reload=reload, tight=False)
    for t in schedule.times():
        left, right = schedule.snapshot(0, t), schedule.snapshot(1, t)
        assert output.snapshot(t) == MEANINGS[function](left, right), t


@given(schedule=FORMS.flatmap(lambda form: schedules(NUMBER, forms=(form,))), reload=st.booleans())
def test_distinct_has_each_row_once_at_every_instant(schedule: Schedule, *, reload: bool) -> None:
    operator = signed.Counting(Multiplicity.DISTINCT, (NUMBER,), NUMBER)
    output = run(operator, schedule, reload=reload, tight=False)
    for t in schedule.times():
        assert output.snapshot(t) == Counter(dict.fromkeys(schedule.snapshot(0, t), 1)), t


@given(schedule=schedules(PAIR, forms=SIGNED), change=st.sampled_from(Change), reload=st.booleans())
def test_changes_are_those_of_the_signs(
    schedule: Schedule, change: Change, *, reload: bool
) -> None:
    output = run(Changes(change, PAIR), schedule, reload=reload, tight=False)
    for t in schedule.times():
        before, now = schedule.snapshot(0, t - 1), schedule.snapshot(0, t)
        assert output.snapshot(t) == (now - before if change is Change.INSERTED else before - now)


@given(
    given_=aggregations(),
    schedule=FORMS.flatmap(lambda form: schedules(SAMPLE, rows={0: sample_rows()}, forms=(form,))),
    gives=st.sampled_from((interval.Aggregate, signed.Aggregate, signed.Aggregate)),
    reload=st.booleans(),
)
def test_aggregation_has_a_row_for_each_group_at_every_instant(
    given_: interval.Aggregate,
    schedule: Schedule,
    gives: type[interval.Aggregate],
    *,
    reload: bool,
) -> None:
    operator = as_signed(replace(given_, takes=schedule.form(0)), gives)
    output = run(operator, schedule, reload=reload, tight=False)
    for t in schedule.times():
        wanted = meaning(operator, schedule.snapshot(0, t))
        assert_same_groups(operator, output.snapshot(t), wanted)


@given(
    schedule=schedules(LEFT_PAIR, RIGHT_PAIR, forms=(Form.SIGNED, Form.SIGNED)),
    condition=CONDITIONS,
    searched=SEARCHED,
    reload=st.booleans(),
)
def test_a_join_pairs_the_rows_of_every_instant(
    schedule: Schedule, condition: Expr, searched: int | None, *, reload: bool
) -> None:
    operator = signed.Join(LEFT_PAIR, RIGHT_PAIR, NAMES, condition)
    with searching(searched):
        output = run(operator, schedule, reload=reload, tight=False)
    for t in schedule.times():
        assert output.snapshot(t) == pairs(schedule, NAMES, condition, t), t


@given(
    schedule=schedules(NUMBER, NUMBER, forms=(Form.SIGNED, Form.SIGNED)),
    condition=equality(Column("^l$", DOUBLE), Column("*", DOUBLE)),
)
def test_a_join_finds_numbers_with_a_point_whatever_columns_are_called(
    schedule: Schedule, condition: Expr
) -> None:
    names = ("^l$", "*")
    output = run(signed.Join(NUMBER, NUMBER, names, condition), schedule, tight=False)
    for t in schedule.times():
        assert output.snapshot(t) == pairs(schedule, names, condition, t), t


@settings(max_examples=settings().max_examples // 2)  # many rows are combined
@given(
    schedule=schedules(PAIR, OTHER, PAIR, forms=(Form.SIGNED,) * 3),
    order=st.permutations([0, 1, 2]),
    links=st.lists(st.sampled_from([(0, 1), (1, 2), (0, 2)]), max_size=3, unique=True),
    searched=SEARCHED,
    reload=st.booleans(),
)
def test_a_join_of_many_combines_the_rows_of_every_instant(
    schedule: Schedule,
    order: list[int],
    links: list[tuple[int, int]],
    searched: int | None,
    *,
    reload: bool,
) -> None:
    names = tuple(f"{port}{column}" for port in range(3) for column in "ab")
    condition = conjunction(
        *(call("=", Column(f"{p}a", BIGINT), Column(f"{q}a", BIGINT)) for p, q in links),
        call("<>", Column("0b", VARCHAR), Column("2b", VARCHAR)),
    )
    orders = tuple(tuple(p for p in order if p != own) for own in range(3))
    operator = signed.MultiJoin(schedule.schemas, names, condition, orders)
    with searching(searched):
        output = run(operator, schedule, reload=reload, tight=False)
    for t in schedule.times():
        rows = [schedule.snapshot(port, t).elements() for port in range(3)]
        wanted = Counter(
            a + b + c
            for a, b, c in product(*rows)
            if evaluate(condition, dict(zip(names, a + b + c, strict=True))) is True
        )
        assert output.snapshot(t) == wanted, t


@given(schedule=INSTANTS, data=st.data(), reload=st.booleans())
def test_a_row_window_shows_the_last_rows(
    schedule: Schedule, data: st.DataObject, *, reload: bool
) -> None:
    window = as_signed(data.draw(row_windows(schedule.schemas[0])), signed.RowWindow)
    output = run(window, schedule, reload=reload, ids=window.by_id)
    assert not output.elements
    for t in TIMES:
        assert output.snapshot(t) == last_rows(schedule.elements(), window, t), t


@given(schedule=INSTANTS, data=st.data(), reload=st.booleans())
def test_a_session_window_shows_the_rows_since_the_last_pause(
    schedule: Schedule, data: st.DataObject, *, reload: bool
) -> None:
    window = as_signed(data.draw(session_windows(schedule.schemas[0])), signed.SessionWindow)
    output = run(window, schedule, reload=reload)
    assert not output.elements
    for t in TIMES:
        assert output.snapshot(t) == session_rows(schedule.elements(), window, t), t


def as_signed(
    given_: interval.Aggregate | interval.RowWindow | interval.SessionWindow,
    kind: type[AnyOperator],
) -> AnyOperator:
    """The same description of an operator in another form."""
    return kind(**{f.name: getattr(given_, f.name) for f in fields(given_) if f.init})


# What is remembered


@given(schedule=schedules(PAIR, OTHER, forms=(Form.SIGNED, Form.SIGNED)))
def test_a_join_remembers_the_rows_that_are_there_and_no_others(schedule: Schedule) -> None:
    names = ("a", "b", "c", "d")
    operator = signed.Join(PAIR, OTHER, names, call("=", Column("a", BIGINT), Column("c", BIGINT)))
    state = operator.new_state()
    for event in schedule.events:
        if isinstance(event, Arrive):
            frame = batch(schedule.schemas[event.port], event.elements, Form.SIGNED)
            list(operator.on_batch(state, event.port, frame))
            continue
        list(operator.on_watermark(state, Time(event.time)))
        for port, name in enumerate(("left", "right")):
            rows = Counter({row[:2]: row[2] for row in state.tables[name].all().iter_rows()})
            there = schedule.snapshot(port, event.time - 1)
            assert rows == Counter({row: n for row, n in there.items() if row[0] is not None})


@given(
    schedule=FORMS.flatmap(lambda form: schedules(PAIR, OTHER, forms=(form, form))),
    function=st.sampled_from(list(MEANINGS)),
)
def test_a_set_operation_remembers_each_row_that_is_there_once(
    schedule: Schedule, function: Multiplicity
) -> None:
    operator = signed.Counting(function, (PAIR, OTHER), PAIR)
    state = operator.new_state()
    for event in schedule.events:
        if isinstance(event, Arrive):
            frame = batch(schedule.schemas[event.port], event.elements, schedule.form(event.port))
            list(operator.on_batch(state, event.port, frame))
            continue
        list(operator.on_watermark(state, Time(event.time)))
        there = {row for port in (0, 1) for row in schedule.snapshot(port, event.time - 1)}
        known = [normal(row[:2]) for row in state.tables["totals"].all().iter_rows()]
        assert sorted(map(str, known)) == sorted(map(str, there))
