"""The sink writer of a task: what several channels have for one sink is one file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import SIGN, TIME
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT
from tidemill.runtime.file_sink import FileSink
from tidemill.runtime.shapes import Delivered, Shape
from tidemill.runtime.spark.worker.sink_writer import SinkWriter
from tidemill.runtime.spark.worker.wire import Kind, Message

if TYPE_CHECKING:
    from pathlib import Path


def test_instances_of_a_query_write_one_file(tmp_path: Path) -> None:
    """What one withdraws and another announces at an instant comes to nothing."""
    shape = Shape(Delivered.CHANGES)
    sink = FileSink("q", "parquet", str(tmp_path / "out"), Schema((Field("x", BIGINT),)), shape)
    sink = sink.owned_by("p", 0)
    sink.claim()
    writer = SinkWriter({"old": (sink,), "new": (sink,)}, (), ())
    old = pl.DataFrame({"x": [1, 2], TIME: [9, 9], SIGN: [-1, -1]})
    new = pl.DataFrame({"x": [2, 3], TIME: [9, 9], SIGN: [1, 1]})
    messages = [
        Message.of_rows(0, Kind.ANSWER, name, rows) for name, rows in (("old", old), ("new", new))
    ]
    told = list(writer.let_out(messages, 4, 7))
    assert [m.channel for m in told] == ["written old", "written new"]
    (path,) = (tmp_path / "out").glob("batch=*/*")
    assert path.name == "part-00007.parquet"
    assert pl.read_parquet(path, hive_partitioning=False).rows() == [(1, 9, -1), (3, 9, 1)]
