"""Time passes while nothing comes, files are read when they are complete, and runs go on: on Spark.

Laws of the same are in ``test_stage``, ``test_ticker``, ``test_feed`` and ``laws/test_stages``.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from time import monotonic, sleep
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from spark.on_spark import MASTER
from tidemill.model.time import to_datetime

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.spark

SECOND = 1_000_000


def soon(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = monotonic() + 60
    while not holds():
        assert monotonic() < end, "it does not come about"
        sleep(0.05)


def query(session: tidemill.Session, text: str) -> tidemill.Query:
    found = session.sql(text)
    assert isinstance(found, tidemill.Query)
    return found


def give(directory: Path, number: int, columns: dict[str, list[int]]) -> None:
    directory.mkdir(exist_ok=True)
    pl.DataFrame(columns).write_parquet(directory / f".{number}")
    (directory / f".{number}").rename(directory / f"{number}.parquet")


class Clock:
    """A clock that a test moves on; what it says now is a time like any other."""

    def __init__(self) -> None:
        self.now = 1000 * SECOND

    def __call__(self) -> int:
        return self.now


def test_windows_empty_and_silent_streams_are_idle_while_nothing_comes(tmp_path: Path) -> None:
    clock = Clock()
    for name in ("a", "b", "unread", "u"):
        (tmp_path / name).mkdir()
    give(tmp_path / "u", 0, {"k": [1, 2]})
    give(tmp_path / "a", 0, {"k": [1, 1], "at": [10, 30]})
    give(tmp_path / "b", 0, {"k": [1], "at": [10]})
    with tidemill.connect(
        engine="spark", master=MASTER, partitions=2, checkpoint=tmp_path / "state", clock=clock
    ) as session:
        session.sql(f"CREATE STREAM u (k BIGINT) SOURCE parquet('{tmp_path / 'u'}')")
        for name, clause in {"a": "", "b": "IDLE AFTER 20 SECONDS", "unread": ""}.items():
            session.sql(
                f"CREATE STREAM {name} (k BIGINT, at BIGINT) "
                f"SOURCE parquet('{tmp_path / name}') ORDERED BY at {clause}"
            )
        count = query(session, "SELECT COUNT(*) AS n FROM u [RANGE 10 SECONDS]")
        both = query(session, "SELECT k FROM a INTERSECT SELECT k FROM b")
        # A stream that never has a row, and is read with nobody else.
        query(session, "SELECT COUNT(*) AS n FROM unread [RANGE 5]")
        session.start()
        session.await_idle()
        begin = to_datetime(clock.now)
        assert count.changes().rows() == [(2, begin, 1)], "it is there at once"
        assert both.results().rows() == []
        clock.now += 15 * SECOND
        soon(lambda: count.results().rows() == [(2, begin, begin + timedelta(seconds=10))])
        assert both.results().rows() == []
        clock.now += 15 * SECOND
        soon(lambda: both.results().rows() == [(1, 10, 11)])
        session.await_idle()
        before = session.progress().batches
        clock.now += 3600 * SECOND
        sleep(1)
        session.await_idle()
        # Something is still remembered, so time goes on passing, but slowly.
        assert session.progress().batches <= before + 2
        assert len(list((tmp_path / "state" / "control").iterdir())) <= 2


def test_a_window_of_two_seconds_is_empty_when_two_seconds_have_passed(tmp_path: Path) -> None:
    """By the clock of the host: nothing comes, and nobody asks."""
    give(tmp_path / "u", 0, {"k": [1, 2]})
    with tidemill.connect(engine="spark", master=MASTER, partitions=2) as session:
        session.sql(f"CREATE STREAM u (k BIGINT) SOURCE parquet('{tmp_path / 'u'}', settle => 0)")
        count = query(session, "SELECT COUNT(*) AS n FROM u [RANGE 2 SECONDS]")
        session.start()
        session.await_idle()  # the first batch takes longer than others
        give(tmp_path / "u", 1, {"k": [3]})
        session.await_idle()
        came = count.changes()["time"].max()
        assert isinstance(came, datetime)
        gone = came + timedelta(seconds=2)
        soon(lambda: count.changes()["time"].max() == gone)
        late = datetime.now(UTC).replace(tzinfo=None) - gone
        assert late < timedelta(seconds=1), "a tick, and a batch"


def test_a_file_is_read_when_it_is_complete_and_a_change_is_told(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    path = source / "1.csv"
    with tidemill.connect(engine="spark", master=MASTER, partitions=1) as session:
        session.sql(
            "CREATE STREAM s (k BIGINT, t BIGINT) "
            f"SOURCE csv('{source}', settle => 0.5) ORDERED BY t"
        )
        rows = query(session, "SELECT k FROM s")
        session.start()
        path.write_text("k,t\n")
        for number in range(10):
            with path.open("a") as file:
                file.write(f"{number},{number}\n")
            sleep(0.1)
        session.await_idle()
        assert rows.results()["k"].to_list() == list(range(10))
        with path.open("a") as file:
            file.write("10,10\n")
        session.await_idle()
        (stream,) = session.progress().streams
        assert stream.rows == 10
        (warning,) = stream.warnings
        assert f'"{path}" has changed after it was taken' in warning


def test_a_run_on_a_checkpoint_goes_on_next_time_and_ends_when_it_is_asked_to(
    tmp_path: Path,
) -> None:
    source, out = tmp_path / "in", tmp_path / "out"

    def session() -> tuple[tidemill.Session, tidemill.Query]:
        made = tidemill.connect(
            engine="spark", master=MASTER, partitions=1, checkpoint=tmp_path / "state"
        )
        made.sql(f"CREATE STREAM s (k BIGINT, at BIGINT) SOURCE parquet('{source}') ORDERED BY at")
        text = "SELECT COUNT(*) AS n FROM s [RANGE 10]"
        return made, query(made, f"CREATE QUERY q INTO parquet('{out}') AS {text}")

    found = []
    for number, end in enumerate((None, False, True)):
        give(source, number, {"k": [1, 2], "at": [number * 4, number * 4 + 1]})
        run, answer = session()
        with run:
            run.run(end=end)
            found.append(answer.results().rows())
    known = [(1, 0, 1), (2, 1, 4)]
    rest = [(3, 4, 5), (4, 5, 8), (5, 8, 9), (6, 9, 10), (5, 10, 11), (4, 11, 14), (3, 14, 15)]
    assert found == [[], known, [*known, *rest, (2, 15, 18), (1, 18, 19)]]
    give(source, 3, {"k": [1], "at": [20]})
    run, answer = session()
    with run, pytest.raises(tidemill.RunError, match="run to the end"):
        run.start()
