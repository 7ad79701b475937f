"""Hold: changes leave when the watermark has passed them, not when they are known.

Law:    snapshot(out, t) == snapshot(in, t), for every t. What is emitted between two watermarks has
        times between them, and the changes of a row at one time are one.
State:  ``pending`` changes at or after the watermark: of a row that knows its end, its withdrawal
        until then.
Order:  in that of time, from one watermark to the next.

It stands below answers whose readers apply changes as they come (``runtime/shapes.py``): to them a
row that is withdrawn ahead of time would be gone already. It is the W-Expire of H11. What it has
let go stands, and it does not remember that: it does not hand over its state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.expr import Column
from tidemill.model.batch import SIGN, TIME, TIME_TYPE, Form, signed_columns
from tidemill.model.time import END_OF_TIME
from tidemill.physical.frames import pick
from tidemill.physical.kernels.rows import number_columns, restored
from tidemill.physical.operator import State
from tidemill.physical.signs.net import net
from tidemill.physical.state.table import Table
from tidemill.physical.traits import Emission, Traits, pass_all, state_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema
    from tidemill.model.time import Time

__all__ = ["Hold"]


@dataclass(frozen=True, slots=True)
class Hold:
    """Changes in the order of time, none ahead of it.

    Attributes:
        schema: The columns of the input, and of the output.
    """

    schema: Schema

    @property
    def traits(self) -> Traits:
        """What it promises."""
        return Traits(
            takes=(Form.SIGNED,),
            gives=Form.SIGNED,
            meets=(tuple(Column(f.name, f.type) for f in self.schema),),
            passes=(pass_all(self.schema),),
            emits=Emission.ON_WATERMARK,
            tables=state_tables(self.new_state()),
        )

    def new_state(self) -> State:
        """The state before any input."""
        row = number_columns(self.schema)
        return State({"pending": Table({**row, TIME: TIME_TYPE, SIGN: pl.Int64()}, (TIME,))})

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:
        """Remember the changes until the watermark has passed them."""
        del port
        changes = pick(batch, signed_columns(self.schema))
        changes.columns = [*number_columns(self.schema), TIME, SIGN]
        state.tables["pending"].insert(changes)
        yield from ()

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        """Emit the changes before ``time``."""
        due = net(state.tables["pending"].extract(TIME, time))
        if not due.is_empty():
            yield restored(due, self.schema, Form.SIGNED)

    def held(self, state: State) -> Time:  # noqa: ARG002
        """Nothing is held back for longer than the watermark is."""
        return END_OF_TIME
