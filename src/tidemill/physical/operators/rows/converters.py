"""Converters: from intervals to signs, and back (KB34).

Law:    snapshot(out, t) == snapshot(in, t), for every t. A snapshot of a signed stream holds each
        row as often as its signs up to then add up to.

``ToSigned`` sends an element as two messages, at once: what is in the future waits in the operator
above. ``ToIntervals`` has to wait for the end of an element. Rows that are equal cancel each other
first in first out: what appeared first is withdrawn first. Changes of one row at one instant are
added up before, so that nothing lives for no time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import (
    END,
    SIGN,
    START,
    TIME,
    TIME_TYPE,
    Form,
    empty_batch,
    signed_columns,
)
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.frames import pick
from tidemill.physical.kernels.rows import number_columns, restored
from tidemill.physical.kernels.sweep import encode, named, overdue
from tidemill.physical.operator import State
from tidemill.physical.signs.net import net
from tidemill.physical.signs.pieces import matched
from tidemill.physical.state.keyed import KeyedTable, keyed
from tidemill.physical.state.table import Table
from tidemill.physical.traits import Emission, Traits, pass_all, state_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema

__all__ = ["ToIntervals", "ToSigned"]


@dataclass(frozen=True, slots=True)
class ToSigned:
    """Each element as a row that appears and one that is withdrawn, unless it lasts for ever."""

    schema: Schema

    @property
    def traits(self) -> Traits:
        """What it promises."""
        return Traits(
            takes=(Form.INTERVAL,),
            gives=Form.SIGNED,
            meets=(None,),
            passes=(pass_all(self.schema),),
            row_by_row=True,
        )

    def new_state(self) -> State:
        """No memory."""
        return State()

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:  # noqa: ARG002
        """Emit both messages of each element."""
        ending = batch.filter(pl.col(END) < END_OF_TIME)
        yield pl.concat(
            [_signed(batch, self.schema, START, 1), _signed(ending, self.schema, END, -1)]
        )

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:  # noqa: ARG002
        """Nothing waits for time."""
        yield from ()

    def held(self, state: State) -> Time:  # noqa: ARG002
        """Nothing is remembered."""
        return END_OF_TIME


def _signed(batch: Batch, schema: Schema, time: str, sign: int) -> Batch:
    signs = pl.repeat(sign, batch.height, dtype=pl.Int64, eager=True)
    columns = [*pick(batch, schema.names), batch[time].alias(TIME), signs.alias(SIGN)]
    return pl.DataFrame(columns)


@dataclass(frozen=True, slots=True)
class ToIntervals:
    """What appears and is withdrawn as elements that know their end.

    State:  ``pending`` changes at or after the watermark; ``open`` rows, one for each time that a
            row is there, with the instant it appeared.
    Order:  none promised; an element leaves when it has ended, so ``held`` is the oldest open one.
            With ``max_delay``, one that has been open for longer is emitted up to the watermark,
            and goes on from there.

    Attributes:
        schema: The columns of the input, and of the output.
        max_delay: How far an open element may lie behind the watermark before it is cut.
    """

    schema: Schema
    max_delay: int | None = None

    @property
    def traits(self) -> Traits:
        """What it promises."""
        return Traits(
            takes=(Form.SIGNED,),
            gives=Form.INTERVAL,
            meets=(None,),
            passes=(pass_all(self.schema),),
            emits=Emission.WHEN_ENDED,
            delays=True,
            tables=state_tables(self.new_state()),
            hands_over=True,
        )

    def new_state(self) -> State:
        """The state before any input."""
        row = number_columns(self.schema)
        return State(
            {
                "pending": Table({**row, TIME: TIME_TYPE, SIGN: pl.Int64()}, (TIME,)),
                "open": KeyedTable({**row, START: TIME_TYPE}, (START,), index=list(row)),
            }
        )

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:
        """Remember the changes until the watermark has passed them."""
        del port
        self._take_in(state, batch)
        yield from ()

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        """Emit the elements that have ended, and cut those overdue."""
        row, opened = list(number_columns(self.schema)), keyed(state, "open")
        changes = net(state.tables["pending"].extract(TIME, time))
        parts, late = [], overdue(time, self.max_delay)
        if not changes.is_empty():
            known = opened.take(pick(changes, row))
            names, (known, changes) = encode(row, [known, changes])
            closed, still = matched(known, changes)
            opened.insert(named(still, names))
            parts.append(named(closed, names))
        if late is not None:
            due = opened.extract(START, late.before) if not late.is_final else opened.drain()
            parts.append(due.with_columns(pl.lit(late.now, TIME_TYPE).alias(END)))
            if not late.is_final:
                opened.insert(due.with_columns(pl.lit(late.now, TIME_TYPE).alias(START)))
        for part in parts:
            if not part.is_empty():
                yield restored(pick(part, (*row, START, END)), self.schema)

    def held(self, state: State) -> Time:
        """The instant at which the oldest open row appeared, or the next one will."""
        times = state.tables["open"].least(START), state.tables["pending"].least(TIME)
        return Time(min((t for t in times if t is not None), default=END_OF_TIME))

    def remembered(self, state: State, port: int, time: Time) -> Batch:  # noqa: ARG002
        """The rows that are there, since when they are owed, and the changes to come."""
        once = pl.lit(1, pl.Int64).alias(SIGN)
        there = state.tables["open"].all().rename({START: TIME}).with_columns(once)
        changes = pl.concat([there, pick(state.tables["pending"].all(), there.columns)])
        return restored(changes, self.schema, Form.SIGNED)

    def remember(self, state: State, port: int, batch: Batch, time: Time) -> None:  # noqa: ARG002
        """Take them in: what they bring about from their times on is owed."""
        self._take_in(state, batch)

    def standing(self, state: State, time: Time) -> Batch:  # noqa: ARG002
        """Nothing: what has been emitted has ended."""
        return empty_batch(self.schema)

    def _take_in(self, state: State, batch: Batch) -> None:
        changes = pick(batch, signed_columns(self.schema))
        changes.columns = [*number_columns(self.schema), TIME, SIGN]
        state.tables["pending"].insert(changes)
