"""Hints: what people say of what comes in, for as long as it has not been measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["NO_HINTS", "Hints"]


@dataclass(frozen=True, slots=True)
class Hints:
    """What is said of a stream or relation; ``None`` where nothing is.

    Attributes:
        rate: How many rows come in a second of the stream's time.
        rows: How many rows a relation has.
        row_bytes: How many bytes a row takes.
        distinct: How many values columns have.
    """

    rate: float | None = None
    rows: float | None = None
    row_bytes: float | None = None
    distinct: Mapping[str, float] = field(default_factory=dict)


NO_HINTS = Hints()
"""Nothing is said."""
