"""How the pipeline on Spark compares with native Structured Streaming on the same files.

How the two run is said in ``spark_sides``. What counts is the ratio of the times that batches take
once state is full; outputs are compared before any time counts. Last, the memory of the driver over
200 batches.
"""

from __future__ import annotations

import gc
import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from pyspark.sql import functions as F  # noqa: N812 — as everyone writes it

from benchmarks.harness.comparable import UNTIL, each_window, require_same
from benchmarks.harness.inputs import SECOND, Input
from benchmarks.harness.question import Question
from benchmarks.harness.spark_sides import (
    Sides,
    connect,
    follow,
    native_spark,
    pace,
    run_native,
    spark_session,
    stream_of,
)
from benchmarks.harness.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    import tidemill
    from benchmarks.harness.question import Context
    from benchmarks.harness.table import Cell

SCHEMA = "key long, value double, at timestamp"


@dataclass(frozen=True)
class Pair:
    """A query in both languages.

    Attributes:
        text: For Tidemill.
        native: For Spark, over its streams.
        expand: Makes of Tidemill's results what the native query gives.
    """

    text: str
    native: Callable[[Mapping[str, DataFrame]], DataFrame]
    expand: Callable[[pl.DataFrame], pl.DataFrame]


@dataclass(frozen=True)
class Asked:
    """What is asked, and how much faster Tidemill is to be.

    Attributes:
        name: What is asked.
        streams: The streams, by name.
        queries: The queries, which run at once.
        limit: How many times faster than native it is to be.
        skip: How many batches fill the state and do not count.
    """

    name: str
    streams: dict[str, Input]
    queries: Sequence[Pair]
    limit: float
    skip: int


def windowed(
    range_: int, slide: int, where: str = "true", *, what: str = "SUM(value)", by: str = "key"
) -> Pair:
    """An aggregate of each key over a sliding window."""

    def native(streams: Mapping[str, DataFrame]) -> DataFrame:
        return (
            streams["s"]
            .withWatermark("at", "0 seconds")
            .where(where)
            .groupBy(F.window("at", f"{range_} seconds", f"{slide} seconds"), F.expr(by).alias("k"))
            .agg(F.expr(what).alias("v"))
            .select("k", "v", F.col("window.end").alias(UNTIL))
        )

    text = (
        f"SELECT {by} AS k, {what} AS v FROM s [RANGE {range_} SECONDS SLIDE {slide} SECONDS] "
        f"WHERE {where} GROUP BY {by}"
    )
    return Pair(text, native, lambda results: each_window(results, slide * SECOND))


def filtered(where: str, what: str = "value * 2") -> Pair:
    """A filter and a projection."""
    return Pair(
        f"SELECT key, {what} AS v, at FROM s WHERE {where}",
        lambda streams: streams["s"].where(where).selectExpr("key", f"{what} AS v", "at"),
        lambda results: results,
    )


AGGREGATES = ("SUM(value)", "COUNT(*)", "MIN(value)", "MAX(value)", "AVG(value)")
KEYS = ("key", "key % 7", "key % 100", "key % 13 + 1")


