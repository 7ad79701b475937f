"""Net changes: those of one row at one time as one, none where they cancel each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import SIGN
from tidemill.physical.kernels.sweep import pick

if TYPE_CHECKING:
    from tidemill.physical.state.keyed import KeyedTable

__all__ = ["net", "update"]


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


def update(table: KeyedTable, changes: pl.DataFrame) -> None:
    """Bring the rows that are there up to date, each once with how often in ``SIGN``."""
    if changes.is_empty():
        return
    row = [name for name in table.schema if name != SIGN]
    known = table.take(pick(changes, row))
    now = net(pl.concat([known, pick(changes, known.columns)]))
    assert (now[SIGN] > 0).all(), "only what is there is withdrawn"
    table.insert(now)
