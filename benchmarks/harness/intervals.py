"""Answers in interval form that are the same, however they are cut."""

from __future__ import annotations

import polars as pl

__all__ = ["coalesced", "same"]


def coalesced(frame: pl.DataFrame) -> pl.DataFrame:
    """Adjacent intervals of equal rows merged, so that only changes cut them, as Tidemill does."""
    if "end" not in frame.columns:
        return frame
    row = [name for name in frame.columns if name not in ("start", "end")]
    ordered = frame.sort("key", "start")
    begins = pl.any_horizontal(
        pl.col("start") != pl.col("end").shift(1),
        *(pl.col(name) != pl.col(name).shift(1) for name in row),
    ).fill_null(value=True)
    pieces = ordered.with_columns(begins.cum_sum().alias("piece"))
    merged = pieces.group_by("piece", maintain_order=True).agg(
        *(pl.col(name).first() for name in [*row, "start"]), pl.col("end").last()
    )
    return merged.select(frame.columns)


def same(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    """Whether two frames hold the same bag of rows."""
    other = coalesced(other.select(one.columns).cast(dict(one.schema)))  # type: ignore[arg-type]
    one = coalesced(one)
    return one.sort(one.columns).equals(other.sort(one.columns))
