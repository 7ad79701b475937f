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

from tidemill.model.batch import END, SIGN, START, TIME, TIME_TYPE, Form
from tidemill.model.time import END_OF_TIME
from tidemill.physical.frames import pick
from tidemill.physical.grouping.counters import deltas, take_totals
from tidemill.physical.kernels.rows import number_columns, restored
from tidemill.physical.kernels.sweep import GROUP, SINCE, encode, latest, named, overdue, timeline
from tidemill.physical.operators.sets import counting as interval
from tidemill.physical.signs.handed import appeared
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

    def remembered(self, state: State, port: int, time: Time) -> Batch:
        """The rows that are there, and the changes to come."""
        return self.counts_from(state, port, pl.lit(time - 1, TIME_TYPE))

    def remember(self, state: State, port: int, batch: Batch, time: Time) -> None:
        """Take them in: what begins before ``time`` has been counted."""
        elements, row = self.counted(port, batch), list(number_columns(self.schema))
        state.tables["pending"].insert(elements.filter(pl.col(START) >= time))
        # What ends at ``time`` is still to be withdrawn.
        begun = elements.filter(pl.col(START) < time, pl.col(END) >= time)
        ending = begun.filter(pl.col(END) < END_OF_TIME)
        state.tables["ends"].insert(ending)
        totals = keyed(state, "totals")
        begun = begun.with_columns(pl.lit(time - 1, TIME_TYPE).alias(SINCE))
        known = pl.concat([totals.take(pick(begun, row)), pick(begun, totals.schema)])
        names, (known,) = encode(row, [known])
        sums = known.group_by(GROUP).agg(pl.col(SINCE).max(), pl.col(interval.COUNTERS).sum())
        there = sums.filter(pl.any_horizontal(pl.col(interval.COUNTERS) != 0))
        totals.insert(named(there, names))

    def standing(self, state: State, time: Time) -> Batch:
        """Each row that is there, as often as it is in the output."""
        multiplicity = interval.multiplicity_of(self.multiplicity).cast(pl.Int64)
        rows = state.tables["totals"].all().with_columns(multiplicity.alias(SIGN))
        there = pick(rows.filter(pl.col(SIGN) > 0), (*number_columns(self.schema), SIGN))
        return restored(appeared(there, time), self.schema, Form.SIGNED)
