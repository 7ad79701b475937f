"""Hints, and SHOW STATISTICS: they are part of ``statements``, and are imported from there."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemill.errors import Span
    from tidemill.lang.statements import Name

__all__ = ["Hint", "HintKind", "ShowStatistics"]


class HintKind(Enum):
    """What a hint is about."""

    RATE = "RATE"
    ROWS = "ROWS"
    BYTES = "BYTES"
    DISTINCT = "DISTINCT"


@dataclass(frozen=True, slots=True)
class Hint:
    """One item of HINT (rate => 20000, rows => 50, bytes => 80, distinct(auction) => 1000).

    Attributes:
        kind: What it is about.
        value: What it says.
        column: The column that it is about, of DISTINCT.
        span: Where it stands.
    """

    kind: HintKind
    value: int | float
    column: Name | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ShowStatistics:
    """SHOW STATISTICS [FOR] [name]: what is known of what comes in, and how.

    Attributes:
        name: The query, stream or relation that is asked about; ``None`` for all inputs.
    """

    name: Name | None = None
