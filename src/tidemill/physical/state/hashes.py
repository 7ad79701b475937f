"""Hashes of keys, and rows found by them.

NumPy halves a sorted array several times faster than Polars does, and without its overhead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

__all__ = ["Index", "different", "found_between", "key_hash", "row_hash", "upper_halves"]

_LOWER, _UPPER = np.uint64(2**32 - 1), np.uint64(2**64 - 2**32)
"""The bits of the half of a number for that of a row, and of the one for half of its hash."""


def key_hash(keys: pl.DataFrame) -> pl.Series:
    """The hash of each row; it does not tell 0.0 from -0.0, nor one NaN from another."""
    return keys.to_struct("").hash(seed=0)


def row_hash(keys: pl.DataFrame) -> pl.Series:
    """Another hash of each row, of the same law, in a part of the time; it is never stored."""
    return keys.hash_rows(seed=0)


def different(hashes: pl.Series) -> NDArray[np.uint64]:
    """The different ones, sorted; several times faster than ``np.unique``."""
    return _once(np.sort(hashes.to_numpy()))


def upper_halves(hashes: pl.Series) -> NDArray[np.uint64]:
    """The different upper halves of hashes, sorted, in the places where they are in a hash."""
    return _once(np.sort(hashes.to_numpy() & _UPPER))


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


def _once(ordered: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Each of some that are sorted once."""
    is_new = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]


def _places(low: NDArray[np.intp], past: NDArray[np.intp]) -> NDArray[np.intp]:
    """All from each of ``low`` up to the one of ``past`` beside it, which is greater."""
    count = past - low
    total = int(count.sum())
    if total == len(low):
        return low
    return np.repeat(low - (np.cumsum(count) - count), count) + np.arange(total)


class Index:
    """Where rows are, by the hashes of their keys.

    Half of a hash and the number of the row are one number, so that they are sorted together: that
    is quicker than to sort hashes and remember where they were, and takes less memory. Rows whose
    hashes agree in that half only are found with the others.

    Args:
        hashes: The hash of each row.
    """

    __slots__ = ("_places",)

    def __init__(self, hashes: pl.Series) -> None:
        assert len(hashes) <= _LOWER, "the number of a row has half of the bits"
        numbers = np.arange(len(hashes), dtype=np.uint64)
        self._places = np.sort((hashes.to_numpy() & _UPPER) | numbers)

    def rows(self, halves: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """The numbers of the rows whose hashes have one of some halves, each once.

        Args:
            halves: Those of the hashes that are looked for (``upper_halves``).
        """
        low = np.searchsorted(self._places, halves, "left")
        # Most may not be there: where they end matters only of those that are.
        is_there = (self._places.take(low, mode="clip") & _UPPER) == halves
        low = low[is_there]
        past = np.searchsorted(self._places, halves[is_there] | _LOWER, "right")
        return (self._places[_places(low, past)] & _LOWER).astype(np.uint32)

    def bytes(self) -> int:
        """How many bytes it takes."""
        return int(self._places.nbytes)
