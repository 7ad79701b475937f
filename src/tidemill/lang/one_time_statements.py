"""Queries that are asked once: they are part of ``statements``, and are imported from there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp

    from tidemill.lang.lifecycle_statements import Instant

__all__ = ["OneTimeQuery"]


@dataclass(frozen=True, slots=True)
class OneTimeQuery:
    """SELECT … [ORDER BY …] [LIMIT n [OFFSET m]] AS OF instant | AS OF NOW.

    Attributes:
        query: What is asked.
        at: Of which instant; ``None`` for NOW, the last one that is known.
    """

    query: exp.Expr
    at: Instant | None = None
