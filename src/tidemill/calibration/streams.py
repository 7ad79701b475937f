"""The streams of the calibration: rows at random, of which everything is known.

All have the columns k, v, w and t; values are equally frequent. They are functions of a seed, so
each turn measures the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from tidemill.engine.engine import Flow
from tidemill.model.batch import END, ID, START
from tidemill.model.time import Time
from tidemill.optimizer.statistics import Edge, Statistics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["DECLARATIONS", "NAMES", "STEP", "Load", "feed", "statistics"]

STEP: Final = 1_000_000
"""A step takes in a second of the streams' time."""

NAMES: Final = ("r", "s", "u")

DECLARATIONS: Final = "".join(
    f"CREATE STREAM {name} (k BIGINT, v BIGINT, w VARCHAR, t BIGINT) SOURCE memory('{name}')"
    " ORDERED BY t;"
    for name in NAMES
)

_WORDS: Final = 50
_VALUES: Final = 1_000


@dataclass(frozen=True, slots=True)
class Load:
    """What comes.

    Attributes:
        rows: How many rows of each stream come in a step.
        keys: How many values k has.
        steps: How many steps there are.
        warm: How many come before them, in which state fills.
    """

    rows: int
    keys: int
    steps: int
    warm: int


def statistics(load: Load) -> Statistics:
    """What is known of the streams."""
    rows = float(load.rows)
    distinct = {"k": load.keys, "v": _VALUES, "w": _WORDS, "t": 100 * STEP}
    edge = Edge(STEP / rows, row_bytes=48.0, distinct=distinct, is_measured=True)
    return Statistics(dict.fromkeys(NAMES, edge))


def feed(load: Load, names: frozenset[str]) -> Iterator[Mapping[str, Flow]]:
    """What comes in each step, and that time has passed to its end."""
    whole = {name: _rows(name, load) for name in sorted(names)}
    for number in range(load.warm + load.steps):
        begin, end = number * load.rows, (number + 1) * load.rows
        yield {
            name: Flow([rows[begin:end]], Time((number + 1) * STEP)) for name, rows in whole.items()
        }


def _rows(name: str, load: Load) -> pl.DataFrame:
    count = load.rows * (load.warm + load.steps)
    ids = pl.Series(ID, range(count), dtype=pl.Int64)
    seed = sum(name.encode())

    def chance(number: int, below: int) -> pl.Series:
        return (ids.hash(seed * 8 + number) % below).cast(pl.Int64)

    start = ((ids // load.rows) * STEP + chance(0, STEP)).alias(START).sort()
    k, v = chance(1, load.keys).alias("k"), chance(2, _VALUES).alias("v")
    w = ("word " + chance(3, _WORDS).cast(pl.String)).alias("w")
    return pl.DataFrame([k, v, w, start.alias("t"), start, (start + 1).alias(END), ids])
