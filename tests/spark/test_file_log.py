"""The file log: one order of files, whatever happens in between."""

from __future__ import annotations

import json
import os
import shutil
from time import time
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidemill
from spark.on_spark import MASTER
from tidemill.runtime.settling import Settling
from tidemill.runtime.spark.io.file_log import FileLog

if TYPE_CHECKING:
    from pathlib import Path


def fed(file_log: FileLog) -> list[tuple[int, str]]:
    """The files as Spark reads them: the number and name of each."""
    entries = sorted(file_log.directory.glob("look-*/*.json"), key=lambda p: p.stat().st_mtime_ns)
    found = [json.loads(path.read_text()) for path in entries]
    return [(entry["number"], entry["path"].rpartition("/")[2]) for entry in found]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    directory = tmp_path / "in"
    directory.mkdir()
    return directory


def test_files_found_together_come_by_name_and_later_ones_later(
    tmp_path: Path, source: Path
) -> None:
    for name in ("b", "c", ".hidden", "_index"):
        (source / name).write_text("x")
    os.utime(source / "c", (1, 1))
    file_log = FileLog("s", source, tmp_path / "files")
    file_log.look()
    (source / "a").write_text("xyz")
    (source / "d").write_text("x")
    file_log.look()
    file_log.look()
    assert fed(file_log) == [(0, "b"), (1, "c"), (2, "a"), (3, "d")]
    assert file_log.files == 4


@given(
    rounds=st.lists(st.sets(st.integers(0, 30), max_size=4), max_size=5),
    lost=st.booleans(),
    torn=st.booleans(),
)
def test_a_feed_that_was_killed_goes_on(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[set[int]], *, lost: bool, torn: bool
) -> None:
    place = tmp_path_factory.mktemp("feed")
    (place / "in").mkdir()
    before: list[tuple[int, str]] = []
    for names in rounds:
        for name in names:
            (place / "in" / f"{name:02d}").write_text("x")
        file_log = FileLog("s", place / "in", place / "files")
        file_log.look()
        now = fed(file_log)
        assert now[: len(before)] == before
        new = [name for _, name in now[len(before) :]]
        assert new == sorted(new)
        assert [number for number, _ in now] == list(range(len(now)))
        assert {name for _, name in now} == {path.name for path in (place / "in").iterdir()}
        # It was killed before it told Spark of the last files, or while it wrote them down.
        if lost and new:
            shutil.rmtree(max((place / "files").glob("look-*")))
        for path in (place / "files").glob("look-*/*.json"):
            os.utime(path)  # a copy has other times
        if torn:
            with (place / "files" / "index.jsonl").open("a") as index:
                index.write('{"number": 99, "pa')
        before = now


def test_a_place_that_is_gone_is_named(tmp_path: Path, source: Path) -> None:
    with pytest.raises(tidemill.RunError, match="there is no directory"):
        FileLog("s", tmp_path / "nothing", tmp_path / "files").look()
    with pytest.raises(tidemill.RunError, match="there is no directory"):
        FileLog("s", tmp_path / "nothing" / "*.csv", tmp_path / "files").look()
    file_log = FileLog("s", source, tmp_path / "files")
    file_log.look()
    source.rmdir()
    with pytest.raises(tidemill.RunError, match="there is no directory"):
        file_log.look()


def test_two_names_of_a_file_are_two_files_as_in_the_local_engine(
    tmp_path: Path, source: Path
) -> None:
    (source / "a").write_text("x")
    (source / "b").symlink_to(source / "a")
    file_log = FileLog("s", source, tmp_path / "files")
    file_log.look()
    (source / "c").write_text("x")
    file_log.look()
    assert fed(file_log) == [(0, "a"), (1, "b"), (2, "c")]


def test_without_room_nothing_is_noted_by_halves(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "a").write_text("x")
    file_log = FileLog("s", source, tmp_path / "files")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("tidemill.runtime.spark.io.file_log.os.fsync", full)
        with pytest.raises(tidemill.RunError, match="cannot be noted"):
            file_log.look()
    assert (tmp_path / "files" / "index.jsonl").read_text() == ""
    file_log.look()
    assert fed(file_log) == [(0, "a")]


