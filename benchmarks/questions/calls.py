"""What a call of Polars costs on few rows, outside its pool of threads and inside.

Why operators run in the pool is said in design note 0006. Both do the same, one after the other,
with one thread in the pool as in Spark's workers; the least of several turns counts.
"""

from __future__ import annotations

import os

os.environ.setdefault("POLARS_MAX_THREADS", "1")

from time import perf_counter
from typing import TYPE_CHECKING

import polars as pl

from benchmarks.harness.measure import WrongAnswerError
from benchmarks.harness.question import Question
from benchmarks.harness.table import Table
from tidemill.engine.pool import in_pool
from tidemill.physical.frames import framed, keep, pick

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.harness.question import Context
    from benchmarks.harness.table import Cell

ROWS = pl.DataFrame(
    {"a": range(100), "b": [n % 7 for n in range(100)], "c": [f"{n}" for n in range(100)]}
)
FEW = pl.DataFrame({"b": [1, 2, 3], "d": [4, 5, 6]})
SCHEMA = ROWS.schema

CALLS: dict[str, Callable[[], pl.DataFrame]] = {
    "select of two columns": lambda: ROWS.select("a", "b"),
    "the same by pick": lambda: pick(ROWS, ("a", "b")),
    "filter": lambda: ROWS.filter(pl.col("a") < 50),  # noqa: PLR2004 — half
    "the same by keep": lambda: keep(ROWS, ROWS["a"] < 50),  # noqa: PLR2004 — half
    "sort by two columns": lambda: ROWS.sort("b", "a"),
    "group_by and count": lambda: ROWS.group_by("b", maintain_order=True).agg(pl.len()),
    "join with three rows": lambda: ROWS.join(FEW, on="b", maintain_order="left"),
    "concat": lambda: pl.concat([ROWS, ROWS]),
    "an empty frame by its schema": lambda: pl.DataFrame(schema=SCHEMA),
    "a frame of three columns": lambda: framed(ROWS.get_columns()),
}


def answers(context: Context) -> Iterator[Table]:
    """A row for each call."""
    turns, times = (25, 200) if context.full else (10, 100)
    rows: list[tuple[Cell, ...]] = []
    for name, call in CALLS.items():
        context.progress(name)
        if not call().equals(in_pool(call)()):
            raise WrongAnswerError(f"{name} gives something else in the pool")
        outside = min(_microseconds(call, times) for _ in range(turns))
        inside = min(in_pool(_microseconds)(call, times) for _ in range(turns))
        rows.append((name, outside, inside, outside / inside))
    yield Table(
        "Calls of Polars on a hundred rows of three columns, microseconds",
        ("call", "outside the pool", "inside", "times"),
        tuple(rows),
    )


def _microseconds(call: Callable[[], pl.DataFrame], times: int) -> float:
    """What a call takes."""
    began = perf_counter()
    for _ in range(times):
        call()
    return (perf_counter() - began) / times * 1e6


QUESTION = Question("calls", "What a call of Polars costs on few rows", answers)
