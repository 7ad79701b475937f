"""Pieces: what has become of rows up to a watermark, as elements.

Between two watermarks a row comes and goes at known times, so that what changes can be looked at in
interval form: a piece is valid in ``[START, END)``. One that was there before the last watermark
begins at ``BEFORE``, and one that is still there has no end.

Law: at every instant before the watermark, the pieces hold the rows that the changes add up to.
Rows that are equal go in the order in which they came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from tidemill.model.batch import END, SIGN, START, TIME, TIME_TYPE, signed_columns
from tidemill.model.time import END_OF_TIME
from tidemill.physical.frames import framed, pick
from tidemill.physical.kernels.sweep import GROUP, encode, named, repeat
from tidemill.physical.signs.net import net

if TYPE_CHECKING:
    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema
    from tidemill.physical.state.keyed import KeyedTable

__all__ = ["BEFORE", "Touched", "changes_at", "changes_of", "matched", "standing", "take_touched"]

BEFORE = -1
"""When what was there before begins; instants are not negative."""

_PLACE = "@place"


class Touched(NamedTuple):
    """The rows that change.

    Attributes:
        pieces: What has become of them, each counting once in ``SIGN``.
        rows: Those that are still there, each once with how often in ``SIGN``.
    """

    pieces: pl.DataFrame
    rows: pl.DataFrame


def take_touched(changes: pl.DataFrame, table: KeyedTable) -> Touched:
    """The rows that change, which are taken out of the table.

    Args:
        changes: Rows with ``TIME`` and ``SIGN``, all that the watermark has passed.
        table: The rows that are there, each once with how often in ``SIGN``.
    """
    changes = net(changes)
    none = table.none()
    if changes.is_empty():
        return Touched(standing(none), none)
    row = [name for name in table.schema if name != SIGN]
    known = table.take(pick(changes, row)) if table.rows() else none
    names, (known, changes) = encode(row, [known, changes])
    before = repeat(known.select(GROUP, pl.lit(BEFORE, TIME_TYPE).alias(START), SIGN), SIGN)
    ended, still = matched(before, changes)
    never, once = pl.lit(END_OF_TIME, TIME_TYPE), pl.lit(1, pl.Int64)
    pieces = pl.concat([ended, still.with_columns(never.alias(END))])
    counted = still.group_by(GROUP).agg(pl.len().cast(pl.Int64).alias(SIGN))
    return Touched(named(pieces.with_columns(once.alias(SIGN)), names), named(counted, names))


def standing(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows that were there before and still are, as pieces; ``SIGN`` says how often."""
    return rows.with_columns(
        pl.lit(BEFORE, TIME_TYPE).alias(START), pl.lit(END_OF_TIME, TIME_TYPE).alias(END)
    )


def changes_of(pieces: pl.DataFrame) -> pl.DataFrame:
    """What changes by pieces: they appear unless they were there, and go unless they stay.

    Args:
        pieces: Other columns, ``START``, ``END``, and ``SIGN`` how often each is there.
    """
    came = pieces.filter(pl.col(START) > BEFORE).drop(END).rename({START: TIME})
    went = pieces.filter(pl.col(END) < END_OF_TIME).drop(START).rename({END: TIME})
    return pl.concat([came, went.select(pl.exclude(SIGN), -pl.col(SIGN)).select(came.columns)])


def changes_at(rows: pl.DataFrame, schema: Schema, time: str, sign: int) -> Batch:
    """The rows as changes of such a sign, at the times of a column."""
    signs = pl.Series(SIGN, [sign], pl.Int64).new_from_index(0, rows.height)
    frame = framed([*pick(rows, schema.names), rows[time].alias(TIME), signs])
    frame.columns = signed_columns(schema)
    return frame


def matched(known: pl.DataFrame, changes: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What has ended, and what is still there, if what appeared first is withdrawn first.

    Args:
        known: ``GROUP`` and ``START`` of rows that are there.
        changes: ``GROUP``, ``TIME`` and ``SIGN``, one row for each group and time.

    Returns:
        ``GROUP``, ``START`` and ``END``; and ``GROUP`` and ``START``.
    """
    came = changes.filter(pl.col(SIGN) > 0).select(GROUP, pl.col(TIME).alias(START), SIGN)
    begun = pl.concat([pick(known, (GROUP, START)), repeat(came, SIGN)])
    went = changes.filter(pl.col(SIGN) < 0)
    ended = repeat(went.select(GROUP, pl.col(TIME).alias(END), -pl.col(SIGN)), SIGN)
    begun, ended = _placed(begun, START), _placed(ended, END)
    both = begun.join(ended, on=[GROUP, _PLACE], how="left")
    assert both.height == begun.height, "places are unique"
    closed = both.filter(pl.col(END).is_not_null())
    assert closed.height == ended.height, "only what is there is withdrawn"
    assert (closed[START] <= closed[END]).all(), "nothing is withdrawn before it appears"
    # What was cut at the watermark may be withdrawn at that instant: nothing is left of it.
    closed = closed.filter(pl.col(START) < pl.col(END))
    return pick(closed, (GROUP, START, END)), pick(
        both.filter(pl.col(END).is_null()), (GROUP, START)
    )


def _placed(rows: pl.DataFrame, time: str) -> pl.DataFrame:
    """The rows of each group numbered in the order of a time."""
    ordered = rows.sort(time).sort(GROUP, maintain_order=True).with_row_index(_PLACE)
    new = pl.col(GROUP).ne_missing(pl.col(GROUP).shift(1))
    first = pl.when(new).then(pl.col(_PLACE)).forward_fill()
    return ordered.with_columns(pl.col(_PLACE) - first)
