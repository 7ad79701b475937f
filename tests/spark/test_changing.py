"""A change takes effect at the next batch: Spark's query runs on, and what it runs is told anew."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from errno import ENOSPC
from threading import Event
from time import sleep
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from running.shop import DIFFERENT, NAMED, PAIRS, TOTAL, define, expected, known, write
from spark.on_spark import MASTER
from tidemill.runtime.spark.driver.control import Control
from tidemill.runtime.spark.driver.job import SparkJob

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

pytestmark = pytest.mark.spark

HALF = "SELECT k, SUM(v) AS total, COUNT(*) AS n FROM s [RANGE 15] WHERE v > 2 GROUP BY k"
ORDER = ["time", "sign"]


def connected(checkpoint: Path | None = None) -> tidemill.Session:
    return tidemill.connect(engine="spark", master=MASTER, partitions=2, checkpoint=checkpoint)


def run_id(session: tidemill.Session) -> str:
    """Which start of Spark's query is at work."""
    job = session._queries.look.finished()  # noqa: SLF001 — the session does not tell
    assert isinstance(job, SparkJob)
    running = job._running  # noqa: SLF001
    assert running is not None
    assert running.query is not None
    return running.query.runId


def test_queries_come_change_and_go_while_spark_s_query_runs_on(tmp_path: Path) -> None:
    directory = tmp_path / "in"
    write(directory, 0, 20)
    with connected() as session:
        define(session, directory)
        total = session.query(f"CREATE QUERY total AS {TOTAL}")
        session.start()
        session.await_idle()
        first = run_id(session)
        session.query(f"CREATE QUERY pairs AS {PAIRS}")
        named = session.query(f"CREATE QUERY named AS {NAMED}")
        only = session.query("CREATE QUERY only AS SELECT name FROM r")
        session.await_idle()
        assert only.snapshot(0).height == 2, "no row is needed"
        write(directory, 20, 40)
        session.await_idle()
        session.sql(f"ALTER QUERY total AS {HALF}")
        session.sql("DROP QUERY pairs")
        write(directory, 40, 90)
        session.await_idle()
        late = session.query(f"CREATE QUERY late AS {DIFFERENT}")
        write(directory, 90, 120)
        session.await_idle()
        assert run_id(session) == first, "nothing was started again"
        session.sql(
            f"CREATE STREAM u (k BIGINT, v BIGINT, t BIGINT) SOURCE parquet('{directory}')"
            " ORDERED BY t"
        )
        session.sql("CREATE QUERY other AS SELECT k FROM u [RANGE 3]")
        second = run_id(session)
        assert second != first, "a new source"
        session.sql("DROP QUERY other")
        assert run_id(session) != second, "a source that is not read any more"
        write(directory, 120, 150)
        session.await_idle()
        found = known(total, 149), known(named, 149), known(late, 149)
    old, new = expected(directory, TOTAL), expected(directory, HALF)
    assert_equal(found[0].filter(pl.col("time") < 54), old.filter(pl.col("time") < 54))
    after = pl.col("time") > 54  # there both versions announce and withdraw
    assert_equal(found[0].filter(after), new.filter(after & (pl.col("time") < 149)))
    assert_equal(found[1].filter(pl.col("time") >= 24), expected(directory, NAMED), 24)
    assert_equal(found[2].filter(pl.col("time") > 99), expected(directory, DIFFERENT), 100)


def assert_equal(found: pl.DataFrame, wanted: pl.DataFrame, since: int = 0) -> None:
    """Two answers have the same changes from an instant on, as far as they are known."""
    time = pl.col("time")
    wanted = wanted.filter((time >= since) & (time < 149))
    by = [*ORDER, *sorted(set(found.columns) - set(ORDER))]
    assert found.filter(time >= since).sort(by).equals(wanted.sort(by))


