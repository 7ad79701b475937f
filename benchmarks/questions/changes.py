"""How long a pipeline on Spark stands still when queries come, change and go under load.

Files come all the time while four queries run. Each change is made in the middle of that, once by
the next batch and once by stopping Spark's query and starting it again, as was done before. The
pause is by how much the time from one batch to the next is longer, around the change, than it is at
other times; the answer of a query that nothing has changed is compared with that of a bounded run.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from threading import Event, Thread
from time import sleep, time_ns
from typing import TYPE_CHECKING

import polars as pl

import tidemill
from benchmarks.harness.measure import WrongAnswerError
from benchmarks.harness.question import Question
from benchmarks.harness.table import Table
from tidemill.runtime.spark.driver.job import SparkJob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchmarks.harness.question import Context

ROWS, EVERY = 2_000, 0.1
"""How many rows a file has, and how often one comes, in seconds."""

REST, LONG_REST = 1.0, 5.0
"""How long nothing is changed between two changes, in seconds; longer where each starts Spark's
query again, or it would never come to a batch."""

QUERIES = (
    "SELECT k, SUM(v) AS total, COUNT(*) AS n FROM s [RANGE 20000 SLIDE 1000] GROUP BY k",
    "SELECT k, MAX(v) AS top FROM s [RANGE 10000 SLIDE 1000] WHERE v > 100 GROUP BY k",
    "SELECT a.k, a.v, b.v AS w FROM s a [RANGE 100] JOIN s b [RANGE 100] ON a.k = b.k",
    "SELECT DISTINCT k FROM s [RANGE 5000 SLIDE 500] WHERE v < 50",
)
KINDS = {
    "ALTER": "ALTER QUERY q1 AS SELECT k, MAX(v) AS top FROM s [RANGE {range} SLIDE 1000]"
    " GROUP BY k",
    "CREATE": "CREATE QUERY c{number} AS SELECT COUNT(*) AS n FROM s [RANGE {range} SLIDE 1000]",
    "DROP": "DROP QUERY c{number}",
}


@dataclass(slots=True)
class Load:
    """Files that come all the time.

    Attributes:
        directory: Where.
        files: How many have come.
    """

    directory: Path
    files: int = 0

    def add(self) -> None:
        """Let a file come."""
        first = self.files * ROWS
        times = pl.int_range(first, first + ROWS, eager=True)
        frame = pl.DataFrame({"k": times % 997, "v": times * 7 % 1_000, "t": times})
        frame.write_parquet(self.directory / ".unfinished")
        path = self.directory / f"{self.files:06d}.parquet"
        (self.directory / ".unfinished").rename(path)
        os.utime(path, (1_000_000 + self.files, 1_000_000 + self.files))
        self.files += 1

    def keep_coming(self, ended: Event) -> None:
        """Let files come until it is said to end."""
        while not ended.wait(EVERY):
            self.add()


def answers(context: Context) -> Iterator[Table]:
    """A row for each kind of change and each way."""
    changes = 20 if context.full else 7
    rows: list[tuple[str | float, ...]] = []
    ways = {"at the next batch": False, "by a restart": True}
    for way, restarts in ways.items():
        context.progress(way)
        folder = context.folder / way.replace(" ", "-")
        rows += [(way, *row) for row in _measured(folder, changes, restarts=restarts)]
    yield Table(
        f"pauses of {len(QUERIES)} queries, {changes} changes of each kind, seconds",
        ("change", "statement", "batch to batch", "statement takes", "pause", "pause in batches"),
        tuple(rows),
        ("Medians. The pause is what the gap around a change is longer than the usual one.",),
    )


def _measured(folder: Path, changes: int, *, restarts: bool) -> Iterator[tuple[str | float, ...]]:
    source, checkpoint = folder / "in", folder / "state"
    source.mkdir(parents=True)
    load, ended = Load(source), Event()
    load.add()
    made: list[tuple[str, int, int]] = []
    with tidemill.connect(engine="spark", partitions=2, checkpoint=checkpoint) as session:
        session.sql(
            "CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT)"
            f" SOURCE parquet('{source}', settle => 0) ORDERED BY t"
        )
        for number, text in enumerate(QUERIES):
            session.sql(f"CREATE QUERY q{number} AS {text}")
        session.start()
        session.await_idle()
        thread = Thread(target=load.keep_coming, args=(ended,))
        thread.start()
        try:
            sleep(3 * REST)
            _change_all(session, changes, made, restarts=restarts)
        finally:
            ended.set()
            thread.join()
        session.await_idle()
        found = session.answer("q0").changes()
    _compare(source, found)
    begun = _begun(checkpoint)
    usual = _usual(begun, made)
    for kind in KINDS:
        spans = [(began, over) for one, began, over in made if one == kind]
        takes = median((over - began) / 1e6 for began, over in spans)
        pause = median(max(_gap(begun, began, over) - usual, 0.0) for began, over in spans)
        yield kind, usual, takes, pause, pause / usual


def _change_all(
    session: tidemill.Session, changes: int, made: list[tuple[str, int, int]], *, restarts: bool
) -> None:
    """Make all changes, and note when."""
    job = session._queries.look.finished()  # noqa: SLF001 — who measures how it changes
    assert isinstance(job, SparkJob), "it runs on Spark"
    change: Callable[..., object] = SparkJob.change
    if restarts:
        SparkJob.change = SparkJob._changed_by_restart  # type: ignore[method-assign]  # noqa: SLF001
    try:
        for number in range(changes):
            for kind, text in KINDS.items():
                statement = text.format(number=number, range=5_000 + 1_000 * number)
                began = time_ns() // 1000
                session.sql(statement)
                made.append((kind, began, time_ns() // 1000))
                sleep(LONG_REST if restarts else REST)
    finally:
        SparkJob.change = change  # type: ignore[method-assign,assignment]


def _begun(checkpoint: Path) -> list[int]:
    """When batches have begun, in microseconds."""
    lines = (json.loads(line) for line in (checkpoint / "batches.jsonl").read_text().splitlines())
    return sorted(line["now"] for line in lines if "begin" in line)


def _usual(begun: list[int], made: list[tuple[str, int, int]]) -> float:
    """The time from one batch to the next where nothing is changed, in seconds."""
    gaps = [
        (after - before) / 1e6
        for before, after in pairwise(begun)
        if not any(began <= after and before <= over for _, began, over in made)
    ]
    return median(gaps)


def _gap(begun: list[int], began: int, over: int) -> float:
    """The longest time from one batch to the next around a change, in seconds."""
    gaps = [b - a for a, b in pairwise(begun) if began <= b and a <= over]
    return max(gaps, default=0) / 1e6


def _compare(source: Path, found: pl.DataFrame) -> None:
    """Refuse an answer that is not that of a bounded run."""
    with tidemill.connect() as session:
        session.sql(
            "CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT)"
            f" SOURCE parquet('{source}') ORDERED BY t"
        )
        query = session.query(QUERIES[0])
        session.run()
        wanted = query.changes()
    last = wanted["time"].max()
    assert isinstance(last, int), "there are rows"
    known = pl.col("time") < last // 2
    order = ["time", "sign", "k", "total"]
    if not found.filter(known).sort(order).equals(wanted.filter(known).sort(order)):
        raise WrongAnswerError("the answer of a query that nothing has changed is another one")


QUESTION = Question("changes", "How long a change of what runs holds a pipeline up", answers)
