"""How the local engine compares with DuckDB computing the same final answer in batch.

Both read the same Parquet files, on one core, in this run. What counts is the ratio.
"""

from __future__ import annotations

import os

os.environ.setdefault("POLARS_MAX_THREADS", "1")

from dataclasses import dataclass
from functools import partial
from statistics import median
from time import process_time
from typing import TYPE_CHECKING

import duckdb
import polars as pl

import tidemill
from benchmarks.harness.comparable import like, same_answer, same_rows
from benchmarks.harness.measure import measured
from benchmarks.harness.plans import implement
from benchmarks.harness.question import Question
from benchmarks.harness.table import Table
from tidemill.engine.engine import Flow
from tidemill.model.time import Time
from tidemill.optimizer.logical.rewrite import optimize
from tidemill.physical.fragments import build_graph
from tidemill.runtime.local.runner import LocalRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchmarks.harness.question import Context
    from benchmarks.harness.table import Cell

SECOND = 1_000_000
KEYS = 10_000
BATCHES = 20


@dataclass(frozen=True)
class Asked:
    """A query for Tidemill, the same for DuckDB, and how many times slower Tidemill may be.

    ``check`` reduces Tidemill's results to what DuckDB's query gives, for comparison.
    """

    name: str
    query: str
    duckdb: str
    limit: float
    check: Callable[[pl.DataFrame], pl.DataFrame]


QUESTIONS = (
    Asked(
        "filter and project",
        "SELECT key, value * 2 AS v FROM s WHERE value > 50",
        "SELECT key, value * 2 AS v FROM data WHERE value > 50",
        3,
        lambda out: out.select("key", "v"),
    ),
    Asked(
        "grouped SUM and COUNT, RANGE 60 s SLIDE 1 s",
        "SELECT key, SUM(value) AS v, COUNT(*) AS n "
        "FROM s [RANGE 60 SECONDS SLIDE 1 SECOND] GROUP BY key",
        """
        WITH pane AS (SELECT key, "at" // 1000000 AS p, SUM(value) AS v, COUNT(*) AS n
                      FROM data GROUP BY ALL),
             moved AS (SELECT key, p AS t, v, n FROM pane
                       UNION ALL SELECT key, p + 60, -v, -n FROM pane),
             net AS (SELECT key, t, SUM(v) AS v, SUM(n)::BIGINT AS n FROM moved GROUP BY ALL),
             summed AS (SELECT key, t, SUM(v) OVER w AS v, SUM(n) OVER w AS n,
                               LEAD(t) OVER w AS next
                        FROM net WINDOW w AS (PARTITION BY key ORDER BY t))
        SELECT key, v, n::BIGINT AS n, (t + 1) * 1000000 - 1 AS "start",
               (next + 1) * 1000000 - 1 AS "end"
        FROM summed WHERE n > 0
        """,
        5,
        lambda out: out.select("key", "v", "n", "start", "end"),
    ),
    Asked(
        "grouped SUM at every event, RANGE 60 s",
        "SELECT key, SUM(value) AS v FROM s [RANGE 60 SECONDS] GROUP BY key",
        """
        WITH moved AS (SELECT key, "at" AS t, value AS v, 1 AS n FROM data
                       UNION ALL SELECT key, "at" + 60000000, -value, -1 FROM data),
             net AS (SELECT key, t, SUM(v) AS v, SUM(n)::BIGINT AS n FROM moved GROUP BY ALL),
             summed AS (SELECT key, t, SUM(v) OVER w AS v, SUM(n) OVER w AS n,
                               LEAD(t) OVER w AS next
                        FROM net WINDOW w AS (PARTITION BY key ORDER BY t))
        SELECT key, v, t AS "start", next AS "end" FROM summed WHERE n > 0
        """,
        8,
        lambda out: out.select("key", "v", "start", "end"),
    ),
    Asked(
        "sliding equi-join, RANGE 10 s",
        "SELECT a.value AS x, b.value AS y "
        "FROM s a [RANGE 10 SECONDS] JOIN s b [RANGE 10 SECONDS] ON a.key = b.key",
        """
        SELECT a.value AS x, b.value AS y FROM data a JOIN data b
        ON a.key = b.key AND a."at" < b."at" + 10000000 AND b."at" < a."at" + 10000000
        """,
        5,
        lambda out: out.select("x", "y"),
    ),
)


