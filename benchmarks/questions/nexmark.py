"""How many events a second each of NEXMark's queries takes, on three engines.

They are the local engine, in one process; Tidemill on Spark; and native Structured Streaming where
it can be asked the same. How they run, and how their answers are compared before any time counts,
is said in ``benchmarks/nexmark/sides.py``; beside it, ``native.py`` has what Spark alone is asked,
and ``refused.py`` what it cannot be asked.
"""

from __future__ import annotations

import os

os.environ.setdefault("POLARS_MAX_THREADS", "1")

from dataclasses import dataclass
from threading import active_count
from typing import TYPE_CHECKING

from benchmarks.harness.question import Question
from benchmarks.harness.spark_sides import Sides
from benchmarks.harness.table import Table
from benchmarks.nexmark.check import database_of
from benchmarks.nexmark.generator import around_midnight
from benchmarks.nexmark.queries import ASKED, QUESTIONS
from benchmarks.nexmark.refused import CANNOT
from benchmarks.nexmark.sides import Load, native_seconds, run_local, spark_seconds, warm_up
from tidemill.engine.pool import looking_on

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import duckdb

    from benchmarks.harness.question import Context
    from benchmarks.harness.table import Cell
    from benchmarks.nexmark.question import Question as Query

COLUMNS = (
    "query",
    "local",
    "± %",
    "on Spark",
    "native Spark",
    "times native",
    "rows",
    "DuckDB",
)
ON_SPARK = ("q2", "q20")
"""The queries that are asked on Spark in a short run: one without state, and one with."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is done.

    Attributes:
        repeat: How often the local engine runs a query.
        instants: At how many instants DuckDB is asked, besides the last ones.
        on_spark: The queries that are asked on Spark.
    """

    repeat: int
    instants: int
    on_spark: tuple[str, ...]


def effort_of(context: Context) -> Effort:
    """Everything, or a part of it."""
    if context.full:
        return Effort(5, 40, tuple(query.name for query in ASKED))
    return Effort(2, 10, ON_SPARK)


def load_of(context: Context) -> Load:
    """The events; batches count when windows of a minute are full."""
    place = context.folder / "events"
    if context.full:
        return Load(around_midnight(500_000, context.seed, rate=2_500), place, files=10, skip=5)
    return Load(around_midnight(100_000, context.seed, rate=1_000), place, files=8, skip=5)


def row(
    query: Query, load: Load, database: duckdb.DuckDBPyConnection, sides: Sides, context: Context
) -> tuple[Cell, ...]:
    """The figures of a query that the language can say."""

    def progress(text: str) -> None:
        context.progress(f"{query.name}: {text}")

    out, effort = context.folder / query.name, effort_of(context)
    with looking_on(active_count() - 1):  # the threads of the sides only wait
        local = run_local(
            load,
            query,
            database,
            out / "local",
            repeat=effort.repeat,
            at=effort.instants,
            progress=progress,
        )
    on_spark: tuple[Cell, ...] = (None, "not asked in a short run", None)
    if query.name in effort.on_spark:
        progress("on Spark")
        spark = load.rate(query, spark_seconds(sides, load, query, local.answer, out / "spark"))
        progress("native Spark")
        seconds = native_seconds(sides, load, query, local.answer, out / "native")
        if seconds is None:
            on_spark = (round(spark), f"cannot: {CANNOT[query.name].why}", None)
        else:
            native = load.rate(query, seconds)
            on_spark = (round(spark), f"{native:,.0f}", spark / native)
    return (
        f"{query.name}: {query.title}",
        round(load.events(query) / local.timing.median),
        round(local.timing.spread * 50),
        *on_spark,
        local.answer.height,
        f"equal at {local.instants} instants",
    )


def missing(query: Query) -> tuple[Cell, ...]:
    """What is said of a query that the language cannot say."""
    empty = (None,) * (len(COLUMNS) - 2)
    return (f"{query.name}: {query.title}", *empty, f"not asked; missing: {query.missing}")


def answers(context: Context) -> Iterator[Table]:
    """The events a second of every query."""
    load = load_of(context)
    context.progress("events")
    load.write()
    sides, database = Sides(), database_of(load.directory)
    context.progress("warm-up")
    warm_up(sides, load, context.folder / "warm-up")
    rows = tuple(
        row(query, load, database, sides, context) if query in ASKED else missing(query)
        for query in QUESTIONS
    )
    site = load.site
    yield Table(
        f"Events a second, {site.events:,} events, {site.rate:,} in a second of the streams' time",
        COLUMNS,
        rows,
        tuple(f"- {note}." for note in (behind(rows), *notes(load, effort_of(context)))),
    )


def behind(rows: Sequence[Sequence[Cell]]) -> str:
    """Where native Spark is faster."""
    place = COLUMNS.index("times native")
    found = [str(row[0]).split(":")[0] for row in rows if row[place] and float(row[place] or 1) < 1]
    return f"behind native Spark: {', '.join(found) or 'none'}"


def notes(load: Load, effort: Effort) -> Iterator[str]:
    """What must be known to read the figures."""
    yield "all events of the streams that a query reads count, whether it keeps them or not"
    yield f"local: one process, one core, all files; the median of {effort.repeat} runs"
    yield f"Spark: two cores, {load.files} batches, of which the first {load.skip} do not count"
    yield "times native: Tidemill on Spark, compared with native Spark on the same batches"
    for query in ASKED:
        if query.remark:
            yield f"{query.name}: {query.remark}"


QUESTION = Question("nexmark", "How many events a second NEXMark's queries take", answers)
