"""How many combinations of remembered rows agree on their common keys, counted instead of guessed.

Rows of each key are counted, input by input. Combinations of some inputs that agree are, for each
key, the product of its counts. So one look at the inputs tells of all sets of them, whichever tree
runs and whatever it has probed; skew and keys that only some inputs have are in it.

>>> from tidemill.physical.state.table import Table
>>> one, other = (Table({"k": pl.Int64()}, (), key=("k",)) for _ in range(2))
>>> one.insert(pl.DataFrame({"k": [1, 1, 2]}))
>>> other.insert(pl.DataFrame({"k": [1, 3]}))
>>> agreeing([(one, ("k",)), (other, ("k",))])
{1: 3.0, 2: 2.0, 3: 2.0}
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

import polars as pl

from tidemill.physical.joining.tree import bits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.physical.state.table import Table

__all__ = ["agreeing"]

_MOST_INPUTS: Final = 6
"""Of so many inputs all sets are counted."""


def agreeing(inputs: Sequence[tuple[Table, Sequence[str]]]) -> dict[int, float]:
    """How many combinations agree, by the inputs in them as a bit mask.

    Args:
        inputs: For each input, its rows, and the columns on which they must agree with the others.
    """
    counted = [_counted(table, keys, port) for port, (table, keys) in enumerate(inputs)]
    names = [f"k{i}" for i in range(len(inputs[0][1]))]
    every = pl.concat(counted, how="diagonal_relaxed").group_by(names).agg(pl.col("^n.*$").sum())
    masks = range(1, 1 << len(inputs))
    if len(inputs) > _MOST_INPUTS:
        masks = sorted({*(1 << port for port in range(len(inputs))), (1 << len(inputs)) - 1})
    sums = every.select(
        prod((pl.col(f"n{port}") for port in bits(mask)), start=pl.lit(1.0)).sum().alias(str(mask))
        for mask in masks
    )
    return {mask: float(value) for mask, value in zip(masks, sums.row(0), strict=True)}


def _counted(table: Table, keys: Sequence[str], port: int) -> pl.DataFrame:
    """How many rows of an input there are of each key."""
    columns = {
        f"k{i}": pl.concat([table.none().get_column(key), *table.values(key)])
        for i, key in enumerate(keys)
    }
    return pl.DataFrame(columns).group_by(list(columns)).agg(pl.len().cast(pl.Float64).alias(f"n{port}"))
