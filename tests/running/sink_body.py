"""What is asked of living queries with sinks, on whatever engine the session runs.

A row comes at every instant (``shop.py``), so that it is known from when on windows are full. What
a sink has been given is applied in the order in which it came, and compared at every instant with
what versions answer that nothing has disturbed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from running.shop import define, expected, write
from tidemill.lang.statements import Change

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["altered", "kept_through", "stopped_and_started"]

OLD = "SELECT k, SUM(v + t) AS total FROM s [RANGE 30] GROUP BY k"
NEW = "SELECT k, SUM(v + t) AS total FROM s [RANGE 10] WHERE v > 2 GROUP BY k"

Bag = dict[tuple[object, ...], int]


@dataclass
class Sinks:
    """The same query with three sinks: files of results, changes and upserts."""

    directory: Path
    calls: dict[str, list[pl.DataFrame]] = field(default_factory=dict)

    def create(self, session: tidemill.Session, text: str) -> None:
        """Create the queries."""
        forms = {"changes": "changes", "upserts": "upserts"}
        for name, form in forms.items():
            self.calls[name] = []
            session.callback(name, partial(_take, self.calls[name]))
            session.sql(f"CREATE QUERY {name} INTO callback('{name}', form => '{form}') AS {text}")
        files = self.directory / "results"
        session.sql(f"CREATE QUERY results INTO parquet('{files}') AS {text}")

    def ask(self, session: tidemill.Session, statement: str) -> dict[str, str]:
        """Ask the same of all of them; what is told of each."""
        return {name: str(session.sql(statement.format(name))) for name in NAMES}

    def at(self, name: str, time: int) -> Bag:
        """What a reader has at an instant of what it was given."""
        if name == "results":
            files = sorted((self.directory / "results").glob("batch=*/*.parquet"))
            rows = pl.concat(pl.read_parquet(f, hive_partitioning=False) for f in files)
            there = rows.filter((pl.col("start") <= time) & (pl.col("end") > time))
            return _counted([tuple(row[:-2]) for row in there.rows()])
        moves = [row for frame in self.calls[name] for row in frame.rows()]
        if name == "upserts":
            return _by_key([row for row in moves if row[-2] <= time])
        found: Bag = {}
        for *row, at, sign in moves:
            if at <= time:
                found[tuple(row)] = found.get(tuple(row), 0) + sign
        return {row: n for row, n in found.items() if n}

    def times(self, name: str) -> list[int]:
        """The times of the rows that a function was given, in their order."""
        return [row[-2] for frame in self.calls[name] for row in frame.rows()]


def _take(taken: list[pl.DataFrame], rows: pl.DataFrame, _batch: int) -> None:
    taken.append(rows)


NAMES = ("results", "changes", "upserts")
PARTS = {
    # Rows with ends were given up to 79, so nothing of the old version can end before.
    "results": {
        Change.IMMEDIATE: (79, 88),
        Change.DRAIN: (79, 88),
        Change.QUERY_ORDER: (79, 59),
        Change.STREAM_ORDER: (79, 59),
        Change.GRACEFUL: (79, 79),
        Change.GRACEFUL_DRAIN: (88, 59),
        Change.EXACT: (79, 79),
    },
    # From 80 on an instance answers that can withdraw what stands, so the first end is 81.
    "changes": {
        Change.IMMEDIATE: (81, 90),
        Change.DRAIN: (81, 90),
        Change.QUERY_ORDER: (81, 61),
        Change.STREAM_ORDER: (81, 61),
        Change.GRACEFUL: (81, 81),
        Change.GRACEFUL_DRAIN: (88, 59),
        Change.EXACT: (52, 52),
    },
}
"""Until when the old version answers, and from when on the new one, by hand: the last row before
the change is of 49; old windows are of 30, new ones of 10."""


def altered(session: tidemill.Session, directory: Path, using: Change) -> None:
    """Change the queries in one way; each sink gets the formula of the variant."""
    write(directory / "in", 0, 50)
    sinks, names = Sinks(directory), ["results", "changes"]
    with session:
        define(session, directory / "in", keep="KEEP 40" if using is Change.EXACT else "")
        sinks.create(session, OLD)
        session.start()
        session.await_idle()
        statement = f"ALTER QUERY {{}} AS {NEW} USING {using.value}"
        overlap = PARTS["changes"][using][0] > PARTS["changes"][using][1]
        if overlap:
            with pytest.raises(tidemill.RunError, match="one would replace rows"):
                session.sql(statement.format("upserts"))
        else:
            names.append("upserts")
        for name in names:
            told = str(session.sql(f"EXPLAIN {statement.format(name)}"))
            until, since = PARTS["results" if name == "results" else "changes"][using]
            assert f"exact from     {max(until, since)}\n" in told
            done = str(session.sql(statement.format(name)))
            assert _without_state(done) == _without_state(told)
        for first in range(50, 200, 25):
            write(directory / "in", first, first + 25)
            session.await_idle()
        states = session.sql("SHOW QUERIES")
        assert isinstance(states, pl.DataFrame)
        assert set(states["state"]) == {"running"}
    old, new = expected(directory / "in", OLD), expected(directory / "in", NEW)
    for name in names:
        until, since = PARTS["results" if name == "results" else "changes"][using]
        for time in range(195):
            wanted = _added(
                _at(old, time) if time < until else {}, _at(new, time) if time >= since else {}
            )
            assert sinks.at(name, time) == wanted, f"{name} at {time}"
        if name != "results" and not overlap:
            assert sinks.times(name) == sorted(sinks.times(name))


def _without_state(told: str) -> list[str]:
    """A verdict without how much is remembered: a batch may have come in between."""
    return [line for line in told.splitlines() if not line.strip().startswith("state ")]


def kept_through(session: tidemill.Session, directory: Path) -> None:
    """Pause and resume: WARM gives all that was kept, COLD what has nothing from before."""
    write(directory / "in", 0, 50)
    sinks = Sinks(directory)
    with session:
        define(session, directory / "in")
        sinks.create(session, OLD)
        session.start()
        session.await_idle()
        sinks.ask(session, "PAUSE QUERY {}")
        _rows(session, directory, 50, 110)
        for name in NAMES:
            assert sinks.at(name, 105) == {}, "it is kept"
        sinks.ask(session, "RESUME QUERY {}")
        _rows(session, directory, 110, 150)
        sinks.ask(session, "PAUSE QUERY {}")
        _rows(session, directory, 150, 225)
        told = sinks.ask(session, "RESUME QUERY {} COLD")
        assert "answers from 208 on" in told["results"]
        assert "answers from 179 on" in told["changes"]
        _rows(session, directory, 225, 260)
        sinks.ask(session, "PAUSE QUERY {}")
        _rows(session, directory, 260, 300)
        sinks.ask(session, "STOP QUERY {}")
        _rows(session, directory, 300, 320)
    old = expected(directory / "in", OLD)
    for name, parts in {
        "results": [(0, 179), (208, 289)],
        "changes": [(0, 150), (179, 260)],
        "upserts": [(0, 150), (179, 260)],
    }.items():
        for time in range(315):
            is_there = any(since <= time < until for since, until in parts)
            assert sinks.at(name, time) == (_at(old, time) if is_there else {}), f"{name} at {time}"


def stopped_and_started(session: tidemill.Session, directory: Path) -> None:
    """Stop and start: files stay, and the sink gets what is answered again."""
    write(directory / "in", 0, 50)
    sinks = Sinks(directory)
    with session:
        define(session, directory / "in")
        sinks.create(session, OLD)
        session.start()
        session.await_idle()
        sinks.ask(session, "STOP QUERY {}")
        _rows(session, directory, 50, 100)
        states = session.sql("SHOW QUERIES")
        assert isinstance(states, pl.DataFrame)
        assert set(states["state"]) == {"stopped"}
        files = sorted((directory / "results").rglob("*"))
        assert session.answer("results").snapshot(60).height == 3, "it can be read"
        sinks.ask(session, "START QUERY {} COLD")
        _rows(session, directory, 100, 150)
        sinks.ask(session, f"ALTER QUERY {{}} AS {NEW} USING DRAIN AT 150")
        _rows(session, directory, 150, 210)
        sinks.ask(session, "STOP QUERY {} AT 230")
        _rows(session, directory, 210, 250)
        sinks.ask(session, "START QUERY {} FRESH AT 260")
        _rows(session, directory, 250, 290)
        assert set(files) <= set((directory / "results").rglob("*")), "nothing is removed"
        read = session.answer("results")
        assert all(_frame(read.snapshot(t)) == sinks.at("results", t) for t in range(280))
    old, new = expected(directory / "in", OLD), expected(directory / "in", NEW)
    for name in NAMES:
        first = 79 if name == "results" else 81
        for time in range(285):
            wanted = _at(old, time) if time < first or 129 <= time < 179 else {}
            wanted = _at(new, time) if 188 <= time < 230 or time >= 270 else wanted
            if not 260 <= time < 270:  # windows that fill
                assert sinks.at(name, time) == wanted, f"{name} at {time}"


def _rows(session: tidemill.Session, directory: Path, first: int, past: int) -> None:
    """Let rows come, in two files."""
    middle = (first + past) // 2
    for one, other in ((first, middle), (middle, past)):
        write(directory / "in", one, other)
        session.await_idle()


def _at(changes: pl.DataFrame, time: int) -> Bag:
    """The rows of an undisturbed answer at an instant."""
    found: Bag = {}
    for *row, at, sign in changes.rows():
        if at <= time:
            found[tuple(row)] = found.get(tuple(row), 0) + sign
    return {row: n for row, n in found.items() if n}


def _added(one: Bag, other: Bag) -> Bag:
    return {row: one.get(row, 0) + other.get(row, 0) for row in {*one, *other}}


def _frame(rows: pl.DataFrame) -> Bag:
    return _counted([tuple(row) for row in rows.rows()])


def _counted(rows: list[tuple[object, ...]]) -> Bag:
    found: Bag = {}
    for row in rows:
        found[row] = found.get(row, 0) + 1
    return found


def _by_key(moves: list[tuple[object, ...]]) -> Bag:
    """The rows after upserts by their first column."""
    found: dict[object, tuple[object, ...]] = {}
    for *row, _, sign in moves:
        if sign == 1:
            found[row[0]] = tuple(row)
        else:
            del found[row[0]]
    return dict.fromkeys(found.values(), 1)
