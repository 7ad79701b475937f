"""The clock of this host, which streams without a time of their own are ordered by."""

from __future__ import annotations

from time import time_ns

__all__ = ["now"]


def now() -> int:
    """What time it is, in microseconds since 1970."""
    return time_ns() // 1000
