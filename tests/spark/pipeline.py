"""A program that runs a few queries on Spark to the end of their input, and may be killed.

python pipeline.py INPUT OUTPUT CHECKPOINT [MASTER]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

import tidemill

if TYPE_CHECKING:
    from tidemill.session import Session

__all__ = ["QUERIES", "define"]

QUERIES = {
    "plain": "SELECT k, v * 2 AS w FROM s WHERE v > 4",
    "dear": "SELECT k, v FROM s [RANGE 3] WHERE v > 4",
    "total": "SELECT k, SUM(v) AS total, COUNT(*) AS n FROM s [RANGE 50 SLIDE 10] GROUP BY k",
    "alike": """
        SELECT k, SUM(v) AS x, COUNT(*) AS n FROM s [RANGE 20 SLIDE 5] WHERE v > 2 GROUP BY k""",
    "overall": "SELECT SUM(v) AS total, MAX(v) AS top, COUNT(*) AS n FROM s [RANGE 50 SLIDE 10]",
    "pairs": "SELECT a.v AS x, b.v AS y FROM s a [RANGE 5] JOIN s b [RANGE 5] ON a.k = b.k",
    "latest": "SELECT k, AVG(v) AS mean FROM s [PARTITION BY k ROWS 4] GROUP BY k",
    "deep": """
        SELECT n, COUNT(*) AS c FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 20] GROUP BY k) x
        GROUP BY n""",
    "named": "SELECT DISTINCT name FROM s [RANGE 4], r WHERE id = k",
}


def define(session: Session, source: Path, output: Path | None = None) -> None:
    """Register the stream, the relation and the queries."""
    session.put("r", pl.DataFrame({"id": [0, 1], "name": ["zero", "one"]}))
    session.sql(
        "CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) "
        f"SOURCE parquet(path => '{source}') ORDERED BY t;"
        "CREATE RELATION r (id BIGINT, name VARCHAR) SOURCE memory('r')"
    )
    for name, text in QUERIES.items():
        into = "" if output is None else f"INTO parquet('{output / name}') "
        session.sql(f"CREATE QUERY {name} {into}AS {text}")


if __name__ == "__main__":
    source, output, checkpoint = map(Path, sys.argv[1:4])
    master = sys.argv[4] if len(sys.argv) > 4 else "local[2]"
    with tidemill.connect(
        engine="spark", master=master, partitions=3, checkpoint=checkpoint
    ) as session:
        define(session, source, output)
        session.run(end=True)
