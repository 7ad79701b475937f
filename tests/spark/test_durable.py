"""The order in which files get to disk: data before its name, names before what relies on them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, cast

import polars as pl
import pyarrow as pa
import pytest

import tidemill
from spark.deployments import deployed_with
from tidemill.catalog.entries import RelationEntry
from tidemill.lang.statements import ConnectorCall, Name
from tidemill.model.batch import END, START
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT
from tidemill.optimizer.planning import PLANNING
from tidemill.runtime.file_sink import WRITERS, FileSink
from tidemill.runtime.quarantine import Quarantine
from tidemill.runtime.record import Facts
from tidemill.runtime.spark.driver.control import Control, Word
from tidemill.runtime.spark.driver.delivery import Delivery
from tidemill.runtime.spark.driver.replaying import SparkArchives
from tidemill.runtime.spark.driver.run_report import RunReport
from tidemill.runtime.spark.driver.settings import SparkSettings
from tidemill.runtime.spark.io.file_log import FileLog
from tidemill.runtime.spark.state.batch_log import BatchLog, Ending
from tidemill.runtime.spark.state.deployments import Deployments
from tidemill.runtime.spark.state.flush import SparkFiles
from tidemill.runtime.spark.state.opening import open_checkpoint
from tidemill.runtime.spark.worker.sink_writer import SinkWriter
from tidemill.runtime.spark.worker.wire import to_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame


class Results:
    """A batch: while it is computed its tasks write files, and Spark writes state."""

    def __init__(self, sink: FileSink, spark: Path) -> None:
        self.sparkSession = self.sparkContext = self
        self._sink = sink
        self._spark = spark

    def setLocalProperty(self, _name: str, _value: str) -> None:  # noqa: N802 — Spark's name
        """Tell the tasks something."""

    def toArrow(self) -> pa.Table:  # noqa: N802 — Spark's name
        """Compute it."""
        for part in range(2):
            self._sink.write(0, part, [ROWS])
        (self._spark / "1.changelog").write_text("state")
        return pa.Table.from_batches([to_arrow([])])


NOTE = re.compile("^[^ ]*/.?look-.*[.]json$")
"""The content of a note of a file, which can be written again from the index; not its name."""


class Disk:
    """What a disk would have after a loss of power: it forgets what it was not asked to keep.

    A file is followed by its number, a name by its directory. ``lost`` says what would be lost.
    """

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._root = root
        self._content: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {root.stat().st_ino: {}}
        flush, rename = os.fsync, Path.rename
        self.calls: list[str] = []

        def noting_flush(handle: int) -> None:
            flush(handle)
            path = Path(f"/proc/self/fd/{handle}").readlink()
            self._keep(path)
            self.calls.append(f"flush {self._name(path)}")

        def noting_rename(old: Path, new: Path) -> Path:
            lost = [name for name in self.lost(old) if not NOTE.search(name)]
            assert not lost, f"{self._name(new)} gets its name before its data is kept: {lost}"
            self.calls.append(f"name {self._name(new)}")
            return rename(old, new)

        monkeypatch.setattr(os, "fsync", noting_flush)
        monkeypatch.setattr(Path, "rename", noting_rename)

    def lost(self, place: Path | None = None) -> Iterator[str]:
        """The files below a place whose content or name has not been kept."""
        start = self._root if place is None else place
        if start.is_file():
            if self._content.get(start.stat().st_ino) != start.read_bytes():
                yield self._name(start)
            return
        kept = self._names.get(start.stat().st_ino, {})
        for path in sorted(start.iterdir()):
            if kept.get(path.name) != path.stat().st_ino:
                yield f"the name {self._name(path)}"
            yield from self.lost(path)

    def _keep(self, path: Path) -> None:
        number = path.stat().st_ino
        if path.is_dir():
            self._names[number] = {p.name: p.stat().st_ino for p in path.iterdir()}
        else:
            self._content[number] = path.read_bytes()

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self._root)) if path != self._root else "."


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(tmp_path, monkeypatch)


ROWS = pl.DataFrame({"x": [1, 2], START: [0, 1], END: [1, 2]})


@pytest.mark.parametrize("kind", WRITERS)
def test_files_of_a_sink_are_kept_when_a_batch_is_settled(
    tmp_path: Path, disk: Disk, kind: str
) -> None:
    sink = FileSink("q", kind, str(tmp_path / "out"), Schema((Field("x", BIGINT),)))
    sink = sink.owned_by("p", 0)
    sink.claim()
    assert list(disk.lost()) == []
    disk.calls.clear()
    for part in range(2):
        sink.write(7, part, [ROWS])
    sink.settle(7)
    assert list(disk.lost()) == []
    assert disk.calls == [
        f"flush out/batch=00000007/.part-00000.{kind}",
        f"name out/batch=00000007/part-00000.{kind}",
        f"flush out/batch=00000007/.part-00001.{kind}",
        f"name out/batch=00000007/part-00001.{kind}",
        "flush out/batch=00000007",
        "flush out",
    ], "each file is flushed once, and each directory"
    sink.clear(7)
    sink.settle(7)  # a batch without rows has no files
    assert disk.calls[6:] == []


@pytest.mark.parametrize("kind", WRITERS)
def test_files_of_a_local_run_are_kept_before_it_returns(
    tmp_path: Path, disk: Disk, kind: str
) -> None:
    """A run that cannot be taken up again flushes its files once, and all of them."""
    session = tidemill.connect()
    session.put("s", pl.DataFrame({"x": [1, 2, 3], "t": [1, 2, 3]}))
    session.sql("CREATE STREAM s (x BIGINT, t BIGINT) SOURCE memory('s') ORDERED BY t")
    session.sql(f"CREATE QUERY q INTO {kind}('{tmp_path / 'a' / 'out'}') AS SELECT x FROM s")
    session.run()
    assert list(disk.lost()) == []
    flushed = [call for call in disk.calls if call.startswith("flush ")]
    assert len(flushed) == len(set(flushed)), "each file once, and each directory"


def test_all_that_a_batch_has_written_is_kept_before_spark_takes_it_for_done(
    tmp_path: Path, disk: Disk
) -> None:
    for name in ("out", "spark"):
        (tmp_path / name).mkdir()
    sink = FileSink("q", "csv", str(tmp_path / "out"), Schema((Field("x", BIGINT),)))
    sink = sink.owned_by("p", 0)
    sink.claim()
    files = SparkFiles(tmp_path / "spark")
    batch_log = BatchLog(tmp_path / "batches.jsonl")
    delivery = Delivery(
        deployed_with({}, {}, SinkWriter({"answer": (sink,)}, (), ())),
        Deployments(str(tmp_path / "deployments"), str(tmp_path)),
        RunReport(),
        batch_log,
        spark_files=files,
        archives=SparkArchives(),
        quarantine=Quarantine(tmp_path / "q"),
        forget=lambda _: None,
    )
    delivery(cast("DataFrame", Results(sink, tmp_path / "spark")), 0)
    assert list(disk.lost()) == []
    last = [call for call in disk.calls if call != "flush batches.jsonl"][-1]
    assert disk.calls.index(last) < len(disk.calls) - 1, "the batch log says last that it has ended"
    assert disk.calls[-1] == "flush batches.jsonl"


def lost(disk: Disk) -> list[str]:
    """What a loss of power would lose, but for the lock, which nobody holds then."""
    return [name for name in disk.lost() if not name.endswith("/lock")]


def test_the_files_of_a_checkpoint_are_kept_at_once(tmp_path: Path, disk: Disk) -> None:
    settings = SparkSettings(checkpoint=str(tmp_path / "deep" / "state"))
    facts = Facts((1, 2), 1, PLANNING.facts())
    checkpoint = open_checkpoint(settings, facts)
    checkpoint.create()
    assert lost(disk) == []
    batch_log = BatchLog(checkpoint.batch_log)
    assert lost(disk) == []
    batch_log.begin(0)
    assert lost(disk) == []
    batch_log.end(0, Ending({"s": 1}))
    assert lost(disk) == []
    checkpoint.begin()
    assert lost(disk) == []
    checkpoint.frame("f", lambda: pl.DataFrame({"x": [1]}))
    checkpoint.keep_relation(
        RelationEntry("r", Schema((Field("x", BIGINT),)), ConnectorCall(Name("memory"))),
        pl.DataFrame({"x": [1]}),
    )
    assert lost(disk) == []
    source = tmp_path / "in"
    source.mkdir()
    (source / "a").write_text("x")
    (source / "b").write_text("x")
    for path in (source / "a", source / "b", source, tmp_path):
        os.fsync(os.open(path, os.O_RDONLY))
    file_log = FileLog("s", source, checkpoint.file_log("s"))
    file_log.look()
    told = {path: path.read_bytes() for path in file_log.directory.glob("look-*/*.json")}
    assert [name for name in lost(disk) if not NOTE.search(name)] == []
    for path in told:
        path.write_bytes(b"")  # the power is lost
    FileLog("s", source, checkpoint.file_log("s"))
    assert {path: path.read_bytes() for path in told} == told
    for path in told:
        os.fsync(os.open(path, os.O_RDONLY))
    checkpoint.control.mkdir()
    os.fsync(os.open(checkpoint.directory, os.O_RDONLY))
    Control(checkpoint.control).say(Word.END)
    assert lost(disk) == []
    noted = [call for call in disk.calls if "/files/s/" in call]
    at = noted.index("flush deep/state/files/s/index.jsonl")
    assert noted.index("name deep/state/files/s/look-000000000000") > at, "the index comes first"


def test_what_spark_has_written_is_flushed_once(tmp_path: Path, disk: Disk) -> None:
    files = SparkFiles(tmp_path)
    (tmp_path / "offsets").mkdir()
    (tmp_path / "state" / "0" / "0").mkdir(parents=True)
    for batch in range(3):
        (tmp_path / "offsets" / str(batch)).write_text("v1")
        (tmp_path / "state" / "0" / "0" / f"{batch + 1}.changelog").write_text(str(batch))
        (tmp_path / "offsets" / f".{batch}.tmp").write_text("unfinished")
        disk.calls.clear()
        files.flush()
        lost = [name for name in disk.lost() if "/." not in name]
        assert lost == []
        if batch:
            assert sorted(disk.calls) == [
                "flush offsets",
                f"flush offsets/{batch}",
                "flush state/0/0",
                f"flush state/0/0/{batch + 1}.changelog",
            ]
            assert {"flush offsets", "flush state/0/0"} == set(disk.calls[2:])
    disk.calls.clear()
    files.flush()
    assert disk.calls == []