def test_a_file_that_spark_could_not_be_told_of_is_not_noted_twice(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "a").write_text("x")
    file_log = FileLog("s", source, tmp_path / "files")

    def full(_old: Path, _new: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("tidemill.runtime.spark.io.file_log.rename_durably", full)
        with pytest.raises(tidemill.RunError, match="cannot be noted"):
            file_log.look()
    (source / "b").write_text("x")
    file_log.look()
    assert fed(file_log) == [(0, "a"), (1, "b")]
    assert len((tmp_path / "files" / "index.jsonl").read_text().splitlines()) == 2
    again = FileLog("s", source, tmp_path / "files")
    again.look()
    assert fed(again) == fed(file_log)


def test_a_file_and_a_pattern_can_be_fed(tmp_path: Path, source: Path) -> None:
    for name in ("1.csv", "2.csv", "2.txt"):
        (source / name).write_text("x")
    one = FileLog("s", source / "2.csv", tmp_path / "one")
    one.look()
    assert fed(one) == [(0, "2.csv")]
    some = FileLog("s", source / "*.csv", tmp_path / "some")
    some.look()
    assert fed(some) == [(0, "1.csv"), (1, "2.csv")]


def write(path: Path, text: str, *, ago: float = 0) -> None:
    path.write_text(text)
    changed = time() - ago
    os.utime(path, (changed, changed))


def test_a_file_that_may_still_be_written_waits_and_those_behind_it(
    tmp_path: Path, source: Path
) -> None:
    file_log = FileLog("s", source, tmp_path / "files", settle=5)
    for name, ago in {"a": 9, "b": 0, "c": 9}.items():
        write(source / name, "x", ago=ago)
    file_log.look()
    assert fed(file_log) == [(0, "a")]
    assert [path.rpartition("/")[2] for path in file_log.waiting] == ["b", "c"]
    write(source / "aa", "x", ago=9)  # found later, so it comes later
    file_log.look()
    assert fed(file_log) == [(0, "a")]
    write(source / "b", "xy", ago=9)
    file_log.look()
    assert fed(file_log) == [(0, "a"), (1, "b"), (2, "c"), (3, "aa")]
    assert file_log.waiting == file_log.warnings() == ()


def test_a_file_that_goes_on_growing_is_named(tmp_path: Path, source: Path) -> None:
    now = [1000.0]
    file_log = FileLog("s", source, tmp_path / "files", settle=1)
    file_log._settling = Settling(1, clock=lambda: now[0], steady=lambda: now[0])  # noqa: SLF001
    (source / "b").write_text("x")
    for seconds in range(7):
        now[0] = 1000.0 + seconds / 2
        (source / "a").write_text("x" * seconds)
        os.utime(source / "a", (now[0], now[0]))
        file_log.look()
        assert file_log.warnings() == ()
    now[0] += 3
    (source / "a").write_text("y")
    os.utime(source / "a", (now[0], now[0]))
    file_log.look()
    assert file_log.warnings() == (
        f'file "{source / "a"}" is still being written, and 1 more wait for it',
    )
    assert file_log.files == 0


def test_a_file_that_is_gone_is_not_waited_for(tmp_path: Path, source: Path) -> None:
    file_log = FileLog("s", source, tmp_path / "files", settle=5)
    write(source / "a", "x")
    write(source / "b", "x", ago=9)
    file_log.look()
    assert file_log.files == 0
    (source / "a").unlink()
    file_log.look()
    assert fed(file_log) == [(0, "b")]


@given(
    actions=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(["write", "append", "wait", "look", "kill"])),
        max_size=30,
    )
)
def test_whatever_is_taken_was_quiet_for_long_enough(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[int, str]]
) -> None:
    """Files are written in parts, at any time; the clock is that of their times of change."""
    place = tmp_path_factory.mktemp("feed")
    source = place / "in"
    source.mkdir()
    now, settle, changed, taken = 1000.0, 2.0, dict[str, float](), dict[str, int]()

    def new_log() -> FileLog:
        file_log = FileLog("s", source, place / "files", settle=settle)
        file_log._settling = Settling(settle, clock=lambda: now, steady=lambda: now)  # noqa: SLF001
        return file_log

    file_log = new_log()
    for number, action in [*actions, (9, "wait"), (9, "wait"), (0, "look")]:
        path = source / str(number)
        if action in ("write", "append") and path.name not in taken:
            with path.open("a" if action == "append" else "w") as file:
                file.write("x" * (len(changed) + 1))
            os.utime(path, (now, now))
            changed[path.name] = now
        elif action == "wait":
            now += 1
        elif action == "look":
            file_log.look()
            for found, name in fed(file_log):
                assert taken.setdefault(name, found) == found, "a file has one number"
                assert now - changed[name] >= settle, "it was quiet"
        elif action == "kill":
            file_log = new_log()
    assert taken.keys() == changed.keys(), "in the end all are read"
    assert file_log.changes == 0


