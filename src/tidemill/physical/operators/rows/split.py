"""Split of an interval stream: the same validity in consecutive pieces of at most ``length``.

Law:    snapshot(out, t) == snapshot(in, t), for every t; pieces begin at the element's own start
        and every ``length`` from there. ``length`` 1 gives chronons, which windows need (K65).
State:  elements longer than ``length``, from their first piece at or after the watermark on.
Order:  that of the input; the order of ends is kept for ``length`` 1 only (erratum E-01).

An element that never ends is cut as far as the watermark. At ``END_OF_TIME`` its rest is emitted in
one piece, which is equal at every instant; where something above relies on short pieces
(``must_cut``) there is no finite answer, and it is a ``PlanError``.

What is short enough passes at once and is not remembered, so the operator cannot say what stands,
and does not hand over its state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tidemill.errors import PlanError
from tidemill.model.batch import END, START, TIME_TYPE, Form, interval_columns, polars_schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.operator import State
from tidemill.physical.state.table import Table
from tidemill.physical.traits import Emission, Traits, pass_all, state_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema

__all__ = ["Split"]

_CHUNK = 1 << 16
"""About how many pieces are made at once: an element can have billions."""

_PIECES = "@pieces"


@dataclass(frozen=True, slots=True)
class Split:
    """The input in pieces.

    Attributes:
        schema: The columns of the input, and of the output.
        length: How long a piece is at most.
        must_cut: Whether the rest of an element that never ends is an error.
    """

    schema: Schema
    length: int
    must_cut: bool = False

    def __post_init__(self) -> None:
        assert self.length > 0, "a piece has a length"

    @property
    def traits(self) -> Traits:
        """What it promises."""
        return Traits(
            takes=(Form.INTERVAL,),
            gives=Form.INTERVAL,
            meets=(None,),
            passes=(pass_all(self.schema),),
            emits=Emission.WHEN_ENDED,
            tables=state_tables(self.new_state()),
        )

    def new_state(self) -> State:
        """No element."""
        columns = {**polars_schema(self.schema), START: TIME_TYPE, END: TIME_TYPE}
        return State({"rest": Table(columns, (START, END))})

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:  # noqa: ARG002
        """Emit what is short at once; the rest is cut as time goes on."""
        elements = batch.select(interval_columns(self.schema))
        is_long = pl.col(END) - pl.col(START) > self.length
        state.tables["rest"].insert(elements.filter(is_long))
        short = elements.filter(~is_long)
        if not short.is_empty():
            yield short

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        """Emit the pieces that start before ``time``."""
        rest = state.tables["rest"]
        due = rest.extract(START, time)
        if due.is_empty():
            return
        if time == END_OF_TIME:
            endless = due.filter(pl.col(END) == END_OF_TIME)
            if not endless.is_empty():
                yield self._whole(endless)
            due = due.filter(pl.col(END) < END_OF_TIME)
        counted = due.with_columns(_number_of_pieces(time, self.length).alias(_PIECES))
        rest.insert(_after(counted, self.length))
        yield from _pieces(counted, self.length)

    def held(self, state: State) -> Time:
        """The start of the first piece that has not been made."""
        least = state.tables["rest"].least(START)
        return END_OF_TIME if least is None else Time(least)

    def _whole(self, endless: pl.DataFrame) -> Batch:
        if self.must_cut:
            raise PlanError(
                "rows that stay for ever cannot be cut into single instants up to the end of time",
                hint="a window over such rows has an answer only while the streams go on; "
                "take ISTREAM of them, or give the inner window a RANGE",
            )
        return endless


def _number_of_pieces(time: Time, length: int) -> pl.Expr:
    """How many pieces of an element start before ``time``."""
    span = pl.min_horizontal(END, pl.lit(time, TIME_TYPE)) - pl.col(START)
    return (span - 1) // length + 1


def _after(counted: pl.DataFrame, length: int) -> pl.DataFrame:
    """What remains of the elements after that many pieces."""
    last = pl.col(START) + (pl.col(_PIECES) - 1) * length
    # Compared by length, since the end of the last piece may lie after the end of time.
    left = counted.with_columns(last.alias(START)).filter(pl.col(END) - pl.col(START) > length)
    return left.with_columns(pl.col(START) + length)


def _pieces(counted: pl.DataFrame, length: int) -> Iterator[Batch]:
    """That many pieces of each element, a bounded number at a time."""
    while not counted.is_empty():
        some, later = counted.head(_CHUNK), counted.slice(_CHUNK)
        each = max(_CHUNK // some.height, 1)
        offsets = pl.int_ranges(pl.min_horizontal(_PIECES, pl.lit(each, TIME_TYPE))).alias(
            "@offset"
        )
        pieces = some.with_columns(offsets).explode("@offset")
        start = pl.col(START) + pl.col("@offset") * length
        end = start + pl.min_horizontal(pl.col(END) - start, pl.lit(length, TIME_TYPE))
        yield pieces.with_columns(start.alias(START), end.alias(END)).drop(_PIECES, "@offset")
        more = some.filter(pl.col(_PIECES) > each).with_columns(
            pl.col(START) + each * length, pl.col(_PIECES) - each
        )
        counted = pl.concat([more, later])
