"""Places: which rows of which runs, and small steps on the way to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from tidemill.physical.frames import framed

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

    from tidemill.physical.state.run import Run

__all__ = ["Places", "narrowed", "numbered"]

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


def numbered(frame: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    """Some columns, with numbers for names."""
    return framed([frame.get_column(name).alias(f"{i}") for i, name in enumerate(names)])
