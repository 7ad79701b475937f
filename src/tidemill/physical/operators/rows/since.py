"""Since: a stream as if it began at an instant; what is from before is not for its reader.

Law:    snapshot(out, t) == snapshot(in, t) for t ≥ time, and empty before. The input is a stream of
        chronons.
State:  none.
Order:  that of the input; keeps chronons and ``ID``.

It stands on the inputs of queries that begin while others run, so that what they give depends on
that instant alone: neither on batches, nor on what others remember (FStart, L3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import START, Form
from tidemill.model.time import END_OF_TIME
from tidemill.physical.operator import State
from tidemill.physical.traits import Instants, Traits, pass_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema
    from tidemill.model.time import Time

__all__ = ["Since"]


@dataclass(frozen=True, slots=True)
class Since:
    """The elements of a stream from an instant on.

    Attributes:
        schema: The columns of the input, and of the output.
        time: The instant.
    """

    schema: Schema
    time: int

    def __post_init__(self) -> None:
        assert self.time > 0, "all elements are from 0 on"

    @property
    def traits(self) -> Traits:
        """What it promises."""
        return Traits(
            takes=(Form.INTERVAL,),
            gives=Form.INTERVAL,
            meets=(None,),
            passes=(pass_all(self.schema),),
            row_by_row=True,
            keeps_time=True,
            instants=Instants.KEPT,
        )

    def new_state(self) -> State:
        """No memory."""
        return State()

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:  # noqa: ARG002
        """Emit the elements that are not from before."""
        kept = batch.filter(pl.col(START) >= self.time)
        if not kept.is_empty():
            yield kept

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:  # noqa: ARG002
        """Nothing waits for time."""
        yield from ()

    def held(self, state: State) -> Time:  # noqa: ARG002
        """Nothing is remembered."""
        return END_OF_TIME
