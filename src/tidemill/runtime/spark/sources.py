"""Sources of the Spark runtime: each stream as one named source of the pipeline.

Files are listed by Spark, which knows which ones have been read, and read by the same code as in
the local runtime, so that a file means the same everywhere. Other formats are read by Spark and
then get the types of the stream. The control stream carries the word that the streams
have ended.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

import polars as pl
from pyspark import TaskContext
from pyspark.sql import functions

from tidemill.errors import RunError
from tidemill.model.time import Time
from tidemill.runtime.files import READERS, read_file, shaped
from tidemill.runtime.spark.formats import read_format
from tidemill.runtime.spark.intake import Origin, take_in
from tidemill.runtime.spark.stage import CONTROL
from tidemill.runtime.spark.wire import COLUMNS, Kind, Message, to_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from tidemill.catalog.entries import StreamEntry
    from tidemill.runtime.connectors import Place
    from tidemill.runtime.spark.deployment import Deployment, Parcel

__all__ = ["control_messages", "stream_messages", "write_control"]

_FILE = "path string, modificationTime timestamp, length long, content binary"
_NOW = "@now"


def stream_messages(spark: SparkSession, parcel: Parcel, name: str, place: Place) -> DataFrame:
    """The messages of a stream, from a source of Spark's."""
    stream = parcel.open().streams[name]
    is_file = place.kind in READERS
    reader = spark.readStream.name(f"stream_{_word(name)}")
    if is_file:
        is_here = urlparse(place.path).scheme in ("", "file")
        files = reader.schema(_FILE).format("binaryFile")
        files = files.option("maxFilesPerTrigger", place.files_per_batch)
        directory = place.path
        if is_here:
            directory, pattern = _directory(name, place)
            files = files.option("pathGlobFilter", pattern) if pattern else files
        # Files that every worker can open are opened there; of others the content is sent along.
        rows = files.load(directory).select("path", *([] if is_here else ["content"]))
    else:
        rows = read_format(spark, reader, stream, place)
    frames = _file_frames(place.kind, stream) if is_file else _row_frames(stream)
    rows = rows.select(functions.current_timestamp().alias(_NOW), "*")
    return rows.mapInArrow(_taking_in(parcel, name, frames), COLUMNS)


def control_messages(spark: SparkSession, deployment: Deployment, directory: Path) -> DataFrame:
    """The messages of the control stream."""
    directory.mkdir(parents=True, exist_ok=True)
    rows = (
        spark.readStream.name("control").schema("word string").format("json").load(str(directory))
    )
    pids = deployment.pids

    def heed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                facts = {"latest": None, "now": 0}
                yield to_arrow(
                    [Message.of_facts(pid, Kind.PULSE, CONTROL, dict(facts)) for pid in pids]
                )

    return rows.mapInArrow(heed, COLUMNS)


def write_control(directory: Path, word: str) -> None:
    """Put a word into the control stream; the same word twice is one."""
    unfinished = directory / f".{word}"
    unfinished.write_text(json.dumps({"word": word}) + "\n", encoding="utf-8")
    unfinished.rename(directory / f"{word}.json")


def _taking_in(
    parcel: Parcel,
    name: str,
    frames: Callable[[pa.RecordBatch], Iterator[pl.DataFrame]],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None, "this runs in a task"
        number = int(context.getLocalProperty("streaming.sql.batchId") or 0)
        filled = (batch for batch in batches if batch.num_rows)
        first = next(filled, None)
        if first is None:
            return
        now = first.column(_NOW)[0].value
        origin = Origin(number, context.partitionId(), Time(now))

        def delivered() -> Iterator[pl.DataFrame]:
            yield from frames(first)
            for batch in filled:
                yield from frames(batch)

        for message in take_in(parcel.open(), name, delivered(), origin):
            yield to_arrow([message])

    return run


def _file_frames(
    kind: str, stream: StreamEntry
) -> Callable[[pa.RecordBatch], Iterator[pl.DataFrame]]:
    schema = stream.schema

    def frames(batch: pa.RecordBatch) -> Iterator[pl.DataFrame]:
        has_content = "content" in batch.schema.names
        for row in batch.to_pylist():
            path = unquote(urlparse(row["path"]).path)
            yield read_file(path, kind, schema, content=row["content"] if has_content else None)

    return frames


def _row_frames(stream: StreamEntry) -> Callable[[pa.RecordBatch], Iterator[pl.DataFrame]]:
    schema, name = stream.schema, stream.name

    def frames(batch: pa.RecordBatch) -> Iterator[pl.DataFrame]:
        frame = pl.from_arrow(batch)
        assert isinstance(frame, pl.DataFrame), "a record batch is a frame"
        yield shaped(frame.drop(_NOW), schema, f'the source of "{name}"')

    return frames


def _directory(name: str, place: Place) -> tuple[str, str | None]:
    """The directory that Spark is to watch, and which of its files, if not all.

    Raises:
        RunError: It is not there.
    """
    path = Path(unquote(urlparse(place.path).path) if "://" in place.path else place.path)
    pattern = None
    if not path.is_dir() and (path.is_file() or any(c in path.name for c in "*?[")):
        path, pattern = path.parent, path.name
    if not path.is_dir():
        raise RunError(
            f'there is no directory "{path}" to read "{name}" from',
            hint=f"give a directory of {place.kind} files; files may come later",
        )
    return str(path.resolve()), pattern


def _word(name: str) -> str:
    """A name of letters, digits and underscores, different for different names.

    >>> _word("Bid"), _word("a b")
    ('bid', 'a_20_b')
    """
    return "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in name.lower())