def write_data(path: Path, rows: int) -> None:
    """A stream of ``rows`` events over ten minutes; values are multiples of a quarter."""
    span = 600 * SECOND
    numbers = pl.int_range(rows, eager=True)
    frame = pl.DataFrame(
        {
            "key": (numbers.hash(seed=1) % KEYS).cast(pl.Int64),
            "value": (numbers.hash(seed=2) % 400).cast(pl.Float64) / 4,
            "at": (numbers * (span // rows)).cast(pl.Int64),
        }
    )
    size = max(1, rows // 20)
    for part in range(0, rows, size):
        frame[part : part + size].write_parquet(path / f"{part:09d}.parquet")


def run_tidemill(path: Path, text: str) -> Callable[[], pl.DataFrame]:
    """Run a query; what is given gives the results."""
    return run_query(path, text).results


def run_query(path: Path, text: str) -> tidemill.Query:
    """A query that has run."""
    session = tidemill.connect()
    session.sql(
        "CREATE STREAM s (key BIGINT NOT NULL, value DOUBLE NOT NULL, at BIGINT) "
        f"SOURCE parquet(path => '{path}', settle => 0) ORDERED BY at"
    )
    query = session.sql(text)
    assert isinstance(query, tidemill.Query), "the questions are queries"
    session.run()
    return query


def run_duckdb(path: Path, text: str) -> Callable[[], pl.DataFrame]:
    """Make a table of the answer; what is given gives it."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute(f"CREATE VIEW data AS SELECT * FROM '{path}/*.parquet'")
    connection.execute(f"CREATE TABLE result AS {text}")

    def results() -> pl.DataFrame:
        found = pl.from_arrow(connection.sql("SELECT * FROM result").to_arrow_table())
        assert isinstance(found, pl.DataFrame), "a table is a frame"
        return found

    return results


def same(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    """Whether two answers have the same rows, at every instant if they say from when to when."""
    other = like(other, one)
    return same_answer(one, other) if "end" in one.columns else same_rows(one, other)


def join_window(rows: int) -> tuple[int, int, int]:
    """The state of a join of two windows: rows, bytes, and the bytes of its columns alone."""
    session = tidemill.connect()
    for name in "ab":
        session.sql(
            f"CREATE STREAM {name} (key BIGINT, value DOUBLE, at BIGINT) "
            f"SOURCE memory('{name}') ORDERED BY at"
        )
    query = session.sql(
        "SELECT a.value AS x, b.value AS y FROM a [RANGE 1 HOUR] JOIN b [RANGE 1 HOUR] "
        "ON a.key = b.key"
    )
    assert isinstance(query, tidemill.Query), "the question is a query"
    runner = LocalRunner(build_graph({"q": implement(optimize(query.plan))}))
    names = [input_.name for input_ in runner.graph.inputs]
    size = rows // 2 // BATCHES
    columns = 0
    for step in range(BATCHES):
        numbers = pl.int_range(step * size, (step + 1) * size, eager=True)
        batch = pl.DataFrame(
            {
                "key": numbers.hash(seed=3).reinterpret(signed=True),
                "value": numbers.cast(pl.Float64),
                "at": numbers,
                "@start": numbers,
                "@end": numbers + 1,
                "@id": numbers,
            }
        )
        used = batch.select("key", "value", "@start", "@end")
        columns += len(names) * int(used.estimated_size())
        flow = Flow([batch], Time(int(numbers[-1])))
        runner.step({name: Flow(list(flow.batches), flow.watermark) for name in names})
    found = runner.engines[-1][0].measure().values()
    return sum(m.state_rows for m in found), sum(m.state_bytes for m in found), columns


def answers(context: Context) -> Iterator[Table]:
    """What the local engine takes, what a longer window costs, and what a window remembers."""
    rows = 1_000_000 if context.full else 200_000
    path = context.folder / "events"
    path.mkdir()
    write_data(path, rows)
    found: list[tuple[Cell, ...]] = []
    for asked in QUESTIONS:
        timings = measured(
            {
                "DuckDB": partial(run_duckdb, path, asked.duckdb),
                "Tidemill": partial(_run_checked, path, asked),
            },
            same=same,
            repeat=_repeats(context),
            progress=partial(_tell, context, asked.name),
        )
        floor, own = timings["DuckDB"], timings["Tidemill"]
        ratio = own.best / floor.best
        found.append((asked.name, str(floor), str(own), ratio, asked.limit, ratio <= asked.limit))
    yield Table(
        f"The local engine and DuckDB's batch answer: {rows:,} events, {KEYS:,} keys, one core",
        ("question", "DuckDB", "Tidemill", "ratio of the best", "at most", "ok"),
        tuple(found),
        ("Reading the files is part of both times.",),
    )
    yield _window(context, path)
    yield _reading(context, path)
    kept, bytes_, columns = join_window(600_000)
    times = bytes_ / columns
    yield Table(
        "What a window of a join remembers",
        ("rows", "bytes by the bytes of its columns", "at most", "ok"),
        ((kept, times, 3, times <= 3),),  # noqa: PLR2004 — the limit
    )


def _repeats(context: Context) -> int:
    return 5 if context.full else 3


def _run_checked(path: Path, asked: Asked) -> Callable[[], pl.DataFrame]:
    results = run_tidemill(path, asked.query)
    return lambda: asked.check(results())


def _tell(context: Context, name: str, text: str) -> None:
    context.progress(f"{name}: {text}")


def _window(context: Context, path: Path) -> Table:
    """What a window of ten times the length costs."""
    sliding = QUESTIONS[1].query
    wide = sliding.replace("RANGE 60", "RANGE 600")
    timings = measured(
        {
            "RANGE 60 SECONDS": lambda: run_tidemill(path, sliding),
            "RANGE 600 SECONDS": lambda: run_tidemill(path, wide),
        },
        same=lambda *_: True,  # two questions, each of which has been compared before
        repeat=_repeats(context),
        progress=context.progress,
    )
    short, long = timings.values()
    ratio = long.best / short.best
    return Table(
        "A window of ten times the length, SLIDE 1 SECOND",
        ("60 s", "600 s", "ratio of the best", "at most", "ok"),
        ((str(short), str(long), ratio, 1.5, ratio <= 1.5),),  # noqa: PLR2004 — the limit
    )


def _reading(context: Context, path: Path) -> Table:
    """What it costs to read an answer, once it is there."""
    query = run_query(path, QUESTIONS[1].query)
    forms = {"results": query.results, "changes": query.changes}
    found: list[tuple[Cell, ...]] = []
    for name, read in forms.items():
        context.progress(f"reading {name}")
        seconds, rows = [], 0
        for _ in range(_repeats(context)):
            began = process_time()
            rows = read().height
            seconds.append(process_time() - began)
        found.append((f"{name}()", rows, median(seconds), median(seconds) / rows * 1e6))
    return Table(
        "Reading the answer of a sliding sum",
        ("what", "rows", "s of the processor", "us a row"),
        tuple(found),
    )


QUESTION = Question("local_engine", "How far the local engine is from a batch answer", answers)