def test_a_refused_change_leaves_everything_as_it_was(tmp_path: Path) -> None:
    directory = tmp_path / "in"
    write(directory, 0, 20)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "other.txt").write_text("not ours")
    with connected(tmp_path / "state") as session:
        define(session, directory)
        total = session.query(f"CREATE QUERY total AS {TOTAL}")
        session.start()
        session.await_idle()
        first, files = run_id(session), kept(tmp_path / "state")
        with pytest.raises(tidemill.RunError, match="holds files of others"):
            session.sql(f"CREATE QUERY q INTO parquet('{tmp_path / 'out'}') AS {NAMED}")
        assert (run_id(session), kept(tmp_path / "state")) == (first, files)
        write(directory, 20, 60)
        session.await_idle()
        found = known(total, 59)
    assert_equal(found, expected(directory, TOTAL).filter(pl.col("time") < 59))


def kept(checkpoint: Path) -> dict[str, bytes]:
    """What a checkpoint knows of queries."""
    paths = [checkpoint / "tidemill.json", *checkpoint.glob("deployments/*")]
    return {str(path): path.read_bytes() for path in paths}


def test_a_change_that_cannot_be_written_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "in"
    write(directory, 0, 20)
    with connected(tmp_path / "state") as session:
        define(session, directory)
        total = session.query(f"CREATE QUERY total AS {TOTAL}")
        session.start()
        session.await_idle()
        known_before = (tmp_path / "state" / "tidemill.json").read_bytes()
        with monkeypatch.context() as full:
            full.setattr(Control, "say", no_room)
            with pytest.raises(tidemill.RunError, match="No space left"):
                session.sql("CREATE QUERY only AS SELECT name FROM r")
        assert (tmp_path / "state" / "tidemill.json").read_bytes() == known_before
        write(directory, 20, 60)
        session.await_idle()
        only = session.query("CREATE QUERY only AS SELECT name FROM r")
        session.await_idle()
        assert only.snapshot(0).height == 2
        found = known(total, 59)
    assert_equal(found, expected(directory, TOTAL).filter(pl.col("time") < 59))


def no_room(*_args: object) -> None:
    raise OSError(ENOSPC, "No space left on device")


def test_a_session_that_is_stopped_while_it_starts_again_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begins, go_on = Event(), SparkJob._go_on  # noqa: SLF001 — it is made slow

    def slowly(job: SparkJob, dropped: Collection[str] = (), *, is_change: bool = False) -> None:
        begins.set()
        sleep(1)
        go_on(job, dropped, is_change=is_change)

    for name in ("in", "other"):
        write(tmp_path / name, 0, 20)
    with connected(tmp_path / "state") as session, ThreadPoolExecutor(1) as pool:
        define(session, tmp_path / "in")
        session.sql(f"CREATE QUERY total AS {TOTAL}")
        session.sql(
            "CREATE STREAM u (k BIGINT, v BIGINT, t BIGINT)"
            f" SOURCE parquet('{tmp_path / 'other'}') ORDERED BY t"
        )
        session.start()
        session.await_idle()
        monkeypatch.setattr(SparkJob, "_go_on", slowly)
        creating = pool.submit(session.sql, "CREATE QUERY late AS SELECT k FROM u [RANGE 3]")
        assert begins.wait(30)
        session.stop()
        creating.result()
        job = session._queries.look.finished()  # noqa: SLF001
        assert isinstance(job, SparkJob)
        assert job._running is not None  # noqa: SLF001
        assert job._running.query is None, "nothing runs"  # noqa: SLF001


def test_a_pipeline_that_cannot_start_again_is_not_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("in", "other"):
        write(tmp_path / name, 0, 20)
    with connected(tmp_path / "state") as session:
        define(session, tmp_path / "in")
        total = session.query(f"CREATE QUERY total AS {TOTAL}")
        session.sql(
            "CREATE STREAM u (k BIGINT, v BIGINT, t BIGINT)"
            f" SOURCE parquet('{tmp_path / 'other'}') ORDERED BY t"
        )
        session.start()
        session.await_idle()
        with monkeypatch.context() as full:
            full.setattr(SparkJob, "_start", no_room_to_start)
            with pytest.raises(OSError, match="No space left"):
                session.sql("CREATE QUERY late AS SELECT k FROM u [RANGE 3]")
        with pytest.raises(tidemill.RunError, match="could not be started again"):
            session.await_idle()
        session.stop()
        write(tmp_path / "in", 20, 60)
        session.start()
        session.await_idle()
        assert known(total, 59).height


def no_room_to_start(*_args: object, **_options: object) -> None:
    no_room()
