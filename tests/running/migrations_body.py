"""What is asked of migrations, on whatever engine the session runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import tidemill
from running.shop import bags, define, write

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["lying_behind", "verdict"]

SLOW = "SELECT a.v AS x, b.v AS y FROM s a [RANGE 50] JOIN u b [RANGE 5] ON a.k = b.k AND a.v > 2"
PAST = 190


def verdict(session: tidemill.Session, statement: str) -> dict[str, object]:
    """What a statement would do."""
    told = json.loads(str(session.sql(f"EXPLAIN FORMAT JSON {statement}")))
    assert isinstance(told, dict)
    return told


def lying_behind(session: tidemill.Session, directory: Path) -> None:
    """Of the stream with the long window the last row came at 9, so all have ended at 59.

    Those of the other one came up to 99, in a window of 5: nothing of them is there from 104 on.
    """
    for name, past in (("s", 10), ("u", 100)):
        write(directory / name, 0, past)
    with session:
        for name in ("s", "u"):
            define(session, directory / name, name)
        query = session.query(f"CREATE QUERY q AS {SLOW}")
        session.start()
        session.await_idle()
        ways = {"PARALLEL TRACK": 105, "GENMIG": 150}
        for using, first in ways.items():
            told = verdict(session, f"ALTER QUERY q REPLAN USING {using}")
            assert told["exact_from"] == first
        assert "PARALLEL TRACK  both plans run" in str(session.sql("ALTER QUERY q REPLAN"))
        assert session.versions("q")["since"].to_list() == [0, 105]
        write(directory / "s", 10, 60)
        session.await_idle()
        write(directory / "s", 60, PAST + 10)
        write(directory / "u", 100, PAST + 10)
        session.await_idle()
        found = bags(query.changes(), PAST)
    with tidemill.connect() as bounded:
        for name in ("s", "u"):
            define(bounded, directory / name, name)
        right = bounded.query(SLOW)
        bounded.run()
        assert found == bags(right.changes(), PAST)
