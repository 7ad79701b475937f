"""Sources of the Spark runtime: each stream as one named source of the pipeline.

Files come in the order of a log (``file_log.py``) and are read by the same code as in the local
runtime, so that a directory means the same everywhere. Files that this host cannot open are listed
and read by Spark. Other formats are read by Spark and then get the types of the stream.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import polars as pl
from pyspark import TaskContext

from tidemill.engine.ingest import Refused, readable
from tidemill.model.batch import polars_schema
from tidemill.model.time import Time
from tidemill.runtime.damage import damaged
from tidemill.runtime.files import READERS, read_file
from tidemill.runtime.measuring.sample import has_head
from tidemill.runtime.reading.frames import from_arrow, shaped_frame
from tidemill.runtime.reading.shaping import Input
from tidemill.runtime.settling import FileRows, Mark, require_unchanged
from tidemill.runtime.spark.io.file_log import ENTRY_COLUMNS, NUMBERED
from tidemill.runtime.spark.io.formats import read_format
from tidemill.runtime.spark.io.places import source_name
from tidemill.runtime.spark.state.batch_log import batch_beginning, batch_number, batch_version
from tidemill.runtime.spark.worker.intake import Origin, Piece, first_id, take_in
from tidemill.runtime.spark.worker.wire import COLUMNS, to_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from tidemill.catalog.entries import StreamEntry
    from tidemill.runtime.connectors import Place
    from tidemill.runtime.reading.parquet_groups import Wanted
    from tidemill.runtime.reading.shaping import Refuse
    from tidemill.runtime.spark.io.file_log import FileLog
    from tidemill.runtime.spark.state.deployments import Deployments

__all__ = ["Needed", "stream_messages"]

_FILE = "path string, modificationTime timestamp, length long, content binary"

_EARLY = 10_000
"""The number of the first file that a task writes where rows come in; partitions have smaller ones,
and an answer may come from both when a query is changed."""


class Needed(NamedTuple):
    """What is needed of rows.

    Attributes:
        columns: The columns, if not all are needed; some rows may have more.
        rows: The rows that are wanted, if not all are; others come as well.
    """

    columns: frozenset[str] | None = None
    rows: Wanted | None = None


_Reading: TypeAlias = (
    "Callable[[Iterable[pa.RecordBatch], Origin, Refuse, Needed], Iterator[Piece]]"
)
"""Makes rows of the stream of what Spark delivers; malformed ones are told."""


def stream_messages(
    spark: SparkSession,
    deployments: Deployments,
    stream: StreamEntry,
    place: Place,
    file_log: FileLog | None,
) -> DataFrame:
    """The messages of a stream, from a source of Spark's.

    Args:
        spark: The session.
        deployments: What runs where.
        stream: The stream.
        place: Where its rows come from.
        file_log: Its files in order, if they are here.
    """
    name = stream.name
    reader = spark.readStream.name(source_name(name))
    if file_log is not None:
        entries = reader.schema(ENTRY_COLUMNS).format("json")
        entries = entries.option("maxFilesPerTrigger", place.files_per_batch)
        rows = entries.options(**NUMBERED).load(file_log.pattern)
        pieces = _file_pieces(place.kind, stream)
    elif place.kind in READERS:
        files = reader.schema(_FILE).format("binaryFile")
        files = files.option("maxFilesPerTrigger", place.files_per_batch)
        rows = files.load(place.path).select("path", "content")
        pieces = _content_pieces(place.kind, stream)
    else:
        rows = read_format(spark, reader, stream, place)
        pieces = _row_pieces(stream)
    return rows.mapInArrow(_taking_in(deployments, name, pieces), COLUMNS)


def _taking_in(
    deployments: Deployments, name: str, pieces: _Reading
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
        deployment = deployments.open(batch_version())
        refused = Refused(deployment.streams[name])
        needed = Needed(deployment.needed.get(name), deployment.wanted.get(name))
        delivered = pieces(chain([first], filled), origin, refused.add_malformed, needed)
        messages = take_in(
            deployment, name, delivered, origin, refused=refused, kept=deployments.kept
        )
        # Answers that need nothing but this stream's rows, one by one, are let out here.
        part = _EARLY + origin.task
        for message in deployment.sink_writer.let_out(messages, batch, part):
            yield to_arrow([message])

    return run


def _file_pieces(kind: str, stream: StreamEntry) -> _Reading:
    """Reads files that are here."""
    schema = readable(stream)

    def pieces(
        batches: Iterable[pa.RecordBatch], _: Origin, refuse: Refuse, needed: Needed
    ) -> Iterator[Piece]:
        for entry in (row for batch in batches for row in batch.to_pylist()):
            if entry["path"] is None or entry["number"] is None:
                raise damaged(f'the list of the files of "{stream.name}"', "a note is no JSON")
            rows, number = 0, entry["number"]
            mark = Mark(entry["size"], entry["changed"])
            # A file whose mark is not known cannot be found again as it was.
            where = FileRows(entry["path"], mark, first_id(0, file=number), kind)
            known = where if mark.size >= 0 else None
            # Rows of one that cannot be found again are kept with all columns, if they are.
            asked = needed if known is not None or stream.keep is None else Needed()
            read = read_file(
                entry["path"],
                kind,
                schema,
                refuse,
                needed=asked.columns,
                wanted=asked.rows,
                begins_whole=has_head(number),
            )
            for frame in read:
                if mark.size >= 0:
                    require_unchanged(entry["path"], mark)  # it might grow for ever
                last = max(rows + frame.height - 1, 0)
                first_id(last, file=number)  # there are ids for all of them
                yield Piece(first_id(rows, file=number), frame, known)
                rows += frame.height
            if mark.size >= 0:
                require_unchanged(entry["path"], mark)
            if not rows:
                yield Piece(first_id(0, file=number), pl.DataFrame(schema=polars_schema(schema)))

    return pieces


def _content_pieces(kind: str, stream: StreamEntry) -> _Reading:
    """Reads files whose content Spark has brought."""
    schema = readable(stream)

    def frames(batch: pa.RecordBatch, refuse: Refuse, needed: Needed) -> Iterator[pl.DataFrame]:
        asked = needed if stream.keep is None else Needed()  # they are kept with all columns
        for row in batch.to_pylist():
            yield from read_file(
                row["path"],
                kind,
                schema,
                refuse,
                content=row["content"],
                needed=asked.columns,
                wanted=asked.rows,
            )

    return _numbered(frames)


def _row_pieces(stream: StreamEntry) -> _Reading:
    """Reads rows that Spark has read."""
    schema, input_ = readable(stream), Input(f'the source of "{stream.name}"', unit="row")

    def frames(batch: pa.RecordBatch, refuse: Refuse, _: Needed) -> Iterator[pl.DataFrame]:
        yield shaped_frame(from_arrow(batch), schema, input_, refuse, first=None)

    return _numbered(frames)


def _numbered(
    frames: Callable[[pa.RecordBatch, Refuse, Needed], Iterator[pl.DataFrame]],
) -> _Reading:
    """Numbers rows in the order in which they come in a task."""

    def pieces(
        batches: Iterable[pa.RecordBatch], origin: Origin, refuse: Refuse, needed: Needed
    ) -> Iterator[Piece]:
        rows = 0
        for frame in (frame for batch in batches for frame in frames(batch, refuse, needed)):
            first_id(max(rows + frame.height - 1, 0), origin=origin)  # there are ids for all
            yield Piece(first_id(rows, origin=origin), frame)
            rows += frame.height

    return pieces
