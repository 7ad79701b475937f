"""Continuous runs on Spark: what comes later, queries that come and go, and taking up again."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from pathlib import Path

import polars as pl
import pytest

import tidemill
from spark.on_spark import MASTER

pytestmark = pytest.mark.spark

STREAM = "(k BIGINT, v BIGINT, t BIGINT)"
TOTAL = "SELECT k, SUM(v) AS total, COUNT(*) AS n FROM s [RANGE 30] GROUP BY k"
PAIRS = "SELECT a.v AS x, b.v AS y FROM s a [RANGE 5] JOIN s b [RANGE 5] ON a.k = b.k"
NAMED = "SELECT name, v FROM s [RANGE 4], r WHERE id = k"


def rows(first: int, past: int) -> pl.DataFrame:
    times = list(range(first, past))
    return pl.DataFrame({"k": [t % 3 for t in times], "v": [t * 7 % 10 for t in times], "t": times})


def write(directory: Path, first: int, past: int) -> None:
    path = directory / f"{first:06d}.parquet"
    rows(first, past).write_parquet(directory / ".unfinished")
    (directory / ".unfinished").rename(path)
    os.utime(path, (1_000_000 + first, 1_000_000 + first))


def define(session: tidemill.Session, directory: Path) -> None:
    session.put("r", pl.DataFrame({"id": [0, 1], "name": ["zero", "one"]}))
    session.sql(
        f"CREATE STREAM s {STREAM} SOURCE parquet('{directory}') ORDERED BY t;"
        "CREATE RELATION r (id BIGINT, name VARCHAR) SOURCE memory('r')"
    )


def query(session: tidemill.Session, text: str) -> tidemill.Query:
    registered = session.sql(text)
    assert isinstance(registered, tidemill.Query)
    return registered


def expected(directory: Path, text: str) -> pl.DataFrame:
    with tidemill.connect() as session:
        define(session, directory)
        found = query(session, text)
        session.run()
        return found.results()


def on_spark(checkpoint: Path | None = None, partitions: int = 2) -> tidemill.Session:
    return tidemill.connect(
        engine="spark", master=MASTER, checkpoint=checkpoint, partitions=partitions
    )


def python_workers() -> list[int]:
    """The processes that Spark runs Python in, below this one."""
    found = []
    for status in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = status.read_bytes()
        except OSError:
            continue  # it has just ended
        process = int(status.parent.name)
        if b"-m\0tidemill.runtime.spark.worker.daemon" in command and _is_below(
            process, os.getpid()
        ):
            found.append(process)
    return found


def _is_below(pid: int, root: int) -> bool:
    while pid > 1:
        if pid == root:
            return True
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2]
        except OSError:
            return False
        pid = int(fields.split()[1])
    return False


def test_answers_go_on_as_rows_come(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    write(source, 0, 20)
    with on_spark() as session:
        define(session, source)
        total = query(session, TOTAL)
        session.start()
        session.await_idle()
        before = total.results().height
        assert total.snapshot().equals(total.snapshot(18)), "the last instant that is known"
        with pytest.raises(tidemill.RunError, match="known up to 19, and at 19"):
            total.snapshot(19)
        write(source, 20, 40)
        session.await_idle()
        session.stop()
        # What the watermark has passed is known, although most of it has not ended yet.
        whole = expected(source, TOTAL)
        assert 0 < before < total.results().height
        for time in range(39):
            known = total.snapshot(time).rows()
            wanted = whole.filter((pl.col("start") <= time) & (pl.col("end") > time))
            assert sorted(known) == sorted(wanted.drop("start", "end").rows())


def test_a_query_that_comes_later_leaves_the_others_alone(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    write(source, 0, 20)
    with on_spark(tmp_path / "state") as session:
        define(session, source)
        session.sql(f"CREATE QUERY total INTO parquet('{tmp_path / 'total'}') AS {TOTAL}")
        session.start()
        session.await_idle()
        named = query(session, NAMED)  # it begins with what comes now
        again = query(session, NAMED.replace("RANGE 4", "RANGE 3"))
        pairs = query(session, PAIRS)
        session.await_idle()
        write(source, 20, 40)
        session.await_idle()
        session.sql(f"DROP QUERY {pairs.name}")
        third = query(
            session, "SELECT r.name, COUNT(*) AS n FROM s [RANGE 2], r WHERE id = k GROUP BY name"
        )
        write(source, 40, 60)
        session.await_idle()
    with on_spark(tmp_path / "state") as session:
        define(session, source)
        for dropped in (named, again, third):
            session.sql(f"DROP QUERY {dropped.name}")
        total = query(
            session, f"CREATE QUERY total INTO parquet('{tmp_path / 'total'}') AS {TOTAL}"
        )
        session.run(end=True)
        assert total.results().equals(expected(source, TOTAL))
    late = expected(source, NAMED).filter(pl.col("start") >= 25)
    found = named.results().filter(pl.col("start") >= 25)
    assert found.height > 0
    assert set(found.rows()) <= set(late.rows())
    assert again.results().filter(pl.col("start") >= 25).height > 0
    assert third.results().filter(pl.col("start") >= 45).height > 0


def test_a_lost_cache_and_killed_workers_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, state, caches = tmp_path / "in", tmp_path / "state", tmp_path / "caches"
    source.mkdir()
    caches.mkdir()
    # Other tests that run meanwhile keep theirs.
    monkeypatch.setattr(tempfile, "tempdir", str(caches))
    texts = {"total": TOTAL, "pairs": PAIRS, "named": NAMED}
    with on_spark(state, partitions=4) as session:
        define(session, source)
        for name, text in texts.items():
            session.sql(f"CREATE QUERY {name} INTO parquet('{tmp_path / name}') AS {text}")
        write(source, 0, 10)
        session.start()
        session.await_idle()
        for number in range(1, 4):
            if number % 2:
                (cache,) = caches.glob("tidemill-*/*")
                shutil.rmtree(cache, ignore_errors=True)
            workers = python_workers()
            assert workers, "there is somebody to kill"
            for worker in workers:
                os.kill(worker, signal.SIGKILL)
            write(source, number * 10, number * 10 + 10)
            session.await_idle()
    with on_spark(state, partitions=4) as session:
        define(session, source)
        found = {
            name: query(session, f"CREATE QUERY {name} INTO parquet('{tmp_path / name}') AS {text}")
            for name, text in texts.items()
        }
        session.run(end=True)
        for name, text in texts.items():
            assert found[name].results().equals(expected(source, text)), name


def test_a_query_over_relations_only_has_an_answer_although_no_row_comes(tmp_path: Path) -> None:
    session = tidemill.connect(
        engine="spark", master=MASTER, partitions=2, checkpoint=tmp_path / "state"
    )
    session.put("r", pl.DataFrame({"id": [1, 2, 2]}))
    session.sql("CREATE RELATION r (id BIGINT) SOURCE memory('r')")
    with session:
        first = session.query("SELECT id, COUNT(*) AS n FROM r GROUP BY id")
        session.start()
        session.await_idle()
        second = session.query("SELECT DISTINCT id FROM r")
        session.await_idle()
        assert sorted(first.snapshot(0).rows()) == [(1, 1), (2, 2)]
        assert sorted(second.snapshot(0).rows()) == [(1,), (2,)]


def test_a_relation_may_be_larger_than_what_spark_sends_in_one_piece(tmp_path: Path) -> None:
    write(tmp_path, 0, 9)
    numbers = pl.int_range(200_000, eager=True)
    large = pl.DataFrame({"id": numbers, "x": numbers.hash(seed=1).reinterpret(signed=True)})
    found = []
    for session in (on_spark(), tidemill.connect()):
        with session:
            session.put("large", large)
            session.sql(
                f"CREATE STREAM s {STREAM} SOURCE parquet('{tmp_path}') ORDERED BY t;"
                "CREATE RELATION large (id BIGINT, x BIGINT) SOURCE memory('large')"
            )
            pairs = query(session, "SELECT v, x FROM s [RANGE 4], large WHERE id = k")
            session.run()
            found.append(pairs.results())
    assert found[0].height == 9
    assert found[0].equals(found[1])


def test_a_late_query_does_not_depend_on_its_neighbours(tmp_path: Path) -> None:
    """Of two streams with the same files, one is read by a query that shares parts with it."""
    late = "SELECT k, v FROM {0} [RANGE 4] WHERE k IN (SELECT DISTINCT k FROM {0} [RANGE 9])"
    last = "SELECT k, COUNT(*) AS n FROM {0} [ROWS 5] GROUP BY k"
    for name in "ab":
        (tmp_path / name).mkdir()
        write(tmp_path / name, 0, 20)
    with on_spark(tmp_path / "state") as session:
        for name in "ab":
            session.sql(
                f"CREATE STREAM {name} {STREAM} SOURCE parquet('{tmp_path / name}') ORDERED BY t"
            )
        query(session, "SELECT DISTINCT k FROM a [RANGE 9]")
        query(session, last.format("a"))
        session.start()
        session.await_idle()
        session.sql(
            ";".join(
                f"CREATE QUERY {kind}_{name} AS {text.format(name)}"
                for kind, text in (("late", late), ("last", last))
                for name in "ab"
            )
        )
        for name in "ab":
            write(tmp_path / name, 20, 40)
        session.await_idle()
        for kind in ("late", "last"):
            with_others, alone = (session.answer(f"{kind}_{name}").changes() for name in "ab")
            assert with_others.height > 20
            assert with_others.equals(alone), kind
        streams = {stream.name: stream for stream in session.progress().streams}
        assert streams["a"].warnings == ()
        assert streams["b"].warnings == (
            "a file that came before the queries began will not be read",
        )


def test_a_query_that_is_created_anew_reads_what_was_not_delivered(tmp_path: Path) -> None:
    source = tmp_path / "s"
    source.mkdir()
    write(source, 0, 5)
    (source / "000005.parquet").write_bytes(b"not yet")
    with on_spark(tmp_path / "state") as session:
        define(session, source)
        query(session, "CREATE QUERY q AS SELECT k FROM s")
        with pytest.raises(tidemill.RunError, match="cannot be read as parquet"):
            session.run()
    write(source, 5, 9)
    with on_spark(tmp_path / "state") as session:
        define(session, source)
        session.sql("DROP QUERY q")
        again = query(session, "CREATE QUERY q AS SELECT t FROM s")
        session.run()
        assert again.results()["t"].to_list() == [5, 6, 7, 8], "one file had been delivered"
        session.start()
        session.await_idle()
        session.sql("DROP QUERY q")
        write(source, 9, 12)
        last = query(session, "CREATE QUERY q AS SELECT v, t FROM s")
        write(source, 12, 14)
        session.await_idle()
        found = last.results()["t"].to_list()
        assert found == [9, 10, 11, 12, 13], "all from the instant on that nobody has read"
