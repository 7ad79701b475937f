"""Settling: from changes of an answer to rows with starts and ends, and back to snapshots.

    CHANGES    TIME, SIGN         from TIME on the row is there so many times more, or less
    STANDING   START, SIGN        the row is there from START on, so many times
    PAST       START, END, SIGN   the row was there in [START, END), so many times more, or less

The starts of a row are paired with its ends, each in the order of time. If an end comes before the
start it is paired with, since changes of earlier instants have come later, the row counts less
between the two.

Law: at every instant the rows of all frames, added up, are the same before and after.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, SIGN, START, TIME, TIME_TYPE, polars_schema
from tidemill.physical.frames import keep, pick
from tidemill.physical.kernels.sweep import GROUP, encode, named

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema

__all__ = ["Kind", "columns_of", "joined", "settled", "span_of", "summed", "there"]

_EDGE = "@edge"


class Kind(StrEnum):
    """What the rows of a frame say."""

    CHANGES = "changes"
    STANDING = "standing"
    PAST = "past"


_TIMES = {Kind.CHANGES: (TIME, SIGN), Kind.STANDING: (START, SIGN), Kind.PAST: (START, END, SIGN)}


def columns_of(schema: Schema, kind: Kind) -> dict[str, pl.DataType]:
    """The columns of a frame."""
    return {**polars_schema(schema), **dict.fromkeys(_TIMES[kind], TIME_TYPE)}


def joined(schema: Schema, kind: Kind, frames: Iterable[Batch]) -> Batch:
    """All rows of some frames of one kind."""
    return pl.concat([pl.DataFrame(schema=columns_of(schema, kind)), *frames])


def summed(schema: Schema, changes: Batch) -> Batch:
    """Changes added up: one for each row and time, and none where they come to nothing."""
    names, (numbered,) = encode(schema.names, [changes])
    net = numbered.group_by(GROUP, TIME, maintain_order=True).agg(pl.col(SIGN).sum())
    rows = named(keep(net, net[SIGN] != 0), names)
    return pick(rows, columns_of(schema, Kind.CHANGES)).cast({SIGN: TIME_TYPE})


def settled(schema: Schema, standing: Batch, changes: Batch) -> tuple[Batch, Batch]:
    """What has gone, and what is still there, given what was there and how it changed."""
    names, (before, moves) = encode(schema.names, [standing, changes])
    appeared, gone = (keep(moves, mask) for mask in (moves[SIGN] > 0, moves[SIGN] < 0))
    starts = pl.concat([_moves(before.rename({START: TIME})), _moves(appeared)])
    pairs = _paired(starts, _moves(gone).with_columns(-pl.col(SIGN)))
    past = keep(pairs, pairs[END].is_not_null() & pairs[START].ne_missing(pairs[END]))
    past = past.with_columns(
        pl.min_horizontal(START, END).alias(START),
        pl.max_horizontal(START, END).alias(END),
        pl.when(pl.col(START) < pl.col(END)).then(SIGN).otherwise(-pl.col(SIGN)).alias(SIGN),
    )
    open_ = keep(pairs, pairs[END].is_null()).drop(END)
    return (
        pick(named(past, names), columns_of(schema, Kind.PAST)),
        pick(named(open_, names), columns_of(schema, Kind.STANDING)),
    )


def _moves(moves: pl.DataFrame) -> pl.DataFrame:
    return pick(moves, (GROUP, TIME, SIGN))


def _paired(starts: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """The starts of each row with its ends, in the order of both; ``END`` is NULL if one has none.

    If the starts of a row are laid side by side, each as wide as it counts, and the ends below, a
    pair is what lies between two of all their edges.
    """
    laid = [_laid(starts).rename({TIME: START}), _laid(ends).rename({TIME: END})]
    edges = pl.concat([one.select(GROUP, _EDGE) for one in laid]).unique().sort(_EDGE)
    before = pl.col(_EDGE).shift(1).over(GROUP, order_by=_EDGE).fill_null(0)
    pairs = edges.with_columns((pl.col(_EDGE) - before).alias(SIGN))
    for one in laid:
        pairs = pairs.join_asof(
            one.drop(SIGN), on=_EDGE, by=GROUP, strategy="forward", check_sortedness=False
        )
    assert not pairs[START].has_nulls(), "what goes has come"
    return pairs.select(GROUP, START, END, pl.col(SIGN).cast(TIME_TYPE))


def _laid(moves: pl.DataFrame) -> pl.DataFrame:
    """Moves in the order of time, with the edge up to which all of its row up to it reach."""
    ordered = moves.sort(TIME).with_columns(pl.col(SIGN).cum_sum().over(GROUP).alias(_EDGE))
    return ordered.sort(_EDGE)


def there(kind: Kind, rows: pl.LazyFrame, time: int) -> pl.LazyFrame:
    """The rows that count at an instant, with ``SIGN``: how often."""
    match kind:
        case Kind.CHANGES:
            at = pl.col(TIME) <= time
        case Kind.STANDING:
            at = pl.col(START) <= time
        case Kind.PAST:
            at = (pl.col(START) <= time) & (pl.col(END) > time)
    return rows.filter(at).select(pl.exclude(TIME, START, END))


def span_of(kind: Kind, rows: Batch) -> tuple[int, int, int]:
    """The least time of some rows, the greatest one, and of what has gone the median of ends."""
    first, last = rows[_TIMES[kind][0]], rows[END if kind is Kind.PAST else _TIMES[kind][0]]
    least, most = first.min(), last.max()
    assert isinstance(least, int), "there are rows"
    assert isinstance(most, int), "there are rows"
    # A quantile would be a float, which no time fits into.
    half = int(last.sort()[(rows.height - 1) // 2]) if kind is Kind.PAST else 0
    return least, most, half
