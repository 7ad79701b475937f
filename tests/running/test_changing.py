"""Queries come and go while the local engine runs; those that stay do not notice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from running.shop import DIFFERENT, LAST, NAMED, PAIRS, TOTAL, define, expected, known, write
from tidemill.runtime.local.job import Job, Settings
from tidemill.runtime.runs import Moment

if TYPE_CHECKING:
    from pathlib import Path


def test_a_query_that_comes_later_leaves_the_others_alone(tmp_path: Path) -> None:
    source = tmp_path / "in"
    write(source, 0, 20)
    with tidemill.connect(partitions=2) as session:
        define(session, source)
        total = session.query(f"CREATE QUERY total AS {TOTAL}")
        out = tmp_path / "out"
        kept = session.query(f"CREATE QUERY kept INTO parquet('{out}') AS {LAST}")
        session.start()
        session.await_idle()
        named, pairs = session.query(NAMED), session.query(PAIRS)
        write(source, 20, 40)
        session.await_idle()
        session.sql(f"DROP QUERY {pairs.name}; DROP QUERY {named.name}")
        session.query(TOTAL.replace("RANGE 30", "RANGE 7"))
        write(source, 40, 60)
        session.await_idle()
        whole = expected(source, TOTAL).filter(pl.col("time") < 59)
        assert known(total, 59).equals(whole)
        assert known(kept, 45).equals(expected(source, LAST).filter(pl.col("time") < 45))


@pytest.mark.parametrize("text", [DIFFERENT, LAST, PAIRS, NAMED, TOTAL])
def test_a_late_query_does_not_depend_on_its_neighbours(tmp_path: Path, text: str) -> None:
    """Of two streams with the same files, one is read by queries that share parts with it."""
    with tidemill.connect() as session:
        for name in ("s", "alone"):
            write(tmp_path / name, 0, 20)
            define(session, tmp_path / name, name)
        for other in (DIFFERENT, LAST, PAIRS, NAMED, TOTAL):
            session.query(other)
        session.start()
        session.await_idle()
        late = session.query(text)
        by_itself = session.query(
            text.replace("FROM s", "FROM alone").replace("JOIN s", "JOIN alone")
        )
        for name in ("s", "alone"):
            write(tmp_path / name, 20, 40)
        session.await_idle()
        assert late.changes().height > 5
        assert late.changes().equals(by_itself.changes())
        streams = {stream.name: stream for stream in session.progress().streams}
        assert streams["s"].warnings == ()
        assert streams["alone"].warnings == (
            "a file that came before the queries began will not be read",
        )


def test_a_stream_that_nobody_reads_any_more_is_closed(tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path / name, 0, 5)
    with tidemill.connect() as session:
        for name in "ab":
            define(session, tmp_path / name, name)
        first = session.query("SELECT t FROM a")
        session.query("CREATE QUERY q AS SELECT t FROM b")
        session.start()
        session.await_idle()
        session.sql("DROP QUERY q")
        assert [stream.name for stream in session.progress().streams] == ["a"]
        (tmp_path / "b" / "broken.parquet").write_bytes(b"nobody looks at it")
        write(tmp_path / "a", 5, 8)
        session.await_idle()
        assert first.results()["t"].to_list() == list(range(8))
        assert session.quarantine("b").is_empty(), "it was read"


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE QUERY q INTO callback('nobody') AS SELECT t FROM s", 'no callback "nobody"'),
        ("CREATE QUERY q INTO parquet('{0}/in') AS SELECT t FROM s", "holds files of others"),
        ("CREATE QUERY q AS SELECT t FROM gone", "there is no directory"),
        ("CREATE QUERY q AS SELECT name FROM r", 'relation "r" has other rows'),
    ],
)
def test_what_is_refused_changes_nothing(tmp_path: Path, statement: str, message: str) -> None:
    source = tmp_path / "in"
    write(source, 0, 20)
    with tidemill.connect() as session:
        (tmp_path / "r.csv").write_text("id,name\n1,one\n0,zero\n")
        session.sql(
            "CREATE RELATION r (id BIGINT, name VARCHAR) "
            f"SOURCE csv('{tmp_path / 'r.csv'}', settle => 0)"
        )
        define(session, source)
        define(session, tmp_path / "gone", "gone")
        total, named = session.query(TOTAL), session.query(NAMED)
        session.start()
        session.await_idle()
        before = session.progress().batches
        (tmp_path / "r.csv").write_text("id,name\n5,five\n")
        with pytest.raises(tidemill.RunError, match=message):
            session.sql(statement.format(tmp_path))
        assert session.catalog.find("q") is None
        assert session.progress().batches == before
        write(source, 20, 40)
        session.await_idle()
        for query, text in ((total, TOTAL), (named, NAMED)):
            assert known(query, 39).equals(expected(source, text).filter(pl.col("time") < 39))


def test_a_change_is_decided_knowing_what_has_come(tmp_path: Path) -> None:
    source = tmp_path / "in"
    write(source, 0, 20)
    session = tidemill.connect()
    session.sql(
        f"CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) SOURCE parquet('{source}')"
        " ORDERED BY t WITHIN 5;"
        "CREATE QUERY q AS SELECT t FROM s [RANGE 3]"
    )
    job = Job(session.catalog, {}, Settings(clock=lambda: 700))
    told: list[Moment] = []

    def decide(moment: Moment) -> object:
        told.append(moment)
        return session.catalog

    assert job.change(decide) is session.catalog  # type: ignore[arg-type]
    job.start()
    try:
        job.await_idle()
        assert job.change(decide) is session.catalog  # type: ignore[arg-type]
    finally:
        job.close()
    before, after = told
    assert before == Moment()
    assert (after.latest, after.watermarks, after.known) == ({"s": 19}, {"s": 14}, {"q": 14})
    assert after.now >= 700
    assert after.next == 20
