"""One query of NEXMark on each side: the local engine, Tidemill on Spark, and Spark alone.

All read the same files in the same batches, one file of each stream a batch, and write Parquet. No
time counts before the answers are compared: the local one with DuckDB's at many instants, that of
Tidemill on Spark with the local one at every instant, and that of Spark alone with Tidemill's, row
by row.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import polars as pl
from pyspark.errors import AnalysisException

import tidemill
from benchmarks.harness.comparable import (
    UNTIL,
    each_session,
    each_window,
    require_same,
    same_answer,
)
from benchmarks.harness.measure import Timing, WrongAnswerError, measured
from benchmarks.harness.spark_sides import (
    batch_seconds,
    connect,
    follow,
    native_spark,
    run_native,
    stream_of,
)
from benchmarks.nexmark.check import compare, instants, own_instants
from benchmarks.nexmark.generator import write
from benchmarks.nexmark.native import NATIVE
from benchmarks.nexmark.queries import ASKED, COLUMNS, declarations
from benchmarks.nexmark.refused import CANNOT
from tidemill.demo.nexmark import STREAMS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import duckdb
    from pyspark.sql import DataFrame

    from benchmarks.harness.spark_sides import Sides
    from benchmarks.nexmark.question import Question
    from tidemill.demo.nexmark import Site

__all__ = ["Load", "Local", "native_seconds", "run_local", "spark_seconds", "streams_of", "warm_up"]

_BY_NAME = {question.name: question for question in ASKED}
_WARM_UP = ("q0", "q7", "q20")


@dataclass(frozen=True, slots=True)
class Load:
    """What all sides read.

    Attributes:
        site: What happens.
        directory: Where its files are.
        files: How many each stream has, and so how many batches there are.
        skip: How many batches do not count, since they fill the state.
    """

    site: Site
    directory: Path
    files: int
    skip: int

    def write(self) -> None:
        """Write the files."""
        write(self.directory, self.site, files=self.files)

    def events(self, question: Question, *, skip: int = 0) -> int:
        """How many events the streams have that a query reads, but for the first batches."""
        return sum(
            pl.scan_parquet(file).select(pl.len()).collect().item()
            for stream in streams_of(question)
            for file in sorted((self.directory / stream).iterdir())[skip:]
        )

    def rate(self, question: Question, seconds: list[float]) -> float:
        """The events a second of the batches that count, from the seconds of all batches."""
        assert len(seconds) == self.files, "a batch has one file of each stream"
        return self.events(question, skip=self.skip) / sum(seconds[self.skip :])

    def closed(self, question: Question) -> int:
        """Until when all of a query's streams are known, so that windows are closed."""
        last = (
            pl.scan_parquet(self.directory / stream / "*.parquet")
            .select(pl.col("date_time").max().dt.epoch("us"))
            .collect()
            .item()
            for stream in streams_of(question)
        )
        return int(min(last))


def streams_of(question: Question) -> tuple[str, ...]:
    """The streams that a query reads.

    >>> streams_of(_BY_NAME["q13"]), streams_of(_BY_NAME["q9"])
    (('bid',), ('auction', 'bid'))
    """
    assert question.sql is not None, "it is asked"
    read = set(re.findall(r"(?:FROM|JOIN)\s+(\w+)", question.sql))
    return tuple(name for name in STREAMS if name in read)


@dataclass(frozen=True, slots=True)
class Local:
    """What the local engine has given.

    Attributes:
        timing: How long it took.
        answer: Its results.
        instants: At how many of them DuckDB has found the same rows.
    """

    timing: Timing
    answer: pl.DataFrame
    instants: int


