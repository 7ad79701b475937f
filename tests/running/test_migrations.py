"""Another plan takes over while rows come, on the local engine: what is told is what is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from running.migrations_body import lying_behind, verdict
from running.shop import PAIRS, TOTAL, bags, define, expected, write
from tidemill.model.time import END_OF_TIME

if TYPE_CHECKING:
    from pathlib import Path

PAST = 120


def running(root: Path, text: str, keep: str = "", **settings: object) -> tidemill.Session:
    """A session with one query over a stream, of which the first rows have come."""
    session = tidemill.connect(checkpoint=root / "state", **settings)  # type: ignore[arg-type]
    define(session, root / "in", keep=keep)
    session.sql(f"CREATE QUERY q AS {text}")
    session.start()
    session.await_idle()
    return session


@pytest.mark.parametrize("using", ["GENMIG", "PARALLEL TRACK", "REPLAY", "AUTO"])
def test_what_the_verdict_says_is_what_happens(tmp_path: Path, using: str) -> None:
    """Pairs of rows, over a restart in the middle of the migration, by plans of other settings."""
    write(tmp_path / "in", 0, 40)
    statement, keep = f"ALTER QUERY q REPLAN USING {using}", "KEEP 100"
    with running(tmp_path, PAIRS, keep) as session:
        told, text = verdict(session, statement), session.sql(f"EXPLAIN {statement}")
        assert session.sql(statement) == text
        first = told["exact_from"]
        parts = session.versions("q").select("since", "until").rows()
        assert parts == [(0, first), (first, END_OF_TIME)]
        way = told["strategy"]
        assert isinstance(way, dict)
        assert way["exact_from"] == first == 40 + way["length"]
        session.stop()
        given = [session.answer("q").changes()]
    write(tmp_path / "in", 40, 43)
    with running(tmp_path, PAIRS, keep) as session:
        given.append(session.answer("q").changes())
        write(tmp_path / "in", 43, PAST + 50)
        session.await_idle()
        given[-1] = session.answer("q").changes()
        decided = session.sql("SHOW DECISIONS FOR q")
    assert isinstance(decided, pl.DataFrame)
    (chosen,) = decided.filter(pl.col("subject") == "migration")["chosen"]
    assert using in (chosen, "AUTO")
    wanted = bags(expected(tmp_path / "in", PAIRS), PAST)
    assert bags(pl.concat(given), PAST) == wanted


def test_the_verdict_has_all_ways(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 40)
    with running(tmp_path, TOTAL) as session:
        told = str(session.sql("EXPLAIN ALTER QUERY q REPLAN"))
        lines = [line.strip() for line in told.splitlines()]
        assert any("GENMIG" in line and "both plans run for 30us; " in line for line in lines)
        assert any("chosen because  no other way is possible" in line for line in lines)
        assert any("PARALLEL TRACK" in line and "an aggregate" in line for line in lines)
        assert any("REPLAY" in line and "do not keep" in line for line in lines)
        assert any("MOVING STATE" in line and "moves no state" in line for line in lines)
        with pytest.raises(tidemill.RunError, match="the query has an aggregate") as refused:
            session.sql("ALTER QUERY q REPLAN USING PARALLEL TRACK")
        assert refused.value.hint == "write REPLAN USING GENMIG"
        with pytest.raises(tidemill.RunError, match="MOVING STATE is not possible"):
            session.sql("ALTER QUERY q REPLAN USING MOVING STATE")
        session.sql("ALTER QUERY q REPLAN")
        decided = session.sql("SHOW DECISIONS FOR q")
        assert isinstance(decided, pl.DataFrame)
        row = decided.filter(pl.col("subject") == "migration").row(0, named=True)
        assert row["chosen"] == "GENMIG"
        assert row["why"].startswith("no other way is possible; ")
        assert len(row["alternatives"]) == 3


def test_two_streams_one_of_which_lies_behind(tmp_path: Path) -> None:
    lying_behind(tidemill.connect(), tmp_path)
