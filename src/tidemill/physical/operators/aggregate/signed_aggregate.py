"""Aggregation in signed form: when a group's row changes, the old one is withdrawn at once.

Law:    that of ``interval.Aggregate``. Of a group whose rows change without changing its output,
        nothing is emitted; changes of one instant count as one (KB20), so that no value is seen
        that never was.
State:  that of ``interval.Aggregate``. ``totals`` hold, beside the counters, the row that was
        emitted last, so that exactly that one is withdrawn.
Order:  none promised. What changes before the watermark leaves when the watermark comes, so nothing
        is held back: a new value is known as soon as the watermark has passed its start, while an
        interval would have to wait for its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, SIGN, START, TIME, TIME_TYPE, Form, polars_type
from tidemill.model.time import END_OF_TIME
from tidemill.physical.frames import pick
from tidemill.physical.grouping.handed import PART, contributed, take_in, together
from tidemill.physical.kernels.arguments import ROWS, carry
from tidemill.physical.kernels.sweep import (
    GROUP,
    SINCE,
    differences,
    encode,
    latest,
    named,
    overdue,
)
from tidemill.physical.operators.aggregate import aggregate as interval
from tidemill.physical.state.keyed import KeyedTable, keyed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.model.batch import Batch
    from tidemill.model.time import Time
    from tidemill.physical.operator import State
    from tidemill.physical.traits import Traits

__all__ = ["Aggregate"]

_EMITTED = "emitted"
"""The part of what is handed over that says which rows were emitted last."""


@dataclass(frozen=True, slots=True)
class Aggregate(interval.Aggregate):
    """An aggregation whose results appear and are withdrawn."""

    @property
    def traits(self) -> Traits:
        """What it promises."""
        return self.traits_in(Form.SIGNED)

    def new_state(self) -> State:
        """The state before any input."""
        state = interval.Aggregate.new_state(self)
        known = state.tables["totals"].schema
        rows = {interval.output(i): polars_type(a.call.type) for i, a in enumerate(self.aggregates)}
        keys = [name for name in known if name.startswith("@key")]
        state.tables["totals"] = KeyedTable({**known, **rows}, (SINCE,), index=keys)
        return state

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        """Emit what has changed before ``time``."""
        since = state.numbers["watermark"]
        swept = self.sweep(state, time, overdue(time))
        if swept is None:
            return
        rows = _with_emitted(swept, since)
        changes = differences(rows, present=pl.col(ROWS) > 0, outputs=swept.outputs, since=since)
        if time < END_OF_TIME:
            last = latest(rows).filter(pl.col(ROWS) > 0)
            totals = keyed(state, "totals")
            totals.insert(named(carry(last, self._arguments), swept.names))
        if not changes.is_empty():
            yield self.emitted(named(changes, swept.names), Form.SIGNED)

    def held(self, state: State) -> Time:  # noqa: ARG002
        """Nothing is held back."""
        return END_OF_TIME

    def remembered(self, state: State, port: int, time: Time) -> Batch:
        """What the elements contribute, and the rows that were emitted last."""
        given = interval.Aggregate.remembered(self, state, port, time)
        ends = pl.lit(END_OF_TIME, TIME_TYPE).alias(END)
        emitted = state.tables["totals"].all().rename({SINCE: START}).with_columns(ends)
        rows = pick(emitted, (*self._keys(state), START, END, *self._outs()))
        return pl.concat([given, together({_EMITTED: rows})], how="diagonal")

    def remember(self, state: State, port: int, batch: Batch, time: Time) -> None:
        """Take in what elements contribute, or the elements: what began before has been told."""
        if PART in batch.columns:
            take_in(batch, state.tables)
        else:
            for _ in self.on_batch(state, port, batch):
                raise AssertionError("nothing leaves before the watermark")
        swept = self.sweep(state, time, overdue(time))
        if swept is None or time == END_OF_TIME:
            return
        last = carry(latest(swept.rows).filter(pl.col(ROWS) > 0), self._arguments)
        totals, known = keyed(state, "totals"), named(last, swept.names)
        if PART in batch.columns:
            # To the last bit what was emitted is withdrawn (``variance.py``).
            keys, outs = self._keys(state), self._outs()
            emitted = contributed(batch, _EMITTED, (*keys, *outs))
            _, (known, emitted) = encode(keys, [known, emitted])
            known = known.drop(outs).join(pick(emitted, (GROUP, *outs)), on=GROUP, how="left")
        totals.insert(known)

    def standing(self, state: State, time: Time) -> Batch:
        """The row of each group."""
        moment = pl.lit(time - 1, TIME_TYPE).alias(TIME)
        rows = state.tables["totals"].all().with_columns(moment, pl.lit(1, pl.Int64).alias(SIGN))
        return self.emitted(rows, Form.SIGNED)

    def _keys(self, state: State) -> tuple[str, ...]:
        return state.tables["totals"].key

    def _outs(self) -> list[str]:
        return [interval.output(i) for i in range(len(self.aggregates))]


def _with_emitted(swept: interval.SweptGroups, since: int) -> pl.DataFrame:
    """The timeline, with the rows that were emitted where it begins with what was known."""
    if swept.known.is_empty():
        return swept.rows
    emitted = swept.known.sort(GROUP)
    is_known = pl.col(TIME) < since
    number = is_known.cum_sum() - 1
    return swept.rows.with_columns(
        pl.when(is_known).then(pl.lit(emitted[name]).gather(number)).otherwise(name).alias(name)
        for name in swept.outputs
    )
