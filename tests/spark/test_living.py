"""Queries that are changed, stopped and started on Spark: the same as on the local engine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import tidemill
from running.living_body import NEW, OLD, exercised
from running.shop import define, expected, write
from running.sink_body import altered, kept_through, stopped_and_started
from spark.on_spark import MASTER
from tidemill.lang.statements import Change
from tidemill.runtime.statement_log import STATEMENTS_FILE

pytestmark = pytest.mark.spark


def test_statements_on_a_running_session(tmp_path: Path) -> None:
    exercised(tidemill.connect(engine="spark", master=MASTER, partitions=2), tmp_path)


@pytest.mark.parametrize("using", Change)
def test_sinks_get_the_formula_of_a_change(tmp_path: Path, using: Change) -> None:
    altered(tidemill.connect(engine="spark", master=MASTER, partitions=2), tmp_path, using)


def test_what_sinks_are_to_get_is_kept_while_queries_are_paused(tmp_path: Path) -> None:
    kept_through(tidemill.connect(engine="spark", master=MASTER, partitions=2), tmp_path)


def test_sinks_of_queries_that_are_stopped_and_started(tmp_path: Path) -> None:
    stopped_and_started(tidemill.connect(engine="spark", master=MASTER, partitions=2), tmp_path)


def test_a_changed_query_goes_on_after_a_restart(tmp_path: Path) -> None:
    """The script that created it, and one that creates it as it is now, take it up again."""
    directory, checkpoint = tmp_path / "in", tmp_path / "state"
    write(directory, 0, 50)
    texts = [f"CREATE QUERY q AS {text}" for text in (OLD, NEW)]
    with tidemill.connect(
        engine="spark", master=MASTER, partitions=2, checkpoint=checkpoint
    ) as session:
        define(session, directory)
        session.query(texts[0])
        session.start()
        session.await_idle()
        session.sql(f"ALTER QUERY q AS {NEW}")
        write(directory, 50, 55)
        session.await_idle()
    given: list[pl.DataFrame] = []
    for number, text in enumerate(texts):
        with tidemill.connect(
            engine="spark", master=MASTER, partitions=2, checkpoint=checkpoint
        ) as session:
            define(session, directory)
            query = session.query(text)
            session.start()
            first = 55 + 45 * number
            write(directory, first, first + 45)
            session.await_idle()
            parts = query.versions().select("version", "fresh", "since").rows()
            assert parts == [(1, 0, 0), (2, 50, 59)]
            given.append(query.changes())
    with tidemill.connect(engine="spark", master=MASTER, checkpoint=checkpoint) as session:
        define(session, directory)
        with pytest.raises(tidemill.BindError, match='query "q" is another one in this checkpoint'):
            session.query("CREATE QUERY q AS SELECT k, v AS total FROM s")
        with pytest.raises(tidemill.RunError, match='"q" has run in this checkpoint'):
            session.sql("ALTER QUERY q AS SELECT k, v AS total FROM s")
    (checkpoint / STATEMENTS_FILE).unlink()  # a version without a log has made it
    with tidemill.connect(engine="spark", master=MASTER, checkpoint=checkpoint) as session:
        define(session, directory)
        session.query("CREATE QUERY q AS SELECT k, v AS total FROM s")
        with pytest.raises(tidemill.RunError, match="is not the one that this checkpoint runs"):
            session.start()
    wanted = expected(directory, NEW)
    for frame, since, until in ((given[0], 60, 99), (given[1], 101, 144)):
        due = (pl.col("time") >= since) & (pl.col("time") < until)
        order = ["time", "sign", "k", "total"]
        assert frame.filter(due).sort(order).equals(wanted.filter(due).sort(order))


KILLED = """
import os, signal, sys
import tidemill
from pathlib import Path
from running.living_body import NEW, OLD
from running.shop import define
from tidemill.runtime.records_file import RecordKeeper

directory, checkpoint, when = sys.argv[1:]
session = tidemill.connect(
    engine="spark", master="local[2]", partitions=2, checkpoint=checkpoint
)
define(session, Path(directory))
session.query(f"CREATE QUERY q AS {OLD}")
session.start()
session.await_idle()
write = RecordKeeper.write

def kill(keeper, records):
    if when == "after":
        write(keeper, records)
    os.killpg(0, signal.SIGKILL)  # Java, too: it would live on for a moment

RecordKeeper.write = kill
session.sql(f"ALTER QUERY q AS {NEW}")
"""


@pytest.mark.soak
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_change_that_was_written_down_is_taken_up_after_a_kill(tmp_path: Path, when: str) -> None:
    directory, checkpoint = tmp_path / "in", tmp_path / "state"
    write(directory, 0, 50)
    tests = Path(__file__).parent.parent
    path = os.pathsep.join([str(tests), str(tests.parent / "src")])
    arguments = [sys.executable, "-c", KILLED, str(directory), str(checkpoint), when]
    ran = subprocess.run(  # noqa: S603 — this interpreter
        arguments,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        timeout=120,
        check=False,
        start_new_session=True,
    )
    assert ran.returncode == -signal.SIGKILL, ran.stderr.decode()[-2000:]
    with tidemill.connect(
        engine="spark", master=MASTER, partitions=2, checkpoint=checkpoint
    ) as session:
        define(session, directory)
        query = session.query(f"CREATE QUERY q AS {OLD}")
        session.start()
        write(directory, 50, 100)
        session.await_idle()
        found = query.changes()
        parts = query.versions().select("version", "fresh", "since").rows()
    assert parts == ([(1, 0, 0)] if when == "before" else [(1, 0, 0), (2, 50, 59)])
    wanted = expected(directory, OLD if when == "before" else NEW)
    due = (pl.col("time") >= 60) & (pl.col("time") < 99)
    order = ["time", "sign", "k", "total"]
    assert found.filter(due).sort(order).equals(wanted.filter(due).sort(order))
