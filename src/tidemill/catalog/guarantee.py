"""Guarantees: what a sink promises about the rows of an answer when something fails.

A batch that has failed is delivered again, under its number and with its rows. Files of a batch
are replaced; whatever else has taken the batch already gets it a second time.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemill.lang.statements import ConnectorCall

__all__ = ["Guarantee", "guarantee"]

_FILES = ("parquet", "csv", "json")


class Guarantee(StrEnum):
    """How often a row is there, whatever fails."""

    EXACTLY_ONCE = "exactly once"
    AT_LEAST_ONCE = "at least once"
    SESSION = "in this session"  # exactly once, until the session ends


def guarantee(sink: ConnectorCall | None) -> Guarantee:
    """What the sink of a query promises; without one the answer is in memory."""
    kind = "memory" if sink is None else sink.name.text.lower()
    if kind == "memory":
        return Guarantee.SESSION
    return Guarantee.EXACTLY_ONCE if kind in _FILES else Guarantee.AT_LEAST_ONCE
