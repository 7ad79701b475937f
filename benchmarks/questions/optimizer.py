"""What the optimizer saves: the same query with it and without it, in turns, on the local engine.

Written well is a chain of windows in the order of its links; written badly is one whose FROM names
windows first that nothing links, so that without the optimizer their product is made. NEXMark's
queries are those that look at several rows; Linear Road's are taken one by one, and all together.
"""

from __future__ import annotations

import os

os.environ.setdefault("POLARS_MAX_THREADS", "1")

from dataclasses import dataclass
from functools import partial
from random import Random
from time import perf_counter, process_time
from typing import TYPE_CHECKING
from unittest.mock import patch

import polars as pl

import tidemill
from benchmarks.harness.comparable import same_answer, same_rows
from benchmarks.harness.measure import WrongAnswerError
from benchmarks.harness.question import Question
from benchmarks.harness.table import Table
from benchmarks.linear_road.check import scaled
from benchmarks.linear_road.queries import QUERIES, views
from benchmarks.linear_road.queries import declarations as declarations_of_road
from benchmarks.linear_road.rules import Rules
from benchmarks.linear_road.simulator import Traffic, write_traffic
from benchmarks.nexmark.generator import around_midnight, write
from benchmarks.nexmark.queries import ASKED, declarations
from tidemill.engine.engine import Flow
from tidemill.model.time import Time
from tidemill.optimizer.sharing import with_shared_windows
from tidemill.physical.fragments import build_graph
from tidemill.runtime.local.runner import LocalRunner
from tidemill.runtime.planning import plan_entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from benchmarks.harness.question import Context
    from benchmarks.harness.table import Cell
    from tidemill.optimizer.planned import Planned
    from tidemill.physical.plan import PhysicalPlan

SECOND = 1_000_000
NEXMARK = ("q3", "q4", "q5", "q6", "q7")
ENOUGH = 0.95
"""With the optimizer no query may be slower than this."""
MUCH = 5
"""A join of six windows that is badly written is to be so much faster with the optimizer."""
SPREAD = 2
"""A chain is to take no more than this many times what it takes in the best order of FROM."""
_STEPS = 60
_PLANS = "tidemill.runtime.local.program.plan_entry"
"""Where plans are made when a session runs."""
SHARED = 2
"""Ten queries of one join are to be so much faster if they share it."""
PLANNED = 2.0
"""A chain of 64 tables is to be planned in less than these seconds."""


def answers(context: Context) -> Iterator[Table]:
    """One table a kind of query."""
    yield _nexmark(context)
    yield _linear_road(context)
    yield _joins(context)
    yield _shared_windows(context)
    yield _chains(context)
    yield _planning(context)


@dataclass(frozen=True, slots=True)
class Taken:
    """Processor seconds: for all that was done, and of it for plans, which are made once."""

    whole: float
    planning: float

    @property
    def running(self) -> float:
        """What it takes to run, however long that goes on."""
        return self.whole - self.planning


