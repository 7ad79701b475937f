"""The answer to a query that is asked once, the order of its rows, and why there may be none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.errors import RunError
from tidemill.model.time import time_text

if TYPE_CHECKING:
    import polars as pl

    from tidemill.binder.one_time import Question
    from tidemill.model.time import Time

__all__ = ["LOOK_EVERY", "NotKeptError", "NotKnownError", "OneTimeAnswer", "in_order"]

LOOK_EVERY = 0.05
"""How often it is looked whether an instant is known, in seconds, while it is waited for."""


class NotKnownError(RunError):
    """The instant that is asked for is not known yet; it may be later."""


class NotKeptError(RunError):
    """Rows that are needed are not kept, or not any more."""


@dataclass(frozen=True, slots=True, repr=False)
class OneTimeAnswer:
    """The answer to a query that was asked of one instant.

    Attributes:
        frame: The rows.
        at: The instant, in microseconds since 1970.
        known: Up to when all that the query reads was known; the first instant that was not.
        batch: The last batch that counted; ``None`` if none did.
    """

    frame: pl.DataFrame
    at: Time
    known: Time
    batch: int | None

    def __repr__(self) -> str:
        batch = "" if self.batch is None else f", after batch {self.batch}"
        known = f"known up to {time_text(self.known)}{batch}"
        return f"OneTimeAnswer at {time_text(self.at)}, {known}\n{self.frame}"


def in_order(rows: pl.DataFrame, question: Question) -> pl.DataFrame:
    """The rows in the order of ORDER BY, as many as are asked for.

    Args:
        rows: The rows in the order of their values.
        question: What is asked.
    """
    for key in reversed(question.keys):
        rows = rows.sort(
            key.column,
            descending=key.descending,
            nulls_last=not key.nulls_first,
            maintain_order=True,
        )
    return rows.select(question.columns).slice(question.offset, question.limit)
