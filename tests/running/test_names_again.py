"""A query that has the name of one that was dropped is another one, and finds nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tidemill
from running.shop import define, write

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl


@pytest.fixture(params=["memory", "checkpoint"])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> tidemill.Session:
    kept = tmp_path / "state" if request.param == "checkpoint" else None
    session = tidemill.connect(checkpoint=kept)
    write(tmp_path / "in", 0, 20)
    define(session, tmp_path / "in")
    return session


def test_what_a_dropped_query_gave_is_not_found(session: tidemill.Session, tmp_path: Path) -> None:
    with session:
        session.sql("CREATE QUERY q AS SELECT k FROM s [RANGE 5]")
        session.start()
        session.await_idle()
        session.sql("ALTER QUERY q AS SELECT v AS k FROM s [RANGE 2]")
        for first in (20, 40):  # the first version ends
            write(tmp_path / "in", first, first + 20)
            session.await_idle()
        session.sql("DROP QUERY q")
        session.sql("CREATE QUERY q AS SELECT t AS k FROM s [RANGE 3]")
        write(tmp_path / "in", 60, 80)
        session.await_idle()
        assert session.answer("q").snapshot(70)["k"].to_list() == [68, 69, 70]


@pytest.mark.parametrize("column", ["k", "v"])
def test_a_dropped_sink_gets_nothing(
    session: tidemill.Session, tmp_path: Path, column: str
) -> None:
    """Whether or not the columns of the two queries are the same."""
    taken: list[pl.DataFrame] = []
    session.callback("f", lambda rows, _batch: taken.append(rows))
    with session:
        session.sql("CREATE QUERY q INTO callback('f') AS SELECT k FROM s [RANGE 5]")
        session.start()
        session.await_idle()
        session.sql("DROP QUERY q")
        before = len(taken)
        assert before, "it has got rows"
        session.sql(f"CREATE QUERY q AS SELECT {column} FROM s [RANGE 5]")
        write(tmp_path / "in", 20, 40)
        session.await_idle()
        assert len(taken) == before
        assert session.answer("q").snapshot(35).height == 5
