"""Streams of keys and values, in files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SECOND", "Input"]

SECOND = 1_000_000
"""A second, in microseconds."""

_BEGIN = 1_700_000_000 * SECOND


@dataclass(frozen=True, slots=True)
class Input:
    """A stream in files, one a batch.

    Attributes:
        files: How many files.
        rows: How many rows each has.
        rate: How many rows a second of the stream's time has.
        keys: How many keys there are.
    """

    files: int
    rows: int
    rate: int
    keys: int

    def write(self, path: Path, seed: int, first: int = 0) -> None:
        """Write the files; values are multiples of a quarter, so that sums are exact."""
        path.mkdir(parents=True, exist_ok=True)
        for file in range(first, first + self.files):
            numbers = pl.int_range(file * self.rows, (file + 1) * self.rows, eager=True)
            at = _BEGIN + numbers * SECOND // self.rate
            frame = pl.DataFrame(
                {
                    "key": (numbers.hash(seed=seed) % self.keys).cast(pl.Int64),
                    "value": (numbers.hash(seed=seed + 1) % 400).cast(pl.Float64) / 4,
                    "at": at.cast(pl.Datetime("us", "UTC")),
                }
            )
            unfinished = path / f".{file:06d}"
            frame.write_parquet(unfinished)
            os.utime(unfinished, (_BEGIN // SECOND + file,) * 2)  # Spark reads the oldest first
            unfinished.rename(path / f"{file:06d}.parquet")
