"""What it costs to keep the past of a stream, and how soon a new query is exact because of it.

A stream of 20,000 rows a second, in files of a minute, is read by a query without state: keeping
nothing, copying its rows, or naming its files. Then a query over ten minutes is created with
history while rows go on coming, a file a second: how long it takes until it answers the present,
and how long batches take meanwhile.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from statistics import median
from threading import Event, Thread
from time import perf_counter, sleep
from typing import TYPE_CHECKING

import polars as pl

import tidemill
from benchmarks.harness.measure import WrongAnswerError
from benchmarks.harness.question import Question
from benchmarks.harness.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.harness.question import Context

RATE, FILE_SECONDS = 20_000, 60
SECOND = 1_000_000
BEGINNING = 1_767_225_600 * SECOND

REST = 12
"""How long rows come before the new query is created, and after it is exact, in seconds."""

SIDES = {"nothing": "", "copied": "KEEP ALL", "by reference": "KEEP ALL BY REFERENCE"}
STATELESS = "SELECT auction, bidder, price FROM bid WHERE price > 998"
LATE = (
    "SELECT auction, COUNT(*) AS n, MAX(price) AS top FROM bid [RANGE 10 MINUTES] GROUP BY auction"
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured.

    Attributes:
        minutes: How long the past is that is kept.
        turns: How often the cost of keeping is measured.
        cost_minutes: How much is read for that.
    """

    minutes: int
    turns: int
    cost_minutes: int


def answers(context: Context) -> Iterator[Table]:
    """What keeping costs, and what it gives."""
    sizes = Sizes(60, 5, 20) if context.full else Sizes(12, 3, 6)
    source = context.folder / "bids"
    context.progress("writing the stream")
    for minute in range(sizes.minutes):
        _write(source, minute * FILE_SECONDS, FILE_SECONDS)
    for engine in ("local", "spark"):
        yield _costs(context, engine, sizes, source)
    yield _exact(context, sizes, source)


