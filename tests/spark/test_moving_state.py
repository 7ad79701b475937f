"""Another plan takes over from that of a query that runs on Spark, with what that remembers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tidemill
from running.moving_body import (
    TEXT,
    assert_delivered,
    assert_whole,
    define_three,
    feed,
    feed_missing,
    goes_to,
    has_gone,
    is_under_way,
)
from spark.moved import POINTS, connected
from spark.on_spark import MASTER

pytestmark = pytest.mark.spark

SOME = ("before the batch ends",)
"""Those that are tried every time."""


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


@pytest.mark.parametrize(
    "point", [p if p in SOME else pytest.param(p, marks=pytest.mark.soak) for p in POINTS]
)
def test_a_plan_that_takes_over_outlasts_a_kill(tmp_path: Path, point: str) -> None:
    tests = Path(__file__).parent.parent
    path = os.pathsep.join([str(tests), str(tests.parent / "src")])
    ran = subprocess.run(  # noqa: S603 — this interpreter
        [sys.executable, str(tests / "spark" / "moved.py"), str(tmp_path), point],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        timeout=180,
        check=False,
    )
    assert ran.returncode == -signal.SIGKILL, ran.stderr.decode()[-2000:]
    with connected(tmp_path) as session:
        session.start()
        for name, first in (("c", 20), ("a", 60), ("b", 60)):
            feed_missing(tmp_path, name, first, 70)
        session.await_idle()
        feed(tmp_path, 70, 90)
        session.await_idle()
        assert not is_under_way(session)
        assert has_gone(session)
    assert_delivered(tmp_path, 89)
