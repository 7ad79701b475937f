# ruff: noqa: INP001, T201 — a program on its own that talks to a person
"""A pipeline on Spark that can be killed at any moment, and goes on where it was.

It works in the directory it is called in:

    python survive_a_kill.py bids 3     writes three more files of bids
    python survive_a_kill.py run        runs the pipeline, until it is killed
    python survive_a_kill.py finish     processes what is there, and ends the stream
    python survive_a_kill.py compare    compares the files with a run that was never interrupted

docs/tutorials/survive-a-kill.md goes through it step by step.
"""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from pathlib import Path
from time import sleep

import polars as pl

import tidemill

INPUT, OUTPUT, CHECKPOINT = Path("bids"), Path("tops"), Path("state")
NOON = datetime(2026, 3, 1, 12)  # noqa: DTZ001 — a TIMESTAMP has no zone
ROWS = 1000
"""How many bids a file has: one a second."""

STREAM = f"""
CREATE STREAM bid (at TIMESTAMP, item INTEGER, price INTEGER)
  SOURCE parquet('{INPUT}') ORDERED BY at
"""
QUERY = """
SELECT item, COUNT(*) AS bids, MAX(price) AS top
FROM bid [RANGE 5 MINUTES SLIDE 30 SECONDS] GROUP BY item
"""


def main() -> None:
    """Do what the command line says."""
    match sys.argv[1:]:
        case ["bids", count]:
            write_bids(int(count))
        case ["run"]:
            run()
        case ["finish"]:
            finish()
        case ["compare"]:
            compare()
        case _:
            sys.exit(__doc__)


def write_bids(count: int) -> None:
    """Write more files; each gets its name when it is complete."""
    INPUT.mkdir(exist_ok=True)
    first = len(list(INPUT.glob("*.parquet")))
    for number in range(first, first + count):
        seconds = range(number * ROWS, (number + 1) * ROWS)
        frame = pl.DataFrame(
            {
                "at": [NOON + timedelta(seconds=second) for second in seconds],
                "item": [second * second % 7 for second in seconds],
                "price": [second * 31 % 100 for second in seconds],
            }
        )
        hidden = INPUT / f".{number:04d}"
        frame.write_parquet(hidden)
        hidden.rename(INPUT / f"{number:04d}.parquet")
    print(f"{INPUT} has {first + count} files")


def pipeline() -> tidemill.Session:
    """The session; it is the same in every run, and so is its checkpoint."""
    session = tidemill.connect(
        engine="spark", master="local[2]", partitions=1, checkpoint=CHECKPOINT
    )
    session.sql(STREAM)
    session.sql(f"CREATE QUERY tops INTO parquet('{OUTPUT}', form => 'changes') AS {QUERY}")
    return session


def run() -> None:
    """Process what comes, for ever."""
    with pipeline() as session:
        session.start()
        while (progress := session.progress()).failure is None:
            print(f"batches since this start: {progress.batches}", flush=True)
            sleep(0.5)
        sys.exit(progress.failure)


def finish() -> None:
    """Process what is there, and end the stream: windows that are still open are closed."""
    with pipeline() as session:
        session.run(end=True)
    print("the stream has ended")


def compare() -> None:
    """Compare the files with the answer of the local engine, which reads all at once."""
    session = tidemill.connect()
    session.sql(STREAM)
    query = session.sql(QUERY)
    assert isinstance(query, tidemill.Query), "a SELECT gives a query"
    session.run()
    expected = in_order(query.changes())
    found = in_order(pl.read_parquet(f"{OUTPUT}/**/*.parquet", hive_partitioning=False))
    if not found.equals(expected):
        sys.exit("the files are not what an uninterrupted run gives")
    print(f"the files are what an uninterrupted run gives: {found.height} changes")


def in_order(changes: pl.DataFrame) -> pl.DataFrame:
    """Changes by time; those of one time by their values."""
    columns = ["time", "sign", "item", "bids", "top"]
    return changes.select(columns).with_columns(pl.col("time").cast(pl.Int64)).sort(columns)


if __name__ == "__main__":
    main()
