"""Queries that are created between two sessions on Spark: the same as on the local engine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import tidemill
from running.between_body import created_between, lives, opened
from running.shop import define, write
from spark.on_spark import MASTER

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "keep",
    [
        "KEEP 40",
        *(pytest.param(keep, marks=pytest.mark.soak) for keep in ("", "KEEP ALL BY REFERENCE")),
    ],
)
def test_they_answer_from_the_instant_that_is_named(tmp_path: Path, keep: str) -> None:
    connect = partial(tidemill.connect, engine="spark", master=MASTER, partitions=2)
    created_between(partial(connect, checkpoint=tmp_path / "state"), tmp_path, keep)


KILLED = """
import os, signal, sys
import polars as pl
import tidemill
from tidemill.runtime.spark.driver import steps

checkpoint, last = sys.argv[1:]
session = tidemill.connect(engine="spark", master="local[2]", partitions=2, checkpoint=checkpoint)
session.put("r", pl.DataFrame({"id": [0, 1], "name": ["zero", "one"]}))

def kill(_):
    os.killpg(0, signal.SIGKILL)  # Java, too: it would live on for a moment

names = [step.__name__ for step in steps.STEPS]
steps.STEPS = (*steps.STEPS[: names.index(last) + 1], kill)
session.start()
"""


@pytest.mark.parametrize(
    "last", [pytest.param(s, marks=pytest.mark.soak) for s in ("create", "deploy", "record")]
)
def test_what_was_decided_outlasts_a_kill_before_it_takes_effect(tmp_path: Path, last: str) -> None:
    state, text = tmp_path / "state", "SELECT COUNT(*) AS n FROM s [RANGE 10]"
    connect = partial(
        tidemill.connect, engine="spark", master=MASTER, partitions=2, checkpoint=state
    )
    write(tmp_path / "in", 0, 60)
    with connect() as session:
        define(session, tmp_path / "in", keep="KEEP 20")
        session.sql("CREATE QUERY old AS SELECT k FROM s [RANGE 3]")
        session.run()
    with opened(connect) as session:
        into = f"INTO parquet('{tmp_path / 'late'}', form => 'changes')"
        session.sql(f"CREATE QUERY late {into} AS {text}")
    tests = Path(__file__).parent.parent
    path = os.pathsep.join([str(tests), str(tests.parent / "src")])
    ran = subprocess.run(  # noqa: S603 — this interpreter
        [sys.executable, "-c", KILLED, str(state), last],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        timeout=120,
        check=False,
        start_new_session=True,
    )
    assert ran.returncode == -signal.SIGKILL, ran.stderr.decode()[-2000:]
    with opened(connect) as session:
        assert lives(session)["late"] == "58"
        session.start()
        write(tmp_path / "in", 60, 70)
        session.await_idle()
        assert [session.find("late").snapshot(t).rows() for t in (58, 68)] == [[(10,)]] * 2
        assert session.versions("late").select("since").rows() == [(58,)]
