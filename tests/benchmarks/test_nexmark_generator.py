"""What the benchmark adds to the generator: the relation of query 13, and a day that changes."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import polars as pl
from polars.testing import assert_frame_equal

from benchmarks.nexmark.generator import around_midnight, side_input, write
from tidemill.demo.nexmark import BEGIN

if TYPE_CHECKING:
    from pathlib import Path


def test_the_relation_is_written_beside_the_streams(tmp_path: Path) -> None:
    site = around_midnight(1_000, 3, rate=100)
    write(tmp_path, site, files=2)
    assert_frame_equal(pl.read_parquet(tmp_path / "side" / "*.parquet"), side_input())
    for name, rows in site.streams().items():
        assert_frame_equal(pl.read_parquet(tmp_path / name / "*.parquet"), rows)


def test_the_day_changes_half_way() -> None:
    bid = around_midnight(1_000, 3, rate=100).streams()["bid"]
    is_next = bid["date_time"] >= BEGIN + timedelta(days=1)
    assert is_next.mean() == 0.5
