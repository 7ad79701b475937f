"""What another session, another run or another query finds on a checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from spark.on_spark import MASTER
from tidemill.runtime.spark.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark

COUNT = "SELECT k, COUNT(*) AS n FROM s [RANGE 100] GROUP BY k"
DEEPER = (
    "SELECT x.n AS n, COUNT(*) AS groups FROM "
    "(SELECT k, COUNT(*) AS n FROM s [RANGE 100] GROUP BY k) x GROUP BY x.n"
)


def connected(place: Path | None, source: Path) -> tidemill.Session:
    session = (
        tidemill.connect(partitions=2)
        if place is None
        else tidemill.connect(
            engine="spark", master=MASTER, partitions=2, checkpoint=place / "state"
        )
    )
    session.sql(f"CREATE STREAM s (k BIGINT, at BIGINT) SOURCE parquet('{source}') ORDERED BY at")
    session.sql("CREATE RELATION r (id BIGINT, name VARCHAR) SOURCE memory('r')")
    session.put("r", pl.DataFrame({"id": [1, 2], "name": ["one", "two"]}))
    return session


def give(source: Path, number: int) -> None:
    times = range(number * 10, number * 10 + 10)
    rows = pl.DataFrame({"k": [t % 7 for t in times], "at": list(times)})
    rows.write_parquet(source / f".{number}")
    (source / f".{number}").rename(source / f"{number}.parquet")


def query(session: tidemill.Session, text: str) -> tidemill.Query:
    found = session.sql(text)
    assert isinstance(found, tidemill.Query)
    return found


def expected(source: Path, text: str) -> pl.DataFrame:
    session = connected(None, source)
    found = query(session, text)
    session.run()
    return found.results()


def test_a_checkpoint_goes_on_with_what_is_the_same_and_begins_what_is_new(tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    give(source, 0)
    with connected(tmp_path, source) as session:
        session.sql(f"CREATE QUERY q INTO parquet('{out}') AS {COUNT}")
        query(session, "CREATE QUERY j AS SELECT name FROM s [RANGE 3], r WHERE id = k")
        query(session, f"CREATE QUERY counts AS {COUNT}")
        session.start()
        session.await_idle()
        # It needs a stage more than there are: others keep their rows where they are.
        session.sql(f"CREATE QUERY deeper INTO parquet('{tmp_path / 'deeper'}') AS {DEEPER}")
        give(source, 1)
        session.await_idle()
        session.stop()
    with connected(tmp_path, source) as session:
        again = query(session, f"CREATE QUERY q INTO parquet('{out}') AS {COUNT}")
        counts = query(session, f"CREATE QUERY counts AS {COUNT}")
        session.sql("DROP QUERY deeper")
        # Another query under a name that was there: the relation comes in for it.
        session.sql("DROP QUERY j")
        other = query(session, "CREATE QUERY j AS SELECT name FROM s [RANGE 5], r WHERE id = k")
        give(source, 2)
        session.run(end=True)
        with pytest.raises(tidemill.RunError, match="before this session was started is not kept"):
            counts.snapshot()
        assert again.snapshot().equals(again.snapshot(29)), "files have it from the beginning"
        assert again.results().equals(expected(source, COUNT))
        assert {row[0] for row in other.results().rows()} == {"one", "two"}
        assert min(row[1] for row in other.results().rows()) >= 20
    with connected(tmp_path, source) as session:
        session.sql(f"CREATE QUERY q INTO parquet('{out}') AS {COUNT}")
        session.run()  # everything is there already
        with pytest.raises(tidemill.RunError, match="run to the end"):
            session.start()
        query(session, "CREATE QUERY late AS SELECT k FROM s")
        with pytest.raises(tidemill.RunError, match="run to the end"):
            session.run()
    moved = tmp_path / "moved"
    moved.mkdir()
    with pytest.raises(tidemill.BindError, match='stream "s" is another one in this checkpoint'):
        connected(tmp_path, moved)


def test_queries_that_are_alike_keep_their_state_when_others_come_and_go(tmp_path: Path) -> None:
    """They run as one: alone at first, then with another one, then with a third, in the end alone.

    A query without state is there as well: its rows are written where they come in.
    """
    source = tmp_path / "in"
    source.mkdir()
    texts = {n: COUNT.replace("GROUP", f"WHERE k <> {n} GROUP") for n in range(3)}
    texts[3] = "SELECT k, at FROM s WHERE k > 3"

    def create(session: tidemill.Session, number: int) -> tidemill.Query:
        into = f"INTO parquet('{tmp_path / f'q{number}'}')"
        return query(session, f"CREATE QUERY q{number} {into} AS {texts[number]}")

    with connected(tmp_path, source) as session:
        create(session, 0)
        create(session, 3)
        session.start()
        for number in (1, 2):
            give(source, number)
            session.await_idle()
            create(session, number)
        give(source, 3)
        session.await_idle()
        session.stop()
    with connected(tmp_path, source) as session:
        found = [create(session, number) for number in (0, 2, 3)]
        session.sql("DROP QUERY q1; DROP QUERY q2")
        give(source, 4)
        session.run(end=True)
        for kept, text in ((found[0], texts[0]), (found[2], texts[3])):
            assert kept.results().equals(expected(source, text))


def test_a_second_run_has_the_relation_as_it_is_then(tmp_path: Path) -> None:
    give(tmp_path, 0)
    with tidemill.connect(engine="spark", master=MASTER) as session:
        session.sql(
            f"CREATE STREAM s (k BIGINT, at BIGINT) SOURCE parquet('{tmp_path}') ORDERED BY at"
        )
        session.sql("CREATE RELATION r (id BIGINT, name VARCHAR) SOURCE memory('r')")
        found = query(session, "SELECT name FROM s [RANGE 3], r WHERE id = k")
        for name in ("old", "new"):
            session.put("r", pl.DataFrame({"id": [1], "name": [name]}))
            session.run()
            assert {row[0] for row in found.results().rows()} == {name}


def test_another_query_of_a_name_does_not_inherit_how_far_it_is_known(tmp_path: Path) -> None:
    sources = {name: tmp_path / name for name in ("s", "other")}
    for source in sources.values():
        source.mkdir()
    give(sources["s"], 5)

    def running(text: str) -> tuple[tidemill.Session, tidemill.Query]:
        session = connected(tmp_path, sources["s"])
        session.sql(
            f"CREATE STREAM other (k BIGINT, at BIGINT) SOURCE parquet('{sources['other']}')"
            " ORDERED BY at"
        )
        return session, query(session, text)

    with running(f"CREATE QUERY q INTO parquet('{tmp_path / 'q'}') AS SELECT k FROM s")[0] as first:
        first.run()
    text = f"CREATE QUERY q INTO parquet('{tmp_path / 'p'}') AS SELECT k FROM other [RANGE 90]"
    with connected(tmp_path, sources["s"]) as session:
        session.sql("DROP QUERY q")
    for _ in range(2):  # it begins, and goes on before anything has come
        session, later = running(text)
        with session:
            session.run()
            with pytest.raises(tidemill.RunError, match="can still change"):
                later.snapshot(30)


def test_a_checkpoint_that_was_being_ended_takes_no_rows_as_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    give(source, 0)
    text = f"CREATE QUERY q INTO parquet('{out}') AS SELECT k, at FROM s"
    with monkeypatch.context() as patch, connected(tmp_path, source) as session:
        patch.setattr(Checkpoint, "end", lambda _: pytest.fail("killed"))
        session.sql(text)
        with pytest.raises(pytest.fail.Exception, match="killed"):
            session.run(end=True)
    give(source, 1)
    with connected(tmp_path, source) as session:
        found = query(session, text)
        for going_on in (session.run, session.start):
            with pytest.raises(tidemill.RunError, match="was being run to the end"):
                going_on()
        session.run(end=True)
        assert found.results().height == 10
