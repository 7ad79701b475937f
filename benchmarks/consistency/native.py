"""Transfers through Spark's own operators: what it refuses, and what its readers see.

as it is        sums by account, a full join and a sum, in each output mode
by window       the same in windows that do not overlap, which the join names as well: each total
                comes once, when its window is over, and says nothing about the time before
two queries     credits and debits are kept up to date by a query each, and a reader of the
                total reads both tables: what people do who want it now
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import functions as F  # noqa: N812 — as everyone writes it

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Tried", "as_it_is", "by_window", "two_queries"]

Read: TypeAlias = Callable[[], "DataFrame"]

MODES = ("append", "update", "complete")
SCHEMA = "from_account long, to_account long, amount long, at long"


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of it.

    Attributes:
        what: What was tried.
        totals: How many totals were seen.
        wrong: How many of them were not 0.
        says: What Spark says, if it refuses.
    """

    what: str
    totals: int | None
    wrong: int | None
    says: str = ""


def transfers(spark: SparkSession, folder: Path) -> DataFrame:
    """The stream, a file a batch."""
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))
    at = F.timestamp_micros("at").alias("at")
    return rows.select("from_account", "to_account", "amount", at).withWatermark("at", "3 seconds")


def as_it_is(spark: SparkSession, folder: Path, out: Path) -> list[Tried]:
    """The query as it was asked, in each output mode."""

    def read() -> DataFrame:
        rows = transfers(spark, folder)
        credit = rows.groupBy(F.col("to_account").alias("account")).agg(F.sum("amount").alias("c"))
        debit = rows.groupBy(F.col("from_account").alias("account")).agg(F.sum("amount").alias("d"))
        balance = F.coalesce("c", F.lit(0)) - F.coalesce("d", F.lit(0))
        return credit.join(debit, "account", "full").agg(F.sum(balance).alias("total"))

    return [_run(f"as it is, {mode}", read, mode, out / mode) for mode in MODES]


def by_window(spark: SparkSession, folder: Path, out: Path) -> Tried:
    """In windows of 5 seconds that do not overlap."""

    def read() -> DataFrame:
        rows = transfers(spark, folder)
        window = F.window("at", "5 seconds").alias("window")
        credit = rows.groupBy(window, F.col("to_account").alias("account"))
        debit = rows.groupBy(window, F.col("from_account").alias("account"))
        both = credit.agg(F.sum("amount").alias("c")).join(
            debit.agg(F.sum("amount").alias("d")), ["window", "account"], "full"
        )
        balance = F.coalesce("c", F.lit(0)) - F.coalesce("d", F.lit(0))
        return both.groupBy("window").agg(F.sum(balance).alias("total"))

    return _run("by window, append", read, "append", out / "window")


def _run(what: str, read: Read, mode: str, out: Path) -> Tried:
    """Try a query whose column ``total`` must be 0."""
    totals: list[int | None] = []

    def take(frame: DataFrame, _: int) -> None:
        totals.extend(row["total"] for row in frame.collect())

    try:
        writer = read().writeStream.outputMode(mode).foreachBatch(take)
        query = writer.option("checkpointLocation", str(out)).start()
    except AnalysisException as error:
        return Tried(what, None, None, _first_line(error))
    try:
        query.processAllAvailable()
    except StreamingQueryException as error:
        return Tried(what, None, None, _first_line(error))
    finally:
        query.stop()
    return Tried(what, len(totals), sum(total != 0 for total in totals))


def two_queries(spark: SparkSession, folder: Path, out: Path) -> Tried:
    """Two tables, read after every batch of either."""
    sums: dict[str, dict[int, int]] = {"to_account": {}, "from_account": {}}
    totals: list[int] = []
    turn = Lock()

    def keep(column: str) -> Callable[[DataFrame, int], None]:
        def take(frame: DataFrame, _: int) -> None:
            rows = frame.collect()
            with turn:
                sums[column].update((row[column], row["amount"]) for row in rows)
                totals.append(sum(sums["to_account"].values()) - sum(sums["from_account"].values()))

        return take

    running = []
    for column in sums:
        frame = transfers(spark, folder).groupBy(column).agg(F.sum("amount").alias("amount"))
        writer = frame.writeStream.outputMode("update").foreachBatch(keep(column))
        running.append(writer.option("checkpointLocation", str(out / column)).start())
    for query in running:
        query.processAllAvailable()
    for query in running:
        query.stop()
    return Tried("two queries, update", len(totals), sum(total != 0 for total in totals))


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
