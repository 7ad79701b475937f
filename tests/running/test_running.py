"""The local engine runs on: what comes later, what goes wrong, and what is known in the end."""

from __future__ import annotations

from threading import enumerate as all_threads
from time import monotonic, sleep
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from running.shop import LAST, NAMED, PAIRS, TOTAL, define, expected, known, rows, write
from tidemill.lang.statements import ObjectKind
from tidemill.model.time import to_datetime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SECOND = 1_000_000


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


@pytest.fixture
def session(source: Path) -> Iterator[tidemill.Session]:
    with tidemill.connect() as made:
        define(made, source)
        yield made


def soon(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = monotonic() + 20
    while not holds():
        assert monotonic() < end, "it does not come about"
        sleep(0.01)


def loops() -> list[str]:
    return [thread.name for thread in all_threads() if thread.name == "tidemill-local"]


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("text", [TOTAL, PAIRS, NAMED, LAST])
def test_answers_go_on_as_rows_come(source: Path, text: str, partitions: int) -> None:
    with tidemill.connect(partitions=partitions) as session:
        define(session, source)
        query = session.query(text)
        session.start()
        session.await_idle()
        assert query.changes().is_empty()
        for first in range(0, 60, 20):
            write(source, first, first + 20)
            session.await_idle()
            found = known(query, first + 19)
            assert found.equals(expected(source, text).filter(pl.col("time") < first + 19))
            assert found.height > 0


def test_what_is_known_can_be_asked_and_what_is_not_is_refused(
    session: tidemill.Session, source: Path
) -> None:
    write(source, 0, 20)
    total = session.query(TOTAL)
    session.start()
    session.await_idle()
    assert total.snapshot().equals(total.snapshot(18)), "the last instant that is known"
    with pytest.raises(tidemill.RunError, match="known up to 19, and at 19"):
        total.snapshot(19)


def test_it_stops_at_the_end_of_a_step_and_answers_can_still_be_read(
    session: tidemill.Session, source: Path
) -> None:
    write(source, 0, 20)
    total = session.query(TOTAL)
    session.start()
    assert len(loops()) == 1
    session.await_idle()
    session.stop()
    assert loops() == []
    write(source, 20, 40)
    assert known(total, 19).height > 0
    assert session.progress().failure is None
    with pytest.raises(tidemill.RunError, match="the session is not running"):
        session.await_idle()
    session.start()
    session.await_idle()
    assert known(total, 39).equals(expected(source, TOTAL).filter(pl.col("time") < 39))


def test_a_frame_in_memory_is_read_once_and_does_not_end() -> None:
    with tidemill.connect() as session:
        session.put("s", rows(0, 10))
        session.sql("CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) SOURCE memory() ORDERED BY t")
        all_, count = session.query("SELECT t FROM s"), session.query(TOTAL)
        session.start()
        session.await_idle()
        session.await_idle()
        assert all_.results()["t"].to_list() == list(range(10))
        assert count.changes()["time"].max() == 8, "the last instant may still change"


def test_a_query_over_relations_only_has_an_answer_although_no_row_comes(source: Path) -> None:
    with tidemill.connect() as session:
        define(session, source)
        names = session.query("SELECT name FROM r")
        session.start()
        session.await_idle()
        counts = session.query("SELECT COUNT(*) AS n FROM r")
        session.await_idle()
        assert sorted(names.snapshot(0).rows()) == [("one",), ("zero",)]
        assert counts.snapshot(0).rows() == [(2,)]


def test_files_are_read_by_name_and_once(session: tidemill.Session, source: Path) -> None:
    all_ = session.query("SELECT t FROM s")
    session.start()
    for first in (40, 20):  # what was found before is read before
        write(source, first, first + 2)
        session.await_idle()
    assert all_.results()["t"].to_list() == [40, 41]
    (stream,) = session.progress().streams
    assert (stream.rows, stream.refused, stream.files, stream.watermark) == (4, 2, (2, 2), 41)


def test_a_file_is_read_when_it_is_complete_and_a_change_is_told(source: Path) -> None:
    path = source / "1.csv"
    with tidemill.connect() as session:
        session.sql(
            "CREATE STREAM s (k BIGINT, t BIGINT) "
            f"SOURCE csv('{source}', settle => 0.3) ORDERED BY t"
        )
        numbers = session.query("SELECT k FROM s")
        session.start()
        path.write_text("k,t\n")
        for number in range(8):
            with path.open("a") as file:
                file.write(f"{number},{number}\n")
            sleep(0.06)
            assert numbers.results().is_empty()
        (source / "2.csv").write_text("k,t\n9,9\n")
        session.await_idle()
        assert numbers.results()["k"].to_list() == [*range(8), 9]
        with path.open("a") as file:
            file.write("8,8\n")
        session.await_idle()
        (stream,) = session.progress().streams
        assert stream.rows == 9
        (warning,) = stream.warnings
        assert f'"{path}" has changed after it was taken' in warning


# What goes wrong


def test_a_place_that_is_not_there_is_found_at_the_start(tmp_path: Path) -> None:
    session = tidemill.connect()
    define(session, tmp_path / "nothing")
    session.query(TOTAL)
    with pytest.raises(tidemill.RunError, match="there is no directory"):
        session.start()
    assert loops() == []
    (tmp_path / "nothing").mkdir()
    with session:
        session.start()
        session.await_idle()


def test_a_file_that_cannot_be_read_stops_it_and_what_came_before_is_kept(
    session: tidemill.Session, source: Path
) -> None:
    write(source, 0, 10)
    (source / "000010.parquet").write_bytes(b"this is no Parquet")
    all_ = session.query("SELECT t FROM s")
    session.start()
    with pytest.raises(tidemill.RunError, match="cannot be read as parquet"):
        session.await_idle()
    assert all_.results()["t"].to_list() == list(range(10))
    assert "cannot be read as parquet" in (session.progress().failure or "")
    with pytest.raises(tidemill.RunError, match="cannot be read as parquet"):
        session.sql("SELECT v FROM s")
    assert len(list(session.catalog.entries(ObjectKind.QUERY))) == 1, "the query was not created"
    session.stop()
    assert loops() == []


def test_a_callback_that_fails_stops_it_and_is_named(
    session: tidemill.Session, source: Path
) -> None:
    def fail(_frame: pl.DataFrame, _batch: int) -> None:
        raise KeyError("no")

    session.callback("fail", fail)
    session.sql("CREATE QUERY q INTO callback('fail') AS SELECT t FROM s")
    session.start()
    write(source, 0, 2)
    with pytest.raises(tidemill.RunError, match='callback "fail" of query "q" failed in batch'):
        session.await_idle()


def test_a_callback_cannot_wait_for_its_own_session(
    session: tidemill.Session, source: Path
) -> None:
    told: list[str] = []

    def call(_frame: pl.DataFrame, _batch: int) -> None:
        def create() -> None:
            session.sql("SELECT k FROM s")

        for what in (session.stop, session.await_idle, create):
            with pytest.raises(tidemill.RunError) as caught:
                what()
            told.append(str(caught.value).splitlines()[0])

    session.callback("call", call)
    session.sql("CREATE QUERY q INTO callback('call') AS SELECT t FROM s")
    session.start()
    write(source, 0, 2)
    session.await_idle()
    assert told == [
        f"a callback cannot {what} the session that calls it"
        for what in ("stop", "wait for", "change")
    ]


# Sinks


def test_files_get_what_comes_and_are_read_back(session: tidemill.Session, source: Path) -> None:
    out = source.parent / "out"
    total = session.query(f"CREATE QUERY total INTO parquet('{out}') AS {TOTAL}")
    session.start()
    for first in (0, 20):
        write(source, first, first + 20)
        session.await_idle()
    found = total.results()
    assert found.height > 10
    session.stop()
    whole = expected(source, TOTAL)
    assert total.changes().filter(pl.col("time") < 30).height > 0
    assert total.snapshot(10).equals(_at(whole, 10))
    assert found.equals(total.results())
    with pytest.raises(tidemill.RunError, match="holds the answer of"):
        session.start()


def _at(changes: pl.DataFrame, time: int) -> pl.DataFrame:
    names = [name for name in changes.columns if name not in ("time", "sign")]
    net = changes.filter(pl.col("time") <= time).group_by(names).agg(pl.col("sign").sum())
    return net.filter(pl.col("sign") > 0).select(names).sort(names)


def test_an_answer_that_goes_to_a_function_is_not_kept(
    session: tidemill.Session, source: Path
) -> None:
    taken: list[int] = []
    session.callback("take", lambda frame, _batch: taken.extend(frame["t"]))
    query = session.query("CREATE QUERY q INTO callback('take') AS SELECT t FROM s")
    session.start()
    write(source, 0, 5)
    session.await_idle()
    assert taken == list(range(5))
    with pytest.raises(tidemill.RunError, match="goes to its sink and is not kept"):
        query.results()
    assert session.progress().queries[0].rows == 5


# Time that passes


class Clock:
    """A clock that a test moves on; what it says now is a time like any other."""

    def __init__(self) -> None:
        self.now = 1000 * SECOND

    def __call__(self) -> int:
        return self.now


def give(directory: Path, number: int, columns: dict[str, list[int]]) -> None:
    directory.mkdir(exist_ok=True)
    pl.DataFrame(columns).write_parquet(directory / f".{number}")
    (directory / f".{number}").rename(directory / f"{number}.parquet")


def test_windows_empty_while_nothing_comes(tmp_path: Path) -> None:
    clock = Clock()
    give(tmp_path, 0, {"k": [1, 2]})
    with tidemill.connect(clock=clock) as session:
        session.sql(f"CREATE STREAM u (k BIGINT) SOURCE parquet('{tmp_path}')")
        count = session.query("SELECT COUNT(*) AS n FROM u [RANGE 10 SECONDS]")
        session.start()
        session.await_idle()
        begin = clock.now
        assert count.changes().rows() == [(2, to_datetime(begin), 1)], "it is there at once"
        clock.now += 15 * SECOND
        end = to_datetime(begin + 10 * SECOND)
        soon(lambda: count.results().rows() == [(2, to_datetime(begin), end)])
        session.await_idle()
        batches = session.progress().batches
        clock.now += 3600 * SECOND
        sleep(0.3)
        assert session.progress().batches == batches, "nothing is remembered"


def test_a_silent_stream_is_idle_after_a_while(tmp_path: Path) -> None:
    clock = Clock()
    give(tmp_path / "a", 0, {"k": [1, 1], "at": [10, 30]})
    give(tmp_path / "b", 0, {"k": [1], "at": [10]})
    with tidemill.connect(clock=clock, partitions=2) as session:
        for name, clause in {"a": "", "b": "IDLE AFTER 20 SECONDS"}.items():
            session.sql(
                f"CREATE STREAM {name} (k BIGINT, at BIGINT) "
                f"SOURCE parquet('{tmp_path / name}') ORDERED BY at {clause}"
            )
        both = session.query("SELECT k FROM a INTERSECT SELECT k FROM b")
        session.start()
        session.await_idle()
        clock.now += 15 * SECOND
        sleep(0.2)
        assert both.results().rows() == []
        clock.now += 10 * SECOND
        soon(lambda: both.results().rows() == [(1, 10, 11)])
        give(tmp_path / "b", 1, {"k": [1], "at": [20]})
        session.await_idle()
        assert session.refused().rows() == [("b", "late", 1)], "the others did not wait for it"


def test_a_stream_that_may_be_idle_does_not_go_beyond_others(tmp_path: Path) -> None:
    clock = Clock()
    give(tmp_path / "b", 0, {"k": [1], "at": [10]})
    (tmp_path / "a").mkdir()
    with tidemill.connect(clock=clock) as session:
        for name in "ab":
            session.sql(
                f"CREATE STREAM {name} (k BIGINT, at BIGINT) SOURCE parquet('{tmp_path / name}') "
                "ORDERED BY at IDLE AFTER 5 SECONDS"
            )
        session.query("SELECT k FROM a INTERSECT SELECT k FROM b")
        session.start()
        session.await_idle()
        clock.now += 100 * SECOND
        sleep(0.1)
        session.await_idle()
        assert [s.watermark for s in session.progress().streams] == [None, 10], "both are silent"
