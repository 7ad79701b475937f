"""Queries under a load: what an event costs once windows are full, and whether the answer is right.

Law: no time counts of a run whose answer at its last instant is not what a plain computation over
all rows gives.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from time import process_time
from typing import TYPE_CHECKING

import polars as pl

import tidemill
from benchmarks.harness.measure import WrongAnswerError
from benchmarks.harness.plans import physical
from tidemill.engine.engine import Flow
from tidemill.model.batch import END, ID, START
from tidemill.model.time import Time
from tidemill.physical.fragments import build_graph
from tidemill.runtime.answers import Answer
from tidemill.runtime.local.runner import LocalRunner

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Cost", "Load", "Query", "cost_of", "distinct", "greatest", "joined", "summed"]

SECOND = 1_000_000
_STREAMS = ("s", "r")

Rows = dict[str, pl.DataFrame]


@dataclass(frozen=True, slots=True)
class Query:
    """A query, and what it gives at an instant.

    Attributes:
        text: In Tidemill's SQL.
        range_: How long a row counts, in microseconds; of the last rows, how long it takes until
            there are so many.
        at: Its answer, given all rows of each stream and an instant.
    """

    text: str
    range_: int
    at: Callable[[Rows, int], pl.DataFrame]


@dataclass(frozen=True, slots=True)
class Load:
    """What comes in.

    Attributes:
        rate: How many rows a second each stream has.
        keys: How many keys there are.
        steps: How many steps count.
        step: How long a step is, in microseconds of the streams.
        partitions: In how many partitions state is kept.
        seed: Which random numbers.
    """

    rate: int = 10_000
    keys: int = 1_000
    steps: int = 9
    step: int = SECOND
    partitions: int = 1
    seed: int = 1

    def rows(self, stream: str, begin: int, end: int) -> pl.DataFrame:
        """The rows of a stream from one time up to another."""
        first, past = (-(-time * self.rate // SECOND) for time in (begin, end))
        numbers = pl.int_range(first, past, dtype=pl.Int64, eager=True)
        seed = 10 * self.seed + 2 * _STREAMS.index(stream)
        return pl.DataFrame(
            {
                "key": (numbers.hash(seed=seed) % self.keys).cast(pl.Int64),
                "value": (numbers.hash(seed=seed + 1) % 1000).cast(pl.Int64),
                "at": numbers * SECOND // self.rate,
            }
        )


@dataclass(frozen=True, slots=True)
class Cost:
    """What was found.

    Attributes:
        microseconds: The time of the processor for each event, in the step in the middle.
        state_rows: How many rows are remembered in the end.
        state_bytes: How many bytes they take.
    """

    microseconds: float
    state_rows: int
    state_bytes: int


@dataclass(slots=True)
class _Running:
    """Queries in progress."""

    runner: LocalRunner
    answers: dict[str, Answer]
    given: dict[str, list[pl.DataFrame]] = field(
        default_factory=lambda: {name: [] for name in _STREAMS}
    )

    def step(self, load: Load, begin: int, end: int) -> tuple[float, int]:
        """Bring in what happens from one time up to another: how long it took, for how many."""
        flows, events = {}, 0
        for name in (input_.name for input_ in self.runner.graph.inputs):
            rows = load.rows(name, begin, end)
            self.given[name].append(rows)
            events += rows.height
            times = (pl.col("at").alias(START), (pl.col("at") + 1).alias(END))
            batch = rows.with_columns(*times, pl.int_range(pl.len()).alias(ID))
            flows[name] = Flow([batch], Time(end))
        began = process_time()
        found = self.runner.step(flows)
        took = process_time() - began
        for name, batches in found.items():
            self.answers[name].add(batches)
        return took, events


def cost_of(load: Load, queries: list[Query]) -> Cost:
    """What an event costs, of all queries together.

    Raises:
        WrongAnswerError: An answer is not right.
    """
    session = tidemill.connect()
    for name in _STREAMS:
        session.sql(
            f"CREATE STREAM {name} (key BIGINT NOT NULL, value BIGINT NOT NULL, at BIGINT) "
            f"SOURCE memory('{name}') ORDERED BY at"
        )
    asked = {f"q{number}": session.sql(query.text) for number, query in enumerate(queries)}
    plans = {name: q.plan for name, q in asked.items() if isinstance(q, tidemill.Query)}
    assert len(plans) == len(queries), "they are queries"
    graph = build_graph({name: physical(plan) for name, plan in plans.items()})
    running = _Running(
        LocalRunner(graph, partitions=load.partitions),
        {name: Answer(plan.schema) for name, plan in plans.items()},
    )
    # Windows are filled; one step more is the warm-up.
    now, full = 0, max(query.range_ for query in queries)
    while now < full:
        running.step(load, now, now + load.step)
        now += load.step
    costs = []
    for _ in range(load.steps + 1):
        took, events = running.step(load, now, now + load.step)
        costs.append(took / max(events, 1))
        now += load.step
    _check(running, queries, now - 1)
    engines = [engine for stage in running.runner.engines for engine in stage]
    metrics = [metric for engine in engines for metric in engine.measure().values()]
    rows, bytes_ = (sum(getattr(m, f"state_{kind}") for m in metrics) for kind in ("rows", "bytes"))
    return Cost(median(costs[1:]) * 1e6, rows, bytes_)


def _check(running: _Running, queries: list[Query], time: int) -> None:
    given = {name: pl.concat(frames) for name, frames in running.given.items() if frames}
    for query, (name, answer) in zip(queries, running.answers.items(), strict=True):
        found = answer.snapshot(time)
        expected = query.at(given, time).select(found.columns)
        if not found.sort(found.columns).equals(expected.sort(found.columns)):
            raise WrongAnswerError(f"{name} at {time}: {query.text}")


def summed(range_: float, slide: float | None = None, least: int = 0) -> Query:
    """The sum by key over a window, in seconds, of values that are not less than ``least``."""
    length = round(range_ * SECOND)
    step = 1 if slide is None else round(slide * SECOND)
    clause = "" if slide is None else f" SLIDE {step}"

    def at(rows: Rows, time: int) -> pl.DataFrame:
        until = (time + 1) // step * step - 1
        held = _held(rows["s"], until, length).filter(pl.col("value") >= least)
        return held.group_by("key").agg(pl.col("value").sum().alias("total"))

    text = (
        f"SELECT key, SUM(value) AS total FROM s [RANGE {length}{clause}] "
        f"WHERE value >= {least} GROUP BY key"
    )
    return Query(text, length, at)


def joined(range_: float) -> Query:
    """The pairs of two streams with the same key, of some values, over windows in seconds."""
    length = round(range_ * SECOND)

    def at(rows: Rows, time: int) -> pl.DataFrame:
        one, other = (
            _held(rows[name], time, length).select("key", pl.col("value").alias("x"))
            for name in _STREAMS
        )
        return one.join(other, on=["key", "x"]).with_columns(pl.col("x").alias("y"))

    text = (
        f"SELECT s.key AS key, s.value AS x, r.value AS y FROM s [RANGE {length}] "
        f"JOIN r [RANGE {length}] ON s.key = r.key AND s.value = r.value"
    )
    return Query(text, length, at)


def distinct(range_: float) -> Query:
    """The different keys over a window in seconds."""
    length = round(range_ * SECOND)
    text = f"SELECT DISTINCT key FROM s [RANGE {length}]"
    return Query(
        text, length, lambda rows, time: _held(rows["s"], time, length).select("key").unique()
    )


def greatest(rows: int, rate: int) -> Query:
    """The greatest of many values of the last rows, given how many a second there are."""

    def at(given: Rows, time: int) -> pl.DataFrame:
        last = given["s"].filter(pl.col("at") <= time).tail(rows)
        return last.select((pl.col("value") * 1000 + pl.col("key")).max().alias("most"))

    text = f"SELECT MAX(value * 1000 + key) AS most FROM s [ROWS {rows}]"
    return Query(text, rows * SECOND // rate, at)


def _held(rows: pl.DataFrame, time: int, length: int) -> pl.DataFrame:
    """What a window holds at an instant."""
    return rows.filter(pl.col("at") > time - length, pl.col("at") <= time)
