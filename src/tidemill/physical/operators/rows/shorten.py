"""Shorten: elements that end earlier; those that would be empty are not there.

Law:    an element ``[start, end)`` of the input is one ``[start, end - by)`` of the output, if that
        is not empty. So a join over windows that are all larger by ``by`` has, shortened, the
        elements of the join over the smaller ones: of both the start is the latest of all starts,
        and the end the first of all ends.
State:  none.
Order:  that of the input, of starts and of ends.

It is not made of snapshots, as other operators are: equal rows at neighbouring instants have to be
the elements that the join gives, and not be merged before. The end of an element that would end
after the end of time is not known any more, so it is an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from tidemill.errors import PlanError
from tidemill.model.batch import END, START, Form
from tidemill.model.time import END_OF_TIME, duration_text
from tidemill.physical.operator import State
from tidemill.physical.traits import Traits, pass_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema
    from tidemill.model.time import Time

__all__ = ["Shorten"]


@dataclass(frozen=True, slots=True)
class Shorten:
    """The elements of a join of windows as if these were smaller.

    Attributes:
        schema: The columns of the input, and of the output.
        by: By how much elements end earlier.
        longest: How long an element of the input is at most, for estimates.
    """

    schema: Schema
    by: int
    longest: int = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        assert 0 < self.by < self.longest, "some elements are left"

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
        """Emit what is left of each element."""
        if batch[END].max() == END_OF_TIME:
            raise PlanError(
                "rows so near the end of time that their windows reach beyond it cannot be shared "
                f"with a query whose windows are smaller by {duration_text(self.by)}",
                hint="look at the times of the rows, or connect with optimize=False",
            )
        left = batch.filter(pl.col(END) - pl.col(START) > self.by)
        if not left.is_empty():
            yield left.with_columns(pl.col(END) - self.by)

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:  # noqa: ARG002
        """Nothing waits for time."""
        yield from ()

    def held(self, state: State) -> Time:  # noqa: ARG002
        """Nothing is remembered."""
        return END_OF_TIME
