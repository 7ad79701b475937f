"""What the user reads when a text is not of the language."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tidemill.errors import ParseError
from tidemill.lang import parse

CASES = """
unexpected "c"
   1 | SELECT a FROM bid b c
                           ^
hint: write SELECT … FROM stream [RANGE …] [JOIN … ON …] [WHERE …] [GROUP BY …] [HAVING …]
===
unexpected "x"
   1 | SELECT a FROM bid WHER x = 1
                              ^
hint: did you mean "WHERE" instead of "WHER"?
===
unexpected "WINDW"
   1 | SELECT a FROM bid WINDW(RANGE 5)
                         ^^^^^
hint: did you mean "WINDOW"?
===
expected a stream, a relation or a subquery, found "WHERE"
   1 | SELECT a FROM bid, WHERE a = 1
                          ^^^^^
hint: remove the comma, or write what should follow it
===
expected an expression, found the end of the statement
   1 | SELECT a +
                 ^
hint: write SELECT … FROM stream [RANGE …] [JOIN … ON …] [WHERE …] [GROUP BY …] [HAVING …]
===
expected an expression, found "end"
   1 | SELECT end FROM period
              ^^^
hint: END is a reserved word; as a name it stands in quotes: "end"
===
"foo" is called like a function, which FROM does not support
   1 | SELECT a FROM foo(1)
                     ^^^
hint: name a stream or a relation, or write a subquery
===
the name of a stream or relation has one part
   1 | SELECT a FROM my.bid
                       ^
hint: there are no schemas; a name with a dot in it stands in quotes
===
"(" is not closed
   1 | SELECT (a FROM bid
              ^
hint: add a ")"
===
")" closes nothing
   1 | SELECT a) FROM bid
               ^
hint: write SELECT … FROM stream [RANGE …] [JOIN … ON …] [WHERE …] [GROUP BY …] [HAVING …]
===
string literal is not closed
   1 | SELECT 'it''s FROM bid
              ^
hint: end it with '
===
comment is not closed
   1 | SELECT a /* FROM bid
                ^^
hint: end it with */
===
malformed number "12abc"
   1 | SELECT 12abc
              ^^^^^
