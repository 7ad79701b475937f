"""Relations that a stream changes, in a session that runs on: what comes late, and restarts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill

if TYPE_CHECKING:
    from pathlib import Path

CHANGE = ("item", "price", "op", "at")
BID = ("item", "n", "at")
NOW = "SELECT b.n, p.price FROM bid [RANGE 4] b JOIN price p USING (item)"
THEN = "SELECT b.n, p.price FROM bid [RANGE 4] b JOIN paid p USING (item)"


def write(
    directory: Path, columns: tuple[str, ...], number: int, *rows: tuple[object, ...]
) -> None:
    """A file, which is there all at once."""
    directory.mkdir(exist_ok=True)
    unfinished = directory / ".unfinished"
    pl.DataFrame(list(rows), schema=list(columns), orient="row").write_parquet(unfinished)
    os.utime(unfinished, (1_000_000 + number, 1_000_000 + number))
    unfinished.rename(directory / f"{number}.parquet")


def define(session: tidemill.Session, root: Path, *, change: str = "", bid: str = "") -> None:
    session.sql(f"""
        CREATE STREAM change (item VARCHAR, price BIGINT, op VARCHAR, at BIGINT)
          SOURCE parquet('{root / "change"}') ORDERED BY at WITHIN 5 {change};
        CREATE STREAM bid (item VARCHAR, n BIGINT, at BIGINT)
          SOURCE parquet('{root / "bid"}') ORDERED BY at {bid};
        CREATE RELATION price (item VARCHAR, price BIGINT)
          FROM STREAM change KEY (item) DELETE WHEN op = 'D';
        CREATE RELATION paid (item VARCHAR, price BIGINT)
          FROM STREAM change KEY (item) NON RETROACTIVE DELETE WHEN op = 'D'
    """)


def first_files(root: Path) -> None:
    write(root / "change", CHANGE, 1, ("pen", 10, "U", 1), ("cup", 20, "U", 2), ("pen", 12, "U", 9))
    write(root / "bid", BID, 1, ("pen", 1, 3), ("cup", 2, 7))


def second_files(root: Path) -> None:
    """A change that comes after a later one, as far behind it as WITHIN allows."""
    write(root / "change", CHANGE, 2, ("pen", 11, "U", 4), ("cup", 0, "D", 8), ("ink", 5, "U", 40))
    write(root / "bid", BID, 2, ("pen", 3, 9), ("cup", 4, 30))


ANSWERS = {
    NOW: [(1, 10, 3, 4), (1, 11, 4, 7), (2, 20, 7, 8), (3, 12, 9, 13)],
    THEN: [(1, 10, 3, 7), (2, 20, 7, 11), (3, 12, 9, 13)],
}


@pytest.mark.parametrize("text", ANSWERS)
def test_a_change_counts_from_its_time_on_though_it_comes_after_a_later_one(
    tmp_path: Path, text: str
) -> None:
    first_files(tmp_path)
    with tidemill.connect(partitions=2) as session:
        define(session, tmp_path)
        query = session.query(text)
        session.start()
        session.await_idle()
        second_files(tmp_path)
        session.await_idle()
        assert session.refused().is_empty()
        assert sorted(query.results().rows()) == ANSWERS[text]


@pytest.mark.parametrize("text", ANSWERS)
def test_a_session_that_goes_on_has_the_rows_it_had(tmp_path: Path, text: str) -> None:
    out, found = tmp_path / "out", []
    first_files(tmp_path)
    for files in (lambda _: None, second_files, lambda _: None):
        files(tmp_path)
        with tidemill.connect(checkpoint=tmp_path / "state", partitions=2) as session:
            define(session, tmp_path)  # the same statements once more change nothing
            session.sql(f"CREATE QUERY q INTO parquet('{out}') AS {text}")
            shown = session.sql("SHOW RELATIONS")
            assert isinstance(shown, pl.DataFrame)
            found.append(shown.rows())
            session.start()
            session.await_idle()
    assert (
        sorted(pl.read_parquet(out / "**/*.parquet").select("n", "price", "start", "end").rows())
        == ANSWERS[text]
    )
    last = "last of each item, unless op = 'D'"
    wanted = [("paid", "stream change", last, "no"), ("price", "stream change", last, "yes")]
    assert found == [wanted] * 3


def test_another_relation_of_its_name_is_refused_in_a_later_session(tmp_path: Path) -> None:
    with tidemill.connect(checkpoint=tmp_path / "state") as session:
        define(session, tmp_path)
    with tidemill.connect(checkpoint=tmp_path / "state") as session:
        with pytest.raises(tidemill.BindError, match='relation "price" is another one in this'):
            session.sql("CREATE RELATION price FROM STREAM change KEY (item)")
        session.sql("DROP RELATION price; CREATE RELATION price FROM STREAM change KEY (item)")
    with tidemill.connect(checkpoint=tmp_path / "state") as session:
        described = session.sql("DESCRIBE price")
        assert isinstance(described, pl.DataFrame)
        assert described["column"].to_list() == list(CHANGE)
        assert described["role"].to_list() == ["key", "", "", ""]


def test_a_relation_and_its_stream_stay_while_others_need_them(tmp_path: Path) -> None:
    with tidemill.connect() as session:
        define(session, tmp_path)
        session.sql(f"CREATE QUERY q AS {NOW}")
        with pytest.raises(tidemill.BindError, match='relation "price" is used by query "q"'):
            session.sql("DROP RELATION price")
        with pytest.raises(tidemill.BindError, match='is used by relation "paid", relation "pri'):
            session.sql("DROP STREAM change")
        session.sql("DROP QUERY q; DROP RELATION price; DROP RELATION paid; DROP STREAM change")


def test_a_key_that_is_deleted_takes_no_room(tmp_path: Path) -> None:
    keys = [f"key {number}" for number in range(500)]
    write(tmp_path / "change", CHANGE, 1, *((key, 1, "U", 1) for key in keys))
    write(tmp_path / "change", CHANGE, 2, *((key, 0, "D", 10) for key in keys[1:]))
    write(tmp_path / "change", CHANGE, 3, ("last", 1, "U", 90))
    with tidemill.connect() as session:
        define(session, tmp_path)
        session.sql("CREATE QUERY q AS SELECT COUNT(*) AS n FROM price")
        session.start()
        session.await_idle()
        metrics = session.metrics().filter(pl.col("operator").str.contains("RowWindow"))
        assert metrics["state_rows"].to_list() == [3]  # a row and its count; one that waits


# Queries that come later


def test_a_late_query_does_not_know_what_the_relation_held_before(tmp_path: Path) -> None:
    first_files(tmp_path)
    with tidemill.connect() as session:
        define(session, tmp_path)
        session.sql(f"CREATE QUERY early AS {NOW}")
        session.start()
        session.await_idle()
        late = session.query(f"CREATE QUERY late AS {NOW}")
        with pytest.raises(tidemill.RunError, match="cannot start with history"):
            session.sql(f"CREATE QUERY more START WITH HISTORY AS {NOW}")
        write(tmp_path / "change", CHANGE, 2, ("cup", 25, "U", 20), ("ink", 5, "U", 60))
        write(tmp_path / "bid", BID, 2, ("pen", 3, 21), ("cup", 4, 22), ("ink", 5, 50))
        session.await_idle()
        assert late.results().rows() == [(4, 25, 22, 26)]
        shown = session.sql("SHOW QUERIES")
        assert isinstance(shown, pl.DataFrame)
        assert dict(shown.select("name", "complete_from").rows())["late"] == "never"


@pytest.mark.parametrize("text", ANSWERS)
def test_a_late_query_knows_all_if_the_changes_are_kept(tmp_path: Path, text: str) -> None:
    first_files(tmp_path)
    with tidemill.connect(checkpoint=tmp_path / "state") as session:
        define(session, tmp_path, change="KEEP ALL", bid="KEEP 4")
        early = session.query(f"CREATE QUERY early AS {text}")
        session.start()
        session.await_idle()
        late = session.query(f"CREATE QUERY late START WITH HISTORY AS {text}")
        second_files(tmp_path)
        session.await_idle()
        shown = session.sql("SHOW QUERIES")
        assert isinstance(shown, pl.DataFrame)
        complete = int(dict(shown.select("name", "complete_from").rows())["late"])
        for time in range(complete, 13):
            assert late.snapshot(time).sort("n").equals(early.snapshot(time).sort("n")), time
        assert complete <= 7
        assert late.snapshot(10).height > 0


@pytest.mark.parametrize("text", ANSWERS)
def test_a_late_query_has_the_relation_whose_changes_are_kept(tmp_path: Path, text: str) -> None:
    """The stream that it is joined to keeps nothing: of that, the rows from now on count."""
    first_files(tmp_path)
    for step in ("create", "go on"):
        with tidemill.connect(checkpoint=tmp_path / "state", partitions=2) as session:
            define(session, tmp_path, change="KEEP ALL")
            early = session.query(f"CREATE QUERY early AS {text}")
            if step == "create":
                session.start()
                session.await_idle()
            late = session.query(f"CREATE QUERY late AS {text}")
            if step == "go on":
                session.start()
                second_files(tmp_path)
                write(tmp_path / "change", CHANGE, 3, ("ink", 6, "U", 70))
                write(tmp_path / "bid", BID, 3, ("pen", 5, 31), ("pen", 6, 32), ("cup", 7, 60))
            session.await_idle()
            shown = session.sql("SHOW QUERIES")
            assert isinstance(shown, pl.DataFrame)
            complete = int(dict(shown.select("name", "complete_from").rows())["late"])
            assert complete == 10 + 4 - 1, step  # the first file of changes came to 9
            if step == "go on":
                for time in range(complete, 35):
                    assert at(late, time) == at(early, time), time
                assert at(late, 32) == [(5, 12), (6, 12)]


def at(query: tidemill.Query, time: int) -> list[tuple[object, ...]]:
    """The rows at an instant, of what the query has given since the start of the session."""
    there = query.results().filter(pl.col("start") <= time, pl.col("end") > time)
    return sorted(there.select("n", "price").rows())


def test_a_query_can_be_changed_to_read_a_relation_whose_changes_are_kept(tmp_path: Path) -> None:
    first_files(tmp_path)
    with tidemill.connect(checkpoint=tmp_path / "state") as session:
        define(session, tmp_path, change="KEEP ALL", bid="KEEP 4")
        early = session.query(f"CREATE QUERY early AS {NOW}")
        query = session.query("CREATE QUERY q AS SELECT n, 0 + n AS price FROM bid [RANGE 4]")
        session.start()
        session.await_idle()
        change = session.verdict(f"ALTER QUERY q AS {NOW}").json()
        session.sql(f"ALTER QUERY q AS {NOW}")
        second_files(tmp_path)
        session.await_idle()
        since = query.versions().row(-1, named=True)["since"]
        assert since <= 10, change
        for time in range(since, 13):
            assert query.snapshot(time).sort("n").equals(early.snapshot(time).sort("n")), time


def test_a_change_that_is_not_kept_is_told_of(tmp_path: Path) -> None:
    first_files(tmp_path)
    with tidemill.connect() as session:
        define(session, tmp_path)
        session.sql("CREATE QUERY q AS SELECT n FROM bid [RANGE 4]")
        session.start()
        session.await_idle()
        with pytest.raises(tidemill.RunError, match="or reads a relation that changes"):
            session.sql(f"ALTER QUERY q AS {NOW} USING GRACEFUL")
