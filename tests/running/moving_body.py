"""What is asked of a query whose plan is replaced by moving state, on whatever engine it runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

import tidemill
from running.shop import STREAM, bags, write
from tidemill.control.queries import LivingQueries
from tidemill.lang.statements import Name
from tidemill.optimizer.explain.physical import describe
from tidemill.optimizer.planning import Joins, Planning
from tidemill.optimizer.statistics import NOTHING_KNOWN
from tidemill.physical.plan import Apply, walk_physical
from tidemill.runtime.planning import planned_anew

if TYPE_CHECKING:
    from pathlib import Path

    from tidemill.control.verdict import Verdict
    from tidemill.optimizer.planned import Planned

__all__ = [
    "JOINED",
    "TEXT",
    "assert_delivered",
    "assert_whole",
    "define_three",
    "feed",
    "feed_missing",
    "goes_to",
    "has_gone",
    "is_under_way",
]

NAMES = ("a", "b", "c")
JOINED = (
    "SELECT a.v AS x, b.v AS y, c.v AS z FROM a [RANGE 12], b [RANGE 9], c [RANGE 15]"
    " WHERE a.k = b.k AND b.k = c.k AND a.v + b.v > 4"
)
A, B, C = "a [RANGE 12]", "b [RANGE 9]", "c [RANGE 15]"
TREES = tuple(
    f"SELECT a.v AS x, b.v AS y, c.v AS z FROM {joined}"
    for joined in (
        f"{A} JOIN {B} ON a.k = b.k JOIN {C} ON b.k = c.k WHERE a.v + b.v > 4",
        f"{B} JOIN {C} ON b.k = c.k JOIN {A} ON a.k = b.k AND a.v + b.v > 4",
        f"{C} JOIN {A} ON a.k = c.k JOIN {B} ON b.k = c.k AND a.v + b.v > 4",
    )
)
TEXT = f"CREATE QUERY q AS {JOINED}"


def define_three(session: tidemill.Session, root: Path) -> None:
    """Three streams over directories below one."""
    for name in NAMES:
        (root / name).mkdir(parents=True, exist_ok=True)
        source = f"SOURCE parquet('{root / name}') ORDERED BY t"
        session.sql(f"CREATE STREAM {name} {STREAM} {source}")


def feed(root: Path, first: int, past: int, names: str = "abc") -> None:
    """Rows of some instants for some of the streams."""
    for name in names:
        write(root / name, first, past)


def feed_missing(root: Path, name: str, first: int, past: int) -> None:
    """The rows of some instants of a stream that are in no file yet."""
    there = [pl.read_parquet(path)["t"].max() for path in sorted((root / name).glob("*.parquet"))]
    latest = max((time for time in there if isinstance(time, int)), default=-1)
    if latest + 1 < past:
        write(root / name, max(first, latest + 1), past)


def goes_to(session: tidemill.Session, number: int, *, is_done: bool = True) -> Verdict:
    """Let one of several plans take over from that of the query ``q``."""
    queries = session._queries  # noqa: SLF001 — what no statement says yet
    assert isinstance(queries, LivingQueries), "it runs"
    entry = queries.look.query_entry(Name("q"))
    return queries.replan_to(entry, plan_of(session, number), is_done=is_done)


def plan_of(session: tidemill.Session, number: int) -> Planned:
    """A plan of the query: a join of all, or one of those of the trees that are written so."""
    queries = session._queries  # noqa: SLF001 — likewise
    assert isinstance(queries, LivingQueries), "it runs"
    entry, running = queries._runs["q"], session.planned("q")  # noqa: SLF001 — likewise
    if number == 0:
        return planned_anew(entry, running, Planning(joins=Joins.MULTIWAY), NOTHING_KNOWN)
    with tidemill.connect() as other:
        for name in NAMES:
            other.sql(f"CREATE STREAM {name} {STREAM} SOURCE parquet('none') ORDERED BY t")
        written = other.planned(other.query(TREES[number - 1]).name).bound
    return planned_anew(replace(entry, plan=written), running, Planning(), NOTHING_KNOWN)


def is_under_way(session: tidemill.Session) -> bool:
    """Whether a plan takes over."""
    entry = session._queries.look.query_entry(Name("q"))  # noqa: SLF001 — likewise
    return entry.record is not None and any(i.moving for i in entry.record.instances)


def has_gone(session: tidemill.Session) -> bool:
    """Whether the second plan runs, which joins ``b`` and ``c`` first."""
    parts = walk_physical([session.planned("q").physical])
    first = next(part for part in parts if isinstance(part, Apply) and part.traits.remembers)
    return describe(first) == "interval.Join(condition=b.k = c.k)"


def assert_whole(query: tidemill.Query, root: Path, past: int) -> None:
    """Require the answer that a bounded run gives, at every instant before one."""
    with tidemill.connect() as session:
        define_three(session, root)
        whole = session.query(JOINED)
        session.run()
        expected = bags(whole.changes(), past)
    assert any(expected), "there is something to compare"
    assert bags(query.changes(), past) == expected


def delivered(directory: Path) -> pl.DataFrame:
    """What is in the files of a sink."""
    files = sorted(directory.glob("batch=*/*.parquet"))
    return pl.concat(pl.read_parquet(file, hive_partitioning=False) for file in files)


def assert_delivered(root: Path, past: int) -> None:
    """Require that the files of the sink ``out`` have the answer, at every instant before one."""
    with tidemill.connect() as session:
        define_three(session, root)
        whole = session.query(JOINED)
        session.run()
        expected = bags(whole.changes(), past)
    assert any(expected), "there is something to compare"
    assert bags(delivered(root / "out"), past) == expected
