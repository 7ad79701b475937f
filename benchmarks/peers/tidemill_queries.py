"""The four queries on Tidemill's local engine, measured as the peers are.

In and out: Parquet files, one a batch, read while the clock runs; a callback gets the new rows of
each batch and keeps them in memory. A row of a window's answer holds for an interval; the peers
give a row for each window, so making those of it is part of the time. Declaring streams and
planning are not, and neither is ``query.results()``, which puts the whole answer in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

import tidemill
from benchmarks.peers.queries import QUERIES
from benchmarks.peers.stopwatch import Run, Task, Took, main, took

if TYPE_CHECKING:
    import pyarrow as pa


def prepare(task: Task) -> Run:
    """A new session for each run."""
    query = QUERIES[task.query]

    def run() -> tuple[Took, pa.Table]:
        session = tidemill.connect()
        for name in task.streams:
            session.sql(
                f"CREATE STREAM {name} (key BIGINT NOT NULL, value DOUBLE NOT NULL, at TIMESTAMP) "
                f"SOURCE parquet('{task.folder / name}', settle => 0) ORDERED BY at"
            )
        found: list[pl.DataFrame] = []
        numbers = pl.col("start", "end").cast(pl.Int64)

        def keep(frame: pl.DataFrame, _batch: int) -> None:
            found.append(query.expand(frame.with_columns(numbers)))

        session.callback("keep", keep)
        session.sql(f"CREATE QUERY q INTO callback('keep') AS {query.tidemill}")
        return took(session.run), pl.concat(found).to_arrow()

    return run


if __name__ == "__main__":
    main(prepare)
