"""Compare the rows that a system gives with those it should give."""

from __future__ import annotations

import polars as pl

from benchmarks.harness.comparable import like

__all__ = ["difference"]


def difference(found: pl.DataFrame, wanted: pl.DataFrame) -> str | None:
    """In what two bags of rows differ, in words; None if they do not.

    >>> wanted = pl.DataFrame({"key": [1, 2, 2], "v": [0.5, 1.0, 1.0]})
    >>> difference(wanted[::-1], wanted) is None
    True
    >>> difference(pl.DataFrame({"key": [1, 2], "v": [0.25, 1.0]}), wanted)
    'another answer: 3 rows differ, e.g. key 1, v 0.25 is there 1 time, not 0'
    """
    columns = wanted.columns
    if sorted(found.columns) != sorted(columns):
        return f"another answer: columns {', '.join(found.columns)}, not {', '.join(columns)}"
    given, due = (
        frame.select(columns).group_by(columns).agg(pl.len().cast(pl.Int64).alias(name))
        for frame, name in ((like(found, wanted), "@given"), (wanted, "@due"))
    )
    both = due.join(given, on=columns, how="full", coalesce=True, nulls_equal=True)
    both = both.with_columns(pl.col("@due", "@given").fill_null(0))
    differ = both.filter(pl.col("@due") != pl.col("@given")).sort(columns)
    if differ.is_empty():
        return None
    rows = int((differ["@due"] - differ["@given"]).abs().sum())
    example = differ.row(0, named=True)
    given_times, due_times = example.pop("@given"), example.pop("@due")
    row = ", ".join(f"{name} {value}" for name, value in example.items())
    times = f"{given_times} {'time' if given_times == 1 else 'times'}"
    return f"another answer: {rows:,} rows differ, e.g. {row} is there {times}, not {due_times}"
