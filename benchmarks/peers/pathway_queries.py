"""The four queries on Pathway.

In and out: a CSV file a stream, written before the clock starts, read in static mode, and a CSV
file of results; both are read and written by Pathway's engine, not in Python. The clock runs while
``pw.run`` does, reading and writing included. In static mode all rows are one batch: Pathway has
no intermediate results to give or take back, which is the quickest it can be.

Windows are ``windowby`` with ``temporal.sliding``, the join is ``interval_join_inner``, whose
bounds are inclusive, so that they are a microsecond less than a minute. Times are whole
microseconds. As many threads as cores.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pathway as pw
import pyarrow as pa
import pyarrow.compute as pc
from pathway.internals.parse_graph import G
from pyarrow import csv

from benchmarks.peers.stopwatch import Run, Task, Took, main, read, took

if TYPE_CHECKING:
    from collections.abc import Callable

SECOND = 1_000_000
MINUTE = 60 * SECOND


class Row(pw.Schema):
    """A row of a stream."""

    key: int
    value: float
    at: int


def filtered(s: pw.Table) -> pw.Table:
    """The rows with a value above 50, and twice that value."""
    kept = s.filter(pw.this.value > 50)  # noqa: PLR2004 — as in the query
    return kept.select(pw.this.key, pw.this.at, v=pw.this.value * 2)


def windowed(s: pw.Table) -> pw.Table:
    """The rows of each minute, sliding by a second, by key."""
    minutes = pw.temporal.sliding(hop=SECOND, duration=MINUTE, origin=0)
    return s.windowby(s.at, window=minutes, instance=s.key)


def summed(s: pw.Table) -> pw.Table:
    """The sum of the values of a key in a window."""
    return windowed(s).reduce(
        key=pw.this._pw_instance,  # noqa: SLF001 — Pathway's name for it
        until=pw.this._pw_window_end,  # noqa: SLF001
        v=pw.reducers.sum(pw.this.value),
    )


def distinct(s: pw.Table) -> pw.Table:
    """The keys that are in a window."""
    return windowed(s).reduce(
        key=pw.this._pw_instance,  # noqa: SLF001
        until=pw.this._pw_window_end,  # noqa: SLF001
    )


def joined(a: pw.Table, b: pw.Table) -> pw.Table:
    """The pairs less than a minute apart."""
    near = pw.temporal.interval(1 - MINUTE, MINUTE - 1)
    pairs = a.interval_join_inner(b, a.at, b.at, near, a.key == b.key)
    return pairs.select(a.key, x=a.value, y=b.value)


QUERIES: dict[str, Callable[..., pw.Table]] = {
    "filter": filtered,
    "sum": summed,
    "distinct": distinct,
    "join": joined,
}


def prepare(task: Task) -> Run:
    """The streams as CSV files."""
    os.environ["PATHWAY_THREADS"] = str(task.cores)
    for name in task.streams:
        csv.write_csv(read(task.folder / name), task.scratch / f"{name}.csv")
    output = task.scratch / "out.csv"

    def run() -> tuple[Took, pa.Table]:
        G.clear()
        tables = [
            pw.io.csv.read(task.scratch / f"{name}.csv", schema=Row, mode="static")
            for name in task.streams
        ]
        pw.io.csv.write(QUERIES[task.query](*tables), output)
        time = took(lambda: pw.run(monitoring_level=pw.MonitoringLevel.NONE))
        found = csv.read_csv(output)
        assert pc.all(pc.equal(found["diff"], 1)).as_py(), "nothing is taken back"
        return time, found.drop_columns(["time", "diff"])

    return run


if __name__ == "__main__":
    main(prepare)
