"""Statements about queries that live, and where the query of ALTER QUERY ends."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.errors import ParseError, Span
from tidemill.lang import parse_one, parse_query, unparse
from tidemill.lang.instants import instant_text
from tidemill.lang.statements import (
    AlterQuery,
    Change,
    Explain,
    ExplainMode,
    Instant,
    Migration,
    Name,
    PauseQuery,
    ReplanQuery,
    ResumeQuery,
    StartMode,
    StartQuery,
    Statement,
    StopMode,
    StopQuery,
)
from tidemill.model.time import END_OF_TIME, from_datetime

NOON = 1_772_366_400_000_000
Q = Name("q")
PLAIN = "SELECT a FROM s"


def altered(text: str) -> AlterQuery:
    statement = parse_one(text)
    assert isinstance(statement, AlterQuery)
    return statement


@pytest.mark.parametrize("change", Change)
def test_a_query_is_altered_in_six_ways(change: Change) -> None:
    query = parse_query(PLAIN)
    assert parse_one(f"ALTER QUERY q AS {PLAIN}") == AlterQuery(Q, query)
    using = f"alter query q as {PLAIN} using {change.value.lower()}"
    assert parse_one(using) == AlterQuery(Q, query, change)
    assert parse_one(f"{using} AT 5") == AlterQuery(Q, query, change, Instant(5))
    assert parse_one(f"ALTER QUERY q AS {PLAIN} AT 5") == AlterQuery(Q, query, at=Instant(5))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ALTER QUERY q REPLAN", ReplanQuery(Q)),
        ("ALTER QUERY q REPLAN USING GENMIG", ReplanQuery(Q, Migration.GENMIG)),
        ("ALTER QUERY q REPLAN USING MOVING STATE", ReplanQuery(Q, Migration.MOVING_STATE)),
        ("alter query q replan using parallel track", ReplanQuery(Q, Migration.PARALLEL_TRACK)),
        ("ALTER QUERY q REPLAN USING AUTO", ReplanQuery(Q, Migration.AUTO)),
        ("START QUERY q", StartQuery(Q)),
        ("START QUERY q FRESH", StartQuery(Q, StartMode.FRESH)),
        ("START QUERY q COLD AT 5", StartQuery(Q, StartMode.COLD, Instant(5))),
        ("START QUERY q WARM", StartQuery(Q, StartMode.WARM)),
        ("start query q at 5", StartQuery(Q, at=Instant(5))),
        ("STOP QUERY q", StopQuery(Q)),
        ("STOP QUERY q IMMEDIATE", StopQuery(Q, StopMode.IMMEDIATE)),
        ("STOP QUERY q DRAIN AT 5", StopQuery(Q, StopMode.DRAIN, Instant(5))),
        ("STOP QUERY q AT 5", StopQuery(Q, at=Instant(5))),
        ("PAUSE QUERY q", PauseQuery(Q)),
        ("PAUSE QUERY q IMMEDIATE", PauseQuery(Q, StopMode.IMMEDIATE)),
        ("PAUSE QUERY q DRAIN", PauseQuery(Q, StopMode.DRAIN)),
        ("RESUME QUERY q", ResumeQuery(Q)),
        ("RESUME QUERY q WARM", ResumeQuery(Q, StartMode.WARM)),
        ("RESUME QUERY q COLD", ResumeQuery(Q, StartMode.COLD)),
        ("RESUME QUERY q FRESH", ResumeQuery(Q, StartMode.FRESH)),
    ],
)
def test_the_short_statements(text: str, expected: Statement) -> None:
    assert parse_one(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        f"ALTER QUERY q AS {PLAIN} USING DRAIN AT 5",
        "ALTER QUERY q REPLAN",
        "START QUERY q WARM",
        "STOP QUERY q",
        "PAUSE QUERY q",
        "RESUME QUERY q",
    ],
)
def test_explain_takes_all_of_them_without_a_mode(text: str) -> None:
    target = parse_one(text)
    explained = parse_one(f"EXPLAIN {text}")
    assert explained == Explain(ExplainMode.LOGICAL, target)  # type: ignore[arg-type]
    assert parse_one(f"EXPLAIN FORMAT JSON {text}") == Explain(
        ExplainMode.LOGICAL,
        target,  # type: ignore[arg-type]
        as_json=True,
    )
    assert unparse(explained) == f"EXPLAIN {text}"
    for mode in ExplainMode:
        with pytest.raises(ParseError, match=f"^{mode.value} is a form of a plan"):
            parse_one(f"EXPLAIN {mode.value} {text}")


# Where the query of ALTER QUERY ends


@pytest.mark.parametrize(
    "query",
    [
        "SELECT at FROM s",
        "SELECT at, a AS at FROM s",
        "SELECT a FROM s WHERE at > 5",
        "SELECT a FROM s WHERE b = at",
        "SELECT a FROM s GROUP BY at HAVING at",
        "SELECT a FROM at",
        "SELECT at.at FROM s AS at",
        "SELECT a FROM s AS at [RANGE 5]",
        'SELECT a FROM s "at"',
        'SELECT a "at" FROM s',
        "SELECT * FROM s",
        "SELECT a FROM s [RANGE 10 MINUTES]",
        "SELECT a FROM s WINDOW(ROWS 5) AS x",
        "SELECT a FROM s JOIN r USING (k)",
        "SELECT a FROM s JOIN r USING (k) LEFT JOIN t USING (at, k) WHERE a > 1",
        "SELECT a FROM (SELECT a FROM s at WHERE at.a > 1) x",
        "SELECT a FROM s WHERE a IN (SELECT a at FROM r at)",
        "SELECT a FROM s WHERE b < INTERVAL '5 minutes'",
        "SELECT a FROM s UNION ALL SELECT at FROM r",
        "ISTREAM(SELECT a FROM s at)",
        "WITH at AS (SELECT a FROM s) SELECT a FROM at",
        "SELECT a FROM s LIMIT 5",
    ],
)
@pytest.mark.parametrize("rest", ["", " USING STREAM ORDER", " AT 5", " USING DRAIN AT 5"])
def test_a_query_ends_where_the_statement_goes_on(query: str, rest: str) -> None:
    statement = altered(f"ALTER QUERY q AS {query}{rest}")
    assert statement.query == parse_query(query)
    assert (statement.using is not None) == ("USING" in rest)
    assert statement.at == (Instant(5) if "AT" in rest else None)
    assert parse_one(unparse(statement)) == statement


@pytest.mark.parametrize(
    "query", ["SELECT a FROM s at", "SELECT a FROM s at WHERE a > 1", "SELECT a at FROM s"]
)
def test_an_alias_called_at_is_written_with_as(query: str) -> None:
    assert "AS at" in unparse(parse_query(query)), "elsewhere it needs no AS"
    with pytest.raises(ParseError, match="expected an instant") as raised:
        parse_one(f"ALTER QUERY q AS {query}")
    assert raised.value.hint is not None
    assert "AS at" in raised.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "SELECT at, start, stop, pause, resume, alter, warm, cold, fresh FROM start AS drain",
        "SELECT immediate AS graceful FROM stop [RANGE 5] AS at WHERE genmig = replan",
        "CREATE STREAM start (at BIGINT, stop INT) SOURCE csv('x') ORDERED BY at",
        "CREATE QUERY stop AS SELECT a FROM s",
        "DROP QUERY alter",
        "DESCRIBE start",
        "EXPLAIN LOGICAL start",
        "EXPLAIN PHYSICAL FORMAT JSON stop",
    ],
)
def test_no_new_word_is_reserved(text: str) -> None:
    assert unparse(parse_one(text)) == text


@pytest.mark.parametrize("name", ["start", "at", "drain", "warm", "query", '"as"'])
def test_a_query_can_have_the_name_of_a_word(name: str) -> None:
    called = Name(name.strip('"'))
    assert parse_one(f"START QUERY {name} WARM AT 5") == StartQuery(
        called, StartMode.WARM, Instant(5)
    )
    assert parse_one(f"STOP QUERY {name}") == StopQuery(called)
    assert parse_one(f"ALTER QUERY {name} REPLAN") == ReplanQuery(called)
    assert parse_one(f"EXPLAIN {name}") == Explain(ExplainMode.LOGICAL, called)


# Instants


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("0", 0),
        ("007", 7),
        (str(NOON), NOON),
        (str(END_OF_TIME - 1), END_OF_TIME - 1),
        ("'2026-03-01T12:00:00'", NOON),
        ("'2026-03-01 13:00+01:00'", NOON),
        ("TIMESTAMP '2026-03-01T12:00:00Z'", NOON),
        ("timestamp '1970-01-02'", 86_400_000_000),
    ],
)
def test_an_instant_is_a_number_or_a_calendar_time(text: str, microseconds: int) -> None:
    statement = parse_one(f"STOP QUERY q AT {text}")
    assert statement == StopQuery(Q, at=Instant(microseconds))
    assert isinstance(statement, StopQuery)
    assert statement.at is not None
    assert statement.at.span == Span(16, 16 + len(text))


@pytest.mark.parametrize(
    "text",
    [
        *("-1", "- 5", "1.0", "1e3", "''", "'5'", "'noon'", "'2026-02-30'", "'1969-12-31'"),
        *("-'2026-03-01'", "TIMESTAMP 5", "TIMESTAMP", "DATE '2026-03-01'", "now", "(5)", "NULL"),
        *(
            "\"timestamp\" '2026-03-01'",
            "5 MINUTES",
            str(END_OF_TIME),
            "9" * 5000,
            "'2026-03-01' 5",
        ),
    ],
)
def test_anything_else_is_none(text: str) -> None:
    start = len("STOP QUERY q AT ")
    with pytest.raises(ParseError) as raised:
        parse_one(f"STOP QUERY q AT {text}")
    assert raised.value.span is not None
    assert start <= raised.value.span.start <= raised.value.span.end <= start + len(text)


@given(st.integers(min_value=0, max_value=END_OF_TIME - 1))
def test_the_text_of_an_instant_is_read_as_that_instant(microseconds: int) -> None:
    statement = parse_one(f"STOP QUERY q AT {instant_text(microseconds)}")
    assert statement == StopQuery(Q, at=Instant(microseconds))


@given(st.datetimes(min_value=datetime(1970, 1, 1)))  # noqa: DTZ001
def test_a_calendar_time_is_kept_to_the_microsecond(time: datetime) -> None:
    statement = parse_one(f"STOP QUERY q AT '{time}'")
    assert statement == StopQuery(Q, at=Instant(from_datetime(time)))
    assert parse_one(unparse(statement)) == statement


@given(st.datetimes(max_value=datetime(1969, 12, 31, 23, 59, 59, 999_999)))  # noqa: DTZ001
def test_an_instant_is_not_before_1970(time: datetime) -> None:
    with pytest.raises(ParseError, match="an instant is not before 1970"):
        parse_one(f"STOP QUERY q AT '{time}'")
