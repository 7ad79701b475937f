"""A growing directory, queries over it, and the answers that they must have."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

import tidemill

if TYPE_CHECKING:
    from pathlib import Path

STREAM = "(k BIGINT, v BIGINT, t BIGINT)"
TOTAL = "SELECT k, SUM(v) AS total, COUNT(*) AS n FROM s [RANGE 30] GROUP BY k"
PAIRS = "SELECT a.v AS x, b.v AS y FROM s a [RANGE 5] JOIN s b [RANGE 5] ON a.k = b.k"
NAMED = "SELECT name, v FROM s [RANGE 4], r WHERE id = k"
LAST = "SELECT k, COUNT(*) AS n FROM s [ROWS 5] GROUP BY k"
DIFFERENT = "SELECT k, v FROM s [RANGE 4] WHERE k IN (SELECT DISTINCT k FROM s [RANGE 9])"


def rows(first: int, past: int) -> pl.DataFrame:
    times = list(range(first, past))
    return pl.DataFrame({"k": [t % 3 for t in times], "v": [t * 7 % 10 for t in times], "t": times})


def write(directory: Path, first: int, past: int) -> Path:
    """A file with the rows of some instants, which is there all at once."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{first:06d}.parquet"
    unfinished = directory / ".unfinished"
    rows(first, past).write_parquet(unfinished)
    os.utime(unfinished, (1_000_000 + first, 1_000_000 + first))
    return unfinished.rename(path)


def define(session: tidemill.Session, directory: Path, name: str = "s", keep: str = "") -> None:
    session.put("r", pl.DataFrame({"id": [0, 1], "name": ["zero", "one"]}))
    session.sql(f"CREATE STREAM {name} {STREAM} SOURCE parquet('{directory}') ORDERED BY t {keep}")
    if session.catalog.find("r") is None:
        session.sql("CREATE RELATION r (id BIGINT, name VARCHAR) SOURCE memory('r')")


def expected(directory: Path, text: str) -> pl.DataFrame:
    """What a bounded run gives."""
    with tidemill.connect() as session:
        define(session, directory)
        found = session.query(text)
        session.run()
        return found.changes()


Bag: TypeAlias = "Counter[tuple[object, ...]]"


def bags(changes: pl.DataFrame, past: int) -> list[Bag]:
    """The rows at every instant before one, given all changes."""
    moves = sorted(changes.rows(), key=lambda row: row[-2])
    found: list[Bag] = []
    now: Bag = Counter()
    place = 0
    for time in range(past):
        while place < len(moves) and moves[place][-2] <= time:
            *row, _, sign = moves[place]
            now[tuple(row)] += sign
            place += 1
        found.append(Counter({row: count for row, count in now.items() if count}))
    return found


def known(query: tidemill.Query, past: int) -> pl.DataFrame:
    """The changes of an answer before an instant."""
    return query.changes().filter(pl.col("time") < past)
