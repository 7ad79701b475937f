"""Handed over: what an aggregation remembers, as contributions that begin when output is owed.

An aggregation does not remember elements, but what they contribute (``contributions.py``), and it
has tables for each of its parts. A batch that is handed over holds rows of all of them:

    PART        for which table of elements to come a row is meant
    @key0 …     the keys of the group
    START, END  since when the output of the group has been the same, or a start to come; the end
    others      what that table has besides

Law: a new state whose tables of elements to come hold these rows goes on like the old one. Between
``START`` and the watermark nothing of a group changes, so its output comes out the same again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, START, TIME_TYPE
from tidemill.model.time import END_OF_TIME
from tidemill.physical.frames import pick
from tidemill.physical.kernels.cover import VALUE
from tidemill.physical.kernels.sweep import GROUP, SINCE, encode, named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidemill.model.batch import Batch
    from tidemill.physical.operator import State
    from tidemill.physical.state.table import Table

__all__ = ["PART", "begun", "contributed", "counted", "part_of", "take_in", "together"]

PART = "@part"


def begun(rows: pl.DataFrame, totals: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Rows of groups, each with ``START`` since when the output of its group has been the same."""
    _, (rows, groups) = encode(keys, [rows, totals])
    since = pick(groups, (GROUP, SINCE)).rename({SINCE: START})
    return rows.join(since, on=GROUP, how="left").drop(GROUP)


def counted(
    state: State, prefix: str, row: Sequence[str], counters: Sequence[str], keys: Sequence[str]
) -> pl.DataFrame:
    """What three tables of counters hold, as elements (``counters.py``).

    Args:
        state: The state.
        prefix: How the names of the tables begin.
        row: The columns that rows of the counters agree on.
        counters: The counters that change with elements.
        keys: The keys of the groups.
    """
    pending, ends, totals = (
        state.tables[f"{prefix}{name}"].all() for name in ("pending", "ends", "totals")
    )
    # What has begun and has no end is what is left of the totals without those that have one.
    names, (all_, ending) = encode(row, [totals, ends])
    less = pick(ending, (GROUP, *counters)).with_columns(pl.col(counters) * -1)
    net = pl.concat([pick(all_, (GROUP, *counters)), less])
    left = net.group_by(GROUP).agg(pl.col(counters).sum())
    lasting = named(left.filter(pl.any_horizontal(pl.col(counters) != 0)), names)
    lasting = lasting.with_columns(pl.lit(END_OF_TIME, TIME_TYPE).alias(END))
    started = pl.concat([pick(lasting, ends.columns), ends])
    groups = state.tables["totals"].all()
    return pl.concat([pick(begun(started, groups, keys), pending.columns), pending])


def part_of(name: str, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows that are meant for a table."""
    column = {VALUE: f"{VALUE} {name}"} if VALUE in rows.columns else {}
    return rows.rename(column).with_columns(pl.lit(name).alias(PART))


def together(parts: Mapping[str, pl.DataFrame]) -> Batch:
    """The rows that are meant for some tables, as one batch."""
    return pl.concat([part_of(name, rows) for name, rows in parts.items()], how="diagonal")


def contributed(batch: Batch, name: str, columns: Sequence[str]) -> pl.DataFrame:
    """The rows of a batch that are meant for a table, with some columns."""
    return pick(
        batch.filter(pl.col(PART) == name).rename({f"{VALUE} {name}": VALUE}, strict=False), columns
    )


def take_in(batch: Batch, tables: Mapping[str, Table]) -> None:
    """Insert the rows of a batch into the tables that they are meant for."""
    for name in batch[PART].unique():
        if name in tables:
            tables[name].insert(contributed(batch, name, list(tables[name].schema)))
