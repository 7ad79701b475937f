"""Queries that are changed, stopped and started while rows come, on the local engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from running.change_counts import counts, instants, published
from running.living_body import exercised
from running.shop import define, write
from tidemill.lang.statements import Change

if TYPE_CHECKING:
    from pathlib import Path

AT, LAST = 1000, 2000


def changed(directory: Path, texts: tuple[str, str], using: Change) -> tidemill.Query:
    """A query over a row at every instant that is changed between two files."""
    write(directory, 0, AT)
    with tidemill.connect() as session:
        define(session, directory, keep="KEEP 150" if using is Change.EXACT else "")
        query = session.query(f"CREATE QUERY q AS {texts[0]}")
        session.start()
        session.await_idle()
        session.sql(f"ALTER QUERY q AS {texts[1]} USING {using.value}")
        write(directory, AT, LAST)
        session.await_idle()
    return query


@pytest.mark.parametrize("new", [10, 50, 60, 100])
@pytest.mark.parametrize("using", Change)
def test_the_counts_of_e8(tmp_path: Path, using: Change, new: int) -> None:
    """49 are lost, 39 are out of order …: SUM over windows of 50 rows, then of ``new``."""
    old = 50
    texts = tuple(f"SELECT SUM(v) AS n, MAX(t) AS t FROM s [RANGE {size}]" for size in (old, new))
    query = changed(tmp_path, (texts[0], texts[1]), using)
    last = LAST - 200
    given = [instants(query.results(version), last) for version in (1, 2)]
    # That of QUERY ORDER gives the new version when the old one has ended.
    held = using is Change.QUERY_ORDER
    found = counts(given[0], given[1], AT, (old, new), last, held=held)
    wanted = published(using, old, new)
    assert (found.loss, found.extra) == (wanted.loss, wanted.extra)
    assert (found.stream_disorder, found.query_disorder) == (
        wanted.stream_disorder,
        wanted.query_disorder,
    )
    assert (found.duplicates, found.response) == (wanted.duplicates, wanted.response)


@pytest.mark.parametrize("using", Change)
def test_tumbling_windows_that_are_changed_at_a_boundary_lose_nothing(
    tmp_path: Path, using: Change
) -> None:
    """E9: all counts are zero; but GRACEFUL DRAIN, by its definition, gives one window twice."""
    text = "SELECT SUM(v) AS n, MAX(t) AS t FROM s [RANGE 10 SLIDE 10]"
    query = changed(tmp_path, (text, f"{text} WHERE v >= 0"), using)
    last = LAST - 200
    old, new = (instants(query.results(version), last, every=10) for version in (1, 2))
    twice = [AT + 9] if using is Change.GRACEFUL_DRAIN else []
    assert sorted([*old, *new]) == sorted([*range(9, last, 10), *twice])


def test_statements_on_a_running_session(tmp_path: Path) -> None:
    exercised(tidemill.connect(), tmp_path)


def test_what_other_columns_gave_is_there_by_version(tmp_path: Path) -> None:
    query = changed(
        tmp_path,
        (
            "SELECT COUNT(*) AS n FROM s [RANGE 10]",
            "SELECT k, COUNT(*) AS m FROM s [RANGE 10] GROUP BY k",
        ),
        Change.GRACEFUL,
    )
    assert query.schema.names == ("k", "m")
    assert query.results().columns == ["k", "m", "start", "end"]
    assert query.results(version=1).columns == ["n", "start", "end"]
    assert query.results(version=1)["end"].max() == 1009
    assert query.versions().select("version", "since", "until").rows()[0] == (1, 0, 1009)
    with pytest.raises(tidemill.RunError, match="no version 3"):
        query.results(version=3)


def test_a_column_that_may_be_null_now_is_the_same_column(tmp_path: Path) -> None:
    """A count is never NULL and a sum may be: for readers and files both are numbers."""
    counted, added = (f"SELECT k, {one} AS n FROM s [RANGE 10] GROUP BY k" for one in _NUMBERS)
    write(tmp_path / "in", 0, 50)
    with tidemill.connect(checkpoint=tmp_path / "state") as session:
        define(session, tmp_path / "in")
        query = session.query(f"CREATE QUERY q AS {counted}")
        session.sql(f"CREATE QUERY f INTO parquet('{tmp_path / 'out'}') AS {counted}")
        session.start()
        session.await_idle()
        for name in ("q", "f"):
            session.sql(f"ALTER QUERY {name} AS {added}")
        for first in (50, 75):
            write(tmp_path / "in", first, first + 25)
            session.await_idle()
        for time in (40, 90):
            given = query.snapshot(time).sort("k")
            assert given.height == 3
            assert session.answer("f").snapshot(time).sort("k").equals(given)


_NUMBERS = ("COUNT(*)", "SUM(v)")


@pytest.mark.parametrize("using", [Change.IMMEDIATE, Change.DRAIN, Change.GRACEFUL])
def test_what_waits_is_given_although_it_ends_before_what_it_waits_for(
    tmp_path: Path, using: Change
) -> None:
    """QUERY ORDER, and a change on top of it: the second version ends, and then the first one."""
    texts = [f"SELECT {n} AS x, MAX(t) AS n FROM s [RANGE {w}]" for n, w in ((1, 40), (2, 5))]
    write(tmp_path, 0, 50)
    with tidemill.connect() as session:
        define(session, tmp_path)
        query = session.query(f"CREATE QUERY q AS {texts[0]}")
        session.start()
        session.await_idle()
        session.sql(f"ALTER QUERY q AS {texts[1]} USING QUERY ORDER")
        write(tmp_path, 50, 60)
        session.await_idle()
        assert query.snapshot(57)["x"].to_list() == [1], "the new version waits"
        third = "SELECT 3 AS x, MAX(t) AS n FROM s [RANGE 2]"
        session.sql(f"ALTER QUERY q AS {third} USING {using.value}")
        for first in (60, 70, 80, 120):
            write(tmp_path, first, first + 10)
            session.await_idle()
        assert sorted(query.snapshot(57)["x"].to_list()) == [1, 2]


def test_rows_that_came_while_nobody_read_them_count(tmp_path: Path) -> None:
    """The only query over a stream is stopped, and rows come before it is started again."""
    write(tmp_path, 0, 20)
    with tidemill.connect() as session:
        define(session, tmp_path)
        query = session.query("CREATE QUERY q AS SELECT COUNT(*) AS n FROM s [RANGE 10]")
        session.start()
        session.await_idle()
        session.sql("STOP QUERY q")
        write(tmp_path, 20, 30)
        session.await_idle()
        write(tmp_path, 30, 70)
        assert "exact from     39" in str(session.sql("START QUERY q COLD"))
        write(tmp_path, 70, 100)
        session.await_idle()
        for time in (39, 45, 60, 72, 90):
            assert query.snapshot(time).rows() == [(10,)], f"at {time}"
        assert query.snapshot(38).is_empty()


def test_a_query_goes_over_to_a_stream_that_nobody_reads(tmp_path: Path) -> None:
    for name in ("s", "u"):
        write(tmp_path / name, 0, 70)
    with tidemill.connect() as session:
        for name in ("s", "u"):
            define(session, tmp_path / name, name)
        query = session.query("CREATE QUERY q AS SELECT COUNT(*) AS n FROM s [RANGE 10]")
        session.start()
        session.await_idle()
        told = session.sql("ALTER QUERY q AS SELECT COUNT(*) + 1 AS n FROM u [RANGE 5]")
        assert "exact from     74" in str(told)
        for name in ("s", "u"):
            write(tmp_path / name, 70, 100)
        session.await_idle()
        assert query.snapshot(73).rows() == [(10,)]
        assert query.snapshot(74).rows() == [(6,)]


def test_the_verdict_tells_when_parts_answer_together(tmp_path: Path) -> None:
    write(tmp_path, 0, 20)
    with tidemill.connect() as session:
        define(session, tmp_path)
        session.sql("CREATE QUERY q AS SELECT COUNT(*) AS n FROM s [RANGE 10]")
        session.start()
        session.await_idle()
        session.sql("STOP QUERY q AT 100")
        told = str(session.sql("START QUERY q COLD"))
        assert "from 29 on, and what was to answer until 100 does so as well" in told


def test_a_paused_query_is_resumed_before_it_is_planned_anew(tmp_path: Path) -> None:
    write(tmp_path, 0, 20)
    with tidemill.connect() as session:
        define(session, tmp_path)
        session.sql("CREATE QUERY q AS SELECT COUNT(*) AS n FROM s [RANGE 10]")
        session.start()
        session.await_idle()
        session.sql("PAUSE QUERY q")
        with pytest.raises(tidemill.RunError, match="paused") as refused:
            session.sql("ALTER QUERY q REPLAN")
        assert refused.value.hint == "write RESUME QUERY q first"


def test_a_run_from_the_beginning_gives_the_same_parts(tmp_path: Path) -> None:
    """The parts are instants of the streams, so a session that starts over answers alike."""
    write(tmp_path, 0, 100)
    with tidemill.connect() as session:
        define(session, tmp_path)
        query = session.query("CREATE QUERY q AS SELECT COUNT(*) AS n FROM s [RANGE 30]")
        session.start()
        session.await_idle()
        session.sql("ALTER QUERY q AS SELECT COUNT(*) AS n FROM s [RANGE 10]")
        write(tmp_path, 100, 200)
        session.await_idle()
        first = query.changes().filter(pl.col("time") < 190)
        session.stop()
        session.start()
        session.await_idle()
        assert query.changes().filter(pl.col("time") < 190).equals(first)


def test_a_query_that_has_not_run_is_just_another_one(tmp_path: Path) -> None:
    write(tmp_path, 0, 10)
    session = tidemill.connect()
    define(session, tmp_path)
    query = session.query("CREATE QUERY q AS SELECT k FROM s")
    session.sql("ALTER QUERY q AS SELECT v FROM s")
    session.run()
    assert query.results().columns == ["v", "start", "end"]
    with pytest.raises(tidemill.RunError, match="not running"):
        session.sql("STOP QUERY q")


def test_only_queries_live(tmp_path: Path) -> None:
    session = tidemill.connect()
    define(session, tmp_path)
    with pytest.raises(tidemill.BindError, match='"s" is not a query'):
        session.sql("STOP QUERY s")
    with pytest.raises(tidemill.BindError, match="no stream, relation, query or function"):
        session.sql("ALTER QUERY nobody AS SELECT k FROM s")


def test_a_verdict_is_a_value(tmp_path: Path) -> None:
    write(tmp_path, 0, 50)
    with tidemill.connect() as session:
        define(session, tmp_path)
        session.query("CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 30] GROUP BY k")
        session.start()
        session.await_idle()
        text = "ALTER QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k"
        verdict = session.verdict(text)
        assert verdict.exact_from == 59
        assert verdict.text() == session.sql(f"EXPLAIN {text}")
        assert verdict.json() == session.sql(f"EXPLAIN FORMAT JSON {text}")
        ways = verdict.frame()
        assert ways["chosen"].sum() == 1
        assert ways.filter(ways["chosen"])["exact_from"].to_list() == [59]
        assert {"IMMEDIATE", "DRAIN", "GRACEFUL DRAIN"} <= set(ways["using"])
        assert session.versions("q").height == 1, "nothing was done"
        for other in ("SELECT k FROM s", f"{text}; {text}", ""):
            with pytest.raises(tidemill.ParseError, match="there is a verdict on one statement"):
                session.verdict(other)
        with pytest.raises(tidemill.BindError):
            session.verdict("STOP QUERY nobody")
