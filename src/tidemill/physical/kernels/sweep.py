"""The endpoint sweep: from changes of counters to segments in which an output does not change.

A key has counters, which change at endpoints of elements. Between two endpoints every counter is
constant, and so is every output derived from them. The sweep is one sort, cumulative sums, and a
cut wherever an output changes, never where only a counter does.

Law:    at every instant before the watermark, the segments hold the outputs of the counters' sums.
Cost:   one sort of the changes by time and one, stable, by key; everything else is linear.

Keys are encoded once, as numbers of groups. NULL equals NULL, NaN equals NaN, and -0.0 equals 0.0,
as Polars groups them. Sorting twice by one column is several times faster than once by two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, START
from tidemill.model.time import END_OF_TIME, Time

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "GROUP",
    "SINCE",
    "TIME",
    "cut",
    "earliest",
    "encode",
    "named",
    "repeat",
    "timeline",
    "touched",
]

GROUP, TIME, SINCE = "@group", "@time", "@since"
_PRESENT = "@present"

_NEW_GROUP = pl.col(GROUP).ne_missing(pl.col(GROUP).shift(1))
_LAST_OF_GROUP = pl.col(GROUP).ne_missing(pl.col(GROUP).shift(-1))
_LAST_AT_TIME = _LAST_OF_GROUP | pl.col(TIME).ne_missing(pl.col(TIME).shift(-1))


def encode(
    keys: Sequence[str], frames: Sequence[pl.DataFrame]
) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """Number the groups of rows that agree on the keys: ``GROUP`` in every frame, and their names.

    The name of group g, its values of the keys, is row g of the first answer.
    """
    if not keys:
        group = pl.lit(0, pl.UInt32).alias(GROUP)
        return pl.DataFrame(), [frame.with_columns(group) for frame in frames]
    names = pl.concat([frame.select(keys) for frame in frames])
    numbers = names.with_row_index(GROUP).select(pl.col(GROUP).first().over(list(keys)))
    encoded, offset = [], 0
    for frame in frames:
        encoded.append(frame.with_columns(numbers.to_series().slice(offset, frame.height)))
        offset += frame.height
    return names, encoded


def named(frame: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """The frame with the keys in place of ``GROUP``."""
    if not names.width:
        return frame.drop(GROUP)
    return names.select(pl.all().gather(frame[GROUP])).hstack(frame.drop(GROUP))


def touched(
    totals: pl.DataFrame, deltas: pl.DataFrame, *, final: bool
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The totals of groups that change, and of those that do not; in the end all change."""
    if final:
        return totals, totals.clear()
    groups = deltas.select(pl.col(GROUP).unique())
    return totals.join(groups, on=GROUP, how="semi"), totals.join(groups, on=GROUP, how="anti")


def timeline(totals: pl.DataFrame, deltas: pl.DataFrame, counters: Sequence[str]) -> pl.DataFrame:
    """The counters of every group from each of its endpoints on, by group and time.

    Args:
        totals: ``GROUP``, ``SINCE`` and the counters up to now, one row a group at most.
        deltas: ``GROUP``, ``TIME`` and the changes of the counters; no time is before a ``SINCE``.
        counters: The names of the counters, integers.

    Returns:
        ``GROUP``, ``TIME`` and the counters, one row for each group and time. A group with totals
        begins with a row at ``SINCE``.
    """
    rows = pl.concat(
        [
            totals.select(GROUP, pl.col(SINCE).alias(TIME), *counters),
            deltas.select(GROUP, TIME, *counters),
        ]
    )
    rows = rows.sort(TIME).sort(GROUP, maintain_order=True)
    # The sums over all rows, less those up to the group: ``over`` costs something for each group.
    sums = {name: pl.col(name).cum_sum() for name in counters}
    before = {
        name: pl.when(_NEW_GROUP).then(total - pl.col(name)).forward_fill()
        for name, total in sums.items()
    }
    rows = rows.with_columns((sums[name] - before[name]).alias(name) for name in counters)
    return rows.filter(_LAST_AT_TIME)


def cut(
    rows: pl.DataFrame,
    *,
    present: pl.Expr,
    outputs: Sequence[str],
    counters: Sequence[str],
    final: bool,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Cut a timeline where an output changes.

    Args:
        rows: A timeline with the outputs beside the counters.
        present: Whether there is an output at all.
        outputs: The names of the outputs.
        counters: The names of the counters.
        final: Whether time ends here, so that what is open lasts for ever.

    Returns:
        The segments that are known in full, with ``GROUP``, ``START``, ``END`` and the outputs;
        and the totals of every group, whether or not they can still matter: ``GROUP``, ``SINCE``
        and the counters; none if time ends.
    """
    rows = rows.with_columns(present.alias(_PRESENT))
    appears = pl.col(_PRESENT).ne_missing(pl.col(_PRESENT).shift(1))
    differs = [pl.col(name).ne_missing(pl.col(name).shift(1)) for name in outputs]
    cuts = rows.filter(
        _NEW_GROUP | appears | (pl.col(_PRESENT) & pl.any_horizontal(pl.lit(False), *differs))
    ).with_columns(pl.when(~_LAST_OF_GROUP).then(pl.col(TIME).shift(-1)).alias(END))
    # Counters may have moved on after the last cut: they come from the last row of the group.
    latest = rows.filter(_LAST_OF_GROUP).select(counters)
    opened = cuts.filter(pl.col(END).is_null()).select(GROUP, pl.col(TIME).alias(SINCE))
    totals = opened.hstack(latest)
    if final:
        cuts, totals = cuts.with_columns(pl.col(END).fill_null(END_OF_TIME)), totals.clear()
    closed = cuts.filter(pl.col(_PRESENT) & pl.col(END).is_not_null())
    return closed.select(GROUP, pl.col(TIME).alias(START), END, *outputs), totals


def earliest(*times: int | None) -> Time:
    """The earliest of some times; ``END_OF_TIME`` if there is none."""
    return Time(min((time for time in times if time is not None), default=END_OF_TIME))


def repeat(frame: pl.DataFrame, times: str) -> pl.DataFrame:
    """Each row as often as the column ``times`` says, without that column."""
    numbers = frame[times]
    rows = frame.drop(times)
    if frame.is_empty() or (numbers.min() == 1 and numbers.max() == 1):
        return rows
    return rows.select(
        pl.all().gather(pl.int_range(rows.height, dtype=pl.UInt32).repeat_by(numbers).explode())
    )
