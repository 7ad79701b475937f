"""Formats of Spark's, by name: a stream is read from one, the answer of a query appended to one.

Each batch is one write of Spark's. A batch that is delivered again is appended again, so a row is
there at least once. What Spark has to say when it cannot is told with the name of the stream or
query.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions

from tidemill.connectors.registry import connector_names
from tidemill.errors import RunError, closest, suggestion
from tidemill.masking import secrets_of
from tidemill.runtime.connectors import shown_cause
from tidemill.runtime.shapes import new_rows
from tidemill.runtime.spark.io.schemas import answer_columns, spark_columns, to_spark
from tidemill.runtime.spark.worker.wire import Kind, from_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from pyspark.sql.types import StructType

    from tidemill.catalog.entries import StreamEntry
    from tidemill.model.schema import Schema
    from tidemill.runtime.connectors import Place
    from tidemill.runtime.shapes import Shape
    from tidemill.runtime.sinks import FormatSink

__all__ = ["append_to_format", "read_format", "require_formats"]

_NOT_FOUND = "SQLSTATE: 42K02"
"""What Spark says about a format that is not there."""


def read_format(
    spark: SparkSession, reader: DataStreamReader, stream: StreamEntry, place: Place
) -> DataFrame:
    """The rows of a stream, with the columns it declares.

    Args:
        spark: The session.
        reader: The source, which has its name already.
        stream: The stream.
        place: Where its rows come from.

    Raises:
        RunError: There is no such format or place, or it does not have these columns.
    """
    source = reader.format(place.format).options(**place.options)
    where = [place.path] if place.path else []
    try:
        try:
            rows = source.load(*where)
        except PySparkException as error:
            # Whether a format brings its columns or has to be told them, only Spark knows.
            if "Schema must be specified" not in str(error):
                raise
            rows = source.schema(_columns(spark, stream, place)).load(*where)
        _require_columns(stream, rows.columns)
        return rows.select(*(f"`{field.name.replace('`', '``')}`" for field in stream.schema))
    except (PySparkException, Py4JJavaError) as error:
        known = closest(place.format, connector_names()) if _is_unknown(error) else None
        secrets = stream.source.secrets()
        raise RunError(
            f'the source of "{stream.name}" cannot be read as {place.format}: {_reason(error)}',
            hint=known or "give the path and options as Spark describes them for this format",
        ).hide(secrets) from shown_cause(error, secrets)


def require_formats(spark: SparkSession, sinks: Iterable[FormatSink]) -> None:
    """Find out whether Spark knows all formats, before anything is read.

    Raises:
        RunError: It does not know one of them.
    """
    for sink in sinks:
        try:
            spark.read.format(sink.format).load()
        except (PySparkException, Py4JJavaError) as error:
            if not _is_unknown(error):
                continue  # it is known; that it cannot be read without a place is no matter
            raise RunError(
                f'there is no format "{sink.format}", to which "{sink.query}" is to write:'
                f" {_reason(error)}",
                hint=closest(sink.format, connector_names())
                or "give Spark the package that has it",
            ) from error


def append_to_format(results: DataFrame, channels: Sequence[str], sink: FormatSink) -> None:
    """Append the answer of a batch.

    Args:
        results: The messages of the last stage.
        channels: The channels of the answer.
        sink: What it goes to.

    Raises:
        RunError: Spark cannot write it.
    """
    is_answer = (functions.col("kind") == Kind.ANSWER) & functions.col("channel").isin(*channels)
    columns = answer_columns(sink.schema, sink.shape.form)
    rows = results.where(is_answer).mapInArrow(_rows(sink.schema, sink.shape, columns), columns)
    writer = rows.write.format(sink.format).options(**sink.options).mode("append")
    try:
        writer.save(*([sink.path] if sink.path else []))
    except (PySparkException, Py4JJavaError) as error:
        secrets = secrets_of((("", sink.path), *sink.options.items()))
        raise RunError(
            f'the sink of "{sink.query}" cannot be written as {sink.format}: {_reason(error)}',
            hint="fix what it says; the batch is delivered again",
        ).hide(secrets) from shown_cause(error, secrets)


def _rows(
    schema: Schema, shape: Shape, columns: StructType
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        frames = [message.rows() for batch in batches for message in from_arrow(batch)]
        yield from to_spark(new_rows(schema, frames, shape), columns)

    return run


def _columns(spark: SparkSession, stream: StreamEntry, place: Place) -> StructType:
    """The columns, with their types, that the files have now; if there are none, as declared."""
    try:
        return spark.read.format(place.format).options(**place.options).load(place.path).schema
    except PySparkException as error:
        if error.getCondition() == "UNABLE_TO_INFER_SCHEMA":
            return spark_columns(stream.schema)
        raise


def _require_columns(stream: StreamEntry, found: list[str]) -> None:
    there = {column.lower() for column in found}
    for field in stream.schema:
        if field.name.lower() not in there:
            raise RunError(
                f'the source of "{stream.name}" has no column "{field.name}"',
                hint=suggestion(field.name, found),
            )


def _is_unknown(error: PySparkException | Py4JJavaError) -> bool:
    return _NOT_FOUND in str(error)


def _reason(error: PySparkException | Py4JJavaError) -> str:
    """What Spark says, without the codes and the trace."""
    text = str(error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error)
    first = text.strip().splitlines()[0] if text.strip() else type(error).__name__
    return re.sub(r"^\[[\w.]+\] | SQLSTATE: \w+$|\.$", "", first).rstrip(". ")
