"""Tidemill on Spark and native Structured Streaming, side by side.

Each has a process of its own, with a Spark that stays warm from question to question: two cores,
state in RocksDB, and the settings of SQL and of checkpoints that Tidemill makes. Tidemill starts
Java as it always does, with small buffers for sorts and broadcasts (``this_host.py``); native has
all that Java can do to compile, and buffers of the sizes that Spark chooses. Both read the same
files in the same batches, one file of each stream a batch, and write Parquet.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from multiprocessing import get_context
from statistics import median
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from pyspark.sql import SparkSession

import tidemill
from tidemill.runtime.spark.driver.cluster import open_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame

__all__ = [
    "Reports",
    "Sides",
    "batch_seconds",
    "connect",
    "follow",
    "native_spark",
    "pace",
    "run_native",
    "spark_session",
    "stream_of",
]

_MASTER, _MEMORY = "local[2]", "8g"

P = ParamSpec("P")
T = TypeVar("T")

Reports: TypeAlias = "Sequence[dict[str, Any]]"
"""What Spark reports of a query, batch by batch."""


class Sides:
    """Two processes; what they are asked to do, they do one after the other."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self._own, self._native = (ProcessPoolExecutor(1, context) for _ in range(2))

    def own(self, function: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """Call a function in the process of Tidemill."""
        return self._own.submit(function, *given, **named).result()

    def native(self, function: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """Call a function in the process of Spark alone."""
        return self._native.submit(function, *given, **named).result()


def connect(checkpoint: Path) -> tidemill.Session:
    """A session on the Spark of Tidemill's process."""
    return tidemill.connect(engine="spark", master=_MASTER, memory=_MEMORY, checkpoint=checkpoint)


def follow(session: tidemill.Session) -> Reports:
    """Run a session until there is nothing to read, then to the end of the streams.

    Given is what Spark reports of the first of these; the second is there to have all results.
    """
    session.start()
    session.await_idle()
    (query,) = spark_session().streams.active
    reports = _reports(query.recentProgress)
    session.stop()
    session.run(end=True)
    return reports


def spark_session() -> SparkSession:
    """The Spark of this process: the one that Tidemill has started, or else a plain one."""
    builder = SparkSession.builder.master(_MASTER).config("spark.driver.memory", _MEMORY)
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    return builder.config("spark.ui.enabled", "false").getOrCreate()


def native_spark() -> SparkSession:
    """The Spark of the process that has no Tidemill, with Tidemill's settings."""
    spark = spark_session()
    spark.sparkContext.setLogLevel("ERROR")  # Tidemill's Spark writes warnings to a file
    open_cluster(_MASTER, _MEMORY)  # sets what can be set on a session that is there
    return spark


def stream_of(spark: SparkSession, name: str, schema: str, path: Path) -> DataFrame:
    """The files of a directory as a stream, one a batch.

    Args:
        spark: Who reads them.
        name: A name that no other stream of the query has.
        schema: The columns, as Spark writes them.
        path: Where the files are.
    """
    reader = spark.readStream.name(name).schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(path))


def run_native(queries: Sequence[DataFrame], out: Path) -> list[Reports]:
    """Run queries at once, each into a directory that has its number; what Spark says of each."""
    running = []
    for number, frame in enumerate(queries):
        writer = frame.writeStream.outputMode("append").format("parquet")
        writer = writer.option("checkpointLocation", str(out / f"checkpoint{number}"))
        running.append(writer.start(str(out / str(number))))
    for query in running:
        query.processAllAvailable()
    reports = [_reports(query.recentProgress) for query in running]
    for query in running:
        query.stop()
    return reports


def _reports(progress: Sequence[Any]) -> Reports:
    return [report for report in progress if report["numInputRows"]]


def batch_seconds(reports: Reports) -> list[float]:
    """How long each batch took that read anything."""
    return [report["durationMs"]["triggerExecution"] / 1000 for report in reports]


def pace(runs: Sequence[Reports], skip: int) -> float:
    """The seconds a batch takes: the median, or if several run at once, what passes till all end.

    Args:
        runs: What Spark reports of each query.
        skip: How many batches do not count.
    """
    if len(runs) == 1:
        return median(batch_seconds(runs[0])[skip:])
    done = [max(map(_end, same)) for same in zip(*runs, strict=True)]
    return (done[-1] - done[skip - 1]) / (len(done) - skip)


def _end(report: dict[str, Any]) -> float:
    """When a batch ended, in seconds."""
    (took,) = batch_seconds([report])
    return datetime.fromisoformat(report["timestamp"]).timestamp() + took