===
unexpected character "{"
   1 | SELECT {# a #} b
              ^
===
unknown unit of time "MINUETS"
   1 | SELECT a FROM bid [RANGE 5 MINUETS]
                                  ^^^^^^^
hint: did you mean "MINUTES"?
===
MONTHS has no fixed length
   1 | SELECT a FROM bid [RANGE 2 MONTHS]
                                  ^^^^^^
hint: write the length in DAYS, HOURS or a smaller unit
===
ROWS takes no unit, found "MINUTES"
   1 | SELECT a FROM bid [ROWS 5 MINUTES]
                                 ^^^^^^^
hint: a window of so much time is written RANGE
===
the duration is not a whole number of microseconds
   1 | SELECT a FROM bid [RANGE 1.5 us]
                                ^^^^^^
hint: a microsecond is the smallest unit of time
===
a second window on the same stream
   1 | SELECT a FROM bid [NOW] b [NOW]
                                 ^
hint: keep one of the two
===
expected RANGE, ROWS, SESSION or NOW, found "0"
   1 | SELECT a FROM bid[0]
                         ^
hint: write SELECT … FROM stream [RANGE …] [JOIN … ON …] [WHERE …] [GROUP BY …] [HAVING …]
===
unexpected "["
   1 | SELECT a[0] FROM bid
               ^
hint: write SELECT … FROM stream [RANGE …] [JOIN … ON …] [WHERE …] [GROUP BY …] [HAVING …]
===
GRANULARITY is not supported yet
   1 | SELECT a FROM bid [NOW] GRANULARITY(1 MINUTE)
                               ^^^^^^^^^^^
hint: leave it out, or give the window a SLIDE
===
RANGE with MIN and MAX is not supported yet
   1 | SELECT a FROM bid [RANGE MIN 1 HOUR, MAX 2 HOURS]
                                ^^^
hint: write one size: RANGE 10
===
INTERNAL or EXTERNAL stands last in a window
   1 | SELECT a FROM bid [INTERNAL RANGE 5]
                          ^^^^^^^^
hint: [RANGE 10 MINUTES INTERNAL]
===
INTERNAL or EXTERNAL stands last in a window
   1 | SELECT a FROM bid [ROWS 5 INTERNAL SLIDE 2]
                                          ^^^^^
hint: [RANGE 10 MINUTES INTERNAL]
===
SESSION takes no SLIDE
   1 | SELECT a FROM bid [SESSION 5 SLIDE 2]
                                    ^^^^^
hint: a session goes on with every row; leave SLIDE out
===
SESSION needs the length of a pause
   1 | SELECT a FROM bid [SESSION UNBOUNDED]
                                  ^^^^^^^^^
hint: for everything since the beginning, write RANGE UNBOUNDED
===
expected INTERNAL or "]", found ","
   1 | SELECT a FROM bid [SESSION 5, 3]
                                   ^
hint: write SELECT … FROM stream [RANGE …] [JOIN … ON …] [WHERE …] [GROUP BY …] [HAVING …]
===
NOW cannot be INTERNAL
   1 | SELECT a FROM bid [NOW INTERNAL]
                              ^^^^^^^^
hint: to keep every row for ever, write RANGE UNBOUNDED INTERNAL
===
WSTREAM needs a window
   1 | WSTREAM(SELECT a FROM bid)
              ^
hint: write WSTREAM[ROWS 100](SELECT …)
===
an output window cannot be INTERNAL
   1 | WSTREAM[ROWS 5 INTERNAL](SELECT a FROM bid)
                      ^^^^^^^^
hint: it is there to let results go; to keep them all, write RANGE UNBOUNDED
===
SELECT WSTREAM is not supported yet
   1 | SELECT WSTREAM[ROWS 5] a FROM bid
              ^^^^^^^
hint: write the operator around the query: WSTREAM[ROWS 100](SELECT …)
===
SELECT ISTREAM is not supported yet
   1 | SELECT ISTREAM a FROM bid
              ^^^^^^^
hint: write the operator around the query: ISTREAM(SELECT …)
===
CREATE STREAM SCHEMA is not supported yet
   1 | CREATE STREAM SCHEMA bids (a INT)
                     ^^^^^^
hint: name the columns of the stream
===
a table has the columns of its query
   1 | CREATE TABLE bid (a INT)
                        ^
hint: write CREATE TABLE name AS query; for rows from elsewhere, CREATE RELATION
===
INSERT is not supported
   1 | INSERT INTO bid VALUES (1)
       ^^^^^^
hint: the statements are SELECT, WITH, CREATE, DROP, SHOW, DESCRIBE, DESC, EXPLAIN, SET, WHY, ALTER, START, STOP, PAUSE, RESUME
===
unknown statement "SELCT"
   1 | SELCT a FROM bid
       ^^^^^
hint: did you mean "SELECT"?
===
expected AS, found "SELECT"
   1 | CREATE QUERY hot SELECT a FROM bid
                        ^^^^^^
hint: write the query after AS
===
expected SOURCE, found the end of the statement
   1 | CREATE STREAM bid (a INT)
                                ^
hint: a stream reads from a source: SOURCE parquet(path => 'data')
===
unknown type "INTT"
   1 | CREATE STREAM bid (a INTT) SOURCE csv()
                            ^^^^
hint: did you mean "INT"?
===
option "path" is given twice
   1 | CREATE STREAM bid (a INT) SOURCE csv(path => 'a', path => 'b')
                                                         ^^^^
hint: write CREATE STREAM name (column TYPE, …) SOURCE connector(…) …
===
an argument without a name stands behind one with a name
   1 | CREATE STREAM bid (a INT) SOURCE csv(path => 'a', 5)
                                                         ^
hint: write name => value
===
WITHIN stands behind ORDERED BY
   1 | CREATE STREAM bid (a INT) SOURCE csv() WITHIN 5 SECONDS
                                              ^^^^^^
hint: ORDERED BY column WITHIN 2 SECONDS
===
LATE is given twice
   1 | CREATE STREAM bid (a INT) SOURCE csv() LATE DROP LATE DROP
                                                        ^^^^
hint: write CREATE STREAM name (column TYPE, …) SOURCE connector(…) …
===
expected ON or USING, found the end of the statement
   1 | SELECT a FROM b JOIN c
                             ^
hint: a join without a condition is a CROSS JOIN
===
WITH stands before the whole query
   1 | SELECT 1 UNION WITH a AS (SELECT 2) SELECT 3
                      ^^^^
hint: move it there, or use parentheses
===
a name in WITH takes no column names
   1 | WITH a(b) AS (SELECT 1) SELECT 2
             ^
hint: name the columns in its SELECT
===
an alias takes no column names
   1 | SELECT * FROM (SELECT 1) AS a(b)
                                    ^
hint: name the columns in the subquery
===
a column name has at most two parts
   1 | SELECT a.b.c FROM a
                 ^
hint: write stream.column
"""  # noqa: E501


@pytest.mark.parametrize("expected", [case.strip("\n") for case in CASES.split("===")])
def test_the_error_shows_the_place(expected: str) -> None:
    excerpt = next(line for line in expected.splitlines() if line.startswith("   1 | "))
    with pytest.raises(ParseError) as raised:
        parse(excerpt.removeprefix("   1 | "))
    assert str(raised.value) == expected


def test_the_error_shows_the_line_of_the_script() -> None:
    text = dedent("""\
        CREATE STREAM bid (a INT) SOURCE csv();
        SELECT a,
               FROM bid;
        SHOW STREAMS;
        """)
    with pytest.raises(ParseError) as raised:
        parse(text)
    assert str(raised.value) == dedent("""\
        expected an expression, found "FROM"
           3 |        FROM bid;
                      ^^^^
        hint: remove the comma, or write what should follow it
        in statement 2 of 3; nothing has been carried out""")
