"""Set operations: each row as often as a function of how often it is on the left and the right.

Law:    snapshot(out, t)[row] = multiplicity(snapshot(left, t)[row], snapshot(right, t)[row]).
State:  ``pending`` elements that start at or after the watermark; ``ends`` of those that have
        started; ``totals``, how often each row is there and since when the output has been the
        same. A row that is nowhere any more is forgotten. A watermark touches only the totals of
        rows that change.
Order:  none promised; a segment leaves when it has ended, so ``held`` is the oldest open one. With
        ``max_delay``, one that has been open for longer is emitted up to the watermark, and goes on
        from there (``counters.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, assert_never

import polars as pl

from tidemill.algebra.expr import Column
from tidemill.model.batch import END, SIGN, START, TIME_TYPE, Form, empty_batch
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.frames import pick
from tidemill.physical.grouping.counters import deltas, oldest, take_totals
from tidemill.physical.kernels.rows import elements_of, number_columns, numbered, restored
from tidemill.physical.kernels.sweep import (
    SINCE,
    TIME,
    cut,
    encode,
    named,
    overdue,
    repeat,
    timeline,
)
from tidemill.physical.operator import LEFT, State
from tidemill.physical.state.keyed import KeyedTable, keyed
from tidemill.physical.state.table import Table
from tidemill.physical.traits import Emission, Expiry, Traits, pass_by_position, state_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema

__all__ = ["COUNTERS", "Counting", "Multiplicity", "multiplicity_of"]

_LEFT, _RIGHT, _OUT = "@left", "@right", "@multiplicity"
COUNTERS = (_LEFT, _RIGHT)


class Multiplicity(Enum):
    """How often a row is in the output, from how often it is in the inputs."""

    DISTINCT = "distinct"
    DIFFERENCE = "difference"
    STRICT_DIFFERENCE = "strict difference"
    INTERSECT = "intersect"
    SEMI = "semi"
    MAX_UNION = "max union"


_WEAK = frozenset(
    {
        Multiplicity.DISTINCT,
        Multiplicity.INTERSECT,
        Multiplicity.MAX_UNION,
        Multiplicity.SEMI,
    }
)
"""A row goes when the last of those goes that it stands for; other counts can lose it before."""


@dataclass(frozen=True, slots=True)
class Counting:
    """A set operation.

    Attributes:
        multiplicity: Which.
        inputs: The schemas of the inputs: one for DISTINCT, else two with the same types.
        schema: The columns of the output.
        max_delay: How far an open segment may lie behind the watermark before it is cut.
    """

    multiplicity: Multiplicity
    inputs: tuple[Schema, ...]
    schema: Schema
    max_delay: int | None = None

    def __post_init__(self) -> None:
        ports = 1 if self.multiplicity is Multiplicity.DISTINCT else 2
        assert len(self.inputs) == ports, f"{self.multiplicity.value} has {ports} inputs"
        assert all(s.types == self.schema.types for s in self.inputs), "the binder aligns types"
        assert self.max_delay is None or self.max_delay >= 0, "a delay is not negative"

    @property
    def traits(self) -> Traits:
        """What it promises."""
        return self.traits_in(Form.INTERVAL)

    def traits_in(self, form: Form) -> Traits:
        """What it promises if its rows leave in a form."""
        holds = form is Form.INTERVAL
        is_weak = self.multiplicity in _WEAK
        return Traits(
            takes=(None,) * len(self.inputs),
            gives=form,
            meets=tuple(tuple(Column(f.name, f.type) for f in rows) for rows in self.inputs),
            passes=tuple(pass_by_position(rows, self.schema.names) for rows in self.inputs),
            emits=Emission.WHEN_ENDED if holds else Emission.ON_WATERMARK,
            delays=holds,
            expiry=Expiry.COUNTED if is_weak else Expiry.STRICT,
            gains=holds,
            tables=state_tables(self.new_state()),
            hands_over=True,
        )

    def new_state(self) -> State:
        """The state before any input."""
        row = number_columns(self.schema)
        counters = dict.fromkeys(COUNTERS, pl.Int64())
        interval = {START: TIME_TYPE, END: TIME_TYPE}
        return State(
            {
                "pending": Table({**row, **interval, **counters}, (START, END)),
                "ends": Table({**row, END: TIME_TYPE, **counters}, (END,)),
                "totals": KeyedTable(
                    {**row, SINCE: TIME_TYPE, **counters}, (SINCE,), index=list(row)
                ),
            }
        )

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:
        """Remember the elements until the watermark has passed their start."""
        state.tables["pending"].insert(self.counted(port, batch))
        yield from ()

    def counted(self, port: int, batch: Batch) -> pl.DataFrame:
        """The elements of an input, with what they count for."""
        elements, weights = elements_of(batch)
        own, other = COUNTERS if port == LEFT else reversed(COUNTERS)
        counts = [weights.alias(own), (weights * 0).alias(other)]
        return numbered(elements, self.inputs[port]).hstack(counts)

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:
        """Emit the segments that have ended, and cut those overdue."""
        late = overdue(time, self.max_delay)
        row, totals = list(number_columns(self.schema)), keyed(state, "totals")
        changes = deltas(state, time, COUNTERS)
        known = take_totals(totals, changes, row, late)
        if known.is_empty() and changes.is_empty():
            return
        names, (known, changes) = encode(row, [known, changes])
        # Of a row that is not in the output it does not matter since when.
        known = known.with_columns(pl.col(SINCE).replace(END_OF_TIME, 0))
        multiplicity = multiplicity_of(self.multiplicity)
        closed, opened = cut(
            timeline(known, changes, COUNTERS).with_columns(multiplicity.alias(_OUT)),
            present=pl.col(_OUT) > 0,
            outputs=(_OUT,),
            counters=COUNTERS,
            late=late,
        )
        opened = opened.filter(pl.any_horizontal(pl.col(COUNTERS) != 0))
        since = pl.when(multiplicity > 0).then(SINCE).otherwise(END_OF_TIME)
        totals.insert(named(opened.with_columns(since.alias(SINCE)), names))
        if not closed.is_empty():
            yield restored(repeat(named(closed, names), _OUT), self.schema)

    def held(self, state: State) -> Time:
        """The start of the oldest segment that is still open."""
        return oldest(state)

    def remembered(self, state: State, port: int, time: Time) -> Batch:
        """The rows that are there, since the output has been the same, and what is to come."""
        # Of a row that is not in the output nothing is owed.
        return self.counts_from(state, port, pl.col(SINCE).replace(END_OF_TIME, time))

    def counts_from(self, state: State, port: int, since: pl.Expr) -> Batch:
        """How often an input's rows are there since a time for each, and the changes to come."""
        own = pl.col(COUNTERS[port])
        totals, ends, pending = (
            state.tables[name].all().filter(own != 0) for name in ("totals", "ends", "pending")
        )
        moments = (
            (totals, since, own),
            (ends, pl.col(END), -own),
            (pending, pl.col(START), own),
            (pending.filter(pl.col(END) < END_OF_TIME), pl.col(END), -own),
        )
        row = list(number_columns(self.schema))
        changes = pl.concat(
            pick(frame.with_columns(time.alias(TIME), sign.alias(SIGN)), (*row, TIME, SIGN))
            for frame, time, sign in moments
        )
        return restored(changes, self.inputs[port], Form.SIGNED)

    def remember(self, state: State, port: int, batch: Batch, time: Time) -> None:  # noqa: ARG002
        """Take them in: what they bring about from their starts on is owed."""
        state.tables["pending"].insert(self.counted(port, batch))

    def standing(self, state: State, time: Time) -> Batch:  # noqa: ARG002
        """Nothing: what has been emitted has ended."""
        return empty_batch(self.schema)


def multiplicity_of(function: Multiplicity) -> pl.Expr:
    """How often a row is in the output, from its counters."""
    left, right = pl.col(_LEFT), pl.col(_RIGHT)
    match function:
        case Multiplicity.DISTINCT:
            return pl.min_horizontal(left, 1)
        case Multiplicity.DIFFERENCE:
            return pl.max_horizontal(left - right, 0)
        case Multiplicity.STRICT_DIFFERENCE:
            return pl.when(right == 0).then(left).otherwise(0)
        case Multiplicity.SEMI:
            return pl.when(right > 0).then(left).otherwise(0)
        case Multiplicity.INTERSECT:
            return pl.min_horizontal(left, right)
        case Multiplicity.MAX_UNION:
            return pl.max_horizontal(left, right)
        case _:
            assert_never(function)
