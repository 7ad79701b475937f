"""Union of two streams in the same form: the rows of both.

Law:    snapshot(out, t) == snapshot(left, t) ⊎ snapshot(right, t), for every t.
State:  none: what flows needs no order, so no element waits for the other input (K58).
Order:  chronon if both inputs are; the order of ends is lost. Ids of two streams do not compare,
        so ``ID`` is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.algebra.expr import Column
from tidemill.model.batch import SIGN, Form, time_columns
from tidemill.model.time import END_OF_TIME
from tidemill.physical.frames import pick
from tidemill.physical.operator import LEFT, State
from tidemill.physical.traits import Instants, Traits, pass_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.algebra.expr import Expr
    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema
    from tidemill.model.time import Time

__all__ = ["Union"]


@dataclass(frozen=True, slots=True)
class Union:
    """The rows of both inputs.

    Attributes:
        schema: The columns of the output, with the names of the left input's.
        right_names: The names of the right input's columns, in the same order.
    """

    schema: Schema
    right_names: tuple[str, ...]

    def __post_init__(self) -> None:
        assert len(self.right_names) == len(self.schema), "both inputs have the same columns"

    @property
    def traits(self) -> Traits:
        """What it promises."""
        right: dict[Expr, frozenset[str]] = {
            Column(name, field.type): frozenset({field.name})
            for name, field in zip(self.right_names, self.schema, strict=True)
        }
        return Traits(
            takes=(None, None),
            gives=None,
            meets=(None, None),
            passes=(pass_all(self.schema), right),
            keeps_time=True,
            keeps_rows=True,
            instants=Instants.KEPT,
            shortens=True,
        )

    def new_state(self) -> State:
        """No memory."""
        return State()

    def on_batch(self, state: State, port: int, batch: Batch) -> Iterator[Batch]:  # noqa: ARG002
        """Emit the rows under the names of the left input."""
        if batch.is_empty():
            return
        names = self.schema.names if port == LEFT else self.right_names
        times = time_columns(Form.SIGNED if SIGN in batch.columns else Form.INTERVAL)
        renamed = pick(batch, (*names, *times))
        renamed.columns = [*self.schema.names, *times]
        yield renamed

    def on_watermark(self, state: State, time: Time) -> Iterator[Batch]:  # noqa: ARG002
        """Nothing waits for time."""
        yield from ()

    def held(self, state: State) -> Time:  # noqa: ARG002
        """Nothing is remembered."""
        return END_OF_TIME
