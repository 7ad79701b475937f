"""Net changes: those of one row at one time as one, none where they cancel each other."""

from __future__ import annotations

import polars as pl

from tidemill.model.batch import SIGN

__all__ = ["net"]


def net(changes: pl.DataFrame) -> pl.DataFrame:
    """The changes, added up where all other columns agree.

    >>> net(pl.DataFrame({"a": [1, 1, 2], "@time": [5, 5, 5], "@sign": [1, -1, 1]})).rows()
    [(2, 5, 1)]
    """
    if changes.height <= 1:
        return changes
    others = [name for name in changes.columns if name != SIGN]
    if not others:
        total = changes.select(pl.col(SIGN).sum())
    else:
        total = changes.group_by(others).agg(pl.col(SIGN).sum())
    return total.filter(pl.col(SIGN) != 0)
