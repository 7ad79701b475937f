"""Duplicate elimination obeys its law for every schedule, with state bounded by its output."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from physical.run import Arrive, Element, batch, elements_of, normal, run, schedules, snapshot
from tidemill.model.batch import END
from tidemill.model.schema import Field, Schema
from tidemill.model.time import Time
from tidemill.model.types import BIGINT, DOUBLE, VARCHAR
from tidemill.physical.operators.sets.distinct import LAST, Distinct

if TYPE_CHECKING:
    from physical.run import Schedule

PAIR = Schema((Field("a", BIGINT), Field("b", VARCHAR)))
NUMBER = Schema((Field("x", DOUBLE),))
NAN = float("nan")
NUMBERS = st.sampled_from([(x,) for x in (None, 0.0, -0.0, 1.5, NAN, -NAN)])
WINDOWS = (1, 3, 6)

# Few rows, so that many elements are of one: an element lasts as long as it likes.
CROWDED = schedules(NUMBER, rows={0: st.sampled_from([(None,), (0.0,)])})
INPUTS = schedules(PAIR) | schedules(NUMBER, rows={0: NUMBERS}) | CROWDED


@given(schedule=INPUTS, reload=st.booleans())
def test_each_row_is_there_once_at_every_instant(schedule: Schedule, *, reload: bool) -> None:
    output = run(Distinct(schedule.schemas[0]), schedule, reload=reload)
    for t in schedule.times():
        assert output.snapshot(t) == Counter(dict.fromkeys(schedule.snapshot(0, t), 1)), t


@given(schedule=INPUTS)
def test_state_has_one_entry_for_each_row_of_the_output(schedule: Schedule) -> None:
    (schema,) = schedule.schemas
    operator, emitted = Distinct(schema), list[Element]()
    state = operator.new_state()
    for event in schedule.events:
        if isinstance(event, Arrive):
            list(operator.on_batch(state, 0, batch(schema, event.elements)))
            continue
        for part in operator.on_watermark(state, Time(event.time)):
            emitted += elements_of(schema, part)
        covered = state.tables["covered"].all()
        rows = Counter(normal(row) for row in covered.drop(END, LAST).iter_rows())
        assert rows == snapshot(emitted, event.time), "the output, and nothing else"
        assert (covered[LAST] >= covered[END]).all(), "what was emitted was known"
        ends = {e.row: e.end for e in sorted(emitted, key=lambda e: e.end)}
        assert all(ends[normal(row[:-2])] == row[-2] for row in covered.iter_rows())


@given(data=st.data(), window=st.sampled_from(WINDOWS))
def test_a_row_is_emitted_at_most_twice_in_the_length_of_a_window(
    data: st.DataObject, window: int
) -> None:
    schedule = data.draw(schedules(NUMBER, lengths=(window,), rows={0: st.just((0.0,))}))
    starts = sorted(e.start for e in run(Distinct(NUMBER), schedule).elements)
    assert all(third - first >= window for first, third in zip(starts, starts[2:], strict=False))
