"""Counters of groups in state: what changes them, and of which groups they are looked at.

Three tables: ``pending`` elements that start at or after the watermark, ``ends``, what leaves the
counters when an element ends, and ``totals``, the counters of each group and ``SINCE`` when its
output has been the same.

Liveness: with ``max_delay``, a segment that has been open for longer than that is cut at the
watermark, so that ``held`` lies no further behind. Whether there is one costs next to nothing to
find out, and each group is looked at for it once in ``max_delay`` of time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, START
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.frames import pick
from tidemill.physical.kernels.sweep import SINCE, TIME, earliest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.physical.kernels.sweep import Overdue
    from tidemill.physical.operator import State
    from tidemill.physical.state.keyed import KeyedTable

__all__ = ["deltas", "oldest", "take_totals"]


def deltas(state: State, time: Time, counters: Sequence[str]) -> pl.DataFrame:
    """The changes of the counters before ``time``: the starts and the ends of elements."""
    ends = state.tables["ends"]
    started = state.tables["pending"].extract(START, time)
    if not started.is_empty():
        # What never ends needs no end.
        ends.insert(started.filter(pl.col(END) < END_OF_TIME))
    ended = ends.extract(END, time)
    if not ended.is_empty():
        ended = ended.with_columns(pl.col(counters) * -1)
    begun = pick(started, (START if name == END else name for name in ended.columns))
    begun.columns = ended.columns = [TIME if name == END else name for name in ended.columns]
    return pl.concat([begun, ended])


def take_totals(
    totals: KeyedTable, changes: pl.DataFrame, keys: Sequence[str], late: Overdue | None
) -> pl.DataFrame:
    """Remove and return the totals of groups that change or are overdue; in the end of all."""
    if late is not None and late.is_final:
        return totals.drain()
    found = totals.none() if changes.is_empty() else totals.take(pick(changes, keys))
    return found if late is None else pl.concat([found, totals.extract(SINCE, late.before)])


def oldest(state: State) -> Time:
    """The start of the oldest segment that is still open, or of the first that will be."""
    return earliest(state.tables["totals"].least(SINCE), state.tables["pending"].least(START))
