"""Granularity: the snapshots at multiples of the granule only, each valid for a whole granule.

Law:    snapshot(out, t) == snapshot(in, t) for every t that is a multiple of the granule (KB41);
        between two multiples it is that of the first of them.
State:  none.
Order:  that of the input; keeps the order of ends, chronon for granule 1 only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, START, Form
from tidemill.model.time import END_OF_TIME
from tidemill.physical.operator import State
from tidemill.physical.traits import Traits, pass_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema
    from tidemill.model.time import Time

__all__ = ["Granularity", "round_up"]


@dataclass(frozen=True, slots=True)
class Granularity:
    """The input on a coarser grid of time.

    Attributes:
        schema: The columns of the input, and of the output.
        granule: The distance between two instants of the grid, which begins at 0.
    """

    schema: Schema
    granule: int

    def __post_init__(self) -> None:
        assert self.granule > 0, "a granule has a length"

    @property
    def traits(self) -> Traits:
        """What it promises."""
        return Traits(
            takes=(Form.INTERVAL,),
            gives=Form.INTERVAL,
            meets=(None,),
            passes=(pass_all(self.schema),),
            row_by_row=True,
        )

    def new_state(self) -> State:
        """No memory."""
        return State()

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:  # noqa: ARG002
        """Emit the elements that are valid at an instant of the grid."""
        rounded = batch.select(
            *self.schema.names,
            round_up(pl.col(START), self.granule).alias(START),
            round_up(pl.col(END), self.granule).alias(END),
        )
        seen = rounded.filter(pl.col(START) < pl.col(END))
        if not seen.is_empty():
            yield seen

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:  # noqa: ARG002
        """Nothing waits for time."""
        yield from ()

    def held(self, state: State) -> Time:  # noqa: ARG002
        """Nothing is remembered."""
        return END_OF_TIME


def round_up(time: pl.Expr, granule: int) -> pl.Expr:
    """The first multiple at or after ``time``, at most the end of time."""
    wait = (granule - time % granule) % granule
    return pl.min_horizontal(time, END_OF_TIME - wait) + wait
