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

from functools import reduce
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from tidemill.physical.joining.tree import bits

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from tidemill.physical.state.table import Table

__all__ = ["agreeing"]

_MOST_INPUTS: Final = 6
"""Of so many inputs all sets are counted."""


def agreeing(inputs: Sequence[tuple[Table, Sequence[str]]]) -> dict[int, float]:
    """How many combinations agree, by the inputs in them as a bit mask.

    Args:
        inputs: For each input, its rows, and the columns on which they must agree with the others.
    """
    hashes = [_hashes(table, keys) for table, keys in inputs]
    _, numbers = np.unique(np.concatenate(hashes), return_inverse=True)
    most, at = int(numbers.max(initial=-1)) + 1, 0
    counts: list[NDArray[np.float64]] = []
    for own in hashes:
        counted = np.bincount(numbers[at : at + len(own)], minlength=most)
        counts.append(counted.astype(np.float64))
        at += len(own)
    masks: Iterable[int] = range(1, 1 << len(inputs))
    if len(inputs) > _MOST_INPUTS:
        masks = (*(1 << port for port in range(len(inputs))), (1 << len(inputs)) - 1)
    return {mask: float(reduce(np.multiply, _of(counts, mask)).sum()) for mask in masks}


def _of(counts: Sequence[NDArray[np.float64]], mask: int) -> list[NDArray[np.float64]]:
    return [counts[port] for port in bits(mask)]


def _hashes(table: Table, keys: Sequence[str]) -> NDArray[np.uint64]:
    """What stands for the key of each row: that two keys have one hash hardly ever happens."""
    columns = [pl.concat([table.none().get_column(key), *table.values(key)]) for key in keys]
    return pl.DataFrame(columns).hash_rows().to_numpy()
