"""A program whose Java process is killed, and which goes on.

python java_killed.py DIRECTORY
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import polars as pl

import tidemill
from tidemill.runtime.spark.driver.java import java_process

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["define"]

SLOW = 30
"""So many seconds are too many to wait for something that has ended."""


def give(place: Path, number: int) -> None:
    rows = pl.DataFrame({"k": [1, 2, number], "t": [10 * number + n for n in range(3)]})
    rows.write_parquet(place / f".{number}")
    (place / f".{number}").rename(place / f"{number}.parquet")


def define(session: tidemill.Session, place: Path, *, into: str = "") -> tidemill.Query:
    source = place / "in"
    session.sql(f"CREATE STREAM s (k BIGINT, t BIGINT) SOURCE parquet('{source}') ORDERED BY t")
    query = session.sql(
        f"CREATE QUERY q {into} AS SELECT k, COUNT(*) AS n FROM s [RANGE 100] GROUP BY k"
    )
    assert isinstance(query, tidemill.Query)
    return query


def connected(place: Path, callback: Callable[[pl.DataFrame, int], None]) -> tidemill.Session:
    session = tidemill.connect(
        engine="spark", master="local[2]", partitions=2, checkpoint=place / "state"
    )
    define(session, place, into=f"INTO parquet('{place / 'out'}')")
    session.callback("f", callback)
    session.sql("CREATE QUERY called INTO callback('f') AS SELECT k FROM s")
    return session


def kill_java() -> None:
    java = java_process()
    assert java is not None, "Java was started here"
    os.kill(java.pid, signal.SIGKILL)


def told(what: Callable[[], object]) -> str:
    """The error that a call gives, which must not take long."""
    begun = monotonic()
    try:
        what()
    except tidemill.RunError as error:
        assert monotonic() - begun < SLOW, "it does not wait for what has ended"
        return str(error)
    raise AssertionError("there was no error")


def main(place: Path) -> None:
    kills = [kill_java]

    def kill_once(_frame: pl.DataFrame, _batch: int) -> None:
        if kills:
            kills.pop()()

    (place / "in").mkdir()
    give(place / "in", 0)
    session = connected(place, kill_once)
    ended = "Spark's Java process has ended: killed by SIGKILL"
    session.start()
    # It is killed in the middle of a batch. All who ask are told, and stopping works, twice.
    assert ended in told(session.await_idle)
    assert ended in told(session.await_idle)
    assert ended in str(session.progress().failure)
    session.stop()
    assert ended in str(session.progress().failure)
    session.stop()

    # The session goes on with another Java.
    give(place / "in", 1)
    with session:
        session.run(end=True)
        assert session.progress().failure is None
        session.answer("q").results().write_parquet(place / "answer.parquet")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
