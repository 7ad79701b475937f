"""The batch log of batches, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tidemill.errors import RunError
from tidemill.runtime.spark.state import batch_log as module
from tidemill.runtime.spark.state.batch_log import BatchLog, Ending

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "batches.jsonl"


def test_a_batch_that_is_replayed_finds_what_it_found(path: Path) -> None:
    batch_log = BatchLog(path)
    first = batch_log.begin(0)
    batch_log.end(0, Ending({"s": 5}))
    second = batch_log.begin(1)
    batch_log.end(1, Ending({"s": 7, "t": 1}))
    assert (first.watermarks, second.watermarks) == ({}, {"s": 5})
    assert second.now >= first.now
    for again in (batch_log, BatchLog(path), BatchLog(path)):
        assert [again.begin(0), again.begin(1)] == [first, second]
    assert BatchLog(path).begin(2).watermarks == {"s": 7, "t": 1}


def test_a_batch_that_failed_after_its_end_was_noted_ends_again(path: Path) -> None:
    batch_log = BatchLog(path)
    batch_log.end(0, Ending({"s": 5}))
    batch_log.end(1, Ending({"s": 9}))
    replayed = BatchLog(path)
    assert replayed.begin(1).watermarks == {"s": 5}
    replayed.end(1, Ending({"s": 9}))
    assert replayed.begin(2).watermarks == {"s": 9}


def test_a_stream_of_which_nothing_came_is_where_it_was(path: Path) -> None:
    batch_log = BatchLog(path)
    batch_log.end(0, Ending({"s": 5, "t": 3}))
    batch_log.end(1, Ending({"t": 4}))
    batch_log.end(2, Ending({}))
    assert batch_log.begin(3).watermarks == {"s": 5, "t": 4}


def test_time_does_not_run_backwards_and_no_two_batches_have_the_same(path: Path) -> None:
    assert BatchLog(path, lambda: 1000).begin(0).now == 1000
    assert BatchLog(path, lambda: 7).begin(1).now == 1001
    assert BatchLog(path, lambda: 1001).begin(2).now == 1002
    assert BatchLog(path, lambda: 2000).begin(3).now == 2000


def test_files_are_read_for_good_when_the_next_batch_begins(path: Path) -> None:
    batch_log = BatchLog(path)
    assert (batch_log.committed, batch_log.delivered, batch_log.latest) == ({}, {}, (-1, 0))
    batch_log.begin(0)
    batch_log.end(0, Ending({}, {"s": 3}))
    for again in (batch_log, BatchLog(path)):
        assert (again.committed, again.delivered) == ({}, {"s": 3})
    assert batch_log.begin(1).files == {"s": 3}
    batch_log.end(1, Ending({}, {"t": 1}))
    for again in (batch_log, BatchLog(path)):
        assert (again.committed, again.delivered) == ({"s": 3}, {"s": 3, "t": 1})


def test_a_batch_knows_which_queries_have_run_when_it_begins(path: Path) -> None:
    batch_log = BatchLog(path)
    assert batch_log.begin(0).ran == -1
    batch_log.end(0, Ending({}))
    assert batch_log.begin(1).ran == -1, "a batch that has brought nothing has stepped nobody"
    batch_log.end(1, Ending({}, ran=2))
    batch_log.end(2, Ending({}, ran=0))
    for again in (batch_log, BatchLog(path)):
        assert [again.begin(batch).ran for batch in range(4)] == [-1, -1, 2, 2]
    # A batch that is replayed after queries have come expects what it expected.
    batch_log.end(1, Ending({}, ran=3))
    assert (batch_log.begin(1).ran, batch_log.begin(9).ran) == (-1, 3)


def test_an_epoch_is_a_number(path: Path) -> None:
    path.write_text('{"begin": 0, "now": 7, "watermarks": {}, "files": {}, "ran": "x"}\n')
    with pytest.raises(RunError, match=r"the checkpoint is damaged: .*batches.jsonl"):
        BatchLog(path)


@pytest.mark.parametrize("rest", ["", '{"begin": 1', '{"begin": 1, "now": 8', "\0\0"])
def test_a_line_that_was_cut_short_is_of_a_batch_that_was_not_computed(
    path: Path, rest: str
) -> None:
    begin = '{"begin": 0, "now": 7, "watermarks": {}, "files": {}}'
    end = '{"end": 0, "watermarks": {"s": 2}, "files": {}, "known": {}}'
    path.write_text(f"{begin}\n{end}\n{rest}", encoding="utf-8")
    batch_log = BatchLog(path)
    assert batch_log.begin(0).now == 7
    assert batch_log.begin(1).now > 7
    assert batch_log.begin(1).watermarks == {"s": 2}
    assert BatchLog(path).begin(1) == batch_log.begin(1)


@pytest.mark.parametrize("line", [b"7", b'{"a": 1}', b"{", b"\xff\xfe", b'{"end": 0}'])
@pytest.mark.parametrize("after", [b"", b'{"begin": 1, "now": 8, "watermarks": {}}\n'])
def test_a_line_that_is_no_line_is_damage(path: Path, line: bytes, after: bytes) -> None:
    written = b'{"begin": 0, "now": 7, "watermarks": {}}\n' + line + b"\n" + after
    path.write_bytes(written)
    with pytest.raises(RunError, match=r"the checkpoint is damaged: .*batches.jsonl") as caught:
        BatchLog(path)
    assert caught.value.hint is not None
    assert path.read_bytes() == written, "nothing is changed"


def test_only_the_latest_batches_are_remembered(path: Path) -> None:
    batch_log = BatchLog(path)
    for batch in range(1500):
        batch_log.end(batch, Ending({"s": batch}))
    assert BatchLog(path).begin(1499).watermarks == {"s": 1498}
    assert len(path.read_text(encoding="utf-8").splitlines()) == 1001


def test_the_file_does_not_grow_for_ever(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEPT", 10)
    batch_log = BatchLog(path)
    for batch in range(100):
        batch_log.end(batch, Ending({"s": batch}))
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 41
        assert batch_log.begin(batch).watermarks == ({"s": batch - 1} if batch else {})
    assert BatchLog(path).begin(100).watermarks == {"s": 99}
