"""The answer to a query that is asked once, and the error that says that it has to wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.errors import RunError
from tidemill.model.time import time_text

if TYPE_CHECKING:
    import polars as pl

    from tidemill.model.time import Time

__all__ = ["LOOK_EVERY", "NotKnownError", "OneTimeAnswer"]

LOOK_EVERY = 0.05
"""How often it is looked whether an instant is known, in seconds, while it is waited for."""


class NotKnownError(RunError):
    """The instant that is asked for is not known yet; it may be later."""


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
