"""Combine: what the elements of a batch that agree on keys, start and end contribute to aggregates.

It is the first part of an aggregation, done wherever the rows are; the second one is an
``Aggregate`` of what is combined, where all rows of a group meet.

Law:    an ``Aggregate`` of the combined elements has the snapshots of an ``Aggregate`` of the
        elements, to the last bit, however they are cut into batches.
State:  none: what is combined is a batch, and an element that finds no other passes by itself.
Order:  none promised; starts and ends are those of the input.

An element of the output stands for some rows of the input and carries the keys and what they
contribute (``contributions.py``), in columns of the engine's own that nobody could name. A wide
number (``kernels/exact.py``) cannot be added up; its element is combined only with those of equal
numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, START, Form
from tidemill.model.schema import Field, Schema
from tidemill.model.time import END_OF_TIME
from tidemill.physical.grouping.contributions import Contributions
from tidemill.physical.kernels.arguments import ROWS, arguments
from tidemill.physical.operator import State
from tidemill.physical.traits import Traits, pass_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidemill.algebra.expr import AggregateCall, Named
    from tidemill.model.batch import Batch
    from tidemill.model.time import Time

__all__ = ["Combine", "can_combine"]


def can_combine(calls: Iterable[AggregateCall]) -> bool:
    """Whether all aggregates can be had from sums and extremes, without every single value."""
    return not any(argument.keeps_values for argument in arguments(calls))


@dataclass(frozen=True, slots=True)
class Combine:
    """The elements of a batch, those of a group that share their interval as one.

    Attributes:
        aggregates: What they contribute to.
        keys: What the rows of a group agree on; none for a single group.
    """

    aggregates: tuple[AggregateCall, ...]
    keys: tuple[Named, ...] = ()
    _contributions: Contributions = field(init=False, repr=False, compare=False)
    _wide: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _masked: tuple[pl.Expr, ...] = field(init=False, repr=False, compare=False)
    _sums: tuple[pl.Expr, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        assert can_combine(self.aggregates), "the planner combines what can be combined"
        known = Contributions(tuple(key.expr for key in self.keys), self.aggregates)
        wide = [argument for argument in known.arguments if argument.keeps_wide]
        counters = [name for argument in known.arguments for name in argument.counters()]
        best = (extreme.best(extreme.column) for extreme in known.extremes)
        object.__setattr__(self, "_contributions", known)
        object.__setattr__(self, "_wide", tuple(argument.column for argument in wide))
        masked = (pl.when(a.is_wide()).then(pl.col(a.column)).alias(a.column) for a in wide)
        object.__setattr__(self, "_masked", tuple(masked))
        object.__setattr__(self, "_sums", (pl.col(ROWS, *counters).sum(), *best))

    @property
    def schema(self) -> Schema:
        """The keys, and no other columns but the engine's own."""
        return Schema(tuple(Field(key.name, key.expr.type) for key in self.keys))

    @property
    def traits(self) -> Traits:
        """What it promises."""
        passes = pass_named(self.keys)
        return Traits(takes=(None,), gives=Form.INTERVAL, meets=(None,), passes=(passes,))

    def new_state(self) -> State:
        """No memory."""
        return State()

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:  # noqa: ARG002
        """Emit what the elements contribute, once for each group and interval."""
        elements = self._contributions.of(batch).with_columns(self._masked)
        # Nearly always there is no wide number, and a column of NULLs need not be grouped by.
        kept = [name for name in self._wide if elements[name].null_count() < elements.height]
        others = [pl.col(name).first() for name in self._wide if name not in kept]
        keys = self._contributions.key_columns()
        combined = elements.group_by(*keys, START, END, *kept).agg(*self._sums, *others)
        if not combined.is_empty():
            combined.columns = [*self.schema.names, *combined.columns[len(keys) :]]
            yield combined

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:  # noqa: ARG002
        """Nothing waits for time."""
        yield from ()

    def held(self, state: State) -> Time:  # noqa: ARG002
        """Nothing is remembered."""
        return END_OF_TIME
