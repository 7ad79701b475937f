"""Linear Road live on Spark: in real time, a file a second.

The network is filled first, a file a minute. Then a file with the reports of each second is put
where the stream reads, at that second by the clock of this machine, whether the pipeline keeps up
or not; a batch takes all files that are there when it begins. A result is out when the file that
holds it was written. So nothing is computed: the times are those that a reader would see, and the
half second after which the pipeline looks for new files again is part of them.

There is one partition, and so one stage: what it can take is less than two cores could, but batches
of so few rows are over sooner.
"""

from __future__ import annotations

from datetime import datetime
from time import sleep, time
from typing import TYPE_CHECKING

import polars as pl
from pyspark.sql import SparkSession

import tidemill
from benchmarks.harness.live import Course, Step
from benchmarks.harness.stepped import resident
from benchmarks.linear_road.live import Figures, declare, write_answers
from benchmarks.linear_road.queries import QUERIES
from benchmarks.linear_road.rules import SECOND

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.linear_road.live import Plan

__all__ = ["drive"]

_ALL = 1000
"""More files than are ever there at once."""


def drive(plan: Plan, folder: Path) -> Figures:
    """Run what ``live.prepare`` has written; the answers go to ``answers`` in the same place."""
    rows = pl.read_parquet(folder / "input.parquet")
    (folder / "input").mkdir()
    with tidemill.connect(
        engine="spark",
        master="local[2]",
        memory="4g",
        partitions=1,
        checkpoint=folder / "checkpoint",
    ) as session:
        into = f"INTO parquet('{folder}/out/{{name}}', form => 'changes')"
        declare(session, plan, folder, into=into, files=_ALL)
        _put(rows, folder, 0, 60)
        session.start()
        session.await_idle()
        for second in range(60, plan.filled, 60):
            _put(rows, folder, second, second + 60)
            session.await_idle()
        begin = time() + 1
        for second in range(plan.filled, plan.filled + plan.seconds):
            sleep(max(0, begin + second - plan.filled - time()))
            _put(rows, folder, second, second + 1)
        session.await_idle()
        by_query = {name: _responses(folder / "out" / name, plan, begin) for name in QUERIES}
        course = Course(_steps(begin), list(by_query.values()))
        now = session.progress()
        figures = Figures(course, by_query, now.state_rows, now.state_bytes, resident())
        session.stop()
        session.run(end=True)
        write_answers(folder, {name: session.answer(name) for name in QUERIES})
    return figures


def _put(rows: pl.DataFrame, folder: Path, first: int, after: int) -> None:
    """Put the rows from a second up to another where the stream is read, all at once."""
    hidden = folder / "input" / f".{first:06d}"
    rows.filter(pl.col("time").is_between(first, after, closed="left")).write_parquet(hidden)
    hidden.rename(folder / "input" / f"{first:06d}.parquet")


def _responses(out: Path, plan: Plan, begin: float) -> pl.Series:
    """How late the results of a query were that answer what came live."""
    parts = [pl.Series([], dtype=pl.Float64)]
    for file in sorted(out.glob("batch=*/part-*.parquet")):
        frame = pl.read_parquet(file, hive_partitioning=False)
        instant, sign = frame.columns[-2:]
        since = frame.filter(pl.col(sign) > 0)[instant] / SECOND - plan.filled
        parts.append(file.stat().st_mtime - begin - since.filter(since >= 0))
    return pl.concat([part.rename("response") for part in parts])


def _steps(begin: float) -> list[Step]:
    """The batches since a moment, as Spark reports them; their events are files."""
    (query,) = SparkSession.builder.getOrCreate().streams.active
    found = [
        Step(
            datetime.fromisoformat(p["timestamp"]).timestamp(),
            p["durationMs"]["triggerExecution"] / 1000,
            p["numInputRows"],
            0,
        )
        for p in query.recentProgress
        if p["numInputRows"]
    ]
    return [step for step in found if step.began >= begin]
