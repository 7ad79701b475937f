"""Places: which rows of which runs, and small steps on the way to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from tidemill.physical.frames import framed
from tidemill.physical.state.run import HASH

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidemill.physical.state.run import Run

__all__ = ["ALL", "Places", "agreeing", "narrowed", "numbered"]

Places: TypeAlias = "list[tuple[Run, pl.Series]]"
"""Some rows: numbers of rows by run."""


ALL = 2**64 - 1
"""All bits of a hash."""

_FILTER_RATIO = 4
"""With this many times as many keys as candidates, keys are filtered by their hash first."""

_NUMBER = "@row"


def agreeing(found: Places, keys: pl.DataFrame, hashes: pl.Series, bits: int) -> Places:
    """Of some rows, of which there are some, those that agree with one of the keys.

    Args:
        found: The rows.
        keys: Some of their columns.
        hashes: The hash of each key.
        bits: Those of a hash that are known of the keys.
    """
    there = pl.concat([numbered(run.frame[rows], keys.columns) for run, rows in found])
    wanted = numbered(keys, keys.columns)
    if wanted.height > _FILTER_RATIO * there.height:
        hit = pl.concat([run.frame[HASH][rows] for run, rows in found])
        wanted = wanted.filter(hashes.is_in((hit if bits == ALL else hit & bits).implode()))
    agree = there.with_row_index(_NUMBER).join(
        wanted, on=wanted.columns, how="semi", nulls_equal=True
    )
    return found if agree.height == there.height else narrowed(found, agree[_NUMBER])


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
