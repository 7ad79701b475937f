"""How late answers are, in the time of the streams: a query driven event by event.

Rows come at random, with exponential times between them; a selection lets a share of them pass to
a sum over a window (Q1 of Hammad et al.). Two disciplines say when the query learns the time:

    input    only when a row that passes the selection reaches the sum: it is the baseline (H07)
    clock    at every tick

The delay of an answer is the time at which it left, less the time from which on it holds; that of
an element that leaves when it has ended is counted from its end. For ``input`` each delay is the
time up to the next row that passes, so that the mean is 1 / (rate · selectivity), and the greatest
of n about ln(n) times as much; for ``clock`` none is longer than a tick.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import polars as pl

import tidemill
from benchmarks.harness.plans import implement
from tidemill.engine.engine import Flow
from tidemill.model.batch import END, ID, SIGN, START, TIME
from tidemill.model.time import Time
from tidemill.optimizer.logical.rewrite import optimize
from tidemill.physical.fragments import build_graph
from tidemill.runtime.local.runner import LocalRunner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.optimizer.physical.techniques import Technique

__all__ = ["LOADS", "Delays", "Load", "by_input", "by_the_clock"]

SECOND = 1_000_000
_TYPES = {
    "price": pl.Int64(),
    "share": pl.Float64(),
    "at": pl.Int64(),
    START: pl.Int64(),
    END: pl.Int64(),
    ID: pl.Int64(),
}


@dataclass(frozen=True, slots=True)
class Load:
    """What comes in.

    Attributes:
        rate: How many rows come in a second, on average.
        selectivity: Which share of them passes the selection.
        rows: How many pass.
        window: How long a row counts, in seconds.
        seed: Which random numbers.
    """

    rate: float
    selectivity: float
    rows: int
    window: float
    seed: int = 1

    def arrivals(self) -> list[tuple[int, int, float]]:
        """Time, price and a number that is less than the selectivity if the row passes."""
        chance = Random(self.seed)  # noqa: S311 — nothing is to be kept secret
        time, passed, found = 0.0, 0, []
        while passed < self.rows:
            time += chance.expovariate(self.rate) * SECOND
            share = chance.random()
            passed += share < self.selectivity
            found.append((int(time), chance.randint(1, 1000), share))
        return found


@dataclass(frozen=True, slots=True)
class Delays:
    """How late answers were, in seconds.

    Attributes:
        mean: On average.
        greatest: At most.
        count: How many there were.
    """

    mean: float
    greatest: float
    count: int


def by_input(load: Load, technique: Technique) -> Delays:
    """The delays if only rows that pass tell the time."""
    return _delays(load, technique, _by_input(load))


def by_the_clock(load: Load, technique: Technique, tick: float) -> Delays:
    """The delays if the time is told at every tick, in seconds."""
    return _delays(load, technique, _by_the_clock(load, round(tick * SECOND)))


_Step = tuple[int, "list[tuple[int, int, float]]"]


def _by_input(load: Load) -> Iterator[_Step]:
    waiting: list[tuple[int, int, float]] = []
    for row in load.arrivals():
        waiting.append(row)
        if row[-1] < load.selectivity:
            yield row[0], waiting
            waiting = []


def _by_the_clock(load: Load, tick: int) -> Iterator[_Step]:
    rows = load.arrivals()
    now, first = tick, 0
    while first < len(rows):
        count = next((i for i in range(first, len(rows)) if rows[i][0] >= now), len(rows))
        yield now, rows[first:count]
        now, first = now + tick, count


def _delays(load: Load, technique: Technique, steps: Iterator[_Step]) -> Delays:
    session = tidemill.connect()
    session.sql(
        "CREATE STREAM s (price BIGINT, share DOUBLE, at BIGINT) SOURCE memory('s') ORDERED BY at"
    )
    query = session.sql(
        f"SELECT SUM(price) AS total FROM s [RANGE {round(load.window * SECOND)}] "
        f"WHERE share < {load.selectivity}"
    )
    assert isinstance(query, tidemill.Query), "the text is a query"
    plan = implement(optimize(query.plan), max_delay=None, technique=technique)
    runner = LocalRunner(build_graph({"q": plan}))
    delays: list[int] = []
    for now, rows in steps:
        whole = [(price, share, at, at, at + 1, 0) for at, price, share in rows]
        batch = pl.DataFrame(whole, schema=_TYPES, orient="row")
        for out in runner.step({"s": Flow([batch], Time(now))})["q"]:
            holds = out[TIME].unique() if SIGN in out.columns else out[END]
            delays += (now - holds).to_list()
    return Delays(sum(delays) / len(delays) / SECOND, max(delays) / SECOND, len(delays))


LOADS = ((10, 0.25), (10, 1.0), (40, 0.25))
"""Rates, and which share of the rows passes."""
