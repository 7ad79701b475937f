"""How the pipeline on Spark compares with native Structured Streaming on the same files.

Each runs in a Spark of its own (two cores, state in RocksDB, the same settings of SQL and of
checkpoints), one after the other. Both read the same files in the same batches, one file a batch,
and write Parquet. Tidemill starts Java as it always does; native has all that Java can do to
compile. What counts is the ratio of the times that batches take once state is full; outputs are
compared before any time counts. Last, the memory of the driver over 200 batches.
"""

from __future__ import annotations

import gc
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import polars as pl
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 — as everyone writes it

import tidemill
from benchmarks.harness.measure import WrongAnswerError
from benchmarks.harness.question import Question
from benchmarks.harness.table import Table
from tidemill.runtime.spark.cluster import open_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    from benchmarks.harness.question import Context
    from benchmarks.harness.table import Cell

SECOND = 1_000_000
BEGIN = 1_700_000_000 * SECOND
SCHEMA = "key long, value double, at timestamp"


@dataclass(frozen=True)
class Input:
    """A stream in files, one a batch.

    Attributes:
        files: How many files.
        rows: How many rows each has.
        rate: How many rows a second of the stream's time has.
        keys: How many keys there are.
    """

    files: int
    rows: int
    rate: int
    keys: int

    def write(self, path: Path, seed: int, first: int = 0) -> None:
        """Write the files; values are multiples of a quarter, so that sums are exact."""
        path.mkdir(parents=True, exist_ok=True)
        for file in range(first, first + self.files):
            numbers = pl.int_range(file * self.rows, (file + 1) * self.rows, eager=True)
            at = BEGIN + numbers * SECOND // self.rate
            frame = pl.DataFrame(
                {
                    "key": (numbers.hash(seed=seed) % self.keys).cast(pl.Int64),
                    "value": (numbers.hash(seed=seed + 1) % 400).cast(pl.Float64) / 4,
                    "at": at.cast(pl.Datetime("us", "UTC")),
                }
            )
            unfinished = path / f".{file:06d}"
            frame.write_parquet(unfinished)
            os.utime(unfinished, (BEGIN // SECOND + file,) * 2)  # Spark reads the oldest first
            unfinished.rename(path / f"{file:06d}.parquet")


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


def windowed(range_: int, slide: int, where: str = "true") -> Pair:
    """A grouped sum over a sliding window."""

    def native(streams: Mapping[str, DataFrame]) -> DataFrame:
        return (
            streams["s"]
            .withWatermark("at", "0 seconds")
            .where(where)
            .groupBy(F.window("at", f"{range_} seconds", f"{slide} seconds"), "key")
            .agg(F.sum("value").alias("v"))
            .select("key", "v", F.col("window.end").alias("until"))
        )

    def expand(results: pl.DataFrame) -> pl.DataFrame:
        """One row for each window that ends while a row holds."""
        step = slide * SECOND
        first, after = (pl.col("start") + step) // step, pl.col("end") // step + 1
        windows = results.with_columns(pl.int_ranges(first, after).alias("until"))
        exploded = windows.explode("until").drop_nulls("until")
        return exploded.with_columns(pl.col("until") * step)

    text = (
        f"SELECT key, SUM(value) AS v FROM s [RANGE {range_} SECONDS SLIDE {slide} SECONDS] "
        f"WHERE {where} GROUP BY key"
    )
    return Pair(text, native, expand)


def filtered(where: str) -> Pair:
    """A filter and a projection."""
    return Pair(
        f"SELECT key, value * 2 AS v, at FROM s WHERE {where}",
        lambda streams: streams["s"].where(where).selectExpr("key", "value * 2 AS v", "at"),
        lambda results: results.with_columns(pl.col("at").dt.epoch("us")),
    )


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
        "20 queries on one stream, 20k rows a batch",
        {"s": Input(14, 20_000, 4_000, 1_000)},
        [
            *(filtered(f"value > {50 + 2 * number}") for number in range(10)),
            *(windowed(30, 10, f"value > {5 * number}") for number in range(10)),
        ],
        limit=8,
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


def connect(checkpoint: Path) -> tidemill.Session:
    """A session on the Spark that both use."""
    return tidemill.connect(engine="spark", master="local[2]", memory="8g", checkpoint=checkpoint)


def declare(session: tidemill.Session, path: Path, streams: Sequence[str]) -> None:
    """Register the streams."""
    for name in streams:
        session.sql(
            f"CREATE STREAM {name} (key BIGINT NOT NULL, value DOUBLE NOT NULL, at TIMESTAMP) "
            f"SOURCE parquet('{path / name}', files_per_batch => 1) ORDERED BY at"
        )


def run_tidemill(question: Asked, path: Path, out: Path) -> float:
    """The seconds a batch takes."""
    with connect(out / "checkpoint") as session:
        declare(session, path, list(question.streams))
        for number, pair in enumerate(question.queries):
            session.sql(
                f"CREATE QUERY q{number} INTO parquet('{out / str(number)}') AS {pair.text}"
            )
        session.start()
        session.await_idle()
        (query,) = spark_session().streams.active
        seconds = pace([query.recentProgress], question.skip)
        session.stop()
        session.run()  # to the end of the streams, for comparison
    return seconds


def run_native(question: Asked, path: Path, out: Path) -> float:
    """The seconds a batch takes, of all queries."""
    spark = spark_session()
    open_cluster("local[2]", "8g")  # sets what can be set on a session that is there
    running = []
    for number, pair in enumerate(question.queries):
        streams = {
            name: spark.readStream.name(f"n{number}_{name}")
            .schema(SCHEMA)
            .option("maxFilesPerTrigger", 1)
            .parquet(str(path / name))
            for name in question.streams
        }
        writer = pair.native(streams).writeStream.outputMode("append").format("parquet")
        writer = writer.option("checkpointLocation", str(out / f"checkpoint{number}"))
        running.append(writer.start(str(out / str(number))))
    for query in running:
        query.processAllAvailable()
    seconds = pace([query.recentProgress for query in running], question.skip)
    for query in running:
        query.stop()
    return seconds


def pace(runs: Sequence[Sequence[Any]], skip: int) -> float:
    """The seconds a batch takes: the median, or if several run at once, what passes till all end.

    Args:
        runs: What Spark reports of each query.
        skip: How many batches do not count.
    """
    batches = [[p for p in run if p["numInputRows"]] for run in runs]
    if len(batches) == 1:
        return median(p["durationMs"]["triggerExecution"] / 1000 for p in batches[0][skip:])
    done = [
        max(
            datetime.fromisoformat(p["timestamp"]).timestamp()
            + p["durationMs"]["triggerExecution"] / 1000
            for p in same
        )
        for same in zip(*batches, strict=True)
    ]
    return (done[-1] - done[skip - 1]) / (len(done) - skip)


def spark_session() -> SparkSession:
    """The Spark of this process: the one that Tidemill has started, or else a plain one."""
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "8g")
    return builder.config("spark.ui.enabled", "false").getOrCreate()


def compare(question: Asked, own: Path, native: Path) -> int:
    """How many rows there are.

    Raises:
        WrongAnswerError: The native queries gave others.
    """
    rows = 0
    for number, pair in enumerate(question.queries):
        given = pl.read_parquet(native / str(number) / "*.parquet")
        expected = given.with_columns(pl.col(pl.Datetime).dt.epoch("us"))
        found = pair.expand(pl.read_parquet(own / str(number) / "**/*.parquet"))
        found = found.select(expected.columns)
        if "until" in expected.columns:  # native windows at the end are still open
            found = found.filter(pl.col("until") <= expected["until"].max())
        rows += expected.height
        if not found.sort(found.columns).equals(expected.sort(expected.columns)):
            raise WrongAnswerError(
                f"{question.name}, query {number}: {found.height:,} rows, not {expected.height:,}"
            )
    return rows


class Sides:
    """Two processes, each with a Spark that stays warm from question to question."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self._own, self._native = (ProcessPoolExecutor(1, context) for _ in range(2))

    def ask(self, question: str, *, files: int | None = None) -> tuple[float, float, int]:
        """The seconds of a batch, native and ours, and how many rows are the same in both."""
        asked = QUESTIONS[question]
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for seed, (stream, input_) in enumerate(asked.streams.items()):
                given = input_ if files is None else replace(input_, files=files)
                given.write(folder / "in" / stream, seed=10 * seed + 1)
            own = self._own.submit(run_own, question, folder).result()
            native = self._native.submit(run_other, question, folder).result()
            return native, own, compare(asked, folder / "own", folder / "native")

    def memory(self) -> list[tuple[int, int, int]]:
        """See ``memory_over_batches``."""
        with tempfile.TemporaryDirectory() as folder:
            return self._own.submit(memory_over_batches, Path(folder)).result()


def run_own(question: str, folder: Path) -> float:
    """Answer a question with Tidemill, in the process that does that."""
    return run_tidemill(QUESTIONS[question], folder / "in", folder / "own")


def run_other(question: str, folder: Path) -> float:
    """Answer a question with Spark alone, in the process that does that."""
    return run_native(QUESTIONS[question], folder / "in", folder / "native")


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
    java = spark_session()._jvm.java.lang  # noqa: SLF001 — there is no other way to it
    for _ in range(2):
        java.System.gc()
        gc.collect()
    runtime = java.Runtime.getRuntime()
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return runtime.totalMemory() - runtime.freeMemory(), pages * os.sysconf("SC_PAGE_SIZE")


def answers(context: Context) -> Iterator[Table]:
    """How long batches take, and what the driver remembers."""
    sides = Sides()
    context.progress("warm-up")
    sides.ask("empty", files=20)  # so that nobody pays for what Java does at first
    found: list[tuple[Cell, ...]] = []
    for name, question in QUESTIONS.items():
        context.progress(name)
        native, own, rows = sides.ask(name)
        ratio = native / own
        found.append(
            (question.name, native, own, ratio, question.limit, ratio >= question.limit, rows)
        )
    yield Table(
        "Seconds a batch takes once state is full, local[2], RocksDB",
        ("question", "native", "Tidemill", "times faster", "at least", "ok", "rows compared"),
        tuple(found),
    )
    context.progress("memory")
    yield Table(
        "Memory of the driver",
        ("batches", "MB of Java's heap in use", "MB of Python"),
        tuple(
            (batches, java // 10**6, python // 10**6) for batches, java, python in sides.memory()
        ),
    )


QUESTION = Question("spark_pipeline", "How the pipeline on Spark compares with native", answers)
