"""Coalesce of an interval stream: the same validity in fewer, longer elements.

Law:    snapshot(out, t) == snapshot(in, t), for every t; the result of a merge is at most
        ``max_length`` long.
State:  elements shorter than ``max_length`` whose end the watermark has not passed; each is held
        for less than ``max_length``.
Order:  none promised; chronon if the input is and ``max_length`` is 1.

An end and a start of equal rows at one instant cancel, pair by pair, so that multiplicities stay
(K70). What is left of the starts and of the ends of a row, both in the order of time, are the
starts and ends of the merged elements. Where these are too long they are cut again: ``max_length``
is a strict bound here, and elements that have reached it pass at once (erratum E8). It does not
remember those, so it cannot say what stands, and does not hand over its state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, START, TIME_TYPE, Form, interval_columns, polars_schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.grouping.groups import GROUP, with_group
from tidemill.physical.operator import State
from tidemill.physical.state.table import Table
from tidemill.physical.traits import Emission, Traits, pass_all, state_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema

__all__ = ["Coalesce"]

_TIME, _NET = "@time", "@net"


@dataclass(frozen=True, slots=True)
class Coalesce:
    """The input with adjacent elements of equal rows merged.

    Attributes:
        schema: The columns of the input, and of the output.
        max_length: How long a merged element is at most.
    """

    schema: Schema
    max_length: int

    def __post_init__(self) -> None:
        assert self.max_length > 0, "an element has a length"

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
        return State(
            {"pending": Table(columns, (START, END)), "open": Table(columns, (START, END))}
        )

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:  # noqa: ARG002
        """Emit what is long enough at once; the rest waits for a neighbour."""
        elements = batch.select(interval_columns(self.schema))
        is_long = pl.col(END) - pl.col(START) >= self.max_length
        state.tables["pending"].insert(elements.filter(~is_long))
        long = elements.filter(is_long)
        if not long.is_empty():
            yield long

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        """Merge what starts before ``time``; emit what no later element can begin at the end of."""
        due = state.tables["pending"].extract(START, time)
        opened = state.tables["open"].all()
        if due.is_empty() and opened.is_empty():
            return
        pieces = _cut(self._merged(pl.concat([opened, due])), self.max_length)
        is_done = (pl.col(END) - pl.col(START) == self.max_length) | (
            pl.lit(time == END_OF_TIME) | (pl.col(END) < time)
        )
        state.tables["open"].clear()
        state.tables["open"].insert(pieces.filter(~is_done))
        done = pieces.filter(is_done)
        if not done.is_empty():
            yield done

    def held(self, state: State) -> Time:
        """The first open element; those that wait start after the watermark."""
        least = state.tables["open"].least(START)
        return END_OF_TIME if least is None else Time(least)

    def _merged(self, elements: pl.DataFrame) -> pl.DataFrame:
        grouped = with_group(elements, self.schema.names)
        starts = grouped.select(GROUP, pl.col(START).alias(_TIME), pl.lit(1).alias(_NET))
        ends = grouped.select(GROUP, pl.col(END).alias(_TIME), pl.lit(-1).alias(_NET))
        net = pl.concat([starts, ends]).group_by(GROUP, _TIME).agg(pl.sum(_NET))
        net = net.sort(GROUP, _TIME)
        # Each row has as many starts as ends, so the two stand side by side.
        left_starts, left_ends = _repeated(net, 1), _repeated(net, -1)
        return elements.select(self.schema.names)[left_starts[GROUP]].with_columns(
            left_starts[_TIME].alias(START), left_ends[_TIME].alias(END)
        )


def _repeated(net: pl.DataFrame, sign: int) -> pl.DataFrame:
    """The group and time of each surviving endpoint of a kind, as often as it survives."""
    times = pl.col(_NET) * sign
    kind = net.filter(times > 0).select(GROUP, pl.col(_TIME).repeat_by(times))
    return kind.explode(_TIME)


def _cut(elements: pl.DataFrame, length: int) -> pl.DataFrame:
    """The elements in pieces of ``length`` from their start; there are few of them."""
    count = (pl.col(END) - pl.col(START) - 1) // length + 1
    pieces = elements.with_columns(pl.int_ranges(count).alias(_TIME)).explode(_TIME)
    start = pl.col(START) + pl.col(_TIME) * length
    end = start + pl.min_horizontal(pl.col(END) - start, pl.lit(length, TIME_TYPE))
    return pieces.with_columns(start.alias(START), end.alias(END)).drop(_TIME)
