"""The cache of segments: bounded, and never believed when it is damaged. No Spark is needed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import polars as pl

from tidemill.runtime.spark.cache import Cache

if TYPE_CHECKING:
    from pathlib import Path

FRAME = pl.DataFrame({"k": [1, 2], "wide": pl.Series([2**80, None], dtype=pl.Int128)})


def test_a_segment_is_read_as_it_was_written(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", limit=1 << 20)
    blob = cache.write("a", FRAME)
    narrow = FRAME.select("k")
    cache.write("b", narrow)
    for name, frame in (("a", FRAME), ("b", narrow)):
        found = cache.read(name)
        assert found is not None
        assert found.equals(frame)
    assert cache.restore("c", blob).equals(FRAME)
    cache.remove("a")
    assert cache.read("a") is None


def test_a_damaged_file_is_not_believed(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=1 << 20)
    for name, frame in (("a", FRAME), ("b", FRAME.select("k"))):
        blob = cache.write(name, frame)
        (tmp_path / name).write_bytes(blob[: len(blob) // 2])
        assert cache.read(name) is None


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    size = len(Cache(tmp_path, limit=1 << 20).write("a", FRAME))
    Cache(tmp_path, limit=1 << 20).write("b", FRAME)
    os.utime(tmp_path / "a", (1000, 1000))
    Cache(tmp_path, limit=2 * size).write("c", FRAME)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "c"]
