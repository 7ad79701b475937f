"""Stars and chains of joins over windows of streams, whose values come evenly and at random.

Of these the model should be right: nothing in them depends on anything that is not measured. On top
of a join may be an aggregate, or DISTINCT.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    import tidemill

__all__ = ["ABOVE", "SHAPES", "Joins", "declare"]

SECOND = 1_000_000
SHAPES = ("chain", "star")
ABOVE = ("", "COUNT", "MAX", "SUM by two", "DISTINCT")

_RATES = (40, 60, 20, 50, 30, 35)
_WINDOWS = (5, 10, 8, 6, 7, 5)
_VALUES = (30, 200, 100, 60, 80, 120)
_KEYS = 150


@dataclass(frozen=True, slots=True)
class Joins:
    """A join of some streams.

    Attributes:
        shape: A chain, or a star around the first stream.
        inputs: How many streams there are.
        above: What is on top of it.
    """

    shape: str
    inputs: int
    above: str = ""

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{self.shape} of {self.inputs}" + (f", {self.above}" if self.above else "")

    @property
    def sql(self) -> str:
        """The query."""
        last = f"s{self.inputs - 1}.b"
        selected, groups = {
            "": (f"s0.a AS x, {last} AS y", ""),
            "COUNT": ("s0.a AS x, COUNT(*) AS n", "s0.a"),
            "MAX": (f"s0.a AS x, MAX({last}) AS n", "s0.a"),
            "SUM by two": (f"s0.a AS x, {last} AS y, SUM(s0.t) AS n", f"s0.a, {last}"),
            "DISTINCT": ("DISTINCT s0.a AS x", ""),
        }[self.above]
        windows = (f"s{i} [RANGE {_WINDOWS[i]} SECONDS]" for i in range(self.inputs))
        if self.shape == "chain":
            links = [f"s{i}.b = s{i + 1}.a" for i in range(self.inputs - 1)]
        else:
            links = [f"s0.a = s{i}.a" for i in range(1, self.inputs)]
        grouped = f" GROUP BY {groups}" if groups else ""
        where = " AND ".join(links)
        return f"SELECT {selected} FROM {', '.join(windows)} WHERE {where}{grouped}"

    def frames(self, seconds: int, seed: int) -> dict[str, pl.DataFrame]:
        """The rows of each stream."""
        return {f"s{i}": self._rows(i, seconds, seed) for i in range(self.inputs)}

    def _rows(self, number: int, seconds: int, seed: int) -> pl.DataFrame:
        chance = np.random.default_rng([seed, number])
        count = _RATES[number] * seconds
        values = (_KEYS, _KEYS)
        if self.shape == "chain":
            values = _VALUES[number], _VALUES[(number + 1) % len(_VALUES)]
        return pl.DataFrame(
            {
                "a": chance.integers(0, values[0], count),
                "b": chance.integers(0, values[1], count),
                "t": np.sort(chance.integers(0, seconds * SECOND, count)),
            }
        )


def declare(session: tidemill.Session, frames: dict[str, pl.DataFrame]) -> None:
    """Register the streams."""
    for name, frame in frames.items():
        session.put(name, frame)
        columns = "a BIGINT, b BIGINT, t BIGINT"
        session.sql(f"CREATE STREAM {name} ({columns}) SOURCE memory('{name}') ORDERED BY t")
