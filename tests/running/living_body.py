"""What is asked of a living query, on whatever engine the session runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from running.shop import define, expected, write

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["NEW", "OLD", "exercised"]

OLD = "SELECT k, SUM(v) AS total FROM s [RANGE 30] GROUP BY k"
NEW = "SELECT k, SUM(v) AS total FROM s [RANGE 10] WHERE v > 2 GROUP BY k"


def exercised(session: tidemill.Session, directory: Path) -> None:
    """Change, pause, resume, stop and start a query; its answer is that of undisturbed ones."""
    write(directory, 0, 50)
    with session:
        define(session, directory)
        query = session.query(f"CREATE QUERY q AS {OLD}")
        session.start()
        session.await_idle()
        told = session.sql(f"EXPLAIN ALTER QUERY q AS {NEW}")
        assert isinstance(told, str)
        assert "exact from     59" in told
        assert query.versions().height == 1  # nothing was done
        assert session.sql(f"ALTER QUERY q AS {NEW}") == told
        late = session.query("CREATE QUERY late AS SELECT COUNT(*) AS n FROM s [RANGE 5]")
        write(directory, 50, 100)
        session.await_idle()
        write(directory, 100, 140)
        session.await_idle()
        assert _state(session, "q") == ("running", "2", "59")
        assert _state(session, "late") == ("running", "1", "54")
        session.sql("PAUSE QUERY q")
        write(directory, 140, 160)
        session.await_idle()
        assert _state(session, "q")[0] == "paused"
        assert query.changes()["time"].max() == 140
        session.sql("RESUME QUERY q")
        session.sql("STOP QUERY q DRAIN AT 165")
        assert _state(session, "q")[0] == "draining"
        write(directory, 160, 190)
        session.await_idle()
        assert _state(session, "q")[0] == "stopped"
        session.sql("START QUERY q COLD AT 200")
        with pytest.raises(tidemill.RunError, match="RESUME WARM is not possible"):
            session.sql("RESUME QUERY q")
        write(directory, 190, 260)
        session.await_idle()
        found = query.changes().filter(pl.col("time") < 255)
        counted = late.changes().filter(pl.col("time") < 150)
    old, new = expected(directory, OLD), expected(directory, NEW)
    parts = [(old, 0, 59), (new, 59, 174), (new, 209, 255)]
    for time in range(255):
        wanted: dict[tuple[object, ...], int] = {}
        for changes, since, until in parts:
            if since <= time < until:
                wanted = _at(changes, time)
        assert _at(found, time) == wanted, f"at {time}"
    counts = expected(directory, "SELECT COUNT(*) AS n FROM s [RANGE 5]")
    for time in range(150):
        wanted = {} if time < 50 else {(min(time - 49, 5),): 1}
        assert _at(counted, time) == wanted, f"at {time}"
    assert counts.height


def _at(changes: pl.DataFrame, time: int) -> dict[tuple[object, ...], int]:
    """The rows at an instant, with how often they are there."""
    there: dict[tuple[object, ...], int] = {}
    for *row, at, sign in changes.rows():
        if at <= time:
            there[tuple(row)] = there.get(tuple(row), 0) + sign
    return {row: n for row, n in there.items() if n}


def _state(session: tidemill.Session, name: str) -> tuple[str, str, str]:
    shown = session.sql("SHOW QUERIES")
    assert isinstance(shown, pl.DataFrame)
    row = shown.filter(pl.col("name") == name).select("state", "version", "complete_from").row(0)
    return row[0], row[1], row[2]
