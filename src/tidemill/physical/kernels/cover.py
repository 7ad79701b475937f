"""Covering: which pieces are there at each row of a timeline.

A piece is valid in ``[START, END)``, has a ``GROUP``, and begins and ends at rows of its group's
timeline, or before the first and after the last. ``located`` finds those rows; the other functions
say what covers each row: the least or greatest value, or the values in the middle.
"""

from __future__ import annotations

import polars as pl

from tidemill.model.batch import END, START
from tidemill.physical.frames import framed
from tidemill.physical.kernels.sweep import GROUP, TIME

__all__ = [
    "COUNT",
    "FIRST",
    "PAST",
    "ROW",
    "VALUE",
    "extremes",
    "located",
    "middle",
    "staircase",
]

ROW, VALUE, COUNT, FIRST, PAST = "@row", "@value", "@count", "@first", "@past"
_SECOND, _RANK, _LEVEL, _LEAST = "@second", "@rank", "@level", "@least"


def located(rows: pl.DataFrame, pieces: pl.DataFrame) -> pl.DataFrame:
    """The pieces of groups of the timeline, with the rows they cover, from first to before past.

    Args:
        rows: A timeline, with its rows numbered in ``ROW``.
        pieces: ``GROUP``, ``START``, ``END`` and others.
    """
    marks = rows.select(_mark(TIME)).to_series()
    found = pieces.select(_mark(START).alias(FIRST), _mark(END).alias(PAST))
    # The first row that is not before: what began earlier covers the first row of its group, and
    # what is not over all up to the first of the next.
    return pieces.with_columns(
        marks.search_sorted(found[name]).cast(pl.UInt32).alias(name) for name in (FIRST, PAST)
    ).filter(pl.col(FIRST) < pl.col(PAST))


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
    length = pl.col(PAST) - pl.col(FIRST)
    longest = pieces.select(length.max()).item() or 1
    levels = range(int(longest).bit_length())
    level = pl.sum_horizontal(pl.lit(0), *((length >= 1 << k).cast(pl.Int32) for k in levels[1:]))
    ranked = ranked.with_columns(level.alias(_LEVEL))
    second = (pl.col(PAST) - pl.lit(2, pl.UInt32).pow(pl.col(_LEVEL))).cast(pl.UInt32)
    # The best is written last.
    blocks = ranked.with_columns(second.alias(_SECOND)).sort(_RANK, descending=True)
    nothing = pl.repeat(None, height, dtype=pl.UInt32, eager=True)
    found = nothing
    for k in reversed(levels):
        here = blocks.filter(pl.col(_LEVEL) == k)
        own = [nothing.clone().scatter(here[name], here[_RANK]) for name in (FIRST, _SECOND)]
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

    The ranks of a group are halved, from all of them down to one. At each step the value that is
    wanted in a row is in one half or in the other, as the number of values in the lower half says:
    as many passes over rows and pieces as the number of values of a group has bits.

    Returns:
        For each row ``low`` and ``high``, NULL where there is none.
    """
    mark = pl.col(GROUP).cast(pl.Int64) * 2**32 + pl.col(VALUE).rank("dense")
    ranked = pieces.with_columns(mark.rank("dense").cast(pl.Int64).alias(_RANK))
    ranked = ranked.with_columns(pl.col(_RANK).min().over(GROUP).alias(_LEAST))
    edges = pl.concat(
        ranked.select(
            pl.col(_RANK) - pl.col(_LEAST),
            pl.col(edge).cast(pl.Int64).alias(ROW),
            pl.col(COUNT) * sign,
        )
        for edge, sign in ((FIRST, 1), (PAST, -1))
    )
    bits = int(edges.select(pl.col(_RANK).max()).item() or 0).bit_length()
    rows = pl.int_range(height, dtype=pl.Int64, eager=True)
    total = _weights(edges, bits, rows * 0, rows)
    # From here on each row is there twice, for the lower and for the upper value in the middle.
    block, rows = pl.concat([rows * 0, rows * 0]), pl.concat([rows, rows])
    place = pl.concat([(total - 1) // 2, total // 2])
    for bit in reversed(range(bits)):
        lower = _weights(edges, bit, block * 2, rows)
        is_upper = (place >= lower).cast(pl.Int64)
        block, place = block * 2 + is_upper, place - lower * is_upper
    # The rows of a group are together, and where none of its pieces has begun there is no value.
    least = pl.repeat(None, height, dtype=pl.Int64, eager=True)
    least = least.scatter(ranked[FIRST], ranked[_LEAST]).forward_fill().set(total == 0, None)
    low, high = (_values(ranked, part + least) for part in (block.head(height), block.tail(height)))
    return framed([low.alias("low"), high.alias("high")])


def _weights(edges: pl.DataFrame, bit: int, blocks: pl.Series, rows: pl.Series) -> pl.Series:
    """How many values of a block of ranks cover a row.

    Args:
        edges: Where how many of a ``_RANK``, from 0 on, come or go, in ``ROW``.
        bit: Blocks have two to the power of this many ranks.
        blocks: The numbers of blocks.
        rows: The rows.
    """
    # One number for block and row; what goes after the last row still belongs to its block.
    mark = pl.col(_RANK) // (1 << bit) * (len(rows) + 1) + pl.col(ROW)
    ordered = edges.select(mark, COUNT).sort(_RANK)
    past = pl.col(_RANK).search_sorted(pl.lit(blocks * (len(rows) + 1) + rows), side="right")
    # What comes goes again: the sum over a block is zero, so what is before it does not count, and
    # past all of them there is nothing.
    weight = pl.col(COUNT).cum_sum().shift(1).gather(past, null_on_oob=True).fill_null(0)
    return ordered.select(weight).to_series()


def _ranked(pieces: pl.DataFrame, *, descending: bool) -> pl.DataFrame:
    """With ``_RANK``: the order of values; NaN is the greatest, text is in code points."""
    return pieces.with_columns(pl.col(VALUE).rank("dense", descending=descending).alias(_RANK))


def _values(ranked: pl.DataFrame, ranks: pl.Series) -> pl.Series:
    """The values of the ranks."""
    by_rank = ranked.select(_RANK, VALUE).unique(_RANK).sort(_RANK)[VALUE]
    if by_rank.is_empty():
        return pl.repeat(None, len(ranks), dtype=by_rank.dtype, eager=True)
    return by_rank.gather(ranks - 1)
