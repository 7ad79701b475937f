"""What it costs to register a hundred queries, to plan them, and to write and read their plans.

The queries differ in a constant and a window, as those that people register do. Each step is taken
for all of them; the least of several turns counts. What is read is compared with what was written.
"""

from __future__ import annotations

import json
from itertools import pairwise
from time import perf_counter
from typing import TYPE_CHECKING

import polars as pl

import tidemill
from benchmarks.harness.measure import WrongAnswerError
from benchmarks.harness.question import Question
from benchmarks.harness.table import Table
from tidemill.physical.codec.plans import read_plans, write_plans
from tidemill.physical.fragments import build_graph

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness.question import Context

QUERIES = 100
KINDS = {
    "grouped aggregate": "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM a [RANGE {n}] WHERE v > {n}"
    " GROUP BY k",
    "join and aggregate": "SELECT a.k, COUNT(*) AS n, MAX(w) AS m FROM a [RANGE {n}] JOIN b"
    " [RANGE 5] ON a.k = b.k WHERE v > {n} GROUP BY a.k",
    "NOT IN": "SELECT k FROM a [RANGE {n}] WHERE v > {n} AND k NOT IN (SELECT k FROM b [RANGE 5])",
}
STREAMS = """
    CREATE STREAM a (k BIGINT, v BIGINT, c VARCHAR, t BIGINT) SOURCE memory('a') ORDERED BY t;
    CREATE STREAM b (k BIGINT, w BIGINT, t BIGINT) SOURCE memory('b') ORDERED BY t
"""


def answers(context: Context) -> Iterator[Table]:
    """A row for each kind of query."""
    turns = 10 if context.full else 3
    rows = []
    for kind, text in KINDS.items():
        context.progress(kind)
        measured = [_milliseconds(text) for _ in range(turns)]
        rows.append((kind, *(min(times) for times in zip(*measured, strict=True))))
    yield Table(
        f"{QUERIES} queries, milliseconds for all of them",
        ("queries", "register", "plan", "build the graph", "write the plans", "read them"),
        tuple(rows),
    )


def _milliseconds(text: str) -> tuple[float, ...]:
    """How long each step takes."""
    session = tidemill.connect()
    empty = {"k": pl.Int64, "v": pl.Int64, "w": pl.Int64, "c": pl.String, "t": pl.Int64}
    for name in ("a", "b"):
        session.put(name, pl.DataFrame(schema=empty))
    session.sql(STREAMS)
    times = [perf_counter()]
    for n in range(1, QUERIES + 1):
        session.sql(f"CREATE QUERY q{n} AS {text.format(n=n)}")
    times.append(perf_counter())
    plans = {f"q{n}": session.planned(f"q{n}").physical for n in range(1, QUERIES + 1)}
    times.append(perf_counter())
    build_graph(plans)
    times.append(perf_counter())
    written = json.dumps(write_plans(plans))
    times.append(perf_counter())
    read = read_plans(json.loads(written))
    times.append(perf_counter())
    if read != plans:
        raise WrongAnswerError("what is read is not what was written")
    return tuple((end - begin) * 1e3 for begin, end in pairwise(times))


QUESTION = Question(
    "planning", "What it costs to register, plan and write a hundred queries", answers
)
