"""How many events a second each of NEXMark's queries takes, on three engines.

They are the local engine, in one process; Tidemill on Spark; and native Structured Streaming where
it can be asked the same. How they run, and how their answers are compared before any time counts,
is said in ``benchmarks/nexmark/sides.py``; beside it, ``native.py`` has what Spark alone is asked,
and ``refused.py`` what it cannot be asked.
"""

from __future__ import annotations

import os

os.environ.setdefault("POLARS_MAX_THREADS", "1")

from typing import TYPE_CHECKING

from benchmarks.harness.question import Question
from benchmarks.harness.spark_sides import Sides
from benchmarks.harness.table import Table
from benchmarks.nexmark.check import database_of
from benchmarks.nexmark.generator import around_midnight
from benchmarks.nexmark.queries import ASKED, QUESTIONS
from benchmarks.nexmark.refused import CANNOT
from benchmarks.nexmark.sides import Load, native_seconds, run_local, spark_seconds, warm_up

if TYPE_CHECKING:
    from collections.abc import Iterator

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
REPEAT = 5
INSTANTS = 40


def load_of(context: Context) -> Load:
    """The events; batches count when windows of a minute are full."""
    place = context.folder / "events"
    if context.full:
        return Load(around_midnight(1_000_000, context.seed, rate=5_000), place, files=20, skip=7)
    return Load(around_midnight(100_000, context.seed, rate=1_000), place, files=8, skip=5)


def row(
    query: Query, load: Load, database: duckdb.DuckDBPyConnection, sides: Sides, context: Context
) -> tuple[Cell, ...]:
    """The figures of a query that the language can say."""

    def progress(text: str) -> None:
        context.progress(f"{query.name}: {text}")

    out = context.folder / query.name
    local = run_local(
        load, query, database, out / "local", repeat=REPEAT, at=INSTANTS, progress=progress
    )
    progress("on Spark")
    spark = load.rate(query, spark_seconds(sides, load, query, local.answer, out / "spark"))
    progress("native Spark")
    seconds = native_seconds(sides, load, query, local.answer, out / "native")
    native = None if seconds is None else load.rate(query, seconds)
    return (
        f"{query.name}: {query.title}",
        round(load.events(query) / local.timing.median),
        round(local.timing.spread * 50),
        round(spark),
        f"cannot: {CANNOT[query.name].why}" if native is None else f"{native:,.0f}",
        None if native is None else spark / native,
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
        tuple(f"- {note}." for note in notes(load)),
    )


def notes(load: Load) -> Iterator[str]:
    """What must be known to read the figures."""
    yield "all events of the streams that a query reads count, whether it keeps them or not"
    yield f"local: one process, one core, all files; the median of {REPEAT} runs"
    yield f"Spark: two cores, {load.files} batches, of which the first {load.skip} do not count"
    yield "times native: Tidemill on Spark, compared with native Spark on the same batches"
    for query in ASKED:
        if query.remark:
            yield f"{query.name}: {query.remark}"


QUESTION = Question("nexmark", "How many events a second NEXMark's queries take", answers)