def test_a_file_that_changes_after_it_was_taken_is_reported(tmp_path: Path, source: Path) -> None:
    file_log = FileLog("s", source, tmp_path / "files")
    for name in "abc":
        write(source / name, "x", ago=9)
    file_log.look()
    assert file_log.warnings() == ()
    write(source / "b", "xy", ago=9)
    (source / "c").unlink()  # to tidy up loses nothing
    for again in (file_log, FileLog("s", source, tmp_path / "files", delivered=3)):
        again.look()
        again.look()
        (warning,) = again.warnings()
        assert f'file "{source / "b"}" has changed after it was taken' in warning
        assert again.changes == 1
        assert again.files == 3


def test_all_changes_are_found_though_few_files_are_looked_at(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemill.runtime.spark.io.file_log._RECENT", 2)
    monkeypatch.setattr("tidemill.runtime.spark.io.file_log._OTHERS", 3)
    monkeypatch.setattr("tidemill.runtime.spark.io.file_log._TOLD", 4)
    file_log = FileLog("s", source, tmp_path / "files")
    for number in range(20):
        write(source / f"{number:02d}", "x", ago=9)
    file_log.look()
    for path in source.iterdir():
        write(path, "xy", ago=9)
    for _ in range(6):
        file_log.look()
    assert file_log.changes == 20
    assert len(file_log.warnings()) == 5
    assert file_log.warnings()[-1] == "… and 16 more files have changed"


def test_a_file_of_which_nothing_was_delivered_is_taken_as_it_is(
    tmp_path: Path, source: Path
) -> None:
    file_log = FileLog("s", source, tmp_path / "files")
    for name in "ab":
        write(source / name, "x", ago=9)
        file_log.look()
    for name in "ab":
        write(source / name, "better", ago=9)
    for _ in range(2):
        file_log = FileLog("s", source, tmp_path / "files", committed=1, delivered=1)
        file_log.look()
        assert fed(file_log)[-1] == (1, "b")
        (entry,) = (tmp_path / "files").glob("look-*1/*.json")
        assert json.loads(entry.read_text())["size"] == len("better")
        (warning,) = file_log.warnings()
        assert str(source / "a") in warning


def test_a_file_that_is_still_written_is_not_taken_anew(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(source / "a", "x", ago=9)
    FileLog("s", source, tmp_path / "files").look()
    write(source / "a", "some")

    def meanwhile(_: float) -> None:
        write(source / "a", "some more")

    monkeypatch.setattr("tidemill.runtime.settling.sleep", meanwhile)
    with pytest.raises(tidemill.RunError, match="is still being written"):
        FileLog("s", source, tmp_path / "files", settle=60)


def test_what_spark_has_read_for_good_is_removed_and_does_not_come_back(
    tmp_path: Path, source: Path
) -> None:
    file_log = FileLog("s", source, tmp_path / "files")
    for number in range(6):
        write(source / f"{number}", "x")
        file_log.look()
        file_log.forget(number)
        assert len(fed(file_log)) <= 2
    for committed in (5, 5, 6, 6):
        file_log = FileLog("s", source, tmp_path / "files", committed=committed, delivered=6)
        file_log.look()
        assert fed(file_log) == [(5, "5")]
    write(source / "6", "x")
    file_log.look()
    assert fed(file_log) == [(5, "5"), (6, "6")]
    assert file_log.files == 7


@pytest.mark.spark
@pytest.mark.soak
def test_thousands_of_files_are_each_read_once_and_leave_nothing_behind(
    tmp_path: Path, source: Path
) -> None:
    """More than Spark remembers, waiting at the first start, and over restarts."""
    out, state, total = tmp_path / "out", tmp_path / "state", 0

    def session() -> tidemill.Session:
        made = tidemill.connect(engine="spark", master=MASTER, checkpoint=state, partitions=1)
        made.sql(
            "CREATE STREAM s (k BIGINT, t BIGINT) "
            f"SOURCE csv('{source}', files_per_batch => 300) ORDERED BY t"
        )
        made.sql(f"CREATE QUERY q INTO parquet('{out}') AS SELECT k FROM s")
        return made

    for files in (1200, 1):
        for number in range(total, total + files):
            (source / f"{number:05d}.csv").write_text(f"k,t\n{number},{number}\n")
        total += files
        with session() as first:
            first.run()
    with session() as last:
        last.start()
        for number in range(total, total + 4):
            (source / f"{number:05d}.csv").write_text(f"k,t\n{number},{number}\n")
            last.await_idle()
    total += 4
    rows = pl.read_parquet(out / "**/*.parquet")["k"].to_list()
    assert sorted(rows) == list(range(total))
    entries = list((state / "files").rglob("look-*/*.json"))
    assert 0 < len(entries) <= 2
    assert not list((state / "files").rglob(".*"))


def on_spark() -> tidemill.Session:
    return tidemill.connect(engine="spark", master=MASTER)


@pytest.mark.spark
def test_the_name_of_a_checkpoint_is_no_pattern(tmp_path: Path, source: Path) -> None:
    state = tmp_path / "run*[1]{a,b}"
    for last in (1, 2):
        write(source / f"{last}.csv", f"a\n{last}\n", ago=9)
        with tidemill.connect(engine="spark", master=MASTER, checkpoint=state) as session:
            session.put("f", pl.DataFrame({"a": [7]}))
            session.sql(f"CREATE STREAM s (a BIGINT) SOURCE csv('{source}') ORDERED BY a")
            session.sql("CREATE STREAM m (a BIGINT) SOURCE memory('f') ORDERED BY a")
            files, frame = session.sql("SELECT a FROM s"), session.sql("SELECT a FROM m")
            assert isinstance(files, tidemill.Query)
            assert isinstance(frame, tidemill.Query)
            session.run(end=False)
            assert files.results()["a"].to_list() == [last]
            assert frame.results()["a"].to_list() == [7][last - 1 :]


@pytest.mark.spark
def test_files_come_by_name_whenever_they_were_written_and_however_many_make_a_batch(
    source: Path,
) -> None:
    for number in range(6):
        rows = pl.DataFrame({"k": [number, -number], "t": [number // 2 * 10] * 2})
        rows.write_parquet(source / f"{number}.parquet")
        os.utime(source / f"{number}.parquet", (1000 - number,) * 2)
    found = []
    for engine, files in (("local", 1), ("spark", 1), ("spark", 4)):
        connected = tidemill.connect() if engine == "local" else on_spark()
        with connected as session:
            session.sql(
                "CREATE STREAM s (k BIGINT, t BIGINT) "
                f"SOURCE parquet('{source}', files_per_batch => {files}) ORDERED BY t"
            )
            # Of the four rows of an instant, the last two are in the window.
            query = session.sql("SELECT k FROM s [ROWS 2]")
            assert isinstance(query, tidemill.Query)
            session.run()
            found.append(query.results().rows())
            (stream,) = session.progress().streams
            assert stream.refused == 0
    assert found[0] == found[1] == found[2]
    assert {row[0] for row in found[0]} == {1, -1, 3, -3, 5, -5}


def test_files_that_are_skipped_are_not_read_whatever_happens(source: Path, tmp_path: Path) -> None:
    """A query begins later than others: it begins with what comes from now on."""
    for name in ("a", "b"):
        (source / name).write_text(name)
    for _ in range(2):  # the start may be killed after it, and repeated
        file_log = FileLog("s", source, tmp_path / "files")
        file_log.skip()
        assert (file_log.files, file_log.skipped, told(tmp_path)) == (2, 2, [])
        assert file_log.warnings() == (
            "2 files that came before the queries began will not be read",
        )
    (source / "0").write_text("0")
    file_log.look()
    assert told(tmp_path) == [(2, "0")]
    again = FileLog("s", source, tmp_path / "files", taken=3, committed=3, delivered=3)
    assert told(tmp_path) == [(2, "0")]
    # Everybody who has read it has gone, and another query reads it again.
    (source / "c").write_text("c")
    again.skip()
    (source / "d").write_text("d")
    again.look()
    assert told(tmp_path) == [(4, "d")]
    # It is known how far it was read before.
    (source / "e").write_text("e")
    again.look()
    last = FileLog("s", source, tmp_path / "files", taken=5, committed=4, delivered=5)
    last.skip(5)
    assert told(tmp_path) == [(5, "e")]


def told(place: Path) -> list[tuple[int, str]]:
    """What Spark is told: the numbers and names of files."""
    lines = (json.loads(path.read_text()) for path in (place / "files").glob("look-*/*.json"))
    return sorted((line["number"], line["path"].rpartition("/")[2]) for line in lines)
