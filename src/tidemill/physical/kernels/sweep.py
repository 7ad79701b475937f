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

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from tidemill.model.batch import END, SIGN, START, TIME, TIME_TYPE
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.frames import framed, keep, pick

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "GROUP",
    "SINCE",
    "TIME",
    "Overdue",
    "cut",
    "differences",
    "earliest",
    "encode",
    "latest",
    "named",
    "overdue",
    "repeat",
    "timeline",
    "touched",
]

GROUP, SINCE = "@group", "@since"
_PRESENT, _OPEN, _CUT, _CLOSED, _BEFORE = "@present", "@open", "@cut", "@closed", "@before"

_NEW_GROUP = pl.col(GROUP).ne_missing(pl.col(GROUP).shift(1))
_LAST_OF_GROUP = pl.col(GROUP).ne_missing(pl.col(GROUP).shift(-1))
_LAST_AT_TIME = _LAST_OF_GROUP | pl.col(TIME).ne_missing(pl.col(TIME).shift(-1))


class Overdue(NamedTuple):
    """Open segments that began before a time are cut now, and go on from here unless time ends."""

    before: Time
    now: Time

    @property
    def is_final(self) -> bool:
        """Whether time ends here, so that what is open lasts for ever."""
        return self.now == END_OF_TIME


def overdue(now: Time, max_delay: int | None = None) -> Overdue | None:
    """What is overdue if a segment may lie this far behind the watermark; in the end everything.

    >>> overdue(Time(10), 3), overdue(Time(10))
    (Overdue(before=7, now=10), None)
    """
    if now == END_OF_TIME:
        return Overdue(END_OF_TIME, END_OF_TIME)
    return None if max_delay is None else Overdue(Time(now - max_delay), now)


def encode(
    keys: Sequence[str], frames: Sequence[pl.DataFrame]
) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """Number the groups of rows that agree on the keys: ``GROUP`` in every frame, and their names.

    The name of group g, its values of the keys, is row g of the first answer.
    """
    if not keys:
        group = pl.lit(0, pl.UInt32).alias(GROUP)
        return pl.DataFrame(), [frame.with_columns(group) for frame in frames]
    names = pl.concat([pick(frame, keys) for frame in frames])
    numbers = names.with_row_index(GROUP).select(pl.col(GROUP).first().over(list(keys)))
    encoded, offset = [], 0
    for frame in frames:
        encoded.append(frame.hstack([numbers.to_series().slice(offset, frame.height)]))
        offset += frame.height
    return names, encoded


