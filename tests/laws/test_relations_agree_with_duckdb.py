"""A relation that is not retroactive is what ASOF JOIN of DuckDB looks up.

DuckDB joins each bid with the last change of its key up to the bid's time. It knows no deletions: a
bid whose last change is one has no partner. Of changes of one instant only the last is given to it,
since it leaves open which of them it takes.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import duckdb
from hypothesis import given

import tidemill
from laws.test_relations_that_change import CONTENT, Content
from local import run_locally

SESSION = tidemill.connect()
SESSION.sql("""
    CREATE STREAM c (k BIGINT, g VARCHAR, v BIGINT, op VARCHAR, at BIGINT)
      SOURCE memory('c') ORDERED BY at;
    CREATE STREAM b (k BIGINT, n BIGINT, at BIGINT) SOURCE memory('b') ORDERED BY at;
    CREATE RELATION r FROM STREAM c KEY (k) NON RETROACTIVE DELETE WHEN op = 'D'
""")
INNER = SESSION.query("SELECT b.at, b.n, r.v FROM b [RANGE 3] JOIN r ON b.k = r.k").plan
OUTER = SESSION.query("SELECT b.at, b.n, r.v FROM b [RANGE 3] LEFT JOIN r ON b.k = r.k").plan

ASOF = """
    SELECT b.t, b.n, CASE WHEN c.op = 'D' THEN NULL ELSE c.v END,
           c.k IS NOT NULL AND c.op IS DISTINCT FROM 'D'
    FROM b ASOF LEFT JOIN c ON b.k = c.k AND b.t >= c.t
"""


def looked_up(content: Content) -> list[tuple[int, int, int | None, bool]]:
    """(at, n, v, whether there is a partner) of each bid, by DuckDB."""
    last = {(e.row[0], e.time): e.row for e in sorted(content.streams["c"], key=lambda e: e.id)}
    tables = {"c": list(last.values()), "b": [e.row for e in content.streams["b"]]}
    database = connection()
    for name, rows in tables.items():
        database.execute(f"DELETE FROM {name}")
        if rows:
            places = ", ".join("?" for _ in rows[0])
            database.executemany(f"INSERT INTO {name} VALUES ({places})", rows)
    return database.execute(ASOF).fetchall()


@cache
def connection() -> duckdb.DuckDBPyConnection:
    database = duckdb.connect(config={"threads": 1})
    database.execute("CREATE TABLE c (k BIGINT, g VARCHAR, v BIGINT, op VARCHAR, t BIGINT)")
    database.execute("CREATE TABLE b (k BIGINT, n BIGINT, t BIGINT)")
    return database


@given(CONTENT)
def test_a_bid_has_the_row_that_asof_join_finds(content: Content) -> None:
    found = looked_up(content)
    inner = run_locally(INNER, content.streams, {}, {}, partitions=2)
    outer = run_locally(OUTER, content.streams, {}, {}, partitions=2)
    for time in range(12):
        valid = [row for row in found if time - 3 < row[0] <= time]
        assert Counter(outer.snapshot(time).rows()) == Counter(row[:3] for row in valid), time
        partners = Counter(row[:3] for row in valid if row[3])
        assert Counter(inner.snapshot(time).rows()) == partners, time
