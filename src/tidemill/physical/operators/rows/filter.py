"""Filter of a stream in either form: the rows for which the predicate is true.

Law:    snapshot(out, t) == σ_p(snapshot(in, t)), for every t. NULL is not true.
State:  none.
Order:  that of the input; keeps chronons, the order of ends, and ``ID``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidemill.model.time import END_OF_TIME
from tidemill.physical.eval import compile_predicate
from tidemill.physical.operator import State
from tidemill.physical.traits import Instants, Traits, pass_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from tidemill.algebra.expr import Expr
    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema
    from tidemill.model.time import Time

__all__ = ["Filter"]


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows for which the predicate is true.

    Attributes:
        schema: The columns of the input, and of the output.
        predicate: A condition over these columns.
    """

    schema: Schema
    predicate: Expr
    _mask: pl.Expr = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_mask", compile_predicate(self.predicate))

    @property
    def traits(self) -> Traits:
        """What it promises."""
        return Traits(
            takes=(None,),
            gives=None,
            meets=(None,),
            passes=(pass_all(self.schema),),
            row_by_row=True,
            keeps_time=True,
            instants=Instants.KEPT,
            shortens=True,
        )

    def new_state(self) -> State:
        """No memory."""
        return State()

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:  # noqa: ARG002
        """Emit the rows that pass."""
        kept = batch.filter(self._mask)
        if not kept.is_empty():
            yield kept

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:  # noqa: ARG002
        """Nothing waits for time."""
        yield from ()

    def held(self, state: State) -> Time:  # noqa: ARG002
        """Nothing is remembered."""
        return END_OF_TIME