def _in_turns(
    sides: Mapping[str, Callable[[], pl.DataFrame]],
    turns: int,
    same: Callable[[pl.DataFrame, pl.DataFrame], bool] = same_answer,
) -> dict[str, Taken]:
    """The processor seconds of each side, the median of some turns.

    Raises:
        WrongAnswerError: They do not give the same.
    """
    seconds: dict[str, list[Taken]] = {name: [] for name in sides}
    first: pl.DataFrame | None = None
    for _ in range(turns):
        for name, run in sides.items():
            spent: list[float] = []
            began = process_time()
            with patch(_PLANS, partial(_timed, plan_entry, spent)):
                found = run()
            seconds[name].append(Taken(process_time() - began, sum(spent)))
            first = found if first is None else first
            if not same(first, found):
                raise WrongAnswerError(f"{name} gives another answer")
    return {name: sorted(all_, key=_running)[len(all_) // 2] for name, all_ in seconds.items()}


def _running(taken: Taken) -> float:
    return taken.running


def _timed(
    plan: Callable[..., Planned], spent: list[float], *given: object, **named: object
) -> Planned:
    """Make a plan, and note how long that takes."""
    began = process_time()
    made = plan(*given, **named)
    spent.append(process_time() - began)
    return made


# NEXMark


def _nexmark(context: Context) -> Table:
    events = 200_000 if context.full else 40_000
    place = context.folder / "nexmark"
    site = around_midnight(events, context.seed, rate=1_000)
    write(place, site, files=8)
    rows: list[tuple[Cell, ...]] = []
    for query in ASKED:
        if query.name not in NEXMARK:
            continue
        assert query.sql is not None, "it is asked"
        context.progress(query.name)
        sides = {
            str(on): partial(_run, declarations(site, place), query.sql, optimize=on)
            for on in (True, False)
        }
        rows.append(_ratio(query.name, _in_turns(sides, 5 if context.full else 3)))
    return Table(f"NEXMark, {events:,} events, seconds", RATIO, tuple(rows))


RATIO = ("query", "with", "without", "ratio", "at least", "ok", "planning with", "without it")


def _ratio(name: str, seconds: dict[str, Taken], least: float = ENOUGH) -> tuple[Cell, ...]:
    """What it takes to run, and apart from that to plan, which is done once."""
    on, off = seconds["True"], seconds["False"]
    ratio = off.running / on.running
    return name, on.running, off.running, ratio, least, ratio >= least, on.planning, off.planning


def _run(declared: str, sql: str, *, optimize: bool) -> pl.DataFrame:
    with tidemill.connect(optimize=optimize) as session:
        session.sql(declared)
        query = session.query(sql)
        session.run()
        return query.results()


# Linear Road


def _linear_road(context: Context) -> Table:
    cars, minutes = (300, 40) if context.full else (300, 10)
    place = context.folder / "linear_road"
    full = scaled(cars)
    reports = write_traffic(Traffic(1, cars, minutes, context.seed, jam=full), place)
    rules = Rules(free_cars=full)
    rows: list[tuple[Cell, ...]] = []
    for name in (*QUERIES, "all together"):
        context.progress(name)
        queries = {name: QUERIES[name]} if name in QUERIES else QUERIES
        sides = {
            str(on): partial(_road, place, rules, queries, optimize=on) for on in (True, False)
        }
        rows.append(_ratio(name, _in_turns(sides, 5 if context.full else 3)))
    return Table(
        f"Linear Road, {reports.height:,} reports, seconds",
        RATIO,
        tuple(rows),
    )


def _road(place: Path, rules: Rules, queries: Mapping[str, str], *, optimize: bool) -> pl.DataFrame:
    """The answer of the last of some queries, which run together."""
    with tidemill.connect(optimize=optimize) as session:
        session.sql(declarations_of_road(place))
        session.sql(views(rules))
        asked = [session.query(text) for text in queries.values()]
        session.run()
        return asked[-1].results()


# Joins of windows


def _joins(context: Context) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for inputs, badly in ((4, False), (4, True), (6, False), (6, True)):
        order = _apart(inputs) if badly else list(range(inputs))
        count = 1_200 if context.full else 1_000
        frames = {f"s{i}": _stream(i, count, context.seed) for i in range(inputs)}
        links = " AND ".join(f"s{i}.b = s{i + 1}.a" for i in range(inputs - 1))
        froms = ", ".join(f"s{i} [RANGE 2 SECONDS]" for i in order)
        sql = f"SELECT s0.a AS x, s{inputs - 1}.b AS y FROM {froms} WHERE {links}"
        name = f"{inputs} windows, written {'badly' if badly else 'well'}"
        context.progress(name)
        sides = {str(on): partial(_windows, frames, sql, optimize=on) for on in (True, False)}
        least = MUCH if badly and inputs == 6 else ENOUGH  # noqa: PLR2004 — the larger of both
        rows.append(_ratio(name, _in_turns(sides, 3), least))
    return Table("Joins of windows, seconds", RATIO, tuple(rows))


def _apart(count: int) -> list[int]:
    """The ends of a chain first, from both sides in turns, and what links them last.

    >>> _apart(6)
    [0, 5, 1, 4, 2, 3]
    """
    ends = zip(range(count), reversed(range(count)), strict=True)
    return list(dict.fromkeys(number for both in ends for number in both))[:count]


def _stream(number: int, rows: int, seed: int) -> pl.DataFrame:
    """A stream of ``rows`` rows over twenty seconds."""
    chance = Random(f"{seed} {number}")  # noqa: S311 — not for secrets
    return pl.DataFrame(
        {
            "a": [chance.randrange(60) for _ in range(rows)],
            "b": [chance.randrange(60) for _ in range(rows)],
            "t": sorted(chance.randrange(20 * SECOND) for _ in range(rows)),
        }
    )


def _windows(frames: dict[str, pl.DataFrame], sql: str, *, optimize: bool) -> pl.DataFrame:
    with tidemill.connect(optimize=optimize) as session:
        for name, frame in frames.items():
            session.put(name, frame)
            session.sql(
                f"CREATE STREAM {name} (a BIGINT, b BIGINT, t BIGINT) SOURCE memory('{name}')"
                " ORDERED BY t"
            )
        query = session.query(sql)
        session.run()
        return query.results()


# Joins that differ in the size of their windows


def _shared_windows(context: Context) -> Table:
    """What ten queries take in a step, a second of the streams, if they share a join or not."""
    rows: list[tuple[Cell, ...]] = []
    for rate in (10, 100, 1_000, *((5_000,) if context.full else ())):
        for few, sizes in ((False, range(1, 11)), (True, range(1, 11)), (True, range(11, 21))):
            name = f"{rate:,} rows/s, {sizes[0]} to {sizes[-1]} s, {'few' if few else 'all'} pairs"
            context.progress(name)
            alone = _alike(rate, sizes, few=few)
            shared = with_shared_windows(alone, alone)
            queries = {
                str(on): {name: one.physical for name, one in made.items()}
                for on, made in ((True, shared), (False, alone))
            }
            sides = {
                on: partial(_steps, plans, rate, context.seed) for on, plans in queries.items()
            }
            seconds = _in_turns(sides, 5 if context.full else 3)
            rows.append(_ratio(name, seconds, SHARED if few else ENOUGH))
    return Table("Ten queries of one join, windows of ten sizes, seconds", RATIO, tuple(rows))


def _alike(rate: int, sizes: Sequence[int], *, few: bool) -> dict[str, Planned]:
    """How queries are computed that differ in their windows."""
    found = {}
    with tidemill.connect() as session:
        for name in "ab":
            session.sql(
                f"CREATE STREAM {name} (k BIGINT, v BIGINT, t BIGINT) SOURCE memory('{name}')"
                f" ORDERED BY t HINT (rate => {rate}, distinct(k) => {rate}, distinct(v) => 100)"
            )
        for size in sizes:
            text = (
                f"SELECT a.v AS x, b.v AS y FROM a [RANGE {size} SECONDS], b [RANGE {size} SECONDS]"
                f" WHERE a.k = b.k{' AND a.v + b.v = 17' * few}"
            )
            found[f"q{size}"] = session.planned(session.query(text).name)
    return found


def _steps(plans: Mapping[str, PhysicalPlan], rate: int, seed: int) -> pl.DataFrame:
    """All rows of all answers, in steps of a second."""
    runner, out = LocalRunner(build_graph(plans)), []
    frames = {name: _pairs(name, rate, seed) for name in "ab"}
    for step in range(_STEPS):
        at = slice(step * rate, (step + 1) * rate)
        flows = {n: Flow([rows[at]], Time((step + 1) * SECOND)) for n, rows in frames.items()}
        given = runner.step(flows)
        out += [
            batch.select("x", "y", "@start", "@end", pl.lit(name).alias("q"))
            for name, batches in given.items()
            for batch in batches
        ]
    return pl.concat(out) if out else pl.DataFrame()


def _pairs(name: str, rate: int, seed: int) -> pl.DataFrame:
    chance, count = Random(f"{seed} {name}"), _STEPS * rate  # noqa: S311 — not for secrets
    start = pl.Series("@start", [n * SECOND // rate for n in range(count)])
    return pl.DataFrame(
        {
            "k": [chance.randrange(rate) for _ in range(count)],
            "v": [chance.randrange(100) for _ in range(count)],
            "t": start,
            "@start": start,
            "@end": start + 1,
            "@id": range(count),
        }
    )


# Chains of small tables


def _chains(context: Context) -> Table:
    count, tries = 20, 20 if context.full else 5
    chance = Random(context.seed)  # noqa: S311 — not for secrets
    links = list(range(count))
    orders = [("as linked", links), ("from both ends", _apart(count))]
    for number in range(tries):
        shuffled = links.copy()
        chance.shuffle(shuffled)
        orders.append((f"shuffled {number + 1}", shuffled))
    context.progress(f"a chain of {count} tables")
    sides = {name: partial(_tables, context.folder, order) for name, order in orders}
    _in_turns(sides, 1, same_rows)  # the first query of a process waits for what is loaded
    seconds = _in_turns(sides, 5 if context.full else 3, same_rows)
    whole = {name: taken.whole for name, taken in seconds.items()}
    rows: list[tuple[Cell, ...]] = list(whole.items())
    best = min(whole.values())
    ratios = [time / best for time in whole.values()]
    return Table(
        f"A chain of {count} tables of ten rows, by the order of FROM",
        ("order", "seconds", "times the best", "at most", "ok"),
        tuple(
            (*row, times, SPREAD, times <= SPREAD) for row, times in zip(rows, ratios, strict=True)
        ),
    )


def _tables(folder: Path, order: Sequence[int]) -> pl.DataFrame:
    with tidemill.connect() as session:
        _declare_tables(session, folder, len(order))
        query = session.query(_chain_of(order))
        session.run()
        return query.snapshot(0)


def _declare_tables(session: tidemill.Session, folder: Path, count: int) -> None:
    for i in range(count):
        file = folder / f"r{i}.parquet"
        if not file.exists():
            pl.DataFrame({"a": range(10), "b": [(n + 1) % 10 for n in range(10)]}).write_parquet(
                file
            )
        session.sql(f"CREATE RELATION r{i} (a BIGINT, b BIGINT) SOURCE parquet(path => '{file}')")


def _chain_of(order: Sequence[int]) -> str:
    links = " AND ".join(f"r{i}.b = r{i + 1}.a" for i in range(len(order) - 1))
    froms = ", ".join(f"r{i}" for i in order)
    return f"SELECT r0.a AS x, r{len(order) - 1}.b AS y FROM {froms} WHERE {links}"


# Planning


def _planning(context: Context) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for joins in ("binary", "multiway"):
        for count in (16, 32, 64):
            times = []
            for order in (list(range(count)), _apart(count)):
                context.progress(f"planning {count} tables")
                with tidemill.connect(joins=joins) as session:
                    _declare_tables(session, context.folder, count)
                    began = perf_counter()
                    session.sql(f"EXPLAIN PHYSICAL {_chain_of(order)}")
                    times.append(perf_counter() - began)
            rows.append((joins, count, *times, PLANNED, max(times) < PLANNED))
    return Table(
        "Planning a chain of tables, seconds",
        ("joins", "tables", "as linked", "from both ends", "at most", "ok"),
        tuple(rows),
    )


QUESTION = Question("optimizer", "What the optimizer saves", answers)
