"""What it costs to register a hundred queries, to plan them, and to write and read their plans.

Alike queries differ in a constant and a window, as those that people register do; unlike ones in
their keys, aggregates, kinds of windows and conditions as well. Each step is taken for all of them;
the least of several turns counts. What is read is compared with what was written.

Of many small queries that are run, planning is a large part: it is shown with the templates of
alike queries (``optimizer/templates.py``) and without them, beside the whole run.
"""

from __future__ import annotations

import json
from itertools import pairwise
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import TYPE_CHECKING

import polars as pl

import tidemill
from benchmarks.harness.measure import WrongAnswerError
from benchmarks.harness.question import Question
from benchmarks.harness.table import Table
from tidemill.optimizer.planner import plan
from tidemill.optimizer.templates import Templates
from tidemill.physical.codec.plans import read_plans, write_plans
from tidemill.physical.fragments import build_graph

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchmarks.harness.question import Context
    from benchmarks.harness.table import Cell

QUERIES = 100
SMALL = 300
ALIKE = {
    "grouped aggregate": "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM a [RANGE {n}] WHERE v > {n}"
    " GROUP BY k",
    "join and aggregate": "SELECT a.k, COUNT(*) AS n, MAX(w) AS m FROM a [RANGE {n}] JOIN b"
    " [RANGE 5] ON a.k = b.k WHERE v > {n} GROUP BY a.k",
    "NOT IN": "SELECT k FROM a [RANGE {n}] WHERE v > {n} AND k NOT IN (SELECT k FROM b [RANGE 5])",
}
UNLIKE = "unlike"
KINDS = (*ALIKE, UNLIKE)
STREAMS = """
    CREATE STREAM a (k BIGINT, v BIGINT, c VARCHAR, t BIGINT) SOURCE memory('a') ORDERED BY t;
    CREATE STREAM b (k BIGINT, w BIGINT, t BIGINT) SOURCE memory('b') ORDERED BY t
"""


def answers(context: Context) -> Iterator[Table]:
    """A row for each kind of query."""
    turns = 10 if context.full else 3
    yield _table(
        context,
        f"{QUERIES} queries, milliseconds for all of them",
        ("queries", "register", "plan", "build the graph", "write the plans", "read them"),
        lambda kind: _least(_milliseconds(kind) for _ in range(turns)),
    )
    yield _table(
        context,
        f"Registering {QUERIES} queries one by one, seconds",
        ("queries", "in memory", "on a checkpoint", "while others run", "and on a checkpoint"),
        lambda kind: _least(_registering(kind, context.folder) for _ in range(turns)),
    )
    yield _table(
        context,
        f"{SMALL} small queries, processor seconds",
        ("queries", "register", "run", "of it planning", "planning without templates"),
        lambda kind: _least(_running(kind) for _ in range(turns)),
    )


def _table(
    context: Context,
    title: str,
    columns: tuple[str, ...],
    measured: Callable[[str], tuple[float, ...]],
) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for kind in KINDS:
        context.progress(f"{title}: {kind}")
        rows.append((kind, *measured(kind)))
    return Table(title, columns, tuple(rows))


def _least(turns: Iterator[tuple[float, ...]]) -> tuple[float, ...]:
    """The least of each figure."""
    return tuple(min(figures) for figures in zip(*turns, strict=True))


def query(kind: str, n: int) -> str:
    """The text of a query.

    >>> query("unlike", 3)
    'SELECT k, MIN(v) AS x FROM a [RANGE 4] WHERE v BETWEEN 3 AND 6 GROUP BY k'
    """
    if kind != UNLIKE:
        return ALIKE[kind].format(n=n)
    aggregate = ("COUNT(*)", "SUM(v)", "MAX(v)", "MIN(v)", "AVG(v)")[n % 5]
    key, shown = (("k", "k"), ("c", "c"), ("k % 7", "k % 7 AS g"), ("k, c", "k, c"))[n // 5 % 4]
    window = (f"RANGE {n + 1}", f"RANGE {n + 3} SLIDE {n % 3 + 1}", "ROWS 10")[n % 3]
    condition = (
        f"v > {n}",
        f"k <> {n} AND v < 500",
        f"c LIKE 'x{n}%'",
        f"v BETWEEN {n} AND {2 * n}",
    )
    head = f"SELECT {shown}, {aggregate} AS x FROM a [{window}]"
    return f"{head} WHERE {condition[n % 4]} GROUP BY {key}"


def _session(checkpoint: str | None = None) -> tidemill.Session:
    """A session with two streams, each with a few rows."""
    session = tidemill.connect(checkpoint=checkpoint)
    rows = {"k": [1, 2, 3], "v": [5, 50, 400], "w": [1, 2, 3], "c": ["x1", "x2", "y"]}
    for name in ("a", "b"):
        session.put(name, pl.DataFrame({**rows, "t": [1, 2, 3]}))
    session.sql(STREAMS)
    return session


def _register(session: tidemill.Session, kind: str, count: int = QUERIES) -> float:
    """Register queries one by one, and how many seconds that takes."""
    began = perf_counter()
    for n in range(1, count + 1):
        session.sql(f"CREATE QUERY q{n} AS {query(kind, n)}")
    return perf_counter() - began


def _milliseconds(kind: str) -> tuple[float, ...]:
    """How long each step takes."""
    session = _session()
    times = [perf_counter()]
    _register(session, kind)
    times.append(perf_counter())
    plans = {f"q{n}": session.planned(f"q{n}").physical for n in range(1, QUERIES + 1)}
    times.append(perf_counter())
    build_graph(plans)
    times.append(perf_counter())
    written = json.dumps(write_plans(plans))
    times.append(perf_counter())
    read = read_plans(json.loads(written))
    times.append(perf_counter())
    if read != plans:
        raise WrongAnswerError("what is read is not what was written")
    return tuple((end - begin) * 1e3 for begin, end in pairwise(times))


def _registering(kind: str, folder: Path) -> tuple[float, ...]:
    """How long it takes in a session that is idle or runs, without a checkpoint and with one."""
    seconds = []
    for runs in (False, True):
        for is_kept in (False, True):
            with (
                TemporaryDirectory(dir=folder) as place,
                _session(f"{place}/kept" if is_kept else None) as session,
            ):
                if runs:
                    session.sql("CREATE QUERY other AS SELECT k FROM a [RANGE 3]")
                    session.start()
                    session.await_idle()
                seconds.append(_register(session, kind))
    return tuple(seconds)


def _running(kind: str) -> tuple[float, ...]:
    """How long small queries take in all, and how long their planning does."""
    with _session() as session:
        began = process_time()
        _register(session, kind, SMALL)
        registered = process_time()
        session.run()
        run = process_time()
        bound = [session.planned(f"q{n}").bound for n in range(1, SMALL + 1)]
    templates, planning = Templates(), [process_time()]
    with_them = [plan(one, templates=templates).physical for one in bound]
    planning.append(process_time())
    without = [plan(one).physical for one in bound]
    planning.append(process_time())
    if with_them != without:
        raise WrongAnswerError("a template gives another plan")
    return (
        registered - began,
        run - registered,
        *(end - begin for begin, end in pairwise(planning)),
    )


QUESTION = Question(
    "planning", "What it costs to register, plan and write a hundred queries", answers
)
