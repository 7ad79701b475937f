"""Settling: a file that is still being written is not read, and a change is told."""

from __future__ import annotations

import os
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic, sleep
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from tidemill.errors import BindError, RunError
from tidemill.runtime.settling import Mark, Settling, await_settled, mark_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECOND = 1_000_000_000


class Clocks:
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


def test_a_file_settles_when_it_has_been_the_same_for_a_while(clocks: Clocks) -> None:
    settling = Settling(2, clock=clocks, steady=clocks)
    assert settling.has_settled("old", Mark(5, 998 * SECOND))
    assert not settling.has_settled("new", Mark(5, 999 * SECOND))
    clocks.now += 1  # it has grown without another time, as coarse clocks have it
    assert not settling.has_settled("grown", Mark(5, 1001 * SECOND))
    clocks.now += 0.5
    assert not settling.has_settled("grown", Mark(6, 1001 * SECOND))
    assert settling.has_settled("new", Mark(5, 999 * SECOND))
    clocks.now += 2
    assert settling.has_settled("grown", Mark(6, 1001 * SECOND))


def test_a_time_in_the_future_does_not_keep_a_file_for_ever(clocks: Clocks) -> None:
    settling = Settling(2, clock=clocks, steady=clocks)
    mark = Mark(5, 10**6 * SECOND)
    assert not settling.has_settled("x", mark)
    clocks.now += 1.9
    assert not settling.has_settled("x", mark)
    clocks.now += 0.1
    assert settling.has_settled("x", mark)


def test_without_a_time_to_settle_everything_is_complete(clocks: Clocks) -> None:
    settling = Settling(0, clock=clocks, steady=clocks)
    assert settling.has_settled("x", Mark(5, 10**6 * SECOND))


def test_what_has_just_been_written_is_waited_for_once(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for path in (old, new):
        path.write_text("x")
    os.utime(old, (1, 1))
    begin = monotonic()
    marks = await_settled("s", map(str, (old, new)), 0.2)
    assert 0.2 <= monotonic() - begin < 1
    assert list(marks) == [str(old), str(new)]
    begin = monotonic()
    assert await_settled("s", [str(old)], 60) == {str(old): Mark(1, SECOND)}
    assert monotonic() - begin < 1


@contextmanager
def writing(path: Path, text: str) -> Iterator[None]:
    """Somebody appends to a file, again and again."""
    stop = Event()

    def grow() -> None:
        while not stop.wait(0.01):
            with path.open("a") as file:
                file.write(text)

    writer = Thread(target=grow)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()


def session_on(source: Path, settle: float) -> tuple[tidemill.Session, tidemill.Query]:
    session = tidemill.connect()
    session.sql(
        f"CREATE STREAM s (k BIGINT, t BIGINT) SOURCE csv('{source}', settle => {settle}) "
        "ORDERED BY t"
    )
    query = session.sql("SELECT k FROM s")
    assert isinstance(query, tidemill.Query)
    return session, query


def test_the_local_engine_reads_a_file_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "1.csv"
    path.write_text("k,t\n1,1\n")
    session, query = session_on(tmp_path, 1)
    with writing(path, "2,2\n"), pytest.raises(RunError, match='of "s" is still being written'):
        session.run()
    session.run()
    assert query.results().height == len(path.read_text().splitlines()) - 1 > 1


def test_a_file_that_changes_between_look_and_read_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "1.csv"
    path.write_text("k,t\n1,1\n")
    os.utime(path, (1, 1))
    session, _ = session_on(tmp_path, 1)
    real = pl.read_csv

    def slow(*arguments: object, **named: object) -> pl.DataFrame:
        frame = real(*arguments, **named)  # type: ignore[arg-type]
        with path.open("a") as file:
            file.write("2,2\n")
        return frame

    monkeypatch.setattr(pl, "read_csv", slow)
    with pytest.raises(RunError, match="has changed since it was taken, before it was read"):
        session.run()


@pytest.mark.parametrize("wrong", ["-1", "'soon'"])
def test_how_long_a_file_settles_is_a_number_of_seconds(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(BindError, match='option "settle" must be a number of seconds'):
        tidemill.connect().sql(
            f"CREATE STREAM s (k BIGINT) SOURCE csv('{tmp_path}', settle => {wrong})"
        )


def test_a_file_that_goes_on_growing_is_never_taken_in_part(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("")
    settling, end = Settling(0.3), monotonic() + 1
    with writing(path, "x"):
        while monotonic() < end:
            mark = mark_of(path)
            assert mark is not None
            assert not settling.has_settled(str(path), mark)
            sleep(0.02)
