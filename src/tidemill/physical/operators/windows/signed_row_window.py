"""Row window in signed form: an element appears at once, and is withdrawn when it is displaced.

Law:    that of ``interval.RowWindow``.
State:  that of ``interval.RowWindow``.
Order:  none promised. What changes before the watermark leaves when the watermark comes, so nothing
        is held back: the first result is there with the first element, while an interval would be
        known after as many elements as the window holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, START, TIME_TYPE, Form
from tidemill.model.time import END_OF_TIME
from tidemill.physical.operators.windows import row_window as interval
from tidemill.physical.signs.pieces import changes_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.model.batch import Batch
    from tidemill.model.time import Time
    from tidemill.physical.operator import State
    from tidemill.physical.traits import Traits

__all__ = ["RowWindow"]


@dataclass(frozen=True, slots=True)
class RowWindow(interval.RowWindow):
    """The last rows, which appear and are withdrawn."""

    @property
    def traits(self) -> Traits:
        """What it promises."""
        return self.traits_in(Form.SIGNED)

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        """Count the elements before ``time``; emit those that come in and those that go out."""
        due = state.tables["pending"].extract(START, time)
        if not due.is_empty():
            # What comes in and goes out at one instant is never seen.
            rows = self.move(state, due).filter(pl.col(START) < pl.col(END).fill_null(END_OF_TIME))
            came = rows.filter(~pl.col(interval.WAS_IN))
            went = rows.filter(pl.col(END).is_not_null())
            out = [changes_at(came, self.schema, START, 1), changes_at(went, self.schema, END, -1)]
            yield pl.concat(out)
        if time == END_OF_TIME:
            state.tables["open"].clear()
            state.tables["counts"].clear()

    def held(self, state: State) -> Time:  # noqa: ARG002
        """Nothing is held back."""
        return END_OF_TIME

    def standing(self, state: State, time: Time) -> Batch:
        """The elements that are in."""
        seen = state.tables["open"].all().filter(pl.col(START) < END_OF_TIME)
        before = seen.with_columns(pl.lit(time - 1, TIME_TYPE).alias(START))
        return changes_at(before, self.schema, START, 1)