def named(frame: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """The frame with the keys in place of ``GROUP``."""
    rest = pick(frame, (name for name in frame.columns if name != GROUP))
    return names[frame[GROUP]].hstack(rest) if names.width else rest


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
    begun = framed([totals[GROUP], totals[SINCE].alias(TIME)])
    rows = pl.concat([begun.hstack(pick(totals, counters)), pick(deltas, (GROUP, TIME, *counters))])
    rows = rows.sort(TIME).sort(GROUP, maintain_order=True)
    # The sums over all rows, less those up to the group: ``over`` costs something for each group.
    sums = {name: pl.col(name).cum_sum() for name in counters}
    before = {
        name: pl.when(_NEW_GROUP).then(total - pl.col(name)).forward_fill()
        for name, total in sums.items()
    }
    found = rows.select(
        *((sums[name] - before[name]).alias(name) for name in counters), _LAST_AT_TIME.alias(_CUT)
    )
    whole = pick(rows, (GROUP, TIME)).hstack(pick(found, counters))
    return keep(whole, found.get_column(_CUT))


def cut(
    rows: pl.DataFrame,
    *,
    present: pl.Expr,
    outputs: Sequence[str],
    counters: Sequence[str],
    late: Overdue | None,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Cut a timeline where an output changes.

    Args:
        rows: A timeline with the outputs beside the counters.
        present: Whether there is an output at all.
        outputs: The names of the outputs.
        counters: The names of the counters.
        late: Which open segments are cut, too.

    Returns:
        The segments known in full: ``GROUP``, ``START``, ``END`` and outputs; and of every group,
        whether or not it can still matter, ``GROUP``, ``SINCE`` and the counters; none in the end.
    """
    appears = present.ne_missing(present.shift(1))
    differs = [pl.col(name).ne_missing(pl.col(name).shift(1)) for name in outputs]
    found = rows.select(
        (_NEW_GROUP | appears | (present & pl.any_horizontal(pl.lit(False), *differs))).alias(_CUT),
        present.alias(_PRESENT),
        _LAST_OF_GROUP.alias(_OPEN),
    )
    segments = pick(rows, (GROUP, TIME, *outputs)).hstack([found.get_column(_PRESENT)])
    segments = keep(segments, found.get_column(_CUT))
    until = pl.lit(None, TIME_TYPE)
    if late is not None:
        until = pl.when(pl.col(TIME) < late.before).then(pl.lit(late.now, TIME_TYPE))
    end = pl.when(_LAST_OF_GROUP).then(until).otherwise(pl.col(TIME).shift(-1))
    ends = segments.select(
        end.alias(END),
        (pl.col(_PRESENT) & end.is_not_null()).alias(_CLOSED),
        _LAST_OF_GROUP.alias(_OPEN),
        pl.coalesce(end, TIME).alias(SINCE),
    )
    closed = pl.DataFrame(
        [
            segments.get_column(GROUP),
            segments.get_column(TIME).alias(START),
            ends.get_column(END),
            *(segments.get_column(name) for name in outputs),
        ]
    )
    opened = framed([segments.get_column(GROUP), ends.get_column(SINCE)])
    latest = pick(rows, counters)
    if late is not None and late.is_final:
        opened = opened.clear().hstack(latest.clear())
        return keep(closed, ends.get_column(_CLOSED)), opened
    # Counters may have moved on after the last cut: they come from the last row of the group.
    opened = keep(opened, ends.get_column(_OPEN)).hstack(keep(latest, found.get_column(_OPEN)))
    return keep(closed, ends.get_column(_CLOSED)), opened


def differences(
    rows: pl.DataFrame, *, present: pl.Expr, outputs: Sequence[str], since: int
) -> pl.DataFrame:
    """Where an output changes: the old one is withdrawn, and the new one appears.

    Args:
        rows: A timeline with the outputs beside the counters.
        present: Whether there is an output at all.
        outputs: The names of the outputs.
        since: The last watermark; rows before it are what was known then, and no change.

    Returns:
        ``GROUP``, ``TIME``, ``SIGN`` and outputs.
    """
    was = pl.when(_NEW_GROUP).then(pl.lit(False)).otherwise(present.shift(1))
    differs = [pl.col(name).ne_missing(pl.col(name).shift(1)) for name in outputs]
    goes_on = was & present & ~pl.any_horizontal(pl.lit(False), *differs)
    changed = (pl.col(TIME) >= since) & ~goes_on
    found = rows.select(
        (changed & was).alias(_CLOSED),
        (changed & present).alias(_PRESENT),
        *(pl.col(name).shift(1).alias(f"{_BEFORE}{i}") for i, name in enumerate(outputs)),
    )
    before = (found.get_column(f"{_BEFORE}{i}").alias(name) for i, name in enumerate(outputs))
    moments = pick(rows, (GROUP, TIME))
    withdrawn = keep(moments.hstack(list(before)), found.get_column(_CLOSED))
    appeared = keep(moments.hstack(pick(rows, outputs)), found.get_column(_PRESENT))
    return pl.concat(
        frame.hstack([pl.Series(SIGN, [sign], TIME_TYPE).new_from_index(0, frame.height)])
        for frame, sign in ((withdrawn, -1), (appeared, 1))
    )


def latest(rows: pl.DataFrame) -> pl.DataFrame:
    """The last row of each group of a timeline, whose time is ``SINCE``."""
    last = keep(rows, rows.select(_LAST_OF_GROUP).to_series())
    return last.rename({TIME: SINCE})


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
