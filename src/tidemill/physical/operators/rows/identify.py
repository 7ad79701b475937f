"""Identify: each element gets columns that say which row it is, and when it came.

Law:    snapshot(out, t) without the hidden columns == snapshot(in, t). Of a stream, the column
        ``ROW`` is the id of the row, the one that is kept with it, and ``TIME`` its time; of a
        relation, ``ROW`` is its place among the rows that come in.
State:  none.
Order:  that of the input; keeps chronons and ``ID``.

It stands where rows come in, since what they are made into has no id of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidemill.algebra.marked import ROW, TIME
from tidemill.model.batch import END, ID, START, Form
from tidemill.model.schema import Field, Schema
from tidemill.model.time import END_OF_TIME
from tidemill.model.types import BIGINT
from tidemill.physical.operator import State
from tidemill.physical.traits import Instants, Traits, pass_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.model.batch import Batch
    from tidemill.model.time import Time

__all__ = ["Identify"]


@dataclass(frozen=True, slots=True)
class Identify:
    """The rows of a stream or a relation with hidden columns.

    Attributes:
        input: The columns of the input.
        has_time: Whether they have times, as those of streams do.
        schema: The columns of the input and the hidden ones.
    """

    input: Schema
    has_time: bool = True
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = (ROW, TIME) if self.has_time else (ROW,)
        hidden = (Field(name, BIGINT, nullable=False) for name in names)
        object.__setattr__(self, "schema", Schema((*self.input.fields, *hidden)))

    @property
    def traits(self) -> Traits:
        """What it promises."""
        return Traits(
            takes=(Form.INTERVAL,),
            gives=Form.INTERVAL,
            meets=(None,),
            passes=(pass_all(self.input),),
            row_by_row=True,
            keeps_time=True,
            keeps_rows=True,
            needs_ids=True,
            instants=Instants.KEPT,
        )

    def new_state(self) -> State:
        """No memory."""
        return State()

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:  # noqa: ARG002
        """Emit the elements with their ids and times as columns."""
        if batch.is_empty():
            return
        hidden = [batch[ID].alias(ROW)]
        if self.has_time:
            hidden.append(batch[START].alias(TIME))
        # Column by column, which costs a small frame less than a call of the query engine.
        yield batch.select(*self.input.names, START, END, ID).hstack(hidden)

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:  # noqa: ARG002
        """Nothing waits for time."""
        yield from ()

    def held(self, state: State) -> Time:  # noqa: ARG002
        """Nothing is remembered."""
        return END_OF_TIME
