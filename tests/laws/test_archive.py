"""An archive holds the rows of the batches that are done, each once, from ``since`` on.

Batches are added, one of them perhaps again, too old ones are forgotten, small ones are put
together, and the archive is opened anew, also after a kill between two of its writes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.catalog.entries import Kept, StreamEntry
from tidemill.history import archive as archives
from tidemill.history.archive import Archive, read_entries
from tidemill.history.pieces import Entry, Piece, joined, pieces_of
from tidemill.lang.statements import ConnectorCall, Name
from tidemill.model.batch import END, ID, START
from tidemill.model.schema import Field, Schema
from tidemill.model.time import Time
from tidemill.model.types import BIGINT
from tidemill.runtime.archive_files import ArchiveFiles, archive_place
from tidemill.runtime.archives import KeptStreams

if TYPE_CHECKING:
    from collections.abc import Sequence

STREAM = StreamEntry(
    "s",
    Schema((Field("a", BIGINT), Field("t", BIGINT, nullable=False))),
    ConnectorCall(Name("parquet"), ("in",)),
    "t",
    0,
    keep=Kept(),
)

Rows = list[tuple[int, int]]
"""Values and times."""


class KilledError(Exception):
    """The process ends here."""


class Dying(ArchiveFiles):
    """Files that can be written so often, and then the process is killed."""

    left: int | None = None

    def _spend(self) -> None:
        if self.left is not None:
            if self.left == 0:
                raise KilledError
            self.left -= 1

    def put(self, name: str, rows: pl.DataFrame) -> None:
        self._spend()
        super().put(name, rows)

    def append(self, line: str) -> None:
        self._spend()
        super().append(line)

    def rewrite(self, lines: Sequence[str]) -> None:
        self._spend()
        super().rewrite(lines)

    def remove(self, names: object) -> None:
        self._spend()
        super().remove(names)  # type: ignore[arg-type]


def frame(rows: Rows, batch: int) -> pl.DataFrame:
    times = pl.Series([t for _, t in rows], dtype=pl.Int64)
    ids = pl.int_range(batch * 100, batch * 100 + len(rows), eager=True)
    values = pl.Series([a for a, _ in rows], dtype=pl.Int64)
    return pl.DataFrame({"a": values, "t": times, START: times, END: times + 1, ID: ids})


def held(archive: Archive) -> list[tuple[int, int]]:
    """The rows that are there from ``since`` on."""
    found = [row for batch in archive.rows(archive.since, Time(10**6)) for row in batch.rows()]
    return sorted((row[0], row[1]) for row in found)


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("add"),
            st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=4),
        ),
        st.tuples(st.just("again"), st.just([])),
        st.tuples(st.just("forget"), st.integers(0, 60)),
        st.tuples(st.just("merge"), st.integers(0, 60)),
        st.tuples(st.just("open"), st.just([])),
    ),
    max_size=20,
)


@settings(max_examples=2 * settings().max_examples)
@given(steps=STEPS, dies=st.none() | st.integers(0, 12))
def test_the_rows_of_all_batches_that_are_done_are_there(
    steps: list[tuple[str, object]], dies: int | None
) -> None:
    with (
        TemporaryDirectory() as place,
        patch.object(archives, "_LEAST_REMOVED", 1),
        patch.object(archives, "_FEW", 6),
    ):
        _tell(Path(place), steps, dies)


def _tell(place: Path, steps: list[tuple[str, object]], dies: int | None) -> None:
    store = Dying(place, STREAM)
    archive = Archive(store, "digest", done=0, since=Time(0))
    done: dict[int, Rows] = {}
    forgotten = 0
    store.left = dies
    for step in steps:
        number = len(done)
        try:
            match step:
                case "add", list(drawn):
                    rows = [(a, 5 * number + t) for a, t in drawn]
                    _add(store, archive, number, rows)
                    done[number] = rows
                case "again", _ if done:
                    _add(store, archive, number - 1, done[number - 1])
                case "forget", int(first):
                    forgotten = max(forgotten, first)
                    archive.forget(Time(first), batch=number, least=1)
                case "merge", int(first):
                    forgotten = max(forgotten, first)
                    archive.merge(Time(first), least=2)
                case "open", _:
                    archive = Archive(store, "digest", done=number, since=Time(0))
                case _:
                    continue
        except KilledError:
            store = Dying(place, STREAM)  # the batch that was being added is not done
            archive = Archive(store, "digest", done=number, since=Time(0))
        everything = [row for rows in done.values() for row in rows]
        assert archive.since <= forgotten, "no more is gone than was to go"
        assert held(archive) == sorted(row for row in everything if row[1] >= archive.since)
    again = Archive(Dying(place, STREAM), "digest", done=len(done), since=Time(0))
    assert (again.since, held(again)) == (archive.since, held(archive))
    named = {f"{p.name}.parquet" for entry in again.entries for p in entry.pieces}
    assert {path.name for path in place.iterdir()} == named | {"kept.jsonl"}


def _add(store: ArchiveFiles, archive: Archive, number: int, rows: Rows) -> None:
    written, name = frame(rows, number), f"{number:012d}-0"
    store.put(name, written)
    archive.add(Entry(number, 5 * number + 9, tuple(pieces_of(name, written, most=2))))


@settings(max_examples=2 * settings().max_examples)
@given(
    steps=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20), st.booleans()), max_size=25),
    length=st.sampled_from([0, 7, 40, None]),
)
def test_a_step_that_is_not_done_takes_nothing_with_it(
    steps: list[tuple[int, int, bool]], length: int | None
) -> None:
    """Rows go, and are put together, of steps that are done only: this one may be taken again."""
    with (
        TemporaryDirectory() as place,
        patch.object(archives, "_LEAST_REMOVED", 1),
        patch.object(archives, "_LEAST_MERGED", 2),
        patch.object(archives, "_FEW", 9),
    ):
        _step_by_step(Path(place), steps, Kept(length))


def _step_by_step(place: Path, steps: list[tuple[int, int, bool]], keep: Kept) -> None:
    stream = replace(STREAM, keep=keep)
    done: dict[int, Rows] = {}
    mark = 0

    def opened() -> KeptStreams:
        kept = KeptStreams(place)
        kept.open({"s": stream}, {}, len(done))
        return kept

    kept = opened()
    for count, far, is_killed in steps:
        number, before = len(done), mark
        rows = [(n, before + far + n) for n in range(count)]
        mark = max([before, *(time for _, time in rows)])
        pieces: list[Piece] = []
        if rows:
            name, written = f"{number:012d}-0", frame(rows, number)
            ArchiveFiles(archive_place(place, "s"), stream).put(name, written)
            pieces = pieces_of(name, written, most=2)
        kept.add({"s": Entry(number, mark, tuple(pieces))} if pieces else {}, {"s": mark})
        reader = _reader(place, stream)
        for boundary in range(number + 1):
            _has_all_or_straddles(reader, boundary, done)
        if is_killed:  # before it is done
            mark, kept = before, opened()
        else:
            done[number] = rows
        archive = kept.by_stream["s"]
        everything = [row for some in done.values() for row in some]
        assert archive.since <= keep.first(before), "no more is gone than may go"
        there = [row for row in held(archive) if row[1] >= archive.since]
        if is_killed:
            assert there == sorted(row for row in everything if row[1] >= archive.since)


def _reader(place: Path, stream: StreamEntry) -> tuple[Time, list[Entry], ArchiveFiles]:
    files = ArchiveFiles(archive_place(place, "s"), stream)
    since, entries = read_entries(files.lines())
    return since, entries, files


def _has_all_or_straddles(
    reader: tuple[Time, list[Entry], ArchiveFiles], done: int, committed: dict[int, Rows]
) -> None:
    """What somebody finds in the list who has read an earlier boundary before."""
    since, entries, files = reader
    if any(entry.straddles(done) for entry in entries):
        return  # then he reads the boundary again
    counted = [piece for entry in entries if entry.batch < done for piece in entry.pieces]
    found = [row for piece in counted for row in files.get(piece).rows()]
    rows = [row for number, some in committed.items() if number < done for row in some]
    assert sorted((row[0], row[1]) for row in found if row[1] >= since) == sorted(
        row for row in rows if row[1] >= since
    )


@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6), most=st.integers(1, 4))
def test_pieces_that_follow_each_other_are_joined(sizes: list[int], most: int) -> None:
    pieces: list[Piece] = []
    for number, size in enumerate(sizes):
        rows = frame([(0, t) for t in range(size)], number)
        pieces += pieces_of(f"f{number}", rows, most=most)
    assert all(piece.rows <= most for piece in pieces)
    assert [(p.name, p.skip, p.rows) for p in joined(pieces)] == [
        (f"f{number}", 0, size) for number, size in enumerate(sizes)
    ]


def test_many_small_batches_become_few_files(tmp_path: Path) -> None:
    store = ArchiveFiles(tmp_path, STREAM)
    archive = Archive(store, "digest", done=0, since=Time(0))
    for number in range(1000):
        _add(store, archive, number, [(1, 5 * number)])
        archive.merge(Time(0))
    assert len(list(tmp_path.iterdir())) <= 66
    assert len(held(archive)) == 1000


@pytest.mark.parametrize("most", [1, 7])
def test_what_is_kept_for_a_time_does_not_grow(tmp_path: Path, most: int) -> None:
    store = ArchiveFiles(tmp_path, STREAM)
    archive = Archive(store, "digest", done=0, since=Time(0))
    for number in range(600):
        _add(store, archive, number, [(1, 5 * number)] * most)
        first = Time(max(5 * number - 100, 0))
        archive.forget(first, batch=number + 1)
        archive.merge(first)
    assert sum(entry.rows for entry in archive.entries) <= (20 + 64 + 20) * most
