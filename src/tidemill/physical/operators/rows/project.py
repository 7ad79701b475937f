"""Project of a stream in either form: one row computed from each row.

Law:    snapshot(out, t) == μ_f(snapshot(in, t)), for every t; equal results are counted.
State:  none.
Order:  that of the input; keeps chronons, the order of ends, and ``ID`` where the batch carries it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidemill.model.batch import END, ID, SIGN, START, TIME
from tidemill.model.time import END_OF_TIME
from tidemill.physical.eval import compile_expr
from tidemill.physical.operator import State
from tidemill.physical.traits import Instants, Traits, pass_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from tidemill.algebra.expr import Named
    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema
    from tidemill.model.time import Time

__all__ = ["Project"]

_TIMES = (START, END, ID, TIME, SIGN)


@dataclass(frozen=True, slots=True)
class Project:
    """One row computed from each row.

    Attributes:
        schema: The columns of the output.
        columns: How each is computed from the input.
    """

    schema: Schema
    columns: tuple[Named, ...]
    _exprs: tuple[pl.Expr, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        assert self.schema.names == tuple(c.name for c in self.columns), "a name for each column"
        exprs = tuple(compile_expr(column.expr).alias(column.name) for column in self.columns)
        object.__setattr__(self, "_exprs", exprs)

    @property
    def traits(self) -> Traits:
        """What it promises."""
        return Traits(
            takes=(None,),
            gives=None,
            meets=(None,),
            passes=(pass_named(self.columns),),
            row_by_row=True,
            keeps_time=True,
            keeps_rows=True,
            instants=Instants.KEPT,
            shortens=True,
        )

    def new_state(self) -> State:
        """No memory."""
        return State()

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:  # noqa: ARG002
        """Emit the computed rows."""
        if not batch.is_empty():
            # The time columns stand beside the others, so that constants get as many rows.
            times = [column for column in _TIMES if column in batch.columns]
            yield batch.select(*self._exprs, *times)

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:  # noqa: ARG002
        """Nothing waits for time."""
        yield from ()

    def held(self, state: State) -> Time:  # noqa: ARG002
        """Nothing is remembered."""
        return END_OF_TIME
