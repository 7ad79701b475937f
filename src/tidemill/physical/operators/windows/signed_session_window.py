"""Session window in signed form: an element appears at once, and goes when its session is over.

Law:    that of ``interval.SessionWindow``.
State:  that of ``interval.SessionWindow``.
Order:  none promised. What changes before the watermark leaves when the watermark comes, so nothing
        is held back: the first result is there with the first element, while an interval would be
        known after the last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, START, TIME_TYPE, Form
from tidemill.model.time import END_OF_TIME
from tidemill.physical.operators.windows import session_window as interval
from tidemill.physical.signs.pieces import changes_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.model.batch import Batch
    from tidemill.model.time import Time
    from tidemill.physical.operator import State
    from tidemill.physical.traits import Traits

__all__ = ["SessionWindow"]


@dataclass(frozen=True, slots=True)
class SessionWindow(interval.SessionWindow):
    """The rows since the last pause, which appear and are withdrawn."""

    @property
    def traits(self) -> Traits:
        """What it promises."""
        return self.traits_in(Form.SIGNED)

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        """Emit the elements before ``time`` that come in, and those whose session is over."""
        rows = self.move(state, time)
        if rows.is_empty():
            return
        came = rows.filter(~pl.col(interval.WAS_IN))
        went = rows.filter(pl.col(END) < END_OF_TIME)
        yield pl.concat(
            [changes_at(came, self.schema, START, 1), changes_at(went, self.schema, END, -1)]
        )

    def held(self, state: State) -> Time:  # noqa: ARG002
        """Nothing is held back."""
        return END_OF_TIME

    def standing(self, state: State, time: Time) -> Batch:
        """The elements of the sessions that are not over."""
        seen = state.tables["open"].all().with_columns(pl.lit(time - 1, TIME_TYPE).alias(START))
        return changes_at(seen, self.schema, START, 1)
