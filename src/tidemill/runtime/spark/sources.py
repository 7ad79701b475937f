"""Sources of the Spark runtime: each stream as one named source of the pipeline.

Files come in the order of a feed (``feed.py``) and are read by the same code as in the local
runtime, so that a directory means the same everywhere. Files that this host cannot open are listed
and read by Spark. Other formats are read by Spark and then get the types of the stream.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import polars as pl
from pyspark import TaskContext

from tidemill.model.time import Time
from tidemill.runtime.files import READERS, read_file, shaped
from tidemill.runtime.settling import Mark, require_unchanged
from tidemill.runtime.spark.feed import ENTRY_COLUMNS, NUMBERED
from tidemill.runtime.spark.formats import read_format
from tidemill.runtime.spark.intake import Origin, first_id, take_in
from tidemill.runtime.spark.ledger import batch_beginning, batch_number
from tidemill.runtime.spark.places import source_name
from tidemill.runtime.spark.wire import COLUMNS, to_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from tidemill.catalog.entries import StreamEntry
    from tidemill.runtime.connectors import Place
    from tidemill.runtime.spark.deployment import Parcel
    from tidemill.runtime.spark.feed import Feed
    from tidemill.runtime.spark.intake import Piece
    from tidemill.runtime.spark.outlet import Outlet

__all__ = ["stream_messages"]

_FILE = "path string, modificationTime timestamp, length long, content binary"

_Reading: TypeAlias = "Callable[[Iterable[pa.RecordBatch], Origin], Iterator[Piece]]"
"""Makes rows of the stream of what Spark delivers."""


def stream_messages(  # noqa: PLR0913 — what a stream needs
    spark: SparkSession,
    parcel: Parcel,
    name: str,
    place: Place,
    feed: Feed | None,
    *,
    outlet: Outlet,
) -> DataFrame:
    """The messages of a stream, from a source of Spark's.

    Args:
        spark: The session.
        parcel: What runs where.
        name: The stream.
        place: Where its rows come from.
        feed: Its files in order, if they are here.
        outlet: Where answers go that need nothing but this stream's rows, one by one.
    """
    stream = parcel.open().streams[name]
    reader = spark.readStream.name(source_name(name))
    if feed is not None:
        entries = reader.schema(ENTRY_COLUMNS).format("json")
        entries = entries.option("maxFilesPerTrigger", place.files_per_batch)
        rows = entries.options(**NUMBERED).load(str(feed.pattern))
        pieces = _file_pieces(place.kind, stream)
    elif place.kind in READERS:
        files = reader.schema(_FILE).format("binaryFile")
        files = files.option("maxFilesPerTrigger", place.files_per_batch)
        rows = files.load(place.path).select("path", "content")
        pieces = _content_pieces(place.kind, stream)
    else:
        rows = read_format(spark, reader, stream, place)
        pieces = _row_pieces(stream)
    return rows.mapInArrow(_taking_in(parcel, name, pieces, outlet), COLUMNS)


def _taking_in(
    parcel: Parcel, name: str, pieces: _Reading, outlet: Outlet
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        filled = (batch for batch in batches if batch.num_rows)
        first = next(filled, None)
        if first is None:
            return
        context = TaskContext.get()
        assert context is not None, "this runs in a task"
        begun, batch = batch_beginning(), batch_number()
        watermark = Time(begun.watermarks.get(name, 0))
        origin = Origin(batch, context.partitionId(), Time(begun.now), watermark)
        delivered = pieces(chain([first], filled), origin)
        messages = take_in(parcel.open(), name, delivered, origin)
        for message in outlet.let_out(messages, batch, origin.task):
            yield to_arrow([message])

    return run


def _file_pieces(kind: str, stream: StreamEntry) -> _Reading:
    """Reads files that are here."""
    schema = stream.schema

    def pieces(batches: Iterable[pa.RecordBatch], _: Origin) -> Iterator[Piece]:
        for entry in (row for batch in batches for row in batch.to_pylist()):
            frame = read_file(entry["path"], kind, schema)
            if entry["size"] >= 0:
                require_unchanged(entry["path"], Mark(entry["size"], entry["changed"]))
            last = max(frame.height - 1, 0)
            yield first_id(last, file=entry["number"]) - last, frame

    return pieces


def _content_pieces(kind: str, stream: StreamEntry) -> _Reading:
    """Reads files whose content Spark has brought."""
    schema = stream.schema

    def frames(batch: pa.RecordBatch) -> Iterator[pl.DataFrame]:
        for row in batch.to_pylist():
            yield read_file(row["path"], kind, schema, content=row["content"])

    return _numbered(frames)


def _row_pieces(stream: StreamEntry) -> _Reading:
    """Reads rows that Spark has read."""
    schema, name = stream.schema, stream.name

    def frames(batch: pa.RecordBatch) -> Iterator[pl.DataFrame]:
        frame = pl.from_arrow(batch)
        assert isinstance(frame, pl.DataFrame), "a record batch is a frame"
        yield shaped(frame, schema, f'the source of "{name}"')

    return _numbered(frames)


def _numbered(frames: Callable[[pa.RecordBatch], Iterator[pl.DataFrame]]) -> _Reading:
    """Numbers rows in the order in which they come in a task."""

    def pieces(batches: Iterable[pa.RecordBatch], origin: Origin) -> Iterator[Piece]:
        rows = 0
        for frame in (frame for batch in batches for frame in frames(batch)):
            yield first_id(rows, origin=origin), frame
            rows += frame.height

    return pieces
