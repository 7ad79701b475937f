"""The session: statements in, queries, tables and texts out; a bad statement changes nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING, cast

import polars as pl
import pytest

import tidemill
from tidemill.lang.statements import ObjectKind
from tidemill.runtime.runs import Moment
from tidemill.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.catalog.catalog import Catalog
    from tidemill.runtime.runs import Runs

STREAM = "CREATE STREAM s (x BIGINT, at BIGINT) SOURCE memory('s') ORDERED BY at WITHIN 2 SECONDS"


def session_with_stream() -> tidemill.Session:
    session = tidemill.connect()
    session.sql(STREAM)
    return session


def test_a_select_becomes_a_query_with_a_name() -> None:
    query = session_with_stream().sql("SELECT x FROM s")
    assert isinstance(query, tidemill.Query)
    assert (query.name, query.schema.names) == ("query_1", ("x",))


def test_the_result_is_that_of_the_last_statement() -> None:
    text = tidemill.connect().sql(f"{STREAM}; EXPLAIN SELECT x FROM s;")
    assert text == "Project x\n  Source s"


def test_an_empty_text_does_nothing() -> None:
    assert tidemill.connect().sql(" ; -- nothing\n ;") is None


def test_show_lists_what_is_registered() -> None:
    session = session_with_stream()
    session.sql("CREATE QUERY hot INTO parquet(path => 'out') AS SELECT x FROM s [RANGE 5]")
    streams, queries = session.sql("SHOW STREAMS"), session.sql("SHOW QUERIES")
    assert isinstance(streams, pl.DataFrame)
    assert streams.rows() == [("s", "memory('s')", "at within 2s", "drop", "", "fail", "", "")]
    assert isinstance(queries, pl.DataFrame)
    assert queries.drop("text").rows() == [
        (
            *("hot", "not running", "1", "the beginning"),
            *("parquet(path => 'out')", "exactly once", "WEAKEST"),
        )
    ]


def test_show_of_nothing_is_an_empty_table() -> None:
    frame = tidemill.connect().sql("SHOW QUERIES")
    assert isinstance(frame, pl.DataFrame)
    assert frame.shape == (0, 8)


def test_describe_shows_columns_and_which_one_is_time() -> None:
    frame = session_with_stream().sql("DESCRIBE s")
    assert isinstance(frame, pl.DataFrame)
    assert frame.rows() == [("x", "BIGINT", "yes", ""), ("at", "BIGINT", "no", "time")]


def test_show_and_describe_tell_of_a_non_retroactive_relation() -> None:
    session = tidemill.connect()
    session.sql("""
        CREATE RELATION company (sym VARCHAR, name VARCHAR, since BIGINT)
          SOURCE csv('c.csv') VALID FROM since KEY (sym) NON RETROACTIVE;
        CREATE RELATION tax (percent BIGINT, since BIGINT) SOURCE csv('t.csv') VALID FROM since;
        CREATE RELATION unit (name VARCHAR) SOURCE csv('u.csv');
    """)
    shown, described = session.sql("SHOW RELATIONS"), session.sql("DESCRIBE company")
    assert isinstance(shown, pl.DataFrame)
    assert shown.rows() == [
        ("company", "csv('c.csv')", "from since", "no"),
        ("tax", "csv('t.csv')", "from since", "yes"),
        ("unit", "csv('u.csv')", "always", ""),
    ]
    assert isinstance(described, pl.DataFrame)
    assert described["role"].to_list() == ["key", "", ""]


def test_show_queries_tells_that_an_internal_answer_only_grows() -> None:
    session = session_with_stream()
    session.sql("CREATE QUERY q AS SELECT MAX(x) FROM s [RANGE 5 INTERNAL]")
    shown = session.sql("SHOW QUERIES")
    assert isinstance(shown, pl.DataFrame)
    assert shown["update_pattern"].to_list() == ["MONOTONIC"]


def test_describe_of_a_function_shows_parameters_and_result() -> None:
    session = tidemill.connect()
    session.sql("CREATE FUNCTION half(x BIGINT) AS x / 2")
    frame = session.sql("DESCRIBE half")
    assert isinstance(frame, pl.DataFrame)
    assert frame.rows() == [("x", "BIGINT", "yes", "parameter"), ("", "DOUBLE", "yes", "result")]


def test_a_view_is_the_same_as_its_query() -> None:
    session = session_with_stream()
    session.sql("CREATE STREAM recent AS SELECT x FROM s [RANGE 5 SECONDS] WHERE x > 1")
    by_name = session.sql("EXPLAIN SELECT COUNT(*) FROM recent")
    by_query = session.sql(
        "EXPLAIN SELECT COUNT(*) FROM (SELECT x FROM s [RANGE 5 SECONDS] WHERE x > 1)"
    )
    assert by_name == by_query


def test_drop_is_refused_while_a_view_or_query_depends_on_it() -> None:
    session = session_with_stream()
    session.sql("CREATE STREAM v AS SELECT x FROM s; CREATE QUERY q AS SELECT x FROM v")
    for statement in ("DROP STREAM s", "DROP STREAM v"):
        with pytest.raises(tidemill.BindError, match="is used by"):
            session.sql(statement)
    session.sql("DROP QUERY q; DROP STREAM v; DROP STREAM s")
    assert not session.catalog.objects


def test_drop_of_a_function_is_refused_while_a_query_uses_it() -> None:
    session = session_with_stream()
    session.sql(
        "CREATE FUNCTION twice(n BIGINT) AS n * 2; CREATE QUERY q AS SELECT twice(x) FROM s"
    )
    with pytest.raises(tidemill.BindError, match='function "twice" is used by query "q"'):
        session.sql("DROP FUNCTION twice")


def test_drop_if_exists_of_nothing_is_fine() -> None:
    session = session_with_stream()
    session.sql("DROP STREAM IF EXISTS nothing; DROP FUNCTION IF EXISTS s")
    with pytest.raises(tidemill.BindError, match='"s" is a stream, not a query'):
        session.sql("DROP QUERY IF EXISTS s")


def test_statements_before_a_bad_one_took_effect_and_those_after_did_not() -> None:
    session = tidemill.connect()
    with pytest.raises(tidemill.BindError, match="in statement 2 of 3"):
        session.sql(f"{STREAM}; SELECT y FROM s; CREATE QUERY q AS SELECT x FROM s")
    assert session.catalog.find("s") is not None
    assert session.catalog.find("q") is None


def test_a_text_that_does_not_parse_changes_nothing_at_all() -> None:
    session = tidemill.connect()
    before = session.catalog
    with pytest.raises(tidemill.ParseError):
        session.sql(f"{STREAM}; SELEC y FROM s")
    assert session.catalog is before


def test_unbounded_state_is_refused_unless_the_session_allows_it() -> None:
    text = f"{STREAM}; SELECT a.x FROM s a [RANGE UNBOUNDED] JOIN s b [RANGE UNBOUNDED] USING (x)"
    with pytest.raises(tidemill.PlanError):
        tidemill.connect().sql(text)
    assert isinstance(tidemill.connect(unbounded_state=True).sql(text), tidemill.Query)


def test_aggregates_and_relations_above_an_unbounded_window_are_fine() -> None:
    session = session_with_stream()
    session.sql("CREATE RELATION r (x BIGINT) SOURCE csv('r.csv')")
    session.sql("SELECT x, SUM(at), MAX(at) FROM s [RANGE UNBOUNDED] GROUP BY x")
    session.sql("SELECT s.at FROM s [RANGE UNBOUNDED] JOIN r USING (x)")
    session.sql("SELECT x FROM s [RANGE UNBOUNDED] WHERE x > 3")
    session.sql("ISTREAM(SELECT x FROM s [RANGE UNBOUNDED])")


def test_a_session_can_be_used_with_with() -> None:
    with tidemill.connect() as session:
        session.sql(STREAM)
    assert session.catalog.find("s") is not None


def test_a_session_that_refuses_to_stop_still_runs() -> None:
    class Busy:
        """A job that is stopped by a function that it calls."""

        is_busy = True

        def follow(self, ask: object) -> None:
            pass

        def outdated(self) -> frozenset[str]:
            return frozenset()

        def start(self) -> None:
            pass

        def await_idle(self) -> None:
            pass

        def close(self) -> None:
            if self.is_busy:
                raise tidemill.RunError("a callback cannot stop the session", hint="do it later")

    busy = Busy()
    session = Session(lambda *_: cast("Runs", busy))
    session.start()
    with pytest.raises(tidemill.RunError, match="cannot stop"):
        session.stop()
    session.await_idle()
    with pytest.raises(tidemill.RunError, match="the session is running"):
        session.start()
    busy.is_busy = False
    session.stop()
    with pytest.raises(tidemill.RunError, match="the session is not running"):
        session.await_idle()


def test_two_threads_do_not_undo_what_the_other_does() -> None:
    asked, other = Event(), Event()

    class Slow:
        """A job that takes a while to take another catalog."""

        def follow(self, ask: object) -> None:
            pass

        def outdated(self) -> frozenset[str]:
            return frozenset()

        def start(self) -> None:
            pass

        def change(self, decide: Callable[[Moment], Catalog]) -> Catalog:
            chosen = decide(Moment())
            asked.set()
            assert other.wait(10)
            return chosen

    session = Session(lambda *_: cast("Runs", Slow()))
    session.sql(STREAM)
    session.start()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(session.sql, "CREATE QUERY first AS SELECT x FROM s")
        assert asked.wait(10)
        try:
            with pytest.raises(tidemill.RunError, match="another thread is changing"):
                session.sql("CREATE QUERY second AS SELECT x FROM s")
            session.sql("SHOW QUERIES")
        finally:
            other.set()
        first.result()
    session.sql("CREATE QUERY second AS SELECT x FROM s")
    assert {entry.name for entry in session.catalog.entries(ObjectKind.QUERY)} == {
        "first",
        "second",
    }
