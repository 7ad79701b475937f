"""Hashes of keys, and rows found by them.

NumPy halves a sorted array several times faster than Polars does, and without its overhead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Index", "different", "found_between", "key_hash"]


def key_hash(keys: pl.DataFrame) -> pl.Series:
    """The hash of each row; it does not tell 0.0 from -0.0, nor one NaN from another."""
    return keys.to_struct("").hash(seed=0)


def different(hashes: pl.Series) -> NDArray[np.uint64]:
    """The different ones, sorted; several times faster than ``np.unique``."""
    ordered = np.sort(hashes.to_numpy())
    is_new = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]


def found_between(
    hashes: NDArray[np.uint64], first: NDArray[np.uint64], last: NDArray[np.uint64]
) -> NDArray[np.intp]:
    """Where hashes lie between one of ``first`` and the one of ``last`` beside it, both included.

    >>> found_between(*(np.array(a, np.uint64) for a in ([1, 3, 3, 5, 9], [0, 3, 4], [0, 3, 6])))
    array([1, 2, 3])

    Args:
        hashes: Sorted.
        first: Sorted, so that what is looked for next is near what was looked for last.
        last: None lies after the next of ``first``.
    """
    low, past = np.searchsorted(hashes, first, "left"), np.searchsorted(hashes, last, "right")
    some = low < past
    return _places(low[some], past[some])


def _places(low: NDArray[np.intp], past: NDArray[np.intp]) -> NDArray[np.intp]:
    """All from each of ``low`` up to the one of ``past`` beside it, which is greater."""
    count = past - low
    total = int(count.sum())
    if total == len(low):
        return low
    return np.repeat(low - (np.cumsum(count) - count), count) + np.arange(total)


class Index:
    """Where rows are, by the hashes of their keys.

    Args:
        hashes: The hash of each row.
    """

    __slots__ = ("_hashes", "_order")

    def __init__(self, hashes: pl.Series) -> None:
        unsorted = hashes.to_numpy()
        self._order = np.argsort(unsorted).astype(np.uint32)
        self._hashes = unsorted[self._order]

    def rows(self, hashes: NDArray[np.uint64]) -> pl.Series:
        """The numbers of the rows with one of some hashes, which are sorted and unique."""
        low = np.searchsorted(self._hashes, hashes, "left")
        # Most may not be there: where they end matters only of those that are.
        is_there = self._hashes.take(low, mode="clip") == hashes
        low = low[is_there]
        past = np.searchsorted(self._hashes, hashes[is_there], "right")
        return pl.Series(self._order[_places(low, past)])

    def bytes(self) -> int:
        """How many bytes it takes."""
        return int(self._hashes.nbytes + self._order.nbytes)
