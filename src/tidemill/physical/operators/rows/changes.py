"""Changes of a stream: the rows that have come (Istream) or gone (Dstream) since an instant ago.

The input may be in either form.

Law:    snapshot(out, t) = snapshot(in, t) - snapshot(in, t - 1) for Istream, as bags, and the
        reverse for Dstream. A row that goes and comes at one instant has not changed.
State:  ``pending`` elements that start at or after the watermark, and ``ends`` of those that have
        started; what lasts for ever has no end.
Order:  none promised; a change leaves when the watermark has passed its instant, nothing is held.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.expr import Column
from tidemill.model.batch import END, SIGN, START, TIME, TIME_TYPE, Form, empty_batch
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.kernels.rows import elements_of, number_columns, numbered, restored
from tidemill.physical.kernels.sweep import repeat
from tidemill.physical.operator import State
from tidemill.physical.state.table import Table
from tidemill.physical.traits import Emission, Instants, Traits, pass_all, state_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema

__all__ = ["Change", "Changes"]

_NET = "@net"


class Change(Enum):
    """What of a change is of interest."""

    INSERTED = "inserted"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Changes:
    """The rows inserted, or deleted, at each instant; each is valid for that instant."""

    change: Change
    schema: Schema

    @property
    def traits(self) -> Traits:
        """What it promises."""
        return Traits(
            takes=(None,),
            gives=Form.INTERVAL,
            meets=(tuple(Column(f.name, f.type) for f in self.schema),),
            passes=(pass_all(self.schema),),
            emits=Emission.ON_WATERMARK,
            instants=Instants.MADE,
            tables=state_tables(self.new_state()),
            hands_over=True,
        )

    def new_state(self) -> State:
        """The state before any input."""
        row = number_columns(self.schema)
        return State(
            {
                "pending": Table(
                    {**row, START: TIME_TYPE, END: TIME_TYPE, _NET: pl.Int64()}, (START, END)
                ),
                "ends": Table({**row, END: TIME_TYPE, _NET: pl.Int64()}, (END,)),
            }
        )

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:
        """Remember the elements until the watermark has passed their start."""
        del port
        state.tables["pending"].insert(self._counted(batch))
        yield from ()

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        """Emit the changes before ``time``."""
        ends = state.tables["ends"]
        started = state.tables["pending"].extract(START, time)
        ends.insert(started.filter(pl.col(END) < END_OF_TIME))
        ended = ends.extract(END, time)
        if started.is_empty() and ended.is_empty():
            return
        sign = 1 if self.change is Change.INSERTED else -1
        names = list(number_columns(self.schema))
        changes = pl.concat(
            [
                started.select(*names, pl.col(START).alias(TIME), pl.col(_NET) * sign),
                ended.select(*names, pl.col(END).alias(TIME), pl.col(_NET) * -sign),
            ]
        )
        net = changes.group_by(*names, TIME).agg(pl.col(_NET).sum()).filter(pl.col(_NET) > 0)
        if not net.is_empty():
            valid = net.with_columns(pl.col(TIME).alias(START), (pl.col(TIME) + 1).alias(END))
            yield restored(repeat(valid, _NET), self.schema)

    def held(self, state: State) -> Time:
        """The next instant at which something may change."""
        starts, ends = state.tables["pending"].least(START), state.tables["ends"].least(END)
        return Time(min((t for t in (starts, ends) if t is not None), default=END_OF_TIME))

    def remembered(self, state: State, port: int, time: Time) -> Batch:  # noqa: ARG002
        """The changes to come; the rows that are there do not matter."""
        pending, ends = state.tables["pending"].all(), state.tables["ends"].all()
        ending = pending.filter(pl.col(END) < END_OF_TIME)
        net, row = pl.col(_NET), list(number_columns(self.schema))
        parts = ((pending, START, net), (ending, END, -net), (ends, END, -net))
        changes = pl.concat(
            frame.select(*row, pl.col(at).alias(TIME), sign.alias(SIGN))
            for frame, at, sign in parts
        )
        return restored(changes, self.schema, Form.SIGNED)

    def remember(self, state: State, port: int, batch: Batch, time: Time) -> None:
        """Take them in: of what has begun it matters when it ends."""
        del port
        counted = self._counted(batch)
        state.tables["pending"].insert(counted.filter(pl.col(START) >= time))
        ending = pl.col(END).is_between(time, END_OF_TIME, closed="left")
        state.tables["ends"].insert(counted.filter(pl.col(START) < time, ending))

    def standing(self, state: State, time: Time) -> Batch:  # noqa: ARG002
        """Nothing: each change was there for its instant."""
        return empty_batch(self.schema)

    def _counted(self, batch: Batch) -> pl.DataFrame:
        """The elements of a batch, with how often each counts."""
        elements, weights = elements_of(batch)
        return numbered(elements, self.schema).hstack([weights.alias(_NET)])
