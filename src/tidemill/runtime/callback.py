"""Callbacks: functions of the session that get the new rows of each batch.

A batch that is delivered again, after a failure or a restart, has the number and the rows it had:
a function that needs each row once ignores the numbers that it has seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from tidemill.model.types import BIGINT
from tidemill.runtime.connectors import failure, shown_cause
from tidemill.runtime.shapes import RESULTS, Shape
from tidemill.runtime.typed_times import with_typed_times

if TYPE_CHECKING:
    from tidemill.model.schema import Schema
    from tidemill.model.types import DataType

__all__ = ["Callback", "CallbackSink"]

Callback: TypeAlias = Callable[[pl.DataFrame, int], object]
"""Takes the new rows, in the form that the sink says, and the number of their batch."""


@dataclass(frozen=True, slots=True)
class CallbackSink:
    """Gives an answer to a function.

    Attributes:
        query: Whose answer it is.
        schema: The columns of the answer.
        name: What the function is registered as.
        function: The function.
        shape: In which form it gets rows.
        time: The type that times have for it.
        kind: The connector it is of.
        secrets: What its errors must not tell.
    """

    query: str
    schema: Schema
    name: str
    function: Callback
    shape: Shape = RESULTS
    time: DataType = BIGINT
    kind: str = "callback"
    secrets: frozenset[str] = field(default=frozenset(), repr=False)

    def take(self, frame: pl.DataFrame, batch: int) -> None:
        """Call the function with the new rows of a batch.

        Raises:
            RunError: The function raised an exception.
        """
        rows = with_typed_times(frame, self.time)
        try:
            self.function(rows, batch)
        except Exception as error:  # noqa: BLE001 — code that is not ours
            is_callback = self.kind == "callback"
            what = f'callback "{self.name}"' if is_callback else f'connector "{self.kind}"'
            fix = "the function" if is_callback else "what it says"
            what += f' of query "{self.query}" failed in batch {batch}'
            hint = f"fix {fix}; the batch is delivered again"
            told = failure(what, error, self.secrets, hint=hint)
            raise told from shown_cause(error, self.secrets)
