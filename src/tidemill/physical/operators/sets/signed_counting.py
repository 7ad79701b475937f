"""Set operations in signed form: a row is withdrawn, or appears, as often as its count changes.

Law:    that of ``interval.Counting``. Changes of one row at one instant count as one.
State:  that of ``interval.Counting``. Rows that are equal are not told apart, so which of them goes
        need not be decided.
Order:  none promised. What changes before the watermark leaves when the watermark comes, so nothing
        is held back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import SIGN, TIME, TIME_TYPE, Form
from tidemill.model.time import END_OF_TIME
from tidemill.physical.grouping.counters import deltas, take_totals
from tidemill.physical.kernels.rows import number_columns, restored
from tidemill.physical.kernels.sweep import GROUP, SINCE, encode, latest, named, overdue, timeline
from tidemill.physical.operators.sets import counting as interval
from tidemill.physical.state.keyed import keyed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.model.batch import Batch
    from tidemill.model.time import Time
    from tidemill.physical.operator import State
    from tidemill.physical.traits import Traits

__all__ = ["Counting"]


@dataclass(frozen=True, slots=True)
class Counting(interval.Counting):
    """A set operation whose rows appear and are withdrawn."""

    @property
    def traits(self) -> Traits:
        """What it promises."""
        return self.traits_in(Form.SIGNED)

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        """Emit what has changed before ``time``."""
        row, totals = list(number_columns(self.schema)), keyed(state, "totals")
        changes = deltas(state, time, interval.COUNTERS)
        known = take_totals(totals, changes, row, overdue(time))
        if changes.is_empty():
            return
        names, (known, changes) = encode(row, [known, changes])
        # Before all instants, so that what was known is told from what changes.
        known = known.with_columns(pl.lit(-1, TIME_TYPE).alias(SINCE))
        rows = timeline(known, changes, interval.COUNTERS).with_columns(
            interval.multiplicity_of(self.multiplicity).cast(pl.Int64).alias(SIGN)
        )
        last = latest(rows).filter(pl.any_horizontal(pl.col(interval.COUNTERS) != 0))
        if time < END_OF_TIME:
            totals.insert(named(last, names))
        new_row = pl.col(GROUP).ne_missing(pl.col(GROUP).shift(1))
        before = pl.when(new_row).then(0).otherwise(pl.col(SIGN).shift(1))
        out = rows.with_columns(pl.col(SIGN) - before).filter(pl.col(SIGN) != 0, pl.col(TIME) >= 0)
        if not out.is_empty():
            yield restored(named(out, names), self.schema, Form.SIGNED)

    def held(self, state: State) -> Time:  # noqa: ARG002
        """Nothing is held back."""
        return END_OF_TIME
