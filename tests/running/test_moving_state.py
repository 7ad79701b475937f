"""Another plan takes over from that of a query that runs, with what that remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tidemill
from running.moving_body import (
    JOINED,
    TEXT,
    assert_whole,
    define_three,
    feed,
    goes_to,
    is_under_way,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("kept", [False, True])
def test_plans_take_over_from_each_other(tmp_path: Path, partitions: int, *, kept: bool) -> None:
    checkpoint = str(tmp_path / "checkpoint") if kept else None
    with tidemill.connect(partitions=partitions, checkpoint=checkpoint) as session:
        define_three(session, tmp_path)
        feed(tmp_path, 0, 20)
        query = session.query(TEXT)
        session.start()
        session.await_idle()
        plans = {session.planned("q").version}
        last = 20
        for number in (0, 1, 2, 3, 1, 0, 2):
            verdict = goes_to(session, number)
            session.await_idle()
            assert "until all streams" not in verdict.meanwhile
            plans.add(session.planned("q").version)
            feed(tmp_path, last, last + 10)
            session.await_idle()
            last += 10
            assert not is_under_way(session)
        assert len(plans) > 3, "plans have changed"
        assert_whole(query, tmp_path, last - 1)


@pytest.mark.parametrize("kept", [False, True])
def test_streams_that_are_behind_are_waited_for(tmp_path: Path, *, kept: bool) -> None:
    checkpoint = str(tmp_path / "checkpoint") if kept else None
    with tidemill.connect(partitions=2, checkpoint=checkpoint) as session:
        define_three(session, tmp_path)
        feed(tmp_path, 0, 20)
        feed(tmp_path, 20, 40, "ab")
        query = session.query(TEXT)
        session.start()
        session.await_idle()
        before = session.planned("q").version
        told = goes_to(session, 0, is_done=False)
        assert not is_under_way(session)
        verdict = goes_to(session, 0)
        assert verdict == told
        assert verdict.at == 39
        assert "until all streams have come to 39" in verdict.text()
        feed(tmp_path, 40, 60, "a")
        feed(tmp_path, 20, 30, "c")
        session.await_idle()
        assert is_under_way(session)
        assert session.planned("q").version == before
        with pytest.raises(tidemill.RunError, match="already taking over"):
            session.sql("ALTER QUERY q REPLAN USING MOVING STATE")
        feed(tmp_path, 40, 60, "b")
        feed(tmp_path, 30, 60, "c")
        session.await_idle()
        feed(tmp_path, 60, 70)
        session.await_idle()
        assert session.planned("q").version != before
        assert not is_under_way(session)
        assert_whole(query, tmp_path, 69)


def test_the_plan_that_runs_is_not_replaced_by_itself(tmp_path: Path) -> None:
    with tidemill.connect() as session:
        define_three(session, tmp_path)
        session.query(TEXT)
        session.start()
        feed(tmp_path, 0, 20)
        session.await_idle()
        told = session.sql("EXPLAIN ALTER QUERY q REPLAN USING MOVING STATE")
        assert isinstance(told, str)
        assert told.startswith("ALTER QUERY q REPLAN USING MOVING STATE")


def test_what_cannot_be_moved_is_refused(tmp_path: Path) -> None:
    with tidemill.connect() as session:
        define_three(session, tmp_path)
        session.query(f"CREATE QUERY q AS SELECT x, COUNT(*) AS n FROM ({JOINED}) j GROUP BY x")
        with pytest.raises(tidemill.RunError, match="not running"):
            session.sql("ALTER QUERY q REPLAN USING MOVING STATE")
        session.start()
        feed(tmp_path, 0, 20)
        session.await_idle()
        session.sql("PAUSE QUERY q")
        with pytest.raises(tidemill.RunError, match="is paused"):
            session.sql("ALTER QUERY q REPLAN USING MOVING STATE")
