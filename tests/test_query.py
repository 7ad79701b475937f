"""A query as people hold it: how it is made, what it tells about itself."""

from __future__ import annotations

import warnings

import polars as pl
import pytest

import tidemill
from tidemill.lang.statements import ExplainMode

STREAM = "CREATE STREAM s (x BIGINT, at BIGINT) SOURCE memory('s') ORDERED BY at"
TEXT = "SELECT x, COUNT(*) AS n FROM s [RANGE 5] WHERE x > 0 GROUP BY x"
HINT = "hint: write one SELECT or CREATE QUERY; session.sql() carries out statements of every kind"


@pytest.fixture
def session() -> tidemill.Session:
    session = tidemill.connect()
    session.sql(STREAM)
    session.put("s", pl.DataFrame({"x": [1, 1, 0], "at": [1, 2, 3]}))
    return session


def test_a_query_is_made_of_a_select_or_a_create_query(session: tidemill.Session) -> None:
    made: tidemill.Query = session.query("SELECT x FROM s")  # the type checker agrees
    assert made.name == "query_1"
    assert session.query("CREATE QUERY hot AS SELECT x FROM s;").name == "hot"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no query\n   1 | \n       ^"),
        (
            "SHOW QUERIES",
            "this statement is not a query\n   1 | SHOW QUERIES\n       ^^^^^^^^^^^^",
        ),
        (
            "EXPLAIN SELECT x FROM s",
            (
                "this statement is not a query\n"
                "   1 | EXPLAIN SELECT x FROM s\n"
                "       ^^^^^^^^^^^^^^^^^^^^^^^"
            ),
        ),
        (
            "SELECT x FROM s;\nDROP STREAM s",
            "this statement is not a query\n   2 | DROP STREAM s\n       ^^^^^^^^^^^^^",
        ),
        (
            "SELECT x FROM s; SELECT at FROM s",
            (
                "expected one query, found another\n"
                "   1 | SELECT x FROM s; SELECT at FROM s\n"
                "                        ^^^^^^^^^^^^^^^^"
            ),
        ),
    ],
)
def test_anything_else_is_refused_with_its_place_and_changes_nothing(
    session: tidemill.Session, text: str, message: str
) -> None:
    before = session.catalog
    with pytest.raises(tidemill.ParseError) as caught:
        session.query(text)
    assert str(caught.value) == f"{message}\n{HINT}"
    assert session.catalog is before


def test_other_mistakes_are_those_of_sql(session: tidemill.Session) -> None:
    texts = []
    for ask in (session.query, session.sql):
        with pytest.raises(tidemill.BindError) as caught:
            ask("SELECT y FROM s")
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


def test_a_warning_points_to_the_line_that_asked() -> None:
    session = tidemill.connect()
    session.sql("CREATE STREAM t (x BIGINT, at TIMESTAMP) SOURCE memory('t') ORDERED BY at")
    for ask in (session.query, session.sql):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ask("SELECT x FROM t [RANGE 300]")
        assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize(
    "mode", [mode.value for mode in ExplainMode if mode is not ExplainMode.ANALYZE]
)
@pytest.mark.parametrize("settings", [{}, {"technique": "direct"}, {"optimize": False}])
def test_explain_of_a_query_is_explain_of_its_text(mode: str, settings: dict[str, str]) -> None:
    session = tidemill.connect(**settings)  # type: ignore[arg-type]
    session.sql(STREAM)
    assert session.query(TEXT).explain(mode.lower()) == session.sql(f"EXPLAIN {mode} {TEXT}")


def test_explain_shows_the_meaning_unless_it_is_told(session: tidemill.Session) -> None:
    query = session.query(TEXT)
    assert query.explain() == query.explain("logical") == session.sql(f"EXPLAIN {TEXT}")
    with pytest.raises(tidemill.PlanError) as caught:
        query.explain("phys")
    assert str(caught.value) == (
        'there is no mode "phys" of EXPLAIN\nhint: did you mean "physical"?'
    )


def test_a_query_that_was_dropped_has_no_plan(session: tidemill.Session) -> None:
    query = session.query(f"CREATE QUERY q AS {TEXT}")
    session.sql("DROP QUERY q")
    with pytest.raises(tidemill.RunError, match='query "q" was dropped'):
        query.explain()
    session.query("CREATE QUERY q AS SELECT at FROM s")
    for ask in (query.explain, query.progress):
        with pytest.raises(tidemill.RunError, match="another one has its name now"):
            ask()


def test_progress_of_a_query_is_its_part_of_that_of_the_session(session: tidemill.Session) -> None:
    all_, some = session.query("SELECT x FROM s"), session.query("SELECT x FROM s WHERE x = 0")
    with pytest.raises(tidemill.RunError, match="nothing has been run yet"):
        all_.progress()
    session.run()
    assert (all_.progress().rows, some.progress().rows) == (3, 1)
    assert session.progress().queries == (all_.progress(), some.progress())
    new = session.query("SELECT at FROM s")
    with pytest.raises(tidemill.RunError, match='"query_3" was not there in the last run'):
        new.progress()


def test_the_answer_of_another_query_of_the_name_is_not_given(session: tidemill.Session) -> None:
    session.query("CREATE QUERY q AS SELECT x FROM s [RANGE 5]")
    session.run()
    session.sql("DROP QUERY q")
    other = session.query("CREATE QUERY q AS SELECT x AS y FROM s [RANGE 9] WHERE x > 0")
    asked = (other.results, other.changes, other.snapshot, other.progress, other.metrics)
    for ask in asked:
        with pytest.raises(tidemill.RunError, match='query "q" was not there in the last run'):
            ask()
    assert session.current_answer("q") is None
    session.run()
    assert other.results().columns == ["y", "start", "end"]
    assert other.progress().rows == 2


def test_a_query_that_was_dropped_still_has_its_last_answer(session: tidemill.Session) -> None:
    made = session.query("CREATE QUERY q AS SELECT x FROM s [RANGE 5]")
    session.run()
    session.sql("DROP QUERY q")
    assert made.results().height == 3
    assert made.metrics().height > 0
