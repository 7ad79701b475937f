"""How long after an event its result is out on Spark, in real time, a file a second.

The sustained rate is how many rows a second batches of ten seconds of the stream are worth, once
the window is full. Then a file with the events of each second is put where the stream reads, when
that second is over by the clock of this machine; a batch takes all files that are there. A result
is out when the file that holds it was written. So an event waits half a second, in the mean, for
its file alone, which is part of the response, and nothing is computed.
"""

from __future__ import annotations

from statistics import median
from time import sleep, time
from typing import TYPE_CHECKING

import polars as pl
from pyspark.sql import SparkSession

import tidemill
from benchmarks.harness.live import Course
from benchmarks.harness.measure import WrongAnswerError
from benchmarks.harness.stepped import resident
from benchmarks.latency.local import Driven, same
from benchmarks.latency.queries import QUERIES, SECOND, Asked, duckdb_answer, rows_of

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.latency.local import Sizes

__all__ = ["drive", "sustained_rate"]

_ALL = 1000
"""More files than are ever there at once."""

_LONG = 10
"""The seconds of a file that is not put live."""

_PROBE = 20_000
"""The events a second with which the sustained rate is found."""


def sustained_rate(number: int, sizes: Sizes, folder: Path) -> float:
    """How many events a second large batches take."""
    asked = QUERIES[number]
    fill = -(-sizes.window // _LONG) if asked.has_window else 3
    for file in range(fill + 3):
        _put(asked, folder, (file * _LONG, (file + 1) * _LONG), _PROBE, sizes.seed)
    with _opened(asked, sizes, folder, files=1) as session:
        session.start()
        session.await_idle()
        (query,) = SparkSession.builder.getOrCreate().streams.active
        reports = [p for p in query.recentProgress if p["numInputRows"]]
    taken: list[float] = [p["durationMs"]["triggerExecution"] / 1000 for p in reports]
    return _PROBE * _LONG / median(taken[fill:])


def drive(number: int, rate: float, sizes: Sizes, folder: Path) -> Driven:
    """Let events arrive at a rate.

    Raises:
        WrongAnswerError: DuckDB finds another answer.
    """
    asked = QUERIES[number]
    fill = sizes.window if asked.has_window else _LONG
    end = fill + round(sizes.seconds)
    with _opened(asked, sizes, folder, files=_ALL) as session:
        for first in range(0, fill, _LONG):
            _put(asked, folder, (first, min(first + _LONG, fill)), rate, sizes.seed)
        session.start()
        session.await_idle()
        begin = time() - fill
        for second in range(fill, end):
            sleep(max(0, begin + second + 1 - time()))
            _put(asked, folder, (second, second + 1), rate, sizes.seed)
        session.await_idle()
        responses = _responses(folder / "out", fill, begin)
        state_rows, memory = session.progress().state_rows, resident()
        session.stop()
        session.run(end=True)
        results = session.answer("q").results()
    wanted = duckdb_answer(
        asked, sizes.window, rows_of(asked, 0, round(end * rate), rate, sizes.seed)
    )
    if not same(wanted, results):
        raise WrongAnswerError(
            f"{asked.name} at {rate:,.0f} events/s on Spark: {results.height:,} results, "
            f"and DuckDB has {wanted.height:,}"
        )
    return Driven(Course(parts=[responses]), state_rows, memory, wanted.height)


def _opened(asked: Asked, sizes: Sizes, folder: Path, *, files: int) -> tidemill.Session:
    session = tidemill.connect(
        engine="spark", master="local[2]", memory="4g", checkpoint=folder / "checkpoint"
    )
    for name in asked.streams:
        (folder / name).mkdir(parents=True, exist_ok=True)
        session.sql(
            f"CREATE STREAM {name} (key BIGINT NOT NULL, value DOUBLE NOT NULL, at BIGINT) "
            f"SOURCE parquet('{folder / name}', files_per_batch => {files}, settle => 0) "
            "ORDERED BY at"
        )
    text = asked.text(sizes.window)
    session.sql(f"CREATE QUERY q INTO parquet('{folder / 'out'}', form => 'changes') AS {text}")
    return session


def _put(asked: Asked, folder: Path, seconds: tuple[int, int], rate: float, seed: int) -> None:
    """Put the events from a second up to another where the streams are read."""
    first, after = (round(second * rate) for second in seconds)
    for name, rows in rows_of(asked, first, after, rate, seed).items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        hidden = folder / name / f".{seconds[0]:06d}"
        rows.write_parquet(hidden)
        hidden.rename(folder / name / f"{seconds[0]:06d}.parquet")


def _responses(out: Path, fill: int, begin: float) -> pl.Series:
    """How late the results were that answer what came live."""
    parts = [pl.Series("response", [], pl.Float64)]
    for file in sorted(out.glob("batch=*/part-*.parquet")):
        frame = pl.read_parquet(file, hive_partitioning=False)
        since = frame.filter(pl.col("sign") > 0)["time"] / SECOND
        late = file.stat().st_mtime - begin - since.filter(since >= fill)
        parts.append(late.rename("response"))
    return pl.concat(parts)
