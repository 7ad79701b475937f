"""Window operators in interval form obey their laws for every batching and schedule.

What they must give is computed here from the elements that come in, instant by instant.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from physical.letters import is_chronon, is_end_ordered
from physical.run import Advance, Element, Schedule, normal, run, schedules
from tidemill.algebra.evaluate import evaluate
from tidemill.algebra.expr import Call, Column, Literal
from tidemill.algebra.snapshot import value_order
from tidemill.model.schema import Field, Schema
from tidemill.model.time import END_OF_TIME
from tidemill.model.types import BIGINT, BOOLEAN, DOUBLE, VARCHAR, DataType, Value
from tidemill.physical import signed
from tidemill.physical.operators.rows import split
from tidemill.physical.operators.rows.coalesce import Coalesce
from tidemill.physical.operators.rows.granularity import Granularity
from tidemill.physical.operators.rows.split import Split
from tidemill.physical.operators.windows.row_window import RowWindow
from tidemill.physical.operators.windows.session_window import SessionWindow
from tidemill.physical.operators.windows.time_window import TimeWindow

if TYPE_CHECKING:
    from tidemill.algebra.snapshot import Bag, Row

PAIR = Schema((Field("a", BIGINT), Field("b", VARCHAR)))
FLOATS = Schema((Field("x", DOUBLE), Field("y", DOUBLE)))
TIMES = [*range(32), END_OF_TIME - 1]
"""Every instant of interest: elements start before 12, and windows are at most 8 long."""

INSTANTS = schedules(PAIR, lengths=(1,)) | schedules(FLOATS, lengths=(1,))
PERIODS = schedules(PAIR) | schedules(FLOATS)


# Time windows


def sum_of(elements: list[Element], first: int, last: int) -> Bag:
    return Counter(normal(e.row) for e in elements if first <= e.start <= last)


@given(
    schedule=INSTANTS,
    size=st.none() | st.integers(1, 8),
    slide=st.just(1) | st.integers(2, 6),
    reload=st.booleans(),
)
def test_a_time_window_sums_what_it_covers(
    schedule: Schedule, size: int | None, slide: int, *, reload: bool
) -> None:
    output = run(TimeWindow(schedule.schemas[0], size, slide), schedule, reload=reload)
    for t in TIMES:
        moved = (t + 1) // slide * slide - 1
        first = 0 if size is None else moved - size + 1
        assert output.snapshot(t) == sum_of(schedule.elements(), first, moved), t
    assert is_end_ordered(output)
    assert (size, slide) != (1, 1) or is_chronon(output)


# Row windows


def last_rows(elements: list[Element], window: RowWindow, time: int) -> Bag:
    """The rows that a row window shows, by (17.2); ids number the elements as they came."""
    numbered = [(e.start, i, normal(e.row)) for i, e in enumerate(elements) if e.start <= time]
    if window.by_id:
        numbered.sort()
    else:
        numbered.sort(key=lambda element: (element[0], value_order(element[2])))
    columns = [window.schema.names.index(name) for name in window.partition_by]
    groups: dict[Row, list[Row]] = {}
    for _, _, row in numbered:
        groups.setdefault(tuple(row[i] for i in columns), []).append(row)
    seen: Bag = Counter()
    for rows in groups.values():
        moved = len(rows) // window.slide * window.slide
        held = rows[max(moved - window.rows, 0) : moved]
        seen.update(row for row in held if not is_unseen(window, row))
    return seen


def is_unseen(window: RowWindow, row: Row) -> bool:
    if window.unless is None:
        return False
    return evaluate(window.unless, dict(zip(window.schema.names, row, strict=True))) is True


@st.composite
def row_windows(draw: st.DrawFn, schema: Schema) -> RowWindow:
    return RowWindow(
        schema,
        draw(st.integers(1, 5)),
        draw(st.just(1) | st.integers(2, 4)),
        tuple(draw(st.lists(st.sampled_from(schema.names), unique=True))),
        draw(st.booleans()),
        draw(st.none() | st.integers(0, 4)),
    )


@st.composite
def latest_unless(draw: st.DrawFn, schema: Schema) -> RowWindow:
    """A window of the last row of each group, unless it is of some kind."""
    field = draw(st.sampled_from(schema.fields))
    column = Column(field.name, field.type)
    values: dict[DataType, Value] = {BIGINT: 1, VARCHAR: "x", DOUBLE: 0.0}
    unless = draw(
        st.sampled_from(
            [
                Call("is_null", (column,), BOOLEAN),
                Call("<=", (column, Literal(values[field.type], field.type)), BOOLEAN),
            ]
        )
    )
    window = draw(row_windows(schema))
    return replace(window, rows=1, slide=1, unless=unless)


@given(schedule=INSTANTS, data=st.data(), reload=st.booleans())
def test_a_row_window_shows_the_last_rows(
    schedule: Schedule, data: st.DataObject, *, reload: bool
) -> None:
    window = data.draw(row_windows(schedule.schemas[0]))
    output = run(window, schedule, reload=reload, ids=window.by_id)
    for t in TIMES:
        assert output.snapshot(t) == last_rows(schedule.elements(), window, t), t
    if not window.partition_by and window.max_delay is None:
        assert is_end_ordered(output)


@given(schedule=INSTANTS, rows=st.integers(1, 4), slide=st.integers(1, 4), by=st.booleans())
def test_the_state_of_a_row_window_is_bounded(
    schedule: Schedule, rows: int, slide: int, *, by: bool
) -> None:
    schema = schedule.schemas[0]
    keys = schema.names[:1] if by else ()
    output = run(RowWindow(schema, rows, slide, keys), schedule, ids=True)
    groups = len({normal(e.row)[: len(keys)] for e in schedule.elements()})
    watermarks = [event.time for event in schedule.events if isinstance(event, Advance)]
    for size, watermark in zip(output.sizes, watermarks, strict=False):
        pending = sum(e.start >= watermark for e in schedule.elements())
        # Of each group the elements in the window, those that wait, and how many there have been.
        assert size <= groups * (rows + slide - 1 + 1) + pending


@given(schedule=INSTANTS, data=st.data(), reload=st.booleans())
def test_the_last_row_displaces_those_before_it_though_it_is_not_seen(
    schedule: Schedule, data: st.DataObject, *, reload: bool
) -> None:
    window = data.draw(latest_unless(schedule.schemas[0]))
    signed_window = signed.RowWindow(**{f.name: getattr(window, f.name) for f in fields(window)})
    for operator in (window, replace(signed_window, max_delay=None)):
        output = run(operator, schedule, reload=reload, ids=window.by_id)
        for t in TIMES:
            assert output.snapshot(t) == last_rows(schedule.elements(), window, t), t


@settings(max_examples=4 * settings().max_examples)
@given(schedule=INSTANTS, data=st.data())
def test_a_group_whose_last_row_is_not_seen_is_forgotten(
    schedule: Schedule, data: st.DataObject
) -> None:
    window = data.draw(latest_unless(schedule.schemas[0]))
    output = run(window, schedule, ids=window.by_id)
    watermarks = [event.time for event in schedule.events if isinstance(event, Advance)]
    for size, watermark in zip(output.sizes, watermarks, strict=False):
        pending = sum(e.start >= watermark for e in schedule.elements())
        seen = last_rows(schedule.elements(), window, watermark - 1).total()
        # Of each group that is seen its element, and how many there have been.
        assert size <= 2 * seen + pending


# Session windows


def session_rows(elements: list[Element], window: SessionWindow, time: int) -> Bag:
    """The rows whose group has had an element in the last ``gap`` at every instant since."""
    columns = [window.schema.names.index(name) for name in window.partition_by]
    groups: dict[Row, list[Element]] = {}
    for element in elements:
        row = normal(element.row)
        groups.setdefault(tuple(row[i] for i in columns), []).append(element)
    seen: Bag = Counter()
    for group in groups.values():
        covered = {t for e in group for t in range(e.start, e.start + window.gap)}
        seen.update(
            normal(e.row)
            for e in group
            if e.start <= time and all(t in covered for t in range(e.start, time + 1))
        )
    return seen


@st.composite
def session_windows(draw: st.DrawFn, schema: Schema) -> SessionWindow:
    return SessionWindow(
        schema,
        draw(st.integers(1, 8)),
        tuple(draw(st.lists(st.sampled_from(schema.names), unique=True))),
        draw(st.none() | st.integers(0, 4)),
    )


@given(schedule=INSTANTS, data=st.data(), reload=st.booleans())
def test_a_session_window_shows_the_rows_since_the_last_pause(
    schedule: Schedule, data: st.DataObject, *, reload: bool
) -> None:
    window = data.draw(session_windows(schedule.schemas[0]))
    output = run(window, schedule, reload=reload)
    for t in TIMES:
        assert output.snapshot(t) == session_rows(schedule.elements(), window, t), t
    if not window.partition_by and window.max_delay is None:
        assert is_end_ordered(output)


@given(schedule=INSTANTS, data=st.data())
def test_the_state_of_a_session_window_is_what_is_not_over(
    schedule: Schedule, data: st.DataObject
) -> None:
    window = data.draw(session_windows(schedule.schemas[0]))
    sizes = iter(run(window, schedule).sizes)
    places = [window.schema.names.index(name) for name in window.partition_by]
    for number, event in enumerate(schedule.events):
        if isinstance(event, Advance):
            seen = replace(schedule, events=schedule.events[:number]).elements()
            pending = [e for e in seen if e.start >= event.time]
            # Sessions that end before the watermark are over.
            rows = session_rows(seen, window, event.time - 1)
            groups = {tuple(row[place] for place in places) for row in rows}
            assert next(sizes) == rows.total() + len(groups) + len(pending)


# Split and coalesce


@pytest.mark.parametrize("chunk", [3, 1 << 16])
@given(schedule=PERIODS, length=st.integers(1, 5), reload=st.booleans())
def test_split_changes_no_snapshot(
    schedule: Schedule, length: int, chunk: int, *, reload: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split, "_CHUNK", chunk)
        output = run(Split(schedule.schemas[0], length), schedule, reload=reload)
    for t in TIMES:
        assert output.snapshot(t) == schedule.snapshot(0, t), t
    assert all(e.end - e.start <= length for e in output.elements if e.end < END_OF_TIME)


@given(schedule=schedules(PAIR, lengths=(1, 2, 3, 7)))
def test_split_1_gives_chronons(schedule: Schedule) -> None:
    output = run(Split(PAIR, 1, must_cut=True), schedule)
    for t in TIMES:
        assert output.snapshot(t) == schedule.snapshot(0, t), t
    assert is_chronon(output)


@given(schedule=PERIODS, length=st.integers(1, 9), reload=st.booleans())
def test_coalesce_changes_no_snapshot(schedule: Schedule, length: int, *, reload: bool) -> None:
    output = run(Coalesce(schedule.schemas[0], length), schedule, reload=reload, tight=False)
    for t in TIMES:
        assert output.snapshot(t) == schedule.snapshot(0, t), t
    whole = {(normal(e.row), e.start, e.end) for e in schedule.elements()}
    merged = [e for e in output.elements if (e.row, e.start, e.end) not in whole]
    assert all(e.end - e.start <= length for e in merged)


@given(schedule=schedules(PAIR, lengths=(1, 2, 3)))
def test_coalesce_leaves_no_neighbours(schedule: Schedule) -> None:
    output = run(Coalesce(PAIR, 100), schedule, tight=False)
    starts = {(e.row, e.start) for e in output.elements}
    assert not any((e.row, e.end) in starts for e in output.elements)


@given(schedule=schedules(PAIR, lengths=(1,)))
def test_coalesce_1_keeps_chronons(schedule: Schedule) -> None:
    assert is_chronon(run(Coalesce(PAIR, 1), schedule, tight=False))


# Granularity


@given(schedule=PERIODS, granule=st.integers(1, 5))
def test_granularity_keeps_the_snapshots_of_its_grid(schedule: Schedule, granule: int) -> None:
    output = run(Granularity(schedule.schemas[0], granule), schedule)
    for t in TIMES[:-1]:
        assert output.snapshot(t) == schedule.snapshot(0, t - t % granule), t
    times = {t for e in output.elements for t in (e.start, e.end)} - {END_OF_TIME}
    assert all(t % granule == 0 for t in times)


@given(schedule=INSTANTS, granule=st.integers(1, 5))
def test_granularity_keeps_the_order_of_ends(schedule: Schedule, granule: int) -> None:
    assert is_end_ordered(run(Granularity(schedule.schemas[0], granule), schedule))
