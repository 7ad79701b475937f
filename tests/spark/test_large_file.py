"""One file, however large, is read on Spark in bounded pieces: the memory of a task is, too."""

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

MEMORY = 900 << 20
"""How much memory a process may have needed that runs Python for Spark; half of it at the start."""

KEYS, SECOND = 1000, 1_000_000


def most_memory(process: int) -> int:
    """How many bytes of memory a process had at most."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    found = re.search(r"VmHWM:\s*(\d+) kB", status)
    return int(found[1]) << 10 if found else 0


@pytest.mark.parametrize(
    ("count", "width"),
    [(1_500_000, 400), pytest.param(20_000_000, 100, marks=pytest.mark.soak)],
)
def test_a_large_file_is_read_in_bounded_memory(tmp_path: Path, count: int, width: int) -> None:
    """All rows are there, and those who read them never had them all."""
    path = tmp_path / "1.parquet"
    rows = pl.LazyFrame().select(t=pl.int_range(count)).with_columns(k=pl.col("t") % KEYS)
    named = rows.with_columns(name=pl.format("{} " + "x" * width, pl.col("t")))
    named.with_columns(pl.col("t") * 1000).sink_parquet(path, row_group_size=1 << 18)
    for worker in python_workers():
        os.kill(worker, signal.SIGKILL)  # what they have needed before is no matter
    with tidemill.connect(engine="spark", master=MASTER, partitions=2) as session:
        session.sql(
            "CREATE STREAM s (t BIGINT, k BIGINT, name VARCHAR) "
            f"SOURCE parquet('{tmp_path}') ORDERED BY t"
        )
        query = session.sql(
            "SELECT k, COUNT(*) AS n, MAX(name) AS m "
            f"FROM s [RANGE {count // 2000} SECONDS SLIDE {count // 2000} SECONDS] GROUP BY k"
        )
        assert isinstance(query, tidemill.Query)
        session.run()
        most = max(map(most_memory, python_workers()))
        found = query.results()
        (stream,) = session.progress().streams
    assert stream.rows == count
    assert found["n"].sum() == count
    assert found["n"].unique().to_list() == [count // KEYS // 2]
    assert most < MEMORY, f"{most >> 20} MB"
