"""Duplicate elimination: each row once while it is there, with state bounded by the output.

Law:    snapshot(out, t) holds each row of snapshot(in, t) once, for every t.
State:  ``pending`` elements that start at or after the watermark; ``covered``, for each row of the
        output one entry (G-22): ``END``, up to where it has been emitted, and ``LAST``, up to where
        it is known to be there. A duplicate that ends no later is forgotten at once, a row when the
        watermark has reached its end.
Order:  none promised. A row is there while one of its elements is; they know their ends, so a
        stretch is emitted when it begins, as far as it is known, and never taken back. What comes
        later starts where that ends, which the watermark has not reached: nothing is held back,
        and no delay need be limited.

When the watermark reaches ``END``, the row goes on from there up to ``LAST``, in one piece. Behind
a window, such a piece ends where an element does that started no earlier than the piece before. So
of three pieces the last starts a window's length after the first, or later: a row is emitted twice
at most in that length (H14).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.expr import Column
from tidemill.model.batch import END, START, TIME_TYPE, Form
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.frames import pick
from tidemill.physical.kernels.rows import number_columns, numbered, restored
from tidemill.physical.kernels.sweep import GROUP, encode, named
from tidemill.physical.operator import State
from tidemill.physical.state.keyed import KeyedTable, keyed
from tidemill.physical.state.table import Table
from tidemill.physical.traits import Emission, Expiry, Traits, pass_all, state_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema

__all__ = ["LAST", "Distinct"]

LAST = "@last"
_COVERED, _LATEST, _UP_TO = "@covered", "@latest", "@up_to"


@dataclass(frozen=True, slots=True)
class Distinct:
    """Duplicate elimination.

    Attributes:
        schema: The columns of the input and of the output.
    """

    schema: Schema

    @property
    def traits(self) -> Traits:
        """What it promises."""
        return Traits(
            takes=(Form.INTERVAL,),
            gives=Form.INTERVAL,
            meets=(tuple(Column(f.name, f.type) for f in self.schema),),
            passes=(pass_all(self.schema),),
            emits=Emission.ON_WATERMARK,
            expiry=Expiry.COUNTED,
            gains=True,
            tables=state_tables(self.new_state()),
            hands_over=True,
        )

    def new_state(self) -> State:
        """The state before any input."""
        row = number_columns(self.schema)
        return State(
            {
                "pending": Table({**row, START: TIME_TYPE, END: TIME_TYPE}, (START, END)),
                "covered": KeyedTable(
                    {**row, END: TIME_TYPE, LAST: TIME_TYPE}, (END,), index=list(row)
                ),
            }
        )

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:  # noqa: ARG002
        """Remember the elements until the watermark has passed their start."""
        state.tables["pending"].insert(numbered(batch, self.schema))
        yield from ()

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        """Emit what appears, and what goes on where it was thought to end."""
        row, covered = list(number_columns(self.schema)), keyed(state, "covered")
        started = _merged(state.tables["pending"].extract(START, time), row)
        known = _take(covered, started, row, time)
        if started.is_empty() and known.is_empty():
            return
        names, (known, started) = encode(row, [known, started])
        stretches = _stretches(known, started)
        # Of a row that is covered beyond the watermark, more may become known.
        due = pl.col(_COVERED).is_null() | (pl.col(_COVERED) <= time)
        start, end = pl.coalesce(_COVERED, START), pl.col(END)
        emitted = stretches.filter(due & (start < end)).with_columns(start.alias(START))
        kept = stretches.select(
            GROUP, pl.when(due).then(END).otherwise(_COVERED).alias(END), end.alias(LAST)
        )
        covered.insert(named(kept.filter(end > time), names))
        if not emitted.is_empty():
            yield restored(named(emitted, names), self.schema)

    def held(self, state: State) -> Time:  # noqa: ARG002
        """Nothing: what is still to be emitted starts at or after the watermark."""
        return END_OF_TIME

    def remembered(self, state: State, port: int, time: Time) -> Batch:  # noqa: ARG002
        """The elements to come; of a row that is covered the two parts, emitted and not."""
        covered = state.tables["covered"].all()
        rest = covered.rename({END: START, LAST: END}).filter(pl.col(START) < pl.col(END))
        parts = (_begun(covered.drop(LAST), time), rest, state.tables["pending"].all())
        columns = (*number_columns(self.schema), START, END)
        return restored(pl.concat([pick(part, columns) for part in parts]), self.schema)

    def remember(self, state: State, port: int, batch: Batch, time: Time) -> None:  # noqa: ARG002
        """Take them in: what begins before ``time`` has been emitted."""
        elements, row = numbered(batch, self.schema), list(number_columns(self.schema))
        state.tables["pending"].insert(elements.filter(pl.col(START) >= time))
        begun = elements.filter(pl.col(START) < time, pl.col(END) > time).drop(START)
        covered = keyed(state, "covered")
        known = pl.concat([covered.take(pick(begun, row)).drop(LAST), begun])
        names, (known,) = encode(row, [known])
        ends = known.group_by(GROUP).agg(pl.col(END).max())
        covered.insert(named(ends.with_columns(pl.col(END).alias(LAST)), names))

    def standing(self, state: State, time: Time) -> Batch:
        """What is covered, as far as it has been emitted."""
        return restored(_begun(state.tables["covered"].all(), time), self.schema)


def _begun(rows: pl.DataFrame, time: Time) -> pl.DataFrame:
    """Rows with an end that have begun some time ago."""
    return rows.with_columns(pl.lit(time - 1, TIME_TYPE).alias(START))


def _merged(elements: pl.DataFrame, row: Sequence[str]) -> pl.DataFrame:
    """The elements, with one in place of those of a row that all meet at one instant."""
    if elements.is_empty() or not row:
        return elements
    bounds = (pl.col(START).max().alias(_LATEST), pl.col(END).min().alias(_UP_TO))
    union = (pl.col(START).min(), pl.col(END).max())
    rows = elements.group_by(row).agg(*union, *bounds)
    meet = rows.get_column(_LATEST) <= rows.get_column(_UP_TO)
    whole = rows.select(elements.columns)
    if meet.all():
        return whole
    apart = elements.join(rows.filter(~meet), on=row, how="semi", nulls_equal=True)
    return pl.concat([whole.filter(meet), apart])


def _take(
    covered: KeyedTable, started: pl.DataFrame, row: Sequence[str], time: Time
) -> pl.DataFrame:
    """Remove and return what is covered of rows that come again, or end; in the end all."""
    if time == END_OF_TIME:
        return covered.drain()
    found = covered.none() if started.is_empty() else covered.take(pick(started, row))
    return pl.concat([found, covered.extract(END, Time(time + 1))])


def _stretches(known: pl.DataFrame, started: pl.DataFrame) -> pl.DataFrame:
    """The stretches of time in which each row is there: unions of intervals that meet.

    Returns:
        ``GROUP``, ``START``, ``END`` and ``_COVERED``, up to where the stretch has been emitted, if
        it has. That can be of the first stretch of a row only.
    """
    # What is covered comes first: the watermark has passed its start, others start after that.
    before = known.select(
        GROUP,
        pl.lit(0, TIME_TYPE).alias(START),
        pl.col(LAST).alias(END),
        pl.col(END).alias(_COVERED),
    )
    elements = started.select(GROUP, START, END, pl.lit(None, TIME_TYPE).alias(_COVERED))
    rows = pl.concat([before, elements]).sort(START).sort(GROUP, maintain_order=True)
    # The greatest end so far of each group. The number of the group stands above all bits of a
    # time, so that it begins anew; ``over`` costs something for each group.
    above = pl.col(GROUP).cast(pl.Int128) * 2**64
    rows = rows.with_columns(
        ((above + pl.col(END)).cum_max() - above).cast(TIME_TYPE).alias(_UP_TO)
    )
    begins = rows.select(
        pl.col(GROUP).ne_missing(pl.col(GROUP).shift(1)) | (pl.col(START) > pl.col(_UP_TO).shift(1))
    ).to_series()
    ends = begins.shift(-1, fill_value=True)
    up_to = rows.get_column(_UP_TO).filter(ends).alias(END)
    return pick(rows.filter(begins), (GROUP, START, _COVERED)).hstack([up_to])
