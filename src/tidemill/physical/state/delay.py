"""Open elements that may not be held back any longer (K68)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, START, TIME_TYPE
from tidemill.model.time import Time

if TYPE_CHECKING:
    from tidemill.physical.state.table import Table

__all__ = ["cut_open"]


def cut_open(opened: Table, time: Time, max_delay: int) -> pl.DataFrame:
    """The open elements that began more than ``max_delay`` ago, up to ``time``.

    They go on from there: what is left in the table begins at ``time``.
    """
    overdue = opened.extract(START, Time(time - max_delay))
    now = pl.lit(time, TIME_TYPE)
    opened.insert(overdue.with_columns(now.alias(START)))
    return overdue.with_columns(now.alias(END))
