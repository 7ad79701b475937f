"""Streams that keep their past on Spark: large files, in shares, and a query that begins late."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from running.shop import bags
from spark.on_spark import MASTER

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark

ROWS = 200_000
TEXT = "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 900] GROUP BY k"


def write(directory: Path, number: int) -> None:
    """A file of 400 instants that is large enough to be copied as it is."""
    first = number * ROWS
    at = pl.int_range(first, first + ROWS, eager=True)
    frame = pl.DataFrame({"k": at.hash(3) % 7, "v": at.hash(5) % 2**44, "t": at // 500})
    frame = frame.cast(pl.Int64)
    unfinished = directory / f".{number:03d}"
    frame.write_parquet(unfinished)
    os.utime(unfinished, (1_000_000 + number, 1_000_000 + number))
    unfinished.rename(directory / f"{number:03d}.parquet")


@pytest.mark.parametrize(
    "keep", ["KEEP ALL", pytest.param("KEEP ALL BY REFERENCE", marks=pytest.mark.soak)]
)
def test_a_late_query_over_large_files_is_exact(tmp_path: Path, keep: str) -> None:
    source = tmp_path / "in"
    source.mkdir()
    stream = (
        f"CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) SOURCE parquet('{source}', settle => 0)"
        " ORDERED BY t"
    )
    with tidemill.connect(
        engine="spark",
        master=MASTER,
        partitions=2,
        checkpoint=tmp_path / "state",
        replay_rows=100_000,
    ) as session:
        session.sql(f"{stream} WITHIN 10 {keep}")
        session.sql("CREATE QUERY first AS SELECT COUNT(*) AS n FROM s WHERE v = 0")
        session.start()
        for number in range(4):
            write(source, number)
        session.await_idle()
        late = session.query(f"CREATE QUERY late START WITH HISTORY AS {TEXT}")
        while session.progress().queries[-1].to_replay:
            session.await_idle()
        write(source, 4)
        session.await_idle()
        given = bags(late.changes(), 1980)
        asked = session.ask(f"{TEXT} ORDER BY k", at=1500).frame
        kept = sorted(path.name for path in (tmp_path / "state" / "kept" / "s").iterdir())
    is_copied = "REFERENCE" not in keep
    copies = [f"file-{number:012d}.parquet" for number in range(5)] if is_copied else []
    assert kept == [*copies, "kept.jsonl"]
    with tidemill.connect() as session:
        session.sql(f"{stream} WITHIN 10")
        query = session.query(TEXT)
        session.run()
        right = bags(query.changes(), 1980)
    since = 1588  # the last instant that was known when it was created, with WITHIN 10
    assert [t for t in range(since, 1980) if given[t] != right[t]] == []
    assert dict.fromkeys(asked.rows(), 1) == right[1500]
