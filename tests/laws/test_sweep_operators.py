"""Set operations, aggregation and changes obey their laws for every batching and schedule."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws.aggregations import (
    DELAYS,
    SAMPLE,
    aggregations,
    assert_same_groups,
    meaning,
    sample_rows,
)
from physical.run import Schedule, run, schedules
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT, DOUBLE, VARCHAR
from tidemill.physical.operators.rows.changes import Change, Changes
from tidemill.physical.operators.sets.counting import Counting, Multiplicity

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.algebra.snapshot import Bag
    from tidemill.physical.operators.aggregate.aggregate import Aggregate

PAIR = Schema((Field("a", BIGINT), Field("b", VARCHAR)))
OTHER = Schema((Field("c", BIGINT), Field("d", VARCHAR)))
NUMBER = Schema((Field("x", DOUBLE),))

ONE_INPUT = schedules(PAIR) | schedules(NUMBER)


def _strict(left: Bag, right: Bag) -> Bag:
    return Counter({row: n for row, n in left.items() if row not in right})


def _semi(left: Bag, right: Bag) -> Bag:
    return Counter({row: n for row, n in left.items() if row in right})


MEANINGS: dict[Multiplicity, Callable[[Bag, Bag], Bag]] = {
    Multiplicity.DIFFERENCE: Counter.__sub__,
    Multiplicity.STRICT_DIFFERENCE: _strict,
    Multiplicity.SEMI: _semi,
    Multiplicity.INTERSECT: Counter.__and__,
    Multiplicity.MAX_UNION: Counter.__or__,
}


@pytest.mark.parametrize("function", MEANINGS, ids=lambda f: f.name.lower())
@given(schedule=schedules(PAIR, OTHER), delay=DELAYS, reload=st.booleans())
def test_a_set_operation_counts_rows_at_every_instant(
    function: Multiplicity, schedule: Schedule, delay: int | None, *, reload: bool
) -> None:
    operator = Counting(function, (PAIR, OTHER), PAIR, delay)
    output = run(operator, schedule, reload=reload, tight=False)
    for t in schedule.times():
        left, right = schedule.snapshot(0, t), schedule.snapshot(1, t)
        assert output.snapshot(t) == MEANINGS[function](left, right), t


@given(schedule=ONE_INPUT, reload=st.booleans())
def test_istream_is_what_has_come(schedule: Schedule, *, reload: bool) -> None:
    (schema,) = schedule.schemas
    output = run(Changes(Change.INSERTED, schema), schedule, reload=reload, tight=False)
    for t in schedule.times():
        assert output.snapshot(t) == schedule.snapshot(0, t) - schedule.snapshot(0, t - 1), t


@given(schedule=ONE_INPUT, reload=st.booleans())
def test_dstream_is_what_has_gone(schedule: Schedule, *, reload: bool) -> None:
    (schema,) = schedule.schemas
    output = run(Changes(Change.DELETED, schema), schedule, reload=reload, tight=False)
    for t in schedule.times():
        assert output.snapshot(t) == schedule.snapshot(0, t - 1) - schedule.snapshot(0, t), t


@given(
    operator=aggregations(),
    schedule=schedules(SAMPLE, rows={0: sample_rows()}),
    reload=st.booleans(),
)
@settings(max_examples=3 * settings().max_examples)  # there are very many aggregations
def test_aggregation_has_a_row_for_each_group_at_every_instant(
    operator: Aggregate, schedule: Schedule, *, reload: bool
) -> None:
    output = run(operator, schedule, reload=reload, tight=False)
    for t in schedule.times():
        wanted = meaning(operator, schedule.snapshot(0, t))
        assert_same_groups(operator, output.snapshot(t), wanted)
