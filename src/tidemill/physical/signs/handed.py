"""Handed over: rows that are there, and changes to come, as one batch of changes and back.

What is there at a watermark has appeared an instant before, whenever that was; what comes after
is as it came (``handover.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import SIGN, TIME, TIME_TYPE
from tidemill.physical.frames import pick
from tidemill.physical.signs.pieces import take_touched

if TYPE_CHECKING:
    from tidemill.model.time import Time
    from tidemill.physical.state.keyed import KeyedTable
    from tidemill.physical.state.table import Table

__all__ = ["appeared", "handed", "take_in"]


def appeared(rows: pl.DataFrame, time: Time) -> pl.DataFrame:
    """Rows that are there, each with how often in ``SIGN``, as changes before a time.

    >>> appeared(pl.DataFrame({"a": [7], "@sign": [2]}), 5).rows()
    [(7, 4, 2)]
    """
    others = [name for name in rows.columns if name != SIGN]
    before = rows.with_columns(pl.lit(time - 1, TIME_TYPE).alias(TIME))
    return pick(before, (*others, TIME, SIGN))


def handed(rows: Table, pending: Table, time: Time) -> pl.DataFrame:
    """What is there, each row with how often, and the changes to come."""
    there = appeared(rows.all(), time)
    return pl.concat([there, pick(pending.all(), there.columns)])


def take_in(changes: pl.DataFrame, rows: KeyedTable, pending: Table, time: Time) -> None:
    """Take in changes: what is there before a time, and what is to come."""
    before = changes.filter(pl.col(TIME) < time)
    rows.insert(take_touched(before, rows).rows)
    pending.insert(changes.filter(pl.col(TIME) >= time))
