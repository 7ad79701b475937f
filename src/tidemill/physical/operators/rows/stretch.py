"""Stretch in interval form: an answer cut to the instants that are asked for.

Law:    snapshot(out, t) == n(t) · snapshot(in, t), where n(t) is how many spans have t. Rows of a
        span that waits leave when it does not wait any more in a later operator of this identity.
State:  ``spool`` holds elements that wait, cut to spans that wait, with how often they were given.
Order:  none promised.

It stands above the plan of an instance that does not answer everything for ever, where the answer
goes to a sink (``catalog/records.py``). Its spans are no part of its identity: they change between
two batches, and the spool stays. What was given is never taken back: a span that becomes shorter
must end where no element that was given goes on, or some would be too long. What waits belongs to
the answer and its spans, not to the input, so it is not handed over by meaning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, START, TIME_TYPE, Form
from tidemill.model.spans import Span, segments
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.kernels.rows import number_columns, numbered, restored
from tidemill.physical.kernels.sweep import repeat
from tidemill.physical.operator import State
from tidemill.physical.state.table import Table
from tidemill.physical.traits import Emission, Expiry, Traits, pass_all, state_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema

__all__ = ["SPANS", "Stretch", "spans_number"]

SPANS = "spans"
"""The number of the spans by which what waits was put aside."""

_FROM, _TO, _GIVEN, _MORE = "@from", "@to", "@given", "@more"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some instants of an answer.

    Attributes:
        schema: The columns of the input, and of the output.
        owner: Whose answer it is: no two queries share one.
        spans: The instants, and when their rows leave.
    """

    schema: Schema
    owner: str
    spans: tuple[Span, ...] = field(default=(Span(),), compare=False)

    @property
    def traits(self) -> Traits:
        """What it promises."""
        return Traits(
            takes=(Form.INTERVAL,),
            gives=Form.INTERVAL,
            meets=(None,),
            passes=(pass_all(self.schema),),
            emits=Emission.WHEN_ENDED,
            expiry=Expiry.STRICT,
            waits=True,
            tables=state_tables(self.new_state()),
            counts=True,
        )

    def new_state(self) -> State:
        """The state before any input."""
        row = number_columns(self.schema)
        times = {_FROM: TIME_TYPE, _TO: TIME_TYPE}
        return State({"spool": Table({**row, **times, _GIVEN: pl.Int64()}, (_FROM,))})

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:
        """Emit the elements, cut; put aside what waits."""
        del port
        yield from self._released(state)
        rows = numbered(batch, self.schema).rename({START: _FROM, END: _TO})
        fresh = rows.with_columns(pl.lit(0, pl.Int64).alias(_GIVEN))
        yield from self._shared_out(state, fresh, has_ended=False)

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        """Emit what does not wait any more."""
        yield from self._released(state, has_ended=time == END_OF_TIME)
        if time == END_OF_TIME:
            state.tables["spool"].clear()

    def held(self, state: State) -> Time:
        """What waits begins here."""
        least = state.tables["spool"].least(_FROM)
        return END_OF_TIME if least is None else Time(least)

    def _released(self, state: State, *, has_ended: bool = False) -> Iterator[Batch]:
        """What does not wait any more, if the spans are others than they were."""
        number, spool = spans_number(self.spans), state.tables["spool"]
        if state.numbers.get(SPANS) == number and not has_ended:
            return
        state.numbers[SPANS] = number
        waiting = spool.all()
        spool.clear()
        yield from self._shared_out(state, waiting, has_ended=has_ended)

    def _shared_out(self, state: State, rows: pl.DataFrame, *, has_ended: bool) -> Iterator[Batch]:
        """Emit of rows what is due and was not given; put aside the rest."""
        if rows.is_empty():
            return
        for one in segments(self.spans, has_ended=has_ended):
            if not (one.given or one.kept):
                continue
            cut = rows.with_columns(
                pl.col(_FROM).clip(lower_bound=one.since), pl.col(_TO).clip(upper_bound=one.until)
            ).filter(pl.col(_FROM) < pl.col(_TO))
            more = cut.filter(pl.col(_GIVEN) < one.given)
            if not more.is_empty():
                counted = more.with_columns((one.given - pl.col(_GIVEN)).alias(_MORE))
                due = repeat(counted.drop(_GIVEN), _MORE)
                yield restored(due.rename({_FROM: START, _TO: END}), self.schema)
            if one.kept:
                given = pl.col(_GIVEN).clip(lower_bound=one.given)
                state.tables["spool"].insert(cut.with_columns(given))


def spans_number(spans: Sequence[Span]) -> int:
    """A number that tells a list of spans from others."""
    text = "\n".join(f"{span} {span.joins} {span.hands_on}" for span in spans)
    return int.from_bytes(blake2b(text.encode(), digest_size=7).digest())
