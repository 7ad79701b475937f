"""ORDER BY, LIMIT and OFFSET of a query that is asked once mean what they mean in DuckDB.

The content of each window at the instant goes into a table, and DuckDB runs the same SELECT on the
tables. Rows that its keys leave level are put in the order of their values there as well.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidemill

if TYPE_CHECKING:
    from typing import TypeAlias

Rows: TypeAlias = "list[tuple[int | None, str | None, float | None, int]]"

AT = 9
QUERIES = (
    ("SELECT a, b FROM s{5} ORDER BY a", "1, 2"),
    ("SELECT a, b FROM s{5} ORDER BY a DESC, b", "1, 2"),
    ("SELECT a, b FROM s{5} ORDER BY b DESC NULLS FIRST, 1 NULLS LAST LIMIT 3", "1, 2"),
    ("SELECT a, b FROM s{5} ORDER BY x DESC, t LIMIT 4 OFFSET 1", "1, 2"),
    ("SELECT a, b FROM s{5} LIMIT 3", "1, 2"),
    ("SELECT a + 1 AS c FROM s{20} ORDER BY c DESC LIMIT 5", "1"),
    ("SELECT a AS c, b AS a FROM s{20} ORDER BY a, c", "1, 2"),
    ("SELECT a, COUNT(*) AS n FROM s{7} GROUP BY a ORDER BY n DESC, a NULLS LAST", "1, 2"),
    ("SELECT b FROM s{7} GROUP BY b ORDER BY COUNT(*) DESC, MAX(x) LIMIT 2", "1"),
    ("SELECT a FROM s{7} GROUP BY a HAVING COUNT(*) > 1 ORDER BY a * -1 LIMIT 2", "1"),
    ("SELECT DISTINCT b FROM s{7} ORDER BY b DESC LIMIT 2", "1"),
    ("SELECT a FROM s{4} UNION ALL SELECT a FROM t{6} ORDER BY 1 DESC LIMIT 4", "1"),
    ("SELECT a FROM s{9} EXCEPT SELECT a FROM t{2} ORDER BY a", "1"),
    ("SELECT p.a, q.b FROM s{5} p JOIN t{6} q ON p.a = q.a ORDER BY q.x, p.b LIMIT 6", "1, 2"),
    ("SELECT p.a, q.b FROM s{5} p LEFT JOIN t{3} q ON p.b = q.b ORDER BY q.b, p.a", "1, 2"),
    ("SELECT a, b FROM s{6} WHERE a IN (SELECT a FROM t{6}) ORDER BY b DESC OFFSET 1", "1, 2"),
    ("WITH w AS (SELECT a, x FROM s{8}) SELECT a FROM w ORDER BY x NULLS LAST LIMIT 3", "1"),
)
"""Each with the columns that decide where the keys do not."""

SCHEMA = {"a": pl.Int64, "b": pl.String, "x": pl.Float64, "t": pl.Int64}
WINDOW = re.compile(r"(\w+)\{(\d+)\}")

contents = st.lists(
    st.tuples(
        st.sampled_from([None, 0, 1, 2, 3]),
        st.sampled_from([None, "", "x", "y", "Ä"]),
        st.sampled_from([None, -1.5, 0.0, 2.0]),
        st.integers(0, AT + 2),
    ),
    max_size=12,
)


def asked(query: str, streams: dict[str, Rows]) -> list[tuple[object, ...]]:
    """What a session answers."""
    text = WINDOW.sub(r"\1 [RANGE \2]", query)
    with tidemill.connect() as session:
        for name, rows in streams.items():
            session.put(name, pl.DataFrame(rows, schema=SCHEMA, orient="row").sort("t"))
            session.sql(
                f"CREATE STREAM {name} (a BIGINT, b VARCHAR, x DOUBLE, t BIGINT)"
                f" SOURCE memory('{name}') ORDERED BY t KEEP ALL"
            )
        session.run()
        return session.ask(text, at=AT).frame.rows()


def by_duckdb(query: str, ties: str, streams: dict[str, Rows]) -> list[tuple[object, ...]]:
    """What DuckDB answers over the content of each window."""
    with duckdb.connect() as database:
        database.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        for name, size in set(WINDOW.findall(query)):
            rows = [row for row in streams[name] if AT - int(size) < row[-1] <= AT]
            table = f"{name}_{size}"
            database.execute(f"CREATE TABLE {table} (a BIGINT, b VARCHAR, x DOUBLE, t BIGINT)")
            for row in rows:
                database.execute(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", list(row))
        text = WINDOW.sub(r"\1_\2", query)
        head, order, rest = text.partition(" ORDER BY ")
        if order:
            keys, *counts = re.split(r" (?=LIMIT|OFFSET)", rest, maxsplit=1)
            text = f"{head} ORDER BY {keys}, {ties} {' '.join(counts)}"
        else:
            text = text.replace(" LIMIT", f" ORDER BY {ties} LIMIT")
        return database.execute(text).fetchall()


@pytest.mark.parametrize(("query", "ties"), QUERIES)
@given(s=contents, t=contents)
def test_rows_have_the_order_of_duckdb(query: str, ties: str, s: Rows, t: Rows) -> None:
    streams = {"s": s, "t": t}
    assert asked(query, streams) == by_duckdb(query, ties, streams)
