"""Places: which rows of which runs, and small steps on the way to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidemill.physical.state.run import Run

__all__ = ["Places", "narrowed", "numbered", "pick"]

Places: TypeAlias = "list[tuple[Run, pl.Series]]"
"""Some rows: numbers of rows by run."""


def narrowed(found: Places, places: pl.Series) -> Places:
    """Of some rows, one after the other, those at the places given."""
    narrowed, first = [], 0
    for run, rows in found:
        here = places.filter((places >= first) & (places < first + len(rows))) - first
        narrowed.append((run, rows[here]))
        first += len(rows)
    return [(run, rows) for run, rows in narrowed if len(rows)]


def pick(frame: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    """Some columns; not by select, since to Polars some names are patterns."""
    return pl.DataFrame([frame.get_column(name) for name in names])


def numbered(frame: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    """Some columns, with numbers for names."""
    return pl.DataFrame([frame.get_column(name).alias(f"{i}") for i, name in enumerate(names)])
