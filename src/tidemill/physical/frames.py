"""Frames of columns that are there already.

Law: what is given is what ``select``, ``filter`` or ``pl.DataFrame`` would give, whatever columns
are called: to Polars some names are patterns. Of a small frame it takes a fraction of their time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

__all__ = ["framed", "keep", "keep_few", "pick"]

_FEW = 0.25
"""Of so small a share of the rows it is faster to name each than to look at all columns."""


def framed(columns: list[pl.Series]) -> pl.DataFrame:
    """Columns as a frame."""
    if not columns:
        return pl.DataFrame()
    return columns[0].to_frame().hstack(columns[1:])


def pick(frame: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    """Some columns."""
    return framed([frame.get_column(name) for name in names])


def keep(frame: pl.DataFrame, mask: pl.Series) -> pl.DataFrame:
    """The rows where a series is true."""
    return framed([column.filter(mask) for column in frame.get_columns()])


def keep_few(frame: pl.DataFrame, mask: NDArray[np.bool_]) -> pl.DataFrame:
    """The same, where few rows are expected to be kept of many."""
    numbers = np.flatnonzero(mask)
    if len(numbers) > _FEW * frame.height:
        return keep(frame, pl.Series(mask))
    return frame[pl.Series(numbers.astype(np.uint32))]
