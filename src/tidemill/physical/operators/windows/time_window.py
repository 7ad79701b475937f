"""Time window over a stream of instants: how long each element stays valid.

Law:    snapshot(out, t) is the sum of snapshot(in, u) for all u in (W - size, W], where W is the
        latest instant ≤ t at which the window moves, ``k·slide - 1`` (K37, 17.1). Without a
        size, the sum for all u ≤ t. The input is a stream of chronons. Before ``wanted``, any
        part of that sum.
State:  none.
Order:  ends are in the order of the starts; chronon for size 1 only.

With SLIDE an element starts at the first move at or after its instant, so possibly after the
watermark, never before. Times after ``END_OF_TIME`` are ``END_OF_TIME``.
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

__all__ = ["TimeWindow"]

_GRAINS = 64
"""At how many instants of a window, at about the most, elements begin that nobody asks for yet."""


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """The elements of the last ``size`` microseconds; the content moves on every ``slide``.

    Attributes:
        schema: The columns of the input, and of the output.
        size: How long an element stays; ``None`` for ever.
        slide: How often the content moves; 1 is at every instant.
        wanted: From when on the content is asked for; ``None`` for always. Elements that begin
            before may begin later, at one of few instants, and those that also end before are left
            out.
    """

    schema: Schema
    size: int | None
    slide: int = 1
    wanted: int | None = None

    def __post_init__(self) -> None:
        assert self.size is None or self.size > 0, "the binder refuses empty windows"
        assert self.slide > 0, "the binder refuses windows that do not move"

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
        """Emit each element with its new validity."""
        valid = batch.select(
            *self.schema.names,
            _next_move(pl.col(START), self.slide).alias(START),
            _next_move(self._gone(), self.slide).alias(END),
        )
        if self.wanted is not None:
            valid = valid.with_columns(self._later(self.wanted).alias(START))
            valid = valid.filter(pl.col(END) > self.wanted)
        # A window that moves by more than its size never shows some elements; and what would
        # begin after the end of time does not begin.
        seen = valid.filter(pl.col(START) < pl.col(END))
        if not seen.is_empty():
            yield seen

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:  # noqa: ARG002
        """Nothing waits for time."""
        yield from ()

    def held(self, state: State) -> Time:  # noqa: ARG002
        """Nothing is remembered."""
        return END_OF_TIME

    def _later(self, wanted: int) -> pl.Expr:
        """The beginning of an element, or an instant soon after it if that is not asked for."""
        start, grain = pl.col(START), max((self.size or wanted) // _GRAINS, 1)
        later = pl.min_horizontal((start + grain - 1) // grain * grain, pl.lit(wanted))
        return pl.when(start < wanted).then(later).otherwise(start)

    def _gone(self) -> pl.Expr:
        """The instant at which an element would leave if the window moved all the time."""
        if self.size is None:
            return pl.lit(END_OF_TIME, pl.Int64)
        return pl.col(START).clip(upper_bound=max(END_OF_TIME - self.size, 0)) + min(
            self.size, END_OF_TIME
        )


def _next_move(time: pl.Expr, slide: int) -> pl.Expr:
    """The first instant ``k·slide - 1`` at or after ``time``, at most the end of time.

    It is ``ceil((time + 1) / slide)·slide - 1``, written so that nothing overflows. Of the end
    of an interval, ``time = t + size``, it is ``floor((t + size + slide) / slide)·slide - 1``.
    """
    if slide == 1:
        return time
    wait = slide - 1 - time % slide
    return pl.min_horizontal(time, END_OF_TIME - wait) + wait
