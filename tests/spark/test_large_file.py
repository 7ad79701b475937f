"""One file, however large, is read on Spark in bounded pieces: so is the memory of who reads it.

What a stage is given in a batch it has in memory all the same, and a batch has a file at least.
"""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import polars as pl
import pytest

import tidemill
from spark.on_spark import MASTER
from spark.test_running import python_workers

pytestmark = pytest.mark.spark

MEMORY = 600 << 20
"""How much memory a process may need that runs Python for Spark; with a small file it is half."""

MANY = 20_000_000


def most_memory(process: int) -> int:
    """How many bytes of memory a process had at most."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    found = re.search(r"VmHWM:\s*(\d+) kB", status)
    return int(found[1]) << 10 if found else 0


def write(path: Path, count: int, width: int) -> None:
    """A file of many rows, each with a text of its own that is so long."""
    rows = pl.LazyFrame().select(t=pl.int_range(count)).with_columns(k=pl.col("t") % 1000)
    named = rows.with_columns(name=pl.format("{} " + "x" * width, pl.col("t")))
    named.sink_parquet(path, row_group_size=1 << 18)


def defined(place: Path, text: str) -> tuple[tidemill.Session, tidemill.Query]:
    session = tidemill.connect(engine="spark", master=MASTER, partitions=2)
    session.sql(
        f"CREATE STREAM s (t BIGINT, k BIGINT, name VARCHAR) SOURCE parquet('{place}') ORDERED BY t"
    )
    query = session.sql(text)
    assert isinstance(query, tidemill.Query)
    return session, query


@pytest.mark.parametrize(
    ("count", "width"), [(1_000_000, 1_000), pytest.param(MANY, 100, marks=pytest.mark.soak)]
)
def test_a_large_file_is_read_in_bounded_memory(tmp_path: Path, count: int, width: int) -> None:
    """All rows are looked at, and who reads them never has them all."""
    write(tmp_path / "1.parquet", count, width)
    for worker in python_workers():
        os.kill(worker, signal.SIGKILL)  # what they have needed before is no matter
    session, query = defined(tmp_path, "SELECT t, name FROM s WHERE k = 7 AND name LIKE '%7 x%'")
    with session:
        session.run()
        most = max(map(most_memory, python_workers()))
        found = query.results()
        (stream,) = session.progress().streams
    assert stream.rows == count
    assert found.height == count // 1000
    assert found["name"].str.len_bytes().min() == width + 2, "the first is that of 7"
    assert most < MEMORY, f"{most >> 20} MB"


@pytest.mark.soak
def test_a_file_of_20_million_rows_is_grouped(tmp_path: Path) -> None:
    """It is more than two gigabytes, more than Java can have in one piece."""
    write(tmp_path / "1.parquet", MANY, 100)
    session, query = defined(
        tmp_path,
        f"SELECT k, COUNT(*) AS n, MAX(name) AS m FROM s [RANGE {MANY} SLIDE {MANY}] GROUP BY k",
    )
    with session:
        session.run()
        assert query.results()["n"].to_list() == [MANY // 1000] * 1000
