"""Covering: which pieces are there at each row of a timeline.

A piece is valid in ``[START, END)``, has a ``GROUP``, and begins and ends at rows of its group's
timeline, or before the first and after the last. ``located`` finds those rows; the other functions
say what covers each row: the least or greatest value, the value in the middle, or all of them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, START
from tidemill.physical.kernels.sweep import GROUP, TIME

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["COUNT", "ROW", "VALUE", "covering", "extremes", "located", "middle", "staircase"]

ROW, VALUE, COUNT = "@row", "@value", "@count"
_FIRST, _PAST, _SECOND, _RANK, _LEVEL = "@first", "@past", "@second", "@rank", "@level"

_PAIRS = 4_000_000
"""How many pairs of a row and a piece are in memory at a time."""


def located(rows: pl.DataFrame, pieces: pl.DataFrame) -> pl.DataFrame:
    """The pieces of groups of the timeline, with the rows they cover, from first to before past.

    Args:
        rows: A timeline, with its rows numbered in ``ROW``.
        pieces: ``GROUP``, ``START``, ``END`` and others.
    """
    marks = rows.select(_mark(TIME)).to_series()
    found = pieces.select(_mark(START).alias(_FIRST), _mark(END).alias(_PAST))
    # The first row that is not before: what began earlier covers the first row of its group, and
    # what is not over all up to the first of the next.
    return pieces.with_columns(
        marks.search_sorted(found[name]).cast(pl.UInt32).alias(name) for name in (_FIRST, _PAST)
    ).filter(pl.col(_FIRST) < pl.col(_PAST))


def _mark(time: str) -> pl.Expr:
    """A number that orders by group, then by time, NULL first; instants are not negative."""
    return pl.col(GROUP).cast(pl.Int128) * 2**64 + pl.col(time).fill_null(0)


def extremes(pieces: pl.DataFrame, height: int, *, greatest: bool) -> pl.Series:
    """The least or greatest ``VALUE`` that covers each row; NULL where there is none.

    A piece is put on two blocks of rows, whose length is the same power of two, that cover it
    together. Then, from the longest blocks to the shortest, each hands its value to its halves:
    as many passes over the rows as their number has bits.
    """
    ranked = _ranked(pieces, descending=greatest)
    length = pl.col(_PAST) - pl.col(_FIRST)
    longest = pieces.select(length.max()).item() or 1
    levels = range(int(longest).bit_length())
    level = pl.sum_horizontal(pl.lit(0), *((length >= 1 << k).cast(pl.Int32) for k in levels[1:]))
    ranked = ranked.with_columns(level.alias(_LEVEL))
    second = (pl.col(_PAST) - pl.lit(2, pl.UInt32).pow(pl.col(_LEVEL))).cast(pl.UInt32)
    # The best is written last.
    blocks = ranked.with_columns(second.alias(_SECOND)).sort(_RANK, descending=True)
    nothing = pl.repeat(None, height, dtype=pl.UInt32, eager=True)
    found = nothing
    for k in reversed(levels):
        here = blocks.filter(pl.col(_LEVEL) == k)
        own = [nothing.clone().scatter(here[name], here[_RANK]) for name in (_FIRST, _SECOND)]
        # Of the next longer blocks, this is the first half, and that the second.
        found = pl.select(pl.min_horizontal(*own, found, found.shift(1 << k))).to_series()
    return _values(ranked, found)


def staircase(pieces: pl.DataFrame, *, greatest: bool) -> pl.DataFrame:
    """The pieces that can still be the least or greatest ``VALUE`` of their group, all being there.

    One that ends no later than another that is no worse never is.
    """
    ranked = _ranked(pieces, descending=greatest).sort(_RANK)
    ranked = ranked.sort(END, descending=True, maintain_order=True).sort(GROUP, maintain_order=True)
    # The numbers of groups fall, so that the least of a new group is less than all before it.
    worth = (2**31 - 1 - pl.col(GROUP).cast(pl.Int64)) * 2**32 + pl.col(_RANK)
    least = worth.cum_min()
    return ranked.filter((worth < least.shift(1)).fill_null(value=True)).select(pieces.columns)


def middle(pieces: pl.DataFrame, height: int) -> pl.DataFrame:
    """The two values in the middle of those that cover each row, ``COUNT`` of each.

    Returns:
        For each row ``low`` and ``high``, NULL where there is none.
    """
    ranked = _ranked(pieces, descending=False)
    found = [_middle(chunk) for chunk in covering(ranked)]
    rows = pl.DataFrame({ROW: pl.int_range(height, dtype=pl.UInt32, eager=True)})
    if found:
        rows = rows.join(pl.concat(found), on=ROW, how="left", maintain_order="left")
    else:
        rows = rows.with_columns(pl.lit(None, pl.UInt32).alias(name) for name in ("low", "high"))
    return pl.DataFrame([_values(ranked, rows[name]).alias(name) for name in ("low", "high")])


def _middle(pairs: pl.DataFrame) -> pl.DataFrame:
    ordered = pairs.sort(_RANK).sort(ROW, maintain_order=True)
    upto = pl.col(COUNT).cum_sum().over(ROW)
    total = pl.col(COUNT).sum().over(ROW)
    return (
        ordered.with_columns(upto.alias("@upto"), total.alias("@total"))
        .group_by(ROW)
        .agg(
            pl.col(_RANK)
            .filter(pl.col("@upto") > (pl.col("@total") - 1) // 2)
            .first()
            .alias("low"),
            pl.col(_RANK).filter(pl.col("@upto") > pl.col("@total") // 2).first().alias("high"),
        )
    )


def covering(pieces: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The pieces once for each row they cover, in ``ROW``; some rows at a time, each in full."""
    for low, high in _stretches(pieces):
        here = pieces.filter((pl.col(_FIRST) < high) & (pl.col(_PAST) > low))
        first = pl.max_horizontal(pl.col(_FIRST), pl.lit(low, pl.UInt32))
        past = pl.min_horizontal(pl.col(_PAST), pl.lit(high, pl.UInt32))
        yield (
            here.with_columns(pl.int_ranges(first, past, dtype=pl.UInt32).alias(ROW))
            .drop(_FIRST, _PAST)
            .explode(ROW)
        )