def _write(directory: Path, second: int, seconds: int) -> None:
    """A file with the rows of some seconds, which is there all at once."""
    directory.mkdir(exist_ok=True)
    first, count = second * RATE, seconds * RATE
    number = pl.int_range(first, first + count, eager=True)
    mixed = number.hash(7)
    frame = pl.DataFrame(
        {
            "auction": (mixed % 1_000).cast(pl.Int64),
            "bidder": (mixed // 1_000 % 50_000).cast(pl.Int64),
            "price": (mixed // 7 % 100_000).cast(pl.Float64) / 100,
            "at": (BEGINNING + number * (SECOND // RATE)).cast(pl.Datetime("us")),
        }
    )
    unfinished, path = directory / ".unfinished", directory / f"{second:08d}.parquet"
    frame.write_parquet(unfinished)
    os.utime(unfinished, (1_000_000 + second, 1_000_000 + second))
    unfinished.rename(path)


def _connect(engine: str, state: Path) -> tidemill.Session:
    if engine == "local":
        return tidemill.connect(checkpoint=state)
    return tidemill.connect(engine="spark", master="local[2]", partitions=2, checkpoint=state)


def _define(session: tidemill.Session, source: Path, keep: str) -> None:
    session.sql(
        "CREATE STREAM bid (auction BIGINT, bidder BIGINT, price DOUBLE, at TIMESTAMP)"
        f" SOURCE parquet('{source}', settle => 0) ORDERED BY at {keep}"
    )


# The cost of keeping


def _costs(context: Context, engine: str, sizes: Sizes, source: Path) -> Table:
    """How long a file takes, with and without what is kept."""
    part, warm = context.folder / f"part-{engine}", 1
    part.mkdir()
    seconds: dict[str, list[float]] = {side: [] for side in SIDES}
    bytes_: dict[str, int] = {}
    files = sorted(source.iterdir())[: sizes.cost_minutes + warm]
    for turn in range(sizes.turns):
        for side, keep in SIDES.items():
            context.progress(f"{engine}: {side}, turn {turn + 1}")
            state, place = (part / f"{turn}-{side.replace(' ', '-')}-{n}" for n in ("state", "in"))
            place.mkdir()
            with _connect(engine, state) as session:
                _define(session, place, keep)
                session.sql(f"CREATE QUERY q AS {STATELESS}")
                session.start()
                for file in files[:warm]:
                    os.link(file, place / file.name)
                session.await_idle()
                began = perf_counter()
                for file in files[warm:]:
                    os.link(file, place / file.name)
                session.await_idle()
                seconds[side].append((perf_counter() - began) / (len(files) - warm))
            kept = state / "kept"
            bytes_[side] = sum(f.stat().st_size for f in kept.rglob("*") if f.is_file())
    given = sum(file.stat().st_size for file in files)
    least = [min(one) for one in seconds.values()]
    rows = tuple(
        (
            side,
            median(one),
            median(a / b for a, b in zip(one, seconds["nothing"], strict=True)),
            min(one) / least[0],
            bytes_[side] / given,
        )
        for side, one in seconds.items()
    )
    return Table(
        f"{engine}: a file of {RATE * FILE_SECONDS:,} rows, a query without state",
        ("kept", "seconds a file", "ratio, median", "ratio of the best", "bytes to the source's"),
        rows,
        (f"{sizes.turns} turns of {len(files) - warm} files; the source is as Polars writes it.",),
    )


# A query that is exact at once


@dataclass(slots=True)
class Live:
    """Files of a second that come every second, and when their rows were delivered.

    Attributes:
        place: Where.
        session: What reads them.
        second: The second that comes next.
        came: When each of them came.
        done: When it was delivered.
    """

    place: Path
    session: tidemill.Session
    second: int
    came: list[float] = field(default_factory=list)
    done: list[float] = field(default_factory=list)

    def keep_coming(self, ended: Event) -> None:
        """Let files come, and look what has become of them, until it is said to end."""
        before = self._read()
        while not ended.is_set() or len(self.done) < len(self.came):
            if not ended.is_set() and (not self.came or perf_counter() - self.came[-1] >= 1):
                _write(self.place, self.second + len(self.came), 1)
                self.came.append(perf_counter())
            for _ in range(len(self.done), self._read() - before):
                self.done.append(perf_counter())
            sleep(0.005)

    def latencies(self, began: float, over: float) -> list[float]:
        """How long files took that came between two moments."""
        pairs = zip(self.came, self.done, strict=True)
        return [done - came for came, done in pairs if began <= came <= over]

    def _read(self) -> int:
        (stream,) = self.session.progress().streams
        return 0 if stream.files is None else stream.files[0]


def _exact(context: Context, sizes: Sizes, source: Path) -> Table:
    """How soon a new query answers the present, and how long rows take meanwhile."""
    rows: list[tuple[str | float, ...]] = []
    for keep in ("KEEP 1 HOUR", "KEEP 1 HOUR BY REFERENCE"):
        context.progress(f"{keep}: reading {sizes.minutes} minutes")
        place, ended = context.folder / f"in-{len(rows)}", Event()
        place.mkdir()
        for file in sorted(source.iterdir()):
            os.link(file, place / file.name)
        with _connect("spark", context.folder / f"exact-{len(rows)}") as session:
            _define(session, place, keep)
            session.sql(f"CREATE QUERY q AS {STATELESS}")
            session.start()
            session.await_idle()
            live = Live(place, session, sizes.minutes * 60)
            thread = Thread(target=live.keep_coming, args=(ended,))
            thread.start()
            try:
                context.progress(f"{keep}: a query is created")
                sleep(REST)
                began = perf_counter()
                session.sql(f"CREATE QUERY late START WITH HISTORY AS {LATE}")
                _await_present(session)
                over = perf_counter()
                sleep(REST)
                ended.set()
            finally:
                ended.set()
                thread.join()
            session.await_idle()
            found = session.find("late").snapshot()
            at = session.answer("late").known - 1
        _compare(place, at, found)
        before, meanwhile = live.latencies(0, began - 2), live.latencies(began, over)
        after = live.latencies(over, perf_counter())
        took = (median(before), median(meanwhile), max(meanwhile), median(after))
        rows.append((keep, 600 * RATE, over - began, *took))
    return Table(
        f"spark: a query over 10 minutes of {RATE:,} rows a second, created with history",
        (
            "stream",
            "rows replayed",
            "seconds until exact",
            "latency before, s",
            "meanwhile, s",
            "longest, s",
            "after, s",
        ),
        tuple(rows),
        ("A file of a second comes each second; its latency ends when its batch is done.",),
    )


def _await_present(session: tidemill.Session) -> None:
    """Wait until the new query is known as far as the one that has always run."""
    while True:
        late, running = (session.current_answer(name) for name in ("late", "q"))
        assert running is not None, "it runs"
        if late is not None and late.known >= running.known:
            return
        sleep(0.005)


def _compare(source: Path, at: int, found: pl.DataFrame) -> None:
    """Refuse an answer that is not that of the rows of the last ten minutes."""
    rows = pl.scan_parquet(sorted(source.glob("*.parquet")))
    inside = pl.col("at").cast(pl.Int64).is_between(at - 600 * SECOND + 1, at)
    wanted = (
        rows.filter(inside).group_by("auction").agg(n=pl.len().cast(pl.Int64), top=pl.max("price"))
    )
    if not wanted.collect().sort("auction").equals(found.sort("auction")):
        raise WrongAnswerError("a query with history has another answer than the rows give")


QUESTION = Question("history", "What it costs to keep the past, and what it gives", answers)