def unlike(count: int) -> list[Pair]:
    """Queries no two of which have filter, window, aggregate and key in common."""
    found = []
    for number in range(count):
        least = number * 100 / count
        where = (
            f"value > {least}",
            f"value < {100 - least} AND key > {number}",
            f"key % {number + 2} = 1",
            f"key BETWEEN {number} AND {10 * number + 50} OR value = {number % 100}",
        )[number % 4]
        if number % 5 == 0:
            found.append(filtered(where, f"value * {number} + key"))
        else:
            slide = (5, 10, 15)[number % 3]
            found.append(
                windowed(
                    slide * (1 + number % 4),
                    slide,
                    where,
                    what=AGGREGATES[number // 2 % 5],
                    by=KEYS[number // 3 % 4],
                )
            )
    return found


def joined() -> Pair:
    """The pairs of two streams less than a minute apart."""

    def native(streams: Mapping[str, DataFrame]) -> DataFrame:
        left = streams["a"].withWatermark("at", "0 seconds").toDF("key", "x", "left_at")
        right = streams["b"].withWatermark("at", "0 seconds").toDF("right_key", "y", "right_at")
        near = (
            "key = right_key AND left_at < right_at + interval 60 seconds "
            "AND right_at < left_at + interval 60 seconds"
        )
        return left.join(right, F.expr(near)).select("key", "x", "y")

    text = (
        "SELECT a.key AS key, a.value AS x, b.value AS y FROM a [RANGE 60 SECONDS] "
        "JOIN b [RANGE 60 SECONDS] ON a.key = b.key"
    )
    return Pair(text, native, lambda results: results)


SPARSE = Input(40, 10, 10, 100)
SIDE = Input(11, 100_000, 10_000, 1_000_000)
QUESTIONS = {
    "sum": Asked(
        "grouped SUM, RANGE 60 s SLIDE 1 s, 10k keys, 100k rows a batch",
        {"s": Input(10, 100_000, 10_000, 10_000)},
        [windowed(60, 1)],
        limit=5,
        skip=6,
    ),
    "join": Asked(
        "sliding equi-join, 60 s, 1M keys, 100k rows of each a batch",
        {"a": SIDE, "b": SIDE},
        [joined()],
        limit=4,
        skip=7,
    ),
    "many": Asked(
        "20 alike queries on one stream, 20k rows a batch",
        {"s": Input(14, 20_000, 4_000, 1_000)},
        [
            *(filtered(f"value > {50 + 2 * number}") for number in range(10)),
            *(windowed(30, 10, f"value > {5 * number}") for number in range(10)),
        ],
        limit=12,
        skip=4,
    ),
    "unlike": Asked(
        "100 unlike queries on one stream, 20k rows a batch",
        {"s": Input(9, 20_000, 4_000, 1_000)},
        unlike(100),
        limit=25,
        skip=4,
    ),
    "filter": Asked(
        "filter and map, 1M rows a batch",
        {"s": Input(12, 1_000_000, 100_000, 10_000)},
        [filtered("value > 50")],
        limit=0.6,
        skip=4,
    ),
    "empty": Asked(
        "almost empty batches of a grouped SUM",
        {"s": SPARSE},
        [windowed(60, 10)],
        limit=1 / 1.5,
        skip=15,
    ),
}


SHORT = ("many", "empty")
"""What is asked in a short run, with two batches that count."""


def declare(session: tidemill.Session, path: Path, streams: Sequence[str]) -> None:
    """Register the streams."""
    for name in streams:
        session.sql(
            f"CREATE STREAM {name} (key BIGINT NOT NULL, value DOUBLE NOT NULL, at TIMESTAMP) "
            f"SOURCE parquet('{path / name}', files_per_batch => 1, settle => 0) "
            "ORDERED BY at"
        )


def run_tidemill(question: str, folder: Path) -> float:
    """The seconds a batch takes with Tidemill, in the process that does that."""
    asked, out = QUESTIONS[question], folder / "own"
    with connect(out / "checkpoint") as session:
        declare(session, folder / "in", list(asked.streams))
        for number, pair in enumerate(asked.queries):
            session.sql(
                f"CREATE QUERY q{number} INTO parquet('{out / str(number)}') AS {pair.text}"
            )
        return pace([follow(session)], asked.skip)


def run_spark(question: str, folder: Path) -> float:
    """The seconds a batch takes with Spark alone, of all queries, in the process that does that."""
    asked, spark = QUESTIONS[question], native_spark()
    queries = [
        pair.native(
            {
                name: stream_of(spark, f"n{number}_{name}", SCHEMA, folder / "in" / name)
                for name in asked.streams
            }
        )
        for number, pair in enumerate(asked.queries)
    ]
    return pace(run_native(queries, folder / "native"), asked.skip)


def compare(question: Asked, own: Path, native: Path) -> int:
    """How many rows there are.

    Raises:
        WrongAnswerError: The native queries gave others.
    """
    rows = 0
    for number, pair in enumerate(question.queries):
        expected = pl.read_parquet(native / str(number) / "*.parquet")
        found = pair.expand(pl.read_parquet(own / str(number) / "**/*.parquet"))
        if UNTIL in expected.columns:  # native windows at the end are still open
            closed = expected[UNTIL].dt.epoch("us").max()
            found = found.filter(pl.col(UNTIL) <= closed)
        rows += require_same(f"{question.name}, query {number}", found, expected)
    return rows


def ask(sides: Sides, question: str, *, files: int | None = None) -> tuple[float, float, int]:
    """The seconds of a batch, native and ours, and how many rows are the same in both."""
    asked = QUESTIONS[question]
    # Spark may not have written its last yet when it is removed.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for seed, (stream, input_) in enumerate(asked.streams.items()):
            given = input_ if files is None else replace(input_, files=files)
            given.write(folder / "in" / stream, seed=10 * seed + 1)
        own = sides.own(run_tidemill, question, folder)
        native = sides.native(run_spark, question, folder)
        return native, own, compare(asked, folder / "own", folder / "native")


def memory_over_batches(folder: Path) -> list[tuple[int, int, int]]:
    """After how many batches the driver has how many bytes in use, in Java and in Python."""
    measured = []
    with connect(folder / "checkpoint") as session:
        (folder / "in" / "s").mkdir(parents=True)
        declare(session, folder / "in", ["s"])
        session.sql(f"CREATE QUERY q INTO parquet('{folder / 'out'}') AS {windowed(60, 10).text}")
        session.start()
        for first in range(0, 200, SPARSE.files):
            SPARSE.write(folder / "in" / "s", seed=1, first=first)
            session.await_idle()
            measured.append((first + SPARSE.files, *memory_in_use()))
        session.stop()
    return measured


def memory_in_use() -> tuple[int, int]:
    """The bytes in use after collecting garbage, in Java and in Python."""
    machine = spark_session()._jvm  # noqa: SLF001 — there is no other way to it
    assert machine is not None, "Spark runs"
    java = machine.java.lang
    for _ in range(2):
        java.System.gc()
        gc.collect()
    runtime = java.Runtime.getRuntime()
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return runtime.totalMemory() - runtime.freeMemory(), pages * os.sysconf("SC_PAGE_SIZE")


def answers(context: Context) -> Iterator[Table]:
    """How long batches take, and, if there is time, what the driver remembers."""
    sides = Sides()
    context.progress("warm-up")
    ask(sides, "empty", files=20)  # so that nobody pays for what Java does at first
    found: list[tuple[Cell, ...]] = []
    for name, question in QUESTIONS.items():
        if not (context.full or name in SHORT):
            continue
        context.progress(name)
        few = None if context.full else question.skip + 2
        native, own, rows = ask(sides, name, files=few)
        ratio = native / own
        found.append(
            (question.name, native, own, ratio, question.limit, ratio >= question.limit, rows)
        )
    yield Table(
        "Seconds a batch takes once state is full, local[2], RocksDB",
        ("question", "native", "Tidemill", "times faster", "at least", "ok", "rows compared"),
        tuple(found),
    )
    if not context.full:
        return
    context.progress("memory")
    over_batches = sides.own(memory_over_batches, context.folder)
    yield Table(
        "Memory of the driver",
        ("batches", "MB of Java's heap in use", "MB of Python"),
        tuple((batches, java // 10**6, python // 10**6) for batches, java, python in over_batches),
    )


QUESTION = Question("spark_pipeline", "How the pipeline on Spark compares with native", answers)
