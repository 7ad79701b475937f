"""The feed: one order of files, whatever happens in between."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidemill
from spark.on_spark import MASTER
from tidemill.runtime.spark.feed import Feed

if TYPE_CHECKING:
    from pathlib import Path


def fed(feed: Feed) -> list[tuple[int, str]]:
    """The files as Spark reads them: the number and name of each."""
    entries = sorted(feed.pattern.parent.glob("look-*/*.json"), key=lambda p: p.stat().st_mtime_ns)
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
    feed = Feed("s", source, tmp_path / "feed")
    feed.look()
    (source / "a").write_text("xyz")
    (source / "d").write_text("x")
    feed.look()
    feed.look()
    assert fed(feed) == [(0, "b"), (1, "c"), (2, "a"), (3, "d")]
    assert feed.files == 4


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
        feed = Feed("s", place / "in", place / "feed")
        feed.look()
        now = fed(feed)
        assert now[: len(before)] == before
        new = [name for _, name in now[len(before) :]]
        assert new == sorted(new)
        assert [number for number, _ in now] == list(range(len(now)))
        assert {name for _, name in now} == {path.name for path in (place / "in").iterdir()}
        # It was killed before it told Spark of the last files, or while it wrote them down.
        if lost and new:
            shutil.rmtree(max((place / "feed").glob("look-*")))
        for path in (place / "feed").glob("look-*/*.json"):
            os.utime(path)  # a copy has other times
        if torn:
            with (place / "feed" / "index.jsonl").open("a") as index:
                index.write('{"number": 99, "pa')
        before = now


def test_a_place_that_is_gone_is_named(tmp_path: Path, source: Path) -> None:
    with pytest.raises(tidemill.RunError, match="there is no directory"):
        Feed("s", tmp_path / "nothing", tmp_path / "feed").look()
    with pytest.raises(tidemill.RunError, match="there is no directory"):
        Feed("s", tmp_path / "nothing" / "*.csv", tmp_path / "feed").look()
    feed = Feed("s", source, tmp_path / "feed")
    feed.look()
    source.rmdir()
    with pytest.raises(tidemill.RunError, match="there is no directory"):
        feed.look()


def test_two_names_of_a_file_are_two_files_as_in_the_local_engine(
    tmp_path: Path, source: Path
) -> None:
    (source / "a").write_text("x")
    (source / "b").symlink_to(source / "a")
    feed = Feed("s", source, tmp_path / "feed")
    feed.look()
    (source / "c").write_text("x")
    feed.look()
    assert fed(feed) == [(0, "a"), (1, "b"), (2, "c")]


def test_without_room_nothing_is_noted_by_halves(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "a").write_text("x")
    feed = Feed("s", source, tmp_path / "feed")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("tidemill.runtime.spark.feed.os.fsync", full)
        with pytest.raises(tidemill.RunError, match="cannot be noted"):
            feed.look()
    assert (tmp_path / "feed" / "index.jsonl").read_text() == ""
    feed.look()
    assert fed(feed) == [(0, "a")]


def test_a_file_that_spark_could_not_be_told_of_is_not_noted_twice(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "a").write_text("x")
    feed = Feed("s", source, tmp_path / "feed")

    def full(_old: Path, _new: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("tidemill.runtime.spark.feed.rename_durably", full)
        with pytest.raises(tidemill.RunError, match="cannot be noted"):
            feed.look()
    (source / "b").write_text("x")
    feed.look()
    assert fed(feed) == [(0, "a"), (1, "b")]
    assert len((tmp_path / "feed" / "index.jsonl").read_text().splitlines()) == 2
    again = Feed("s", source, tmp_path / "feed")
    again.look()
    assert fed(again) == fed(feed)


def test_a_file_and_a_pattern_can_be_fed(tmp_path: Path, source: Path) -> None:
    for name in ("1.csv", "2.csv", "2.txt"):
        (source / name).write_text("x")
    one = Feed("s", source / "2.csv", tmp_path / "one")
    one.look()
    assert fed(one) == [(0, "2.csv")]
    some = Feed("s", source / "*.csv", tmp_path / "some")
    some.look()
    assert fed(some) == [(0, "1.csv"), (1, "2.csv")]


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
        with tidemill.connect(engine=engine, master=MASTER) as session:
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
