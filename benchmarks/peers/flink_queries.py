"""The four queries on Flink, in SQL through PyFlink.

In and out: a CSV file a stream, written before the clock starts, and CSV files of results, read
and written by Flink in Java; its wheel has no jar for Parquet. The clock is Flink's own: the net
run time of the job, from its creation to its end, without planning; the seconds of the processor
are with it. Nothing of a row passes through Python.

Streaming mode over bounded input, watermarks a millisecond behind the rows, state on the heap, no
checkpoints. Windows are those of the table function HOP; the join is Flink's interval join. One
file a stream, since Flink promises no order among several, and rows that come behind the watermark
are dropped. So one task reads, and as many as there are cores do the rest.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv
from pyflink.table import EnvironmentSettings, TableEnvironment

from benchmarks.peers.stopwatch import Run, Task, Took, main, microseconds, read, took

if TYPE_CHECKING:
    from pathlib import Path

MILLISECOND = 1_000

HOP = "TABLE(HOP(TABLE s, DESCRIPTOR(t), INTERVAL '1' SECOND, INTERVAL '60' SECOND))"

QUERIES = {
    "filter": (
        {"key": "BIGINT", "v": "DOUBLE", "at": "BIGINT"},
        "SELECT `key`, `value` * 2, `at` FROM s WHERE `value` > 50",
    ),
    "sum": (
        {"key": "BIGINT", "v": "DOUBLE", "until": "TIMESTAMP(3)"},
        (
            f"SELECT `key`, SUM(`value`), window_end FROM {HOP} "
            "GROUP BY `key`, window_start, window_end"
        ),
    ),
    "distinct": (
        {"key": "BIGINT", "until": "TIMESTAMP(3)"},
        f"SELECT `key`, window_end FROM {HOP} GROUP BY `key`, window_start, window_end",
    ),
    "join": (
        {"key": "BIGINT", "x": "DOUBLE", "y": "DOUBLE"},
        (
            "SELECT a.`key`, a.`value`, b.`value` FROM a JOIN b ON a.`key` = b.`key` "
            "AND a.t > b.t - INTERVAL '60' SECOND AND a.t < b.t + INTERVAL '60' SECOND"
        ),
    ),
}
"""The columns of the answer and their types, and the text."""

ARROW = {"BIGINT": pa.int64(), "DOUBLE": pa.float64(), "TIMESTAMP(3)": pa.timestamp("ms")}


def declared(name: str, columns: dict[str, str], more: str, path: Path) -> str:
    """The statement that makes a table of CSV files."""
    listed = ", ".join(f"`{column}` {type_}" for column, type_ in columns.items())
    return (
        f"CREATE TEMPORARY TABLE {name} ({listed}{more}) "
        f"WITH ('connector' = 'filesystem', 'path' = 'file://{path}', 'format' = 'csv')"
    )


def write(table: pa.Table, path: Path) -> None:
    """A CSV file without a header; times in milliseconds, as Flink has them."""
    at = pc.divide(table["at"], MILLISECOND)
    table = table.drop_columns(["at"]).append_column("at", at)
    csv.write_csv(table, path, csv.WriteOptions(include_header=False))


def prepare(task: Task) -> Run:
    """The streams as CSV files, and a session that reads them."""
    session = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    session.get_config().set("parallelism.default", str(task.cores))
    session.get_config().set("table.local-time-zone", "UTC")
    for name in task.streams:
        path = task.scratch.absolute() / f"{name}.csv"
        write(read(task.folder / name), path)
        time = (
            ", t AS CAST(TO_TIMESTAMP_LTZ(`at`, 3) AS TIMESTAMP(3))"
            ", WATERMARK FOR t AS t - INTERVAL '0.001' SECOND"
        )
        columns = {"key": "BIGINT", "value": "DOUBLE", "at": "BIGINT"}
        session.execute_sql(declared(name, columns, time, path))
    columns, text = QUERIES[task.query]
    output = task.scratch.absolute() / "out"
    session.execute_sql(declared("found", columns, "", output))

    def run() -> tuple[Took, pa.Table]:
        shutil.rmtree(output, ignore_errors=True)
        jobs = []

        def insert() -> None:
            started = session.execute_sql(f"INSERT INTO found {text}")
            started.wait()
            jobs.append(started.get_job_client())

        time = took(insert)
        milliseconds = jobs[0].get_job_execution_result().result().get_net_runtime()
        return replace(time, seconds=milliseconds / 1000), rows_of(task.query, output)

    return run


def rows_of(query: str, output: Path) -> pa.Table:
    """What the job has written."""
    columns, _ = QUERIES[query]
    types = {name: ARROW[type_] for name, type_ in columns.items()}
    parts = [
        csv.read_csv(
            file,
            csv.ReadOptions(column_names=list(columns)),
            convert_options=csv.ConvertOptions(column_types=types),
        )
        for file in sorted(output.rglob("part-*"))
        if file.stat().st_size
    ]
    found = pa.concat_tables(parts)
    if query == "filter":
        at = pc.multiply(found["at"], MILLISECOND)
        return found.drop_columns(["at"]).append_column("at", at)
    return microseconds(found, "until") if "until" in columns else found


if __name__ == "__main__":
    main(prepare)
