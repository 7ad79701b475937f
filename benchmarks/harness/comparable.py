"""Results of Tidemill and of native Spark in one form, so that they can be compared.

Tidemill says from when to when a row holds; the native query gives a row for each window, when that
is closed. Of a window ``[RANGE r SLIDE s]``, what ends before ``until``, a multiple of ``s``, is
what Tidemill's answer is about at the instants of ``[until - 1, until + s - 1)``. Of a session,
what Spark gives when it is over is what Tidemill says at its last instant, ``until - 1``.
"""

from __future__ import annotations

import polars as pl
import polars.selectors as cs

from benchmarks.harness.measure import WrongAnswerError

__all__ = [
    "UNTIL",
    "changes",
    "each_session",
    "each_window",
    "like",
    "require_same",
    "same_answer",
    "same_rows",
]

UNTIL = "until"
"""The column that says where a window ends, in microseconds; it does not belong to the window."""


def each_window(results: pl.DataFrame, slide: int) -> pl.DataFrame:
    """One row for each window about which a row holds, with its end instead of start and end.

    Args:
        results: Tidemill's.
        slide: From one window to the next, in microseconds.
    """
    first, after = (pl.col("start") + slide) // slide, pl.col("end") // slide + 1
    windows = results.with_columns(pl.int_ranges(first, after).alias(UNTIL))
    exploded = windows.explode(UNTIL).drop_nulls(UNTIL)
    return exploded.with_columns(pl.col(UNTIL) * slide).drop("start", "end")


def each_session(results: pl.DataFrame, key: str) -> pl.DataFrame:
    """The last row of each session, with its end instead of start and end.

    Args:
        results: Tidemill's: at an instant one row for each session that is not over.
        key: The column whose values have sessions of their own.
    """
    goes_on = results.select(key, pl.col("start").alias("end"))
    last = results.join(goes_on, on=[key, "end"], how="anti", nulls_equal=True)
    return last.rename({"end": UNTIL}).drop("start")


def changes(results: pl.DataFrame) -> pl.DataFrame:
    """How many more rows there are from a time on, row by row.

    Law: two results have the same changes if and only if they have the same rows at every instant,
    however the time of a row is cut.
    """
    values = [name for name in results.columns if name not in ("start", "end")]
    begun = results.select(*values, pl.col("start").alias("@time"), pl.lit(1).alias("@more"))
    ended = results.select(*values, pl.col("end").alias("@time"), pl.lit(-1).alias("@more"))
    net = pl.concat([begun, ended]).group_by(*values, "@time").agg(pl.col("@more").sum())
    return net.filter(pl.col("@more") != 0)


def like(frame: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """The columns of another frame, with its types."""
    return frame.select(pl.col(name).cast(type_) for name, type_ in other.schema.items())


def same_answer(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    """Whether two results of Tidemill have the same rows at every instant."""
    return same_rows(one, other) or same_rows(changes(one), changes(other))


def same_rows(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    """Whether two frames have the same columns, and the same rows equally often, in any order."""
    if one.height != other.height or set(one.columns) != set(other.columns):
        return False
    return _ordered(one, one.columns).equals(_ordered(other, one.columns))


def require_same(what: str, found: pl.DataFrame, expected: pl.DataFrame) -> int:
    """How many rows there are.

    Args:
        what: What is compared.
        found: Rows in any order; columns that nobody expects do not count.
        expected: The rows that are to be there, each as often.

    Raises:
        WrongAnswerError: They are others.
    """
    own = found.select(expected.columns)
    if not same_rows(own, expected):
        raise WrongAnswerError(f"{what}: {own.height:,} rows, not these {expected.height:,}")
    return own.height


def _ordered(frame: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    """The rows in an order that depends on nothing but them, with types that all engines have.

    Times become numbers, since Spark's have a zone; whole numbers become long, and decimals as long
    as they can be. The order is that of hashes: frames with the same rows become equal, and if two
    rows had one hash, frames could only seem to be different.
    """
    decimals = [
        pl.col(name).cast(pl.Decimal(38, dtype.scale))
        for name, dtype in frame.schema.items()
        if isinstance(dtype, pl.Decimal)
    ]
    plain = frame.with_columns(
        cs.datetime().dt.epoch("us"), cs.integer().cast(pl.Int64), *decimals
    ).select(columns)
    return plain[plain.hash_rows().arg_sort()]
