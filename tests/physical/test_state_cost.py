"""A small step writes little, however much an operator remembers.

Segments never change and are stored by name, once. So what a step costs to store is the rows of the
segments it makes; that must not grow with the state, but for a logarithm.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import pytest

from physical.test_aggregate import COUNT, aggregation
from tidemill.algebra.expr import AggregateCall, Column
from tidemill.model.batch import END, ID, START
from tidemill.model.schema import Field, Schema
from tidemill.model.time import Time
from tidemill.model.types import BIGINT, DOUBLE
from tidemill.physical.operators.sets.counting import Counting, Multiplicity
from tidemill.physical.operators.sets.distinct import Distinct
from tidemill.physical.operators.windows.row_window import RowWindow
from tidemill.physical.operators.windows.session_window import SessionWindow

if TYPE_CHECKING:
    from tidemill.physical.operator import Operator, State
    from tidemill.physical.operators.aggregate.aggregate import Aggregate

PAIRS = Schema((Field("k", BIGINT), Field("x", BIGINT)))
K, X = Column("k", BIGINT), Column("x", BIGINT)

DIFFERENCE = Counting(Multiplicity.DIFFERENCE, (PAIRS, PAIRS), PAIRS)

SIZE, STEPS, WIDTH, LENGTH = 16_384, 30, 10, 1000

OPERATORS: dict[str, Operator] = {
    "sum and count": aggregation(PAIRS, COUNT, AggregateCall("sum", X, BIGINT), by=("k",)),
    "median": aggregation(PAIRS, AggregateCall("median", X, DOUBLE), by=("k",)),
    "median of one group": aggregation(PAIRS, AggregateCall("median", K, DOUBLE)),
    "min and max": aggregation(
        PAIRS, *(AggregateCall(name, X, BIGINT) for name in ("min", "max")), by=("k",)
    ),
    "count distinct": aggregation(PAIRS, AggregateCall("count", K, BIGINT, distinct=True)),
    "count, not overdue": replace(aggregation(PAIRS, COUNT, by=("k",)), max_delay=STEPS + 1),
    "distinct": Distinct(PAIRS),
    "difference": DIFFERENCE,
    "difference, not overdue": replace(DIFFERENCE, max_delay=STEPS + 1),
    "rows": RowWindow(PAIRS, SIZE),
    "rows slide": RowWindow(PAIRS, SIZE // 2, SIZE // 2),
    "rows by key": RowWindow(PAIRS, 4, partition_by=("k",)),
    "a session": SessionWindow(PAIRS, LENGTH),
    "sessions by key": SessionWindow(PAIRS, LENGTH, ("k",)),
    "many rows by key": RowWindow(PAIRS, SIZE // 8, partition_by=("x",)),
}


def elements(first: int, count: int, *, start: int, length: int) -> pl.DataFrame:
    number = pl.int_range(first, first + count, dtype=pl.Int64, eager=True)
    return pl.DataFrame(
        {
            "k": number * 7919 % SIZE,
            "x": number % 4,
            START: pl.repeat(start, count, dtype=pl.Int64, eager=True),
            END: number % length + start + 1,
            ID: number,
        }
    )


def made(state: State, known: set[tuple[str, int]]) -> int:
    """How many rows stand in segments that are not known, which then are."""
    found = {
        (name, segment.name): segment.frame.height
        for name, table in state.tables.items()
        for segment in table.segments()
    }
    new = sum(height for segment, height in found.items() if segment not in known)
    known.update(found)
    return new


@pytest.mark.parametrize("name", OPERATORS)
def test_a_small_step_writes_little(name: str) -> None:
    operator, known = OPERATORS[name], set[tuple[str, int]]()
    state = operator.new_state()
    list(operator.on_batch(state, 0, elements(0, SIZE, start=0, length=LENGTH)))
    list(operator.on_watermark(state, Time(1)))
    assert state.rows() >= SIZE / 2
    made(state, known)
    written = 0
    for step in range(1, STEPS + 1):
        batch = elements(SIZE + step * WIDTH, WIDTH, start=step, length=5)
        list(operator.on_batch(state, 0, batch))
        written += made(state, known)
        list(operator.on_watermark(state, Time(step + 1)))
        written += made(state, known)
    # About as many elements end as start, each is one row of some tables.
    # What starts or ends is written in some tables, each time it is merged.
    changes = STEPS * (2 * WIDTH + SIZE // LENGTH)
    assert written <= changes * len(state.tables) * SIZE.bit_length()
    assert written < STEPS * SIZE / 4, "that is little"


@pytest.mark.parametrize("delay", [4, 9])
@pytest.mark.parametrize(
    "operator",
    [
        aggregation(PAIRS, COUNT, AggregateCall("median", X, DOUBLE), by=("k",)),
        aggregation(PAIRS, AggregateCall("max", X, BIGINT), by=("k",)),
        DIFFERENCE,
        RowWindow(PAIRS, SIZE),
        SessionWindow(PAIRS, LENGTH, ("k",)),
    ],
    ids=["count and median", "max", "difference", "rows", "sessions"],
)
def test_an_open_segment_is_touched_once_in_a_delay(
    operator: Aggregate | Counting | RowWindow | SessionWindow, delay: int
) -> None:
    operator, known, touching = replace(operator, max_delay=delay), set[tuple[str, int]](), []
    state = operator.new_state()
    batch = elements(0, SIZE, start=0, length=LENGTH).with_columns(
        pl.lit(LENGTH, pl.Int64).alias(END)
    )
    list(operator.on_batch(state, 0, batch))
    list(operator.on_watermark(state, Time(1)))
    made(state, known)
    for t in range(2, STEPS):
        emitted = [part.height for part in operator.on_watermark(state, Time(t))]
        assert emitted in ([], [SIZE])
        assert bool(made(state, known)) == bool(emitted)
        touching += [t] * len(emitted)
    assert touching == list(range(delay + 1, STEPS, delay + 1))
