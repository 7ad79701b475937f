"""AS OF and FROM QUERY: where a query that is asked once ends, and what is an alias."""

from __future__ import annotations

import pytest

from tidemill.errors import ParseError
from tidemill.lang import parse_one, parse_query, unparse
from tidemill.lang.statements import Explain, ExplainMode, Instant, OneTimeQuery, Select

PLAIN = "SELECT a FROM s"
NOON = 1_772_366_400_000_000


@pytest.mark.parametrize(
    ("end", "at"),
    [
        ("AS OF 5", Instant(5)),
        ("as of now", None),
        ("AS OF '2026-03-01T12:00:00'", Instant(NOON)),
        ("AS OF TIMESTAMP '2026-03-01 12:00:00'", Instant(NOON)),
    ],
)
@pytest.mark.parametrize(
    "query",
    [
        PLAIN,
        "SELECT a FROM s b",
        "SELECT a FROM s AS of",
        "SELECT a FROM s [RANGE 5] WHERE a = 1",
        "SELECT a FROM s ORDER BY a DESC LIMIT 3 OFFSET 1",
        "ISTREAM(SELECT a FROM s)",
        "SELECT a FROM QUERY q JOIN s USING (a)",
    ],
)
def test_a_query_is_asked_once_of_an_instant(query: str, end: str, at: Instant | None) -> None:
    assert parse_one(f"{query} {end}") == OneTimeQuery(parse_query(query), at)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM s AS of",
        "SELECT of.a FROM s AS of, t",
        "SELECT a AS of FROM s",
        "SELECT a FROM s AS of [RANGE 5]",
        "SELECT a FROM s AS of OFFSET 1",
        "SELECT a FROM s AS of WHERE a = 1",
        "SELECT a FROM (SELECT a FROM s AS of) b",
    ],
)
def test_of_is_an_alias_where_no_instant_follows(text: str) -> None:
    assert isinstance(parse_one(text), Select)


def test_it_can_be_explained() -> None:
    found = parse_one("EXPLAIN PHYSICAL SELECT a FROM s AS OF NOW")
    assert found == Explain(ExplainMode.PHYSICAL, OneTimeQuery(parse_query(PLAIN)))
    assert unparse(found) == "EXPLAIN PHYSICAL SELECT a FROM s AS OF NOW"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("SELECT a FROM query q", "SELECT a FROM QUERY q"),
        ("SELECT a FROM query q b", "SELECT a FROM QUERY q AS b"),
        ('SELECT a FROM Query "unit price" AS b, s', 'SELECT a FROM QUERY "unit price" AS b, s'),
        ("SELECT a FROM query AS q", "SELECT a FROM query AS q"),
        ('SELECT a FROM "query" q', "SELECT a FROM query AS q"),
        ("SELECT a FROM query", "SELECT a FROM query"),
        ("SELECT a FROM query OFFSET 1", "SELECT a FROM query OFFSET 1"),
    ],
)
def test_query_before_a_name_means_its_answer(text: str, canonical: str) -> None:
    assert unparse(parse_one(text)) == canonical
    assert parse_one(canonical) == parse_one(text)


def test_a_stream_called_query_is_still_there_before_the_rest_of_a_statement() -> None:
    text = "ALTER QUERY q AS SELECT a FROM query USING DRAIN AT 5"
    assert unparse(parse_one(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{PLAIN} AS OF yesterday", 'expected an instant or NOW, found "yesterday"'),
        (f"{PLAIN} AS OF 5 LIMIT 3", 'unexpected "LIMIT"'),
        (f"CREATE QUERY q AS {PLAIN} AS OF 5", "AS OF is for a query that is asked once"),
        (f"CREATE STREAM v AS {PLAIN} AS OF NOW", "AS OF is for a query that is asked once"),
        (f"ALTER QUERY q AS {PLAIN} AS OF 5", "AS OF is for a query that is asked once"),
        (f"SELECT a FROM ({PLAIN} AS OF 5) b", 'expected ")", found "5"'),
    ],
)
def test_as_of_stands_at_the_end_of_a_statement_of_its_own(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message.replace("(", "\\(").replace(")", "\\)")):
        parse_one(text)
