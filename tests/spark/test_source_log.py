"""Spark's log of files is kept short, without Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tidemill.runtime.spark.io.source_log import shorten

if TYPE_CHECKING:
    from pathlib import Path


def log(directory: Path, name: str, entries: list[tuple[int, int]], version: str = "v1") -> Path:
    directory.mkdir(exist_ok=True)
    lines = [
        json.dumps({"path": f"file:///files/{n:012d}.json", "timestamp": n, "batchId": batch})
        for n, batch in entries
    ]
    path = directory / name
    path.write_text("\n".join([version, *lines]))
    return path


def numbers(path: Path) -> list[int]:
    return [json.loads(line)["timestamp"] for line in path.read_text().splitlines()[1:]]


def test_the_last_files_stay_in_the_last_log(tmp_path: Path) -> None:
    entries = [(n, n) for n in range(3000)]
    old = log(tmp_path / "stream_s", "2989.compact", entries[:2990])
    new = log(tmp_path / "stream_s", "2999.compact", entries)
    other = log(tmp_path / "stream_t", "2999.compact", entries)
    crc = tmp_path / "stream_s" / ".2999.compact.crc"
    crc.write_text("x")
    for _ in range(2):
        shorten(tmp_path, ["stream_s", "stream_u"])
        assert new.read_text().startswith("v1\n{")
        assert numbers(new) == list(range(2799, 3000))
        assert not crc.exists()
    assert len(numbers(old)) == 2990
    assert len(numbers(other)) == 3000


def test_all_files_of_the_last_batches_stay(tmp_path: Path) -> None:
    path = log(tmp_path / "s", "99.compact", [(n, n // 100) for n in range(10_000)])
    shorten(tmp_path, ["s"])
    assert numbers(path) == list(range(7900, 10_000))


def test_a_log_that_looks_otherwise_is_left_alone(tmp_path: Path) -> None:
    path = log(tmp_path / "s", "99.compact", [(n, n) for n in range(3000)], version="v2")
    shorten(tmp_path, ["s"])
    assert len(numbers(path)) == 3000
