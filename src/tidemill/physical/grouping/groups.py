"""Rows that belong together, as integers: what NULL = NULL, NaN = NaN and 0.0 = -0.0 mean, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["GROUP", "with_group"]

GROUP = "@group"


def with_group(frame: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The frame with a column ``GROUP``: the number of the first row with the same keys.

    >>> with_group(pl.DataFrame({"a": ["x", None, "x", None]}), ["a"])["@group"].to_list()
    [0, 1, 0, 1]
    """
    if not keys:
        return frame.with_columns(pl.lit(0, pl.UInt32).alias(GROUP))
    numbered = frame.with_row_index(GROUP)
    return numbered.with_columns(pl.first(GROUP).over(keys))