def run_local(  # noqa: PLR0913 — every setting has a name
    load: Load,
    question: Question,
    database: duckdb.DuckDBPyConnection,
    out: Path,
    *,
    repeat: int,
    at: int,
    progress: Callable[[str], None],
) -> Local:
    """Run a query on the local engine several times, and ask DuckDB.

    Args:
        load: What it reads.
        question: What is asked.
        database: DuckDB with the same events.
        out: Where answers go.
        repeat: How often it is measured, after a first time that does not count.
        at: At how many instants, about, both are asked.
        progress: Told what is being done.

    Raises:
        WrongAnswerError: DuckDB or another run has other rows.
    """
    places = [out / str(turn) for turn in range(repeat + 1)]
    sessions = [_session(load, question, place) for place in places]
    waiting = iter(zip(sessions, places, strict=True))

    def run() -> Callable[[], pl.DataFrame]:
        session, place = next(waiting)
        session.run()
        return lambda: _answer(place)

    timing = measured({"local": run}, same=same_answer, repeat=repeat, progress=progress)["local"]
    progress("DuckDB")
    answer = _answer(places[0])
    asked = sorted({*instants(load.site, at), *own_instants(answer, at // 2)})
    finding = compare(question, sessions[0].answer(question.name), database, asked)
    if finding.wrong:
        raise WrongAnswerError(f"{question.name}: DuckDB has other rows at {finding.wrong}")
    return Local(timing, answer, finding.instants)


def _session(load: Load, question: Question, out: Path) -> tidemill.Session:
    session = tidemill.connect()
    _declare(session, load, question, out)
    return session


def _declare(session: tidemill.Session, load: Load, question: Question, out: Path) -> None:
    session.sql(declarations(load.site, load.directory, files_per_batch=1))
    session.sql(f"CREATE QUERY {question.name} INTO parquet('{out}') AS {question.sql}")


def _answer(out: Path) -> pl.DataFrame:
    return pl.read_parquet(out / "**/*.parquet", hive_partitioning=False)


def warm_up(sides: Sides, load: Load, out: Path) -> None:
    """Let both Sparks copy, aggregate and join, so that nobody pays for what Java does at first."""
    for name in _WARM_UP:
        sides.own(_run_spark, load, name, out / "own" / name)
        sides.native(_run_native, load, name, out / "native" / name)


def spark_seconds(
    sides: Sides, load: Load, question: Question, local: pl.DataFrame, out: Path
) -> list[float]:
    """How long each batch takes with Tidemill on Spark.

    Raises:
        WrongAnswerError: The local engine has other rows at some instant.
    """
    seconds = sides.own(_run_spark, load, question.name, out)
    if not same_answer(_answer(out / "results"), local):
        raise WrongAnswerError(f"{question.name}: the answer on Spark is not that of one process")
    return seconds


def _run_spark(load: Load, name: str, out: Path) -> list[float]:
    with connect(out / "checkpoint") as session:
        _declare(session, load, _BY_NAME[name], out / "results")
        return batch_seconds(follow(session))


def native_seconds(
    sides: Sides, load: Load, question: Question, local: pl.DataFrame, out: Path
) -> list[float] | None:
    """How long each batch takes with Spark alone, or ``None`` if Spark refuses the query.

    Raises:
        WrongAnswerError: Tidemill has other rows, or Spark does not refuse what it should.
    """
    if question.name in CANNOT:
        said = sides.native(_refusal, load, question.name, out)
        if said is None or CANNOT[question.name].says not in said:
            raise WrongAnswerError(f"{question.name}: Spark does not refuse it, or says {said}")
        return None
    native = NATIVE[question.name]
    seconds = sides.native(_run_native, load, question.name, out)
    if native.slide is not None:
        local = each_window(local, native.slide)
    elif native.sessions is not None:
        local = each_session(local, native.sessions)
    if UNTIL in local.columns:  # no window is behind the last event, but each before it is there
        local = local.filter(pl.col(UNTIL) <= load.closed(question))
    rows = require_same(f"{question.name}, native", local, _answer(out / "0"))
    assert rows, "an answer without rows proves nothing"
    return seconds


def _run_native(load: Load, name: str, out: Path) -> list[float]:
    (reports,) = run_native([NATIVE[name].ask(_reader(load))], out)
    return batch_seconds(reports)


def _refusal(load: Load, name: str, out: Path) -> str | None:
    """What Spark says when it refuses a query, if it does."""
    spark, read = native_spark(), _reader(load)
    logging.getLogger("SQLQueryContextLogger").disabled = True  # it would print the refusal
    for stream in STREAMS:
        read(stream).withWatermark("date_time", "0 seconds").createOrReplaceTempView(stream)
    try:
        run_native([spark.sql(CANNOT[name].text)], out)
    except AnalysisException as error:
        return str(error)
    return None


def _reader(load: Load) -> Callable[[str], DataFrame]:
    """Gives streams by name, each with a name of its own as Spark wants it."""
    spark, number = native_spark(), count()

    def read(name: str) -> DataFrame:
        path = load.directory / name
        if name not in COLUMNS:
            return spark.read.parquet(str(path))
        schema = COLUMNS[name].replace("VARCHAR", "STRING")
        return stream_of(spark, f"{name}_{next(number)}", schema, path)

    return read
