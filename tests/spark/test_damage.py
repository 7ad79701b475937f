"""A damaged checkpoint is refused with a way on, and left as it is."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

import pytest

import tidemill
from tidemill.optimizer.planning import PLANNING
from tidemill.runtime.lock import LOCK_FILE
from tidemill.runtime.record import FORMAT, Facts
from tidemill.runtime.spark.driver.control import Control, Word
from tidemill.runtime.spark.driver.settings import SparkSettings
from tidemill.runtime.spark.io.file_log import FileLog
from tidemill.runtime.spark.state.damage import (
    entries_taken,
    require_agreement,
    require_notes_read,
    require_words,
    set_aside_torn,
)
from tidemill.runtime.spark.state.opening import open_checkpoint

if TYPE_CHECKING:
    from pathlib import Path

FACTS = {"format": FORMAT, "pids": [1, 2], "stages": 1, "planning": PLANNING.facts()}


def tree(place: Path) -> dict[str, bytes]:
    """The content of every file below a place."""
    files = (path for path in sorted(place.rglob("*")) if path.is_file())
    return {str(path.relative_to(place)): path.read_bytes() for path in files}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe{}",
        b"[]",
        b"7",
        b"{}",
        json.dumps({**FACTS, "pids": "ab"}).encode(),
        json.dumps({**FACTS, "pids": ["1", "2"]}).encode(),
        json.dumps({**FACTS, "stages": "two"}).encode(),
        json.dumps({**FACTS, "stages": True}).encode(),
        json.dumps({**FACTS, "queries": [1]}).encode(),
        json.dumps({**FACTS, "queries": {"q": {"asked": 1, "epoch": 0}}}).encode(),
        json.dumps({**FACTS, "streams": {"s": 5}}).encode(),
        json.dumps({**FACTS, "ended": "no"}).encode(),
        json.dumps({**FACTS, "unheard": 1}).encode(),
    ],
)
def test_a_damaged_record_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "tidemill.json").write_bytes(content)
    settings = SparkSettings(checkpoint=str(tmp_path))
    with pytest.raises(tidemill.RunError, match=r"is damaged: .*tidemill.json") as caught:
        open_checkpoint(settings, Facts((1,), 1, {}))
    assert caught.value.hint is not None
    assert {**tree(tmp_path), LOCK_FILE: b""} == {"tidemill.json": content, LOCK_FILE: b""}


def checkpoint(place: Path, *, begun: int, ended: int, offset: int, commit: int) -> Path:
    """A checkpoint whose logs have come so far; what Spark keeps of a log begins somewhere."""
    (place / "spark" / "offsets").mkdir(parents=True)
    (place / "spark" / "commits").mkdir()
    lines = [{"begin": b, "now": b, "watermarks": {}} for b in range(begun + 1)]
    if ended >= 0:
        lines.append({"end": ended, "watermarks": {}})
    (place / "batches.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for log, last in (("offsets", offset), ("commits", commit)):
        for batch in range(max(0, last - 2), last + 1):
            (place / "spark" / log / str(batch)).write_text("v1\n{}")
        (place / "spark" / log / ".7.tmp").write_text("unfinished")
    if offset >= 0:
        (place / "spark" / "metadata").write_text('{"id": "x"}')
    return place


@pytest.mark.parametrize(
    ("begun", "ended", "offset", "commit"),
    [
        (-1, -1, -1, -1),
        (-1, -1, 0, -1),  # killed before the first batch was computed
        (0, -1, 0, -1),  # while it was
        (0, -1, -1, -1),  # and Spark's offsets are lost with the power
        (0, 0, 0, -1),  # before Spark knew that it was done
        (0, 0, 0, 0),
        (4, 4, 5, 4),
        (5, 4, 5, 4),
        (5, 5, 5, 4),
        (5, 4, 5, 3),  # Spark's commit is lost with the power: the batch is computed again
    ],
)
def test_what_a_kill_leaves_is_no_damage(
    tmp_path: Path, begun: int, ended: int, offset: int, commit: int
) -> None:
    place = checkpoint(tmp_path, begun=begun, ended=ended, offset=offset, commit=commit)
    before = tree(place)
    require_agreement(place, has_begun=True)
    assert tree(place) == before


@pytest.mark.parametrize(
    ("ended", "offset", "commit", "part"),
    [
        (3, 5, 4, "batches.jsonl"),  # it was put back from a copy
        (-1, 5, 4, "batches.jsonl"),  # it was emptied
        (5, -1, -1, "offsets"),  # Spark would begin anew
        (5, 3, 3, "offsets"),
        (5, 4, 5, "offsets"),
        (5, 5, -1, "commits"),
        (5, 5, 2, "commits"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(
    tmp_path: Path, ended: int, offset: int, commit: int, part: str
) -> None:
    place = checkpoint(tmp_path, begun=ended, ended=ended, offset=offset, commit=commit)
    with pytest.raises(tidemill.RunError, match=f"the checkpoint is damaged: .*{part}") as caught:
        require_agreement(place, has_begun=True)
    assert caught.value.hint is not None


def test_what_the_loss_of_power_has_cut_short_is_set_aside(tmp_path: Path) -> None:
    place = checkpoint(tmp_path, begun=5, ended=4, offset=5, commit=4)
    spark = place / "spark"
    (spark / "sources" / "stream_s").mkdir(parents=True)
    (spark / "state" / "0" / "0").mkdir(parents=True)
    for name in ("sources/stream_s/6", "sources/stream_s/7", "state/0/0/1.zip", "state/0/0/3.zip"):
        (spark / name).write_text("v1")
    before = tree(place)
    set_aside_torn(place)
    assert tree(place) == before, "there is nothing to set aside"
    for name in ("sources/stream_s/7", "commits/4", "state/0/0/3.zip"):
        (spark / name).write_bytes(b"")
    set_aside_torn(place)
    changed = {name for name in tree(spark).keys() - before.keys() if ".torn" in name}
    # The batch of the offsets has not been delivered, and relies on the list that is lost.
    assert changed == {
        "commits/.4.torn",
        "offsets/.5.torn",
        "sources/stream_s/.7.torn",
        "state/0/0/.3.zip.torn",
    }
    require_agreement(place, has_begun=True)
    (spark / "offsets" / "4").write_bytes(b"")
    before = tree(place)
    set_aside_torn(place)
    assert tree(place) == before, "a batch that was delivered is no loss of power: Spark refuses it"


def test_parts_that_are_missing_are_refused(tmp_path: Path) -> None:
    require_agreement(tmp_path, has_begun=False)
    with pytest.raises(tidemill.RunError, match=r"batches.jsonl.*missing"):
        require_agreement(tmp_path, has_begun=True)
    place = checkpoint(tmp_path / "state", begun=2, ended=2, offset=2, commit=2)
    metadata = place / "spark" / "metadata"
    for content in ("", "{", "7", "{}"):
        metadata.write_text(content)
        with pytest.raises(tidemill.RunError, match="metadata"):
            require_agreement(place, has_begun=True)
    metadata.unlink()
    with pytest.raises(tidemill.RunError, match=r"metadata.*missing"):
        require_agreement(place, has_begun=True)
    (place / "batches.jsonl").unlink()
    with pytest.raises(tidemill.RunError, match=r"batches.jsonl.*missing"):
        require_agreement(place, has_begun=False)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    place = tmp_path / "in"
    place.mkdir()
    for name in "abc":
        (place / name).write_text("x")
    return place


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[:-1], "names 2 files .* at least"),
        (lambda lines: [*lines[:-1], lines[-1][:9]], "names 2 files .* at least"),
        (lambda _: [], "names 0 files"),
        (lambda lines: lines[1:], "are not numbered"),
        (lambda lines: [lines[1], lines[0], lines[2]], "are not numbered"),
        (lambda lines: [lines[0], b"\xff\xfe\n", lines[2]], "line 2"),
        (lambda lines: [*lines, b'{"number": 3}\n'], "is no line of it"),
        (lambda lines: [*lines, b"7\n"], "is no line of it"),
    ],
)
def test_a_damaged_list_of_files_is_refused(
    tmp_path: Path, source: Path, change: object, message: str
) -> None:
    assert callable(change)
    FileLog("s", source, tmp_path / "files").look()
    index = tmp_path / "files" / "index.jsonl"
    index.write_bytes(b"".join(change(index.read_bytes().splitlines(keepends=True))))
    (source / "d").write_text("new")
    with pytest.raises(tidemill.RunError, match=message) as caught:
        FileLog("s", source, tmp_path / "files").look()
    assert caught.value.hint is not None


def test_a_note_that_spark_has_read_is_not_written_again(tmp_path: Path, source: Path) -> None:
    """It would have another name, and Spark would read it again."""
    file_log = tmp_path / "files"
    for name in "def":
        FileLog("s", source, file_log).look()
        (source / name).write_text("x")
    FileLog("s", source, file_log).look()
    shutil.copytree(file_log, tmp_path / "copy")
    shutil.rmtree(file_log / "look-000000000005")
    FileLog("s", source, file_log, taken=5)
    shutil.rmtree(file_log / "look-000000000005")
    for lost, taken in (("5", 6), ("4", 0), ("3", 5)):
        shutil.rmtree(file_log)
        shutil.copytree(tmp_path / "copy", file_log)
        shutil.rmtree(file_log / f"look-{int(lost):012d}")
        with pytest.raises(tidemill.RunError, match=f'the note of file {lost} of "s" is missing'):
            FileLog("s", source, file_log, taken=taken)


def test_spark_tells_how_many_files_it_has_read(tmp_path: Path) -> None:
    log = tmp_path / "stream_s"
    assert entries_taken(log) == 0
    log.mkdir()
    assert entries_taken(log) == 0

    def line(number: int) -> str:
        path = f"file:///state/files/s/look-{0:012d}/{number:012d}.json"
        return json.dumps({"path": path, "timestamp": number, "batchId": number})

    (log / "9.compact").write_text("v1\n" + "\n".join(line(n) for n in range(10)))
    (log / "10").write_text(f"v1\n{line(10)}\n{line(11)}")
    assert entries_taken(log) == 12
    assert entries_taken(log, 9) == 10
    (log / "10").unlink()
    assert entries_taken(log) == 10


@pytest.mark.parametrize(("first", "read"), [(0, 4), (1, 3), (3, 1), (4, 0), (9, 0)])
def test_as_many_notes_are_read_as_were_planned(tmp_path: Path, first: int, read: int) -> None:
    log, offsets = tmp_path / "sources" / "stream_s", tmp_path / "offsets"
    log.mkdir(parents=True)
    offsets.mkdir()
    for number, files in enumerate([(0, 1), (2, 3), (4, 5, 6)]):  # the last for the next batch
        names = (f"file:///files/s/look-{0:012d}/{file:012d}.json" for file in files)
        (log / str(number)).write_text("v1\n" + "\n".join(json.dumps({"path": n}) for n in names))
    (offsets / "7").write_text('v2\n{}\ncontrol:{"logOffset":9}\nstream_s:{"logOffset":1}')
    require_notes_read("s", tmp_path, "stream_s", 7, first, read)
    require_notes_read("other", tmp_path, "stream_other", 7, 0, 0)
    if read:
        with pytest.raises(tidemill.RunError, match=f"read {read} .*and has found {read - 1}"):
            require_notes_read("s", tmp_path, "stream_s", 7, first, read - 1)


@pytest.mark.parametrize("content", [b"", b"\xff\n", b"{\n", b"7\n", b'{"word": "stop"}\n'])
def test_nobody_else_says_that_streams_have_ended(tmp_path: Path, content: bytes) -> None:
    Control(tmp_path).say(Word.END)
    require_words(tmp_path, list(Word))
    (tmp_path / "other.json").write_bytes(content)
    if content:
        with pytest.raises(tidemill.RunError, match=r"is damaged: .*other.json"):
            require_words(tmp_path, list(Word))


def test_a_checkpoint_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(tidemill.RunError, match=r"cannot be .*written: .*Read-only") as caught:
        Control(tmp_path).say(Word.END)
    assert caught.value.hint is not None
    shutil.rmtree(tmp_path)
