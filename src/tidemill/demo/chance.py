"""Chance: numbers that look random, and are a function of a seed, a lane and a position.

It is SplitMix64 at a position, not a sequence: the numbers of any range of events can be computed
alone, on columns, and are the same with every version of every library.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

__all__ = ["Chance"]

_WORD = 2**64
_GAMMA, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_FRACTION = 2**53


@dataclass(frozen=True, slots=True)
class Chance:
    """Numbers by chance: a column of them for a column of positions.

    Columns that are to be independent of each other are drawn from different lanes.

    >>> positions = pl.Series([0, 1, 2], dtype=pl.UInt64)
    >>> Chance(seed=1).below(10, positions, lane="price").to_list()
    [4, 3, 1]

    Attributes:
        seed: Which numbers.
    """

    seed: int

    def words(self, positions: pl.Series, *, lane: str) -> pl.Series:
        """A number of 64 bits for each position."""
        start = _mixed((self.seed * _GAMMA + int.from_bytes(lane.encode())) % _WORD)
        word = positions.cast(pl.UInt64) * _word(_GAMMA) + _word(start)
        word = (word ^ (word // 2**30)) * _word(_FIRST)
        word = (word ^ (word // 2**27)) * _word(_SECOND)
        return word ^ (word // 2**31)

    def below(self, limit: int | pl.Series, positions: pl.Series, *, lane: str) -> pl.Series:
        """A number from 0 up to, but not including, the limit for each position."""
        # The words are so long that what the remainder prefers cannot be seen.
        most = limit.cast(pl.UInt64) if isinstance(limit, pl.Series) else limit
        return (self.words(positions, lane=lane) % most).cast(pl.Int64)

    def fractions(self, positions: pl.Series, *, lane: str) -> pl.Series:
        """A number from 0 up to, but not including, 1 for each position."""
        return (self.words(positions, lane=lane) // 2**11).cast(pl.Float64) / _FRACTION


def _word(value: int) -> pl.Series:
    return pl.Series([value], dtype=pl.UInt64)


def _mixed(word: int) -> int:
    word = (word ^ (word >> 30)) * _FIRST % _WORD
    word = (word ^ (word >> 27)) * _SECOND % _WORD
    return word ^ (word >> 31)
