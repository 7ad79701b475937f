"""Who reads an answer while a batch is delivered sees the batch before, whole, or an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill
from tidemill.runtime.local import delivering

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidemill.model.batch import Batch
    from tidemill.runtime.local.delivering import LocalSink


@pytest.mark.parametrize("checkpoint", [False, True])
def test_what_is_not_written_yet_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, checkpoint: bool
) -> None:
    source = tmp_path / "in"
    source.mkdir()
    session = tidemill.connect(checkpoint=str(tmp_path / "state") if checkpoint else None)
    session.sql(f"CREATE STREAM s (v BIGINT, at BIGINT) SOURCE parquet('{source}') ORDERED BY at")
    out = tmp_path / "out"
    query = session.query(f"CREATE QUERY q INTO parquet('{out}') AS SELECT v FROM s [RANGE 5]")
    write: Callable[[LocalSink, int, list[Batch]], None] = delivering._write  # noqa: SLF001
    seen: list[set[int]] = []

    def reading(sink: LocalSink, number: int, batches: list[Batch]) -> None:
        if number:
            seen.append(set(query.snapshot()["v"]))
        write(sink, number, batches)

    monkeypatch.setattr(delivering, "_write", reading)
    _write(source, 0, 10)
    with session:
        session.start()
        session.await_idle()
        before = set(query.snapshot()["v"])
        _write(source, 10, 20)
        session.await_idle()
        after = set(query.snapshot()["v"])
    assert before == set(range(4, 9))
    assert seen == [before]
    assert after == set(range(14, 19))


def _write(directory: Path, first: int, past: int) -> None:
    rows = pl.DataFrame({"v": range(first, past), "at": range(first, past)})
    rows.write_parquet(directory.parent / "next")
    (directory.parent / "next").rename(directory / f"{first:03}.parquet")
