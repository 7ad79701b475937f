"""Number: each element gets a number of its own, so that equal rows can be told apart.

Law:    snapshot(out, t) without the numbers == snapshot(in, t), and no number occurs twice.
State:  how many elements have come.
Order:  that of the input; keeps chronons and the order of ends.

Which element gets which number depends on the order of arrival, so a plan may use numbers to pair
rows, as semi- and anti-joins do, and must not show them. They are unique in one partition: no
exchange may stand between this operator and the one that uses them. How many have come is no row
that could be handed over, and a new state would give numbers that were given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, START
from tidemill.model.schema import Field, Schema
from tidemill.model.time import END_OF_TIME
from tidemill.model.types import BIGINT
from tidemill.physical.operator import State
from tidemill.physical.traits import Traits, pass_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.model.batch import Batch
    from tidemill.model.time import Time

__all__ = ["NUMBER", "Number"]

NUMBER = "@number"
"""The name of the column it adds."""


@dataclass(frozen=True, slots=True)
class Number:
    """The input with one column more, the number of the element.

    Attributes:
        input: The columns of the input.
        schema: These and ``NUMBER``.
    """

    input: Schema
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        number = Field(NUMBER, BIGINT, nullable=False)
        object.__setattr__(self, "schema", Schema((*self.input.fields, number)))

    @property
    def traits(self) -> Traits:
        """What it promises."""
        return Traits(
            takes=(None,),
            gives=None,
            meets=(None,),
            passes=(pass_all(self.input),),
            keeps_time=True,
            keeps_rows=True,
            counts=True,
        )

    def new_state(self) -> State:
        """No element has come."""
        return State(numbers={"next": 0})

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:  # noqa: ARG002
        """Emit the elements with the next numbers."""
        if batch.is_empty():
            return
        first = state.numbers["next"]
        state.numbers["next"] = first + batch.height
        numbers = pl.int_range(first, first + batch.height, dtype=pl.Int64).alias(NUMBER)
        yield batch.select(*self.input.names, numbers, START, END)

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:  # noqa: ARG002
        """Nothing waits for time; numbers go on."""
        yield from ()

    def held(self, state: State) -> Time:  # noqa: ARG002
        """No element is remembered."""
        return END_OF_TIME