def _stretches(pieces: pl.DataFrame) -> list[tuple[int, int]]:
    """Stretches of rows, such that few pairs of a row and a piece are in each."""
    if pieces.is_empty():
        return []
    edges = pl.concat(
        [
            pieces.select(pl.col(_FIRST).alias(ROW), pl.lit(1).alias("@n")),
            pieces.select(pl.col(_PAST).alias(ROW), pl.lit(-1).alias("@n")),
        ]
    )
    edges = edges.group_by(ROW).agg(pl.col("@n").sum()).sort(ROW)
    width = pl.col(ROW).shift(-1).cast(pl.Int64) - pl.col(ROW).cast(pl.Int64)
    pairs = (pl.col("@n").cum_sum() * width).fill_null(0)
    stretch = (pairs.cum_sum() - pairs) // _PAIRS
    cuts = edges.select(ROW, stretch.alias("@stretch")).group_by("@stretch").agg(pl.col(ROW).min())
    bounds = [*sorted(cuts[ROW].to_list()), int(edges[ROW][-1])]
    return [(a, b) for a, b in pairwise(bounds) if a < b]


def _ranked(pieces: pl.DataFrame, *, descending: bool) -> pl.DataFrame:
    """With ``_RANK``: the order of values; NaN is the greatest, text is in code points."""
    return pieces.with_columns(pl.col(VALUE).rank("dense", descending=descending).alias(_RANK))


def _values(ranked: pl.DataFrame, ranks: pl.Series) -> pl.Series:
    """The values of the ranks."""
    by_rank = ranked.select(_RANK, VALUE).unique(_RANK).sort(_RANK)[VALUE]
    if by_rank.is_empty():
        return pl.repeat(None, len(ranks), dtype=by_rank.dtype, eager=True)
    return by_rank.gather(ranks - 1)
