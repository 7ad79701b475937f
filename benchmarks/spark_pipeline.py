"""How the pipeline on Spark compares with native Structured Streaming on the same files.

Both run in one Spark session (two cores, state in RocksDB), read the same files in the same
batches, and write Parquet. What counts is the ratio of the time that batches take once state is
full; outputs are compared before any time counts.

    python benchmarks/spark_pipeline.py [question …]
"""

# ruff: noqa: T201 — a benchmark prints

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import polars as pl
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 — as everyone writes it

import tidemill

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame

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

    def write(self, path: Path, seed: int) -> None:
        """Write the files; values are multiples of a quarter, so that sums are exact."""
        path.mkdir(parents=True)
        for file in range(self.files):
            numbers = pl.int_range(file * self.rows, (file + 1) * self.rows, eager=True)
            at = BEGIN + numbers * SECOND // self.rate
            frame = pl.DataFrame(
                {
                    "key": (numbers.hash(seed=seed) % self.keys).cast(pl.Int64),
                    "value": (numbers.hash(seed=seed + 1) % 400).cast(pl.Float64) / 4,
                    "at": at.cast(pl.Datetime("us", "UTC")),
                }
            )
            target = path / f"{file:06d}.parquet"
            frame.write_parquet(target)
            os.utime(target, (BEGIN // SECOND + file,) * 2)  # Spark reads the oldest first


@dataclass(frozen=True)
class Question:
    """Queries for Tidemill, the same natively, and how much faster Tidemill is to be.

    Attributes:
        name: What is asked.
        streams: The streams, by name.
        queries: The queries of Tidemill, each with the native one.
        limit: How many times faster than native it is to be.
        skip: How many batches fill the state and do not count.
        expand: Makes of Tidemill's results what the native query gives.
    """

    name: str
    streams: dict[str, Input]
    queries: Sequence[tuple[str, Callable[[dict[str, DataFrame]], DataFrame]]]
    limit: float
    skip: int
    expand: Callable[[pl.DataFrame], pl.DataFrame]


def windowed(
    range_: int, slide: int, where: str = "true"
) -> tuple[str, Callable[[dict[str, DataFrame]], DataFrame]]:
    """A grouped sum over a sliding window, in both languages."""

    def native(streams: dict[str, DataFrame]) -> DataFrame:
        return (
            streams["s"]
            .withWatermark("at", "0 seconds")
            .where(where)
            .groupBy(F.window("at", f"{range_} seconds", f"{slide} seconds"), "key")
            .agg(F.sum("value").alias("v"))
            .select("key", "v", F.col("window.end").alias("until"))
        )

    text = (
        f"SELECT key, SUM(value) AS v FROM s [RANGE {range_} SECONDS SLIDE {slide} SECONDS] "
        f"WHERE {where} GROUP BY key"
    )
    return text, native


def by_window(slide: int) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Rows that hold for an interval as one row for each window that ends in it."""
    step = slide * SECOND

    def expand(results: pl.DataFrame) -> pl.DataFrame:
        first, after = (pl.col("start") + step) // step, pl.col("end") // step + 1
        return (
            results.with_columns(pl.int_ranges(first, after).alias("until"))
            .explode("until")
            .drop_nulls("until")
            .select("key", "v", (pl.col("until") * step).alias("until"))
        )

    return expand


def join_native(streams: dict[str, DataFrame]) -> DataFrame:
    """The pairs of two streams less than a minute apart."""
    left = streams["a"].withWatermark("at", "0 seconds").toDF("key", "x", "left_at")
    right = streams["b"].withWatermark("at", "0 seconds").toDF("right_key", "y", "right_at")
    near = (
        "key = right_key AND left_at < right_at + interval 60 seconds "
        "AND right_at < left_at + interval 60 seconds"
    )
    return left.join(right, F.expr(near)).select("key", "x", "y")


JOIN = (
    "SELECT a.key AS key, a.value AS x, b.value AS y FROM a [RANGE 60 SECONDS] "
    "JOIN b [RANGE 60 SECONDS] ON a.key = b.key"
)


def filtered(where: str) -> tuple[str, Callable[[dict[str, DataFrame]], DataFrame]]:
    """A filter and a projection, in both languages."""
    return (
        f"SELECT key, value * 2 AS v, at FROM s WHERE {where}",
        lambda streams: streams["s"]
        .where(where)
        .select("key", (F.col("value") * 2).alias("v"), "at"),
    )


QUESTIONS = {
    "sum": Question(
        "grouped SUM, RANGE 60 s SLIDE 1 s, 10k keys, 100k rows a batch",
        {"s": Input(14, 100_000, 10_000, 10_000)},
        [windowed(60, 1)],
        5,
        7,
        by_window(1),
    ),
    "join": Question(
        "sliding equi-join, 60 s, 1M keys, 100k rows of each a batch",
        {"a": Input(16, 100_000, 10_000, 1_000_000), "b": Input(16, 100_000, 10_000, 1_000_000)},
        [(JOIN, join_native)],
        4,
        8,
        lambda results: results.select("key", "x", "y"),
    ),
    "filter": Question(
        "filter and map, 1M rows a batch",
        {"s": Input(10, 1_000_000, 100_000, 10_000)},
        [filtered("value > 50")],
        0.6,
        3,
        lambda results: results.select("key", "v", pl.col("at").cast(pl.Int64)),
    ),
    "empty": Question(
        "almost empty batches of a grouped SUM",
        {"s": Input(40, 10, 10, 100)},
        [windowed(60, 10)],
        1 / 1.5,
        10,
        by_window(10),
    ),
}


def declare(session: tidemill.Session, path: Path, streams: Sequence[str]) -> None:
    """Register the streams."""
    for name in streams:
        session.sql(
            f"CREATE STREAM {name} (key BIGINT NOT NULL, value DOUBLE NOT NULL, at TIMESTAMP) "
            f"SOURCE parquet('{path / name}', files_per_batch => 1) ORDERED BY at"
        )


def batch_seconds(progress: Sequence[Any]) -> list[float]:
    """How long the batches with rows took."""
    return [p["durationMs"]["triggerExecution"] / 1000 for p in progress if p["numInputRows"]]


def run_tidemill(question: Question, path: Path, out: Path) -> list[float]:
    """The times of the batches."""
    checkpoint = out / "checkpoint"
    with tidemill.connect(
        engine="spark", master="local[2]", memory="8g", checkpoint=checkpoint
    ) as session:
        declare(session, path, list(question.streams))
        for number, (text, _) in enumerate(question.queries):
            session.sql(f"CREATE QUERY q{number} INTO parquet('{out / str(number)}') AS {text}")
        session.start()
        session.await_idle()
        (query,) = spark_session().streams.active
        times = batch_seconds(query.recentProgress)
        session.stop()
        session.run()  # to the end of the streams, for comparison
    return times


def run_native(question: Question, path: Path, out: Path) -> list[float]:
    """The times of the batches."""
    spark = spark_session()
    running = []
    for number, (_, build) in enumerate(question.queries):
        streams = {
            name: spark.readStream.name(f"n{number}_{name}")
            .schema(SCHEMA)
            .option("maxFilesPerTrigger", 1)
            .parquet(str(path / name))
            for name in question.streams
        }
        writer = build(streams).writeStream.outputMode("append").format("parquet")
        running.append(
            writer.option("checkpointLocation", str(out / f"checkpoint{number}"))
            .trigger(processingTime="0 seconds")
            .start(str(out / str(number)))
        )
    for query in running:
        query.processAllAvailable()
    times = [batch_seconds(query.recentProgress) for query in running]
    for query in running:
        query.stop()
    return times[0]


def spark_session() -> SparkSession:
    """The session both use."""
    active = SparkSession.getActiveSession()
    assert active is not None, "Tidemill has started it"
    return active


def compare(question: Question, own: Path, native: Path) -> str:
    """Whether every row the native queries gave is there, and how many there are."""
    rows = 0
    for number in range(len(question.queries)):
        results = pl.read_parquet(own / str(number) / "**/*.parquet")
        given = pl.read_parquet(native / str(number) / "*.parquet")
        expected = given.with_columns(pl.col(pl.Datetime).dt.epoch("us"))
        found = question.expand(results).select(expected.columns)
        if "until" in expected.columns:  # windows at the end are open
            last = expected["until"].max()
            found = found.filter(pl.col("until") <= last)
        rows += expected.height
        if not found.sort(found.columns).equals(expected.sort(expected.columns)):
            return f"NO (query {number}: {found.height:,} against {expected.height:,})"
    return f"yes, {rows:,} rows"


def ask(question: Question, folder: Path) -> None:
    """Print a line of the table."""
    for seed, (name, input_) in enumerate(question.streams.items()):
        input_.write(folder / "in" / name, seed=10 * seed + 1)
    own = run_tidemill(question, folder / "in", folder / "own")
    native = run_native(question, folder / "in", folder / "native")
    mine, theirs = median(own[question.skip :]), median(native[question.skip :])
    agree = compare(question, folder / "own", folder / "native")
    print(
        f"| {question.name} | {theirs:.2f} s | {mine:.2f} s | {theirs / mine:.1f} "
        f"| {question.limit:.2g} | {agree} |",
        flush=True,
    )
    print("   own", own, "native", native, file=sys.stderr)


def main() -> None:
    """Print the table."""
    print("Median time of a batch once state is full, local[2], RocksDB\n")
    print("| question | native | Tidemill | times faster | at least | same |")
    print("|---|---:|---:|---:|---:|---|", flush=True)
    for name in sys.argv[1:] or QUESTIONS:
        folder = Path(tempfile.mkdtemp())
        try:
            ask(QUESTIONS[name], folder)
        finally:
            shutil.rmtree(folder)
            gc.collect()


if __name__ == "__main__":
    main()
