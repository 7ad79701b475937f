"""Another plan takes over from that of a query that runs on Spark, with what that remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tidemill
from running.moving_body import (
    TEXT,
    assert_whole,
    define_three,
    feed,
    goes_to,
    is_under_way,
)
from spark.on_spark import MASTER

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark


def test_plans_take_over_when_all_streams_have_come_there(tmp_path: Path) -> None:
    with tidemill.connect(engine="spark", master=MASTER, partitions=2) as session:
        define_three(session, tmp_path)
        feed(tmp_path, 0, 20)
        feed(tmp_path, 20, 40, "ab")
        query = session.query(TEXT)
        session.start()
        session.await_idle()
        plans = [session.planned("q").version]
        assert goes_to(session, 2).at == 39
        feed(tmp_path, 40, 60, "a")
        feed(tmp_path, 20, 30, "c")
        session.await_idle()
        assert is_under_way(session)
        feed(tmp_path, 40, 60, "b")
        feed(tmp_path, 30, 60, "c")
        session.await_idle()
        plans.append(session.planned("q").version)
        goes_to(session, 0)
        feed(tmp_path, 60, 70)
        session.await_idle()
        plans.append(session.planned("q").version)
        feed(tmp_path, 70, 80)
        session.await_idle()
        assert len(set(plans)) == len(plans)
        assert not is_under_way(session)
        assert_whole(query, tmp_path, 79)
