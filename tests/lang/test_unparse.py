from __future__ import annotations

import pytest

from tidemill.lang import parse_one, parse_query, unparse

CANONICAL = (
    "SELECT (a + b) * c, NOT (a AND b), -(-x), - -x, a - (b - c), (x = y) IS NULL, (a OR b) AND c",
    "(SELECT 1 UNION SELECT 2) EXCEPT SELECT 3",
    "SELECT 1 UNION (SELECT 2 EXCEPT SELECT 3)",
    "SELECT 1 UNION ALL SELECT 2 INTERSECT SELECT 3",
    "SELECT a / b, a // b, a % b, a || b, a <> b, a IS NOT DISTINCT FROM b",
    "SELECT a NOT IN (1, 2), a IS NOT NULL, a NOT LIKE 'x' ESCAPE '!', a NOT BETWEEN 1 AND 2",
    "SELECT count(*), COUNT(DISTINCT a), Avg(a) FILTER(WHERE b), CAST(a AS DECIMAL(10, 2))",
    "SELECT EXISTS(SELECT 1), a > ALL(SELECT 1), a = ANY((SELECT 1)), a IN (SELECT 1)",
    "SELECT 'it''s', 'a\\b', 1.50, 1e3, TRUE, NULL, INTERVAL '5' MINUTE",
    'SELECT "select" AS "unit price", "a""b" FROM "window" AS "end"',
    "SELECT * FROM bid [RANGE 10 MINUTES SLIDE 1 MINUTE] AS b",
    "SELECT * FROM ISTREAM(customer) [NOW] AS c, (SELECT 1) [ROWS 5], d [RANGE UNBOUNDED]",
    "SELECT * FROM a [PARTITION BY b, c.d ROWS 10 SLIDE 2]",
    "SELECT * FROM a [RANGE 2 MINUTES INTERNAL], b [ROWS 5 SLIDE 5 INTERNAL] AS c",
    "SELECT session FROM session [PARTITION BY session, b SESSION 10 SECONDS] AS session",
    "SELECT * FROM a [SESSION 5 INTERNAL]",
    "WSTREAM[ROWS 100](SELECT a FROM b) UNION ALL WSTREAM[RANGE 2 MINUTES](SELECT a FROM b)",
    "SELECT * FROM WSTREAM[ROWS 5](customer) [NOW] AS c, WSTREAM [ROWS 5] AS d",
    "SELECT DISTINCT a FROM b JOIN c USING (d, e) LEFT JOIN f ON g CROSS JOIN h, i",
    "WITH a AS (SELECT 1) RSTREAM(SELECT * FROM a)",
    "SELECT a FROM b GROUP BY a, c HAVING d ORDER BY e DESC LIMIT 1 OFFSET 2",
    "CREATE STREAM s (a BIGINT NOT NULL, b TEXT) SOURCE csv('x', n => -1, t => TRUE, f => 1.5)",
    "CREATE STREAM s (a INT) SOURCE c() ORDERED BY a WITHIN 2 SECONDS LATE QUARANTINE IDLE AFTER 5",
    "CREATE STREAM s (a INT) SOURCE c() IDLE AFTER 5 MALFORMED DROP",
    "CREATE RELATION r (a INT, b DATE) SOURCE c() VALID FROM a TO b",
    "CREATE RELATION r (a INT, b DATE) SOURCE c() VALID FROM b KEY (a, b) NON RETROACTIVE",
    "CREATE RELATION r FROM STREAM s KEY (a)",
    "CREATE RELATION r (a INT) FROM STREAM s KEY (a, b) NON RETROACTIVE DELETE WHEN c = 'D'",
    "CREATE STREAM s AS SELECT 1",
    "CREATE FUNCTION f(a INT, b DOUBLE) AS a * b",
    "CREATE QUERY q INTO console(n => 5) AS ISTREAM(SELECT 1)",
    "DROP RELATION IF EXISTS r",
    "SHOW QUERIES",
    "DESCRIBE s",
    "DESCRIBE connector",
    "DESCRIBE CONNECTOR csv",
    "SHOW CONNECTORS",
    "SHOW SETTINGS",
    "SET adapt = off",
    "SET adapt = advise",
    "SET adapt = on",
    "EXPLAIN TRACE SELECT 1",
    "ALTER QUERY q AS SELECT a FROM s JOIN r USING (k) USING GRACEFUL DRAIN AT 5",
    "ALTER QUERY q AS SELECT at FROM s AS at WHERE at > 1 AT TIMESTAMP '2026-03-01 12:00:00'",
    "ALTER QUERY q AS ISTREAM(SELECT a FROM s) USING QUERY ORDER",
    "ALTER QUERY q REPLAN",
    "ALTER QUERY q REPLAN USING GENMIG",
    "ALTER QUERY q REPLAN USING MOVING STATE",
    "ALTER QUERY q REPLAN USING PARALLEL TRACK",
    "START QUERY start",
    "START QUERY q WARM AT 5",
    "STOP QUERY stop DRAIN AT TIMESTAMP '2026-03-01 12:00:00.07'",
    'PAUSE QUERY "select" IMMEDIATE',
    "RESUME QUERY q COLD",
    "EXPLAIN ALTER QUERY q AS SELECT 1 USING IMMEDIATE AT 0",
    "EXPLAIN FORMAT JSON RESUME QUERY q",
)


@pytest.mark.parametrize("text", CANONICAL)
def test_canonical_text_stays_as_it_is(text: str) -> None:
    assert unparse(parse_one(text)) == text


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("RANGE 5", "RANGE 5"),
        ("RANGE 1500 us", "RANGE 1500"),
        ("RANGE 2000 us", "RANGE 2 MILLISECONDS"),
        ("RANGE 600 SECONDS", "RANGE 10 MINUTES"),
        ("RANGE 60 MINUTES", "RANGE 1 HOUR"),
        ("RANGE 90 MINUTES", "RANGE 90 MINUTES"),
        ("RANGE 14 DAYS", "RANGE 2 WEEKS"),
        ("RANGE -60 SECONDS", "RANGE -1 MINUTES"),
        ("RANGE 0 DAYS", "RANGE 0"),
    ],
)
def test_durations_have_the_largest_unit_that_divides_them(written: str, canonical: str) -> None:
    query = unparse(parse_query(f"SELECT * FROM a WINDOW({written})"))
    assert query == f"SELECT * FROM a [{canonical}]"


def test_comments_are_not_kept() -> None:
    assert unparse(parse_one("SELECT a -- first\n, /* second */ b")) == "SELECT a, b"


def test_an_expression_is_unparsed_too() -> None:
    assert unparse(parse_query("SELECT a DIV 2").expressions[0]) == "a // 2"


@pytest.mark.parametrize("name", ["cast", "ISTREAM", "WSTREAM", "position", "select", "a b"])
def test_a_function_of_a_special_name_is_quoted(name: str) -> None:
    statement = parse_one(f'SELECT "{name}"(a IN (1), b)')
    assert unparse(statement) == f'SELECT "{name}"(a IN (1), b)'
    assert parse_one(unparse(statement)) == statement
