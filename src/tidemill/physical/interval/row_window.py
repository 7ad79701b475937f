"""Row window over a stream of instants: the last rows, of each group if it is partitioned.

Law:    where a group has n elements up to t, snapshot(out, t) holds its elements number
        ``max(m - rows + 1, 1) … m`` with ``m = n // slide * slide`` (17.2), over all groups.
        Elements are in the order of their instants, those of one instant by ``ID`` or by values
        (NULLs first, NaN last). NULL = NULL and NaN = NaN in groups. The input are chronons.
State:  elements at or after the watermark; of each group those in the window and the at most
        ``slide - 1`` not yet in it, with their positions. A group lives for ever, since its last
        elements never leave (E18): state grows with the number of groups.
Order:  ends are in the order of starts if there is one group and no ``max_delay``; never chronon.

Element i comes in with element ``ceil(i / slide)·slide`` of its group and goes out with element
``ceil((i + rows) / slide)·slide``. When both come at one instant it is never seen (E13). It is
emitted when it goes out, at the latest at ``END_OF_TIME``; with ``max_delay``, an element that
has been in for longer is emitted up to the watermark, and goes on from there (K68).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, ID, START, TIME_TYPE, interval_columns, polars_schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.interval.groups import GROUP, with_group
from tidemill.physical.operator import State
from tidemill.physical.state.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema

__all__ = ["RowWindow"]

# Of an open element START is where it comes in, or END_OF_TIME while it has not.
_POSITION = "@position"
_ARRIVAL = "@arrival"


@dataclass(frozen=True, slots=True)
class RowWindow:
    """The last ``rows`` elements of each group; the content moves after every ``slide`` elements.

    Attributes:
        schema: The columns of the input, and of the output.
        rows: How many elements the window holds.
        slide: After how many new elements it moves.
        partition_by: The columns whose values make a group.
        by_id: Whether elements of one instant are ordered by ``ID``, which the batches then carry,
            rather than by their values.
        max_delay: How far an open element may lie behind the watermark before it is cut.
    """

    schema: Schema
    rows: int
    slide: int = 1
    partition_by: tuple[str, ...] = ()
    by_id: bool = True
    max_delay: int | None = None

    def __post_init__(self) -> None:
        assert self.rows > 0, "the binder refuses empty windows"
        assert self.slide > 0, "the binder refuses windows that do not move"
        assert self.max_delay is None or self.max_delay >= 0, "a delay is not negative"

    def new_state(self) -> State:
        """No element."""
        payload = polars_schema(self.schema)
        ids = {ID: TIME_TYPE} if self.by_id else {}
        opened = {**payload, START: TIME_TYPE, _POSITION: TIME_TYPE}
        return State(
            {
                "pending": Table({**payload, START: TIME_TYPE, **ids}, (START,)),
                "open": Table(opened, (START,)),
            }
        )

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:  # noqa: ARG002
        """Wait until the order is certain."""
        state.tables["pending"].insert(batch)
        yield from ()

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        """Count the elements before ``time``; emit those that go out, and cut those overdue."""
        due = state.tables["pending"].extract(START, time)
        if not due.is_empty():
            yield from self._out(self._count(state.tables["open"], due))
        if time == END_OF_TIME:
            rest = state.tables["open"].all()
            state.tables["open"].clear()
            yield from self._out(rest.with_columns(pl.lit(END_OF_TIME, TIME_TYPE).alias(END)))
        elif self.max_delay is not None:
            overdue = state.tables["open"].extract(START, Time(time - self.max_delay))
            now = pl.lit(time, TIME_TYPE)
            state.tables["open"].insert(overdue.with_columns(now.alias(START)))
            yield from self._out(overdue.with_columns(now.alias(END)))

    def held(self, state: State) -> Time:
        """The first open element that is in; what is not in yet comes in after the watermark."""
        least = state.tables["open"].least(START)
        return END_OF_TIME if least is None else Time(least)

    def _count(self, table: Table, due: pl.DataFrame) -> pl.DataFrame:
        """Move the window over the new elements; return those that go out, keep the others."""
        order = [START, ID] if self.by_id else [START, *self.schema.names]
        arrived = due.sort(order).select(
            *self.schema.names,
            pl.lit(END_OF_TIME, TIME_TYPE).alias(START),
            pl.lit(None, TIME_TYPE).alias(_POSITION),
            pl.col(START).alias(_ARRIVAL),
        )
        opened, untouched = self._touched(table.all(), due)
        before = opened.sort(_POSITION).with_columns(pl.lit(None, TIME_TYPE).alias(_ARRIVAL))
        rows = with_group(pl.concat([before, arrived]), self.partition_by)
        moved = _moved(rows.sort(GROUP, maintain_order=True), self.rows, self.slide)
        table.clear()
        table.insert(untouched)
        table.insert(moved.filter(pl.col(END).is_null()))
        return moved.filter(pl.col(END).is_not_null())

    def _touched(
        self, opened: pl.DataFrame, due: pl.DataFrame
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The open elements of groups with new elements, and the others."""
        if not self.partition_by:
            return opened, opened.clear()
        keys = due.select(self.partition_by).unique()
        return (
            opened.join(keys, on=self.partition_by, how="semi", nulls_equal=True),
            opened.join(keys, on=self.partition_by, how="anti", nulls_equal=True),
        )

    def _out(self, rows: pl.DataFrame) -> Iterator[Batch]:
        seen = rows.filter(pl.col(START) < pl.col(END)).select(interval_columns(self.schema))
        if not seen.is_empty():
            yield seen


def _moved(rows: pl.DataFrame, size: int, slide: int) -> pl.DataFrame:
    """The elements with position, ``START``, and ``END``, NULL while they stay.

    Groups stand together, each in the order of its elements without a gap, so that element j of a
    group is found ``j - i`` rows below its element i. Arrivals of open elements are not needed:
    what comes in or goes out now does so with one of the new elements.
    """
    position = pl.first(_POSITION).over(GROUP).fill_null(1) + pl.int_range(pl.len()).over(GROUP)
    placed = rows.with_columns(position.alias(_POSITION)).with_row_index("@row")
    last = pl.last(_POSITION).over(GROUP)

    def arrival_of(element: pl.Expr) -> pl.Expr:
        row = pl.col("@row").cast(TIME_TYPE) + element - pl.col(_POSITION)
        return pl.col(_ARRIVAL).gather(pl.when(element <= last).then(row))

    def move_after(element: pl.Expr) -> pl.Expr:
        return (element + slide - 1) // slide * slide

    return placed.with_columns(
        pl.min_horizontal(START, arrival_of(move_after(pl.col(_POSITION)))).alias(START),
        arrival_of(move_after(pl.col(_POSITION) + size)).alias(END),
    )
