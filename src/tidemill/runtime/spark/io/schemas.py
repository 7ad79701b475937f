"""Columns as Spark has them, and rows on their way there.

A TIMESTAMP carries no zone, so it is a TIMESTAMP_NTZ; every other type has its own in Spark. The
columns of time are BIGINT, in microseconds, as in files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from pyspark.sql import types
from pyspark.sql.pandas.types import to_arrow_schema

from tidemill.model.batch import Form
from tidemill.model.types import Kind
from tidemill.runtime.answers import NAMES, time_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from tidemill.model.schema import Schema
    from tidemill.model.types import DataType

__all__ = ["answer_columns", "spark_columns", "to_spark"]

_TYPES: dict[Kind, types.DataType] = {
    Kind.BOOLEAN: types.BooleanType(),
    Kind.INTEGER: types.IntegerType(),
    Kind.BIGINT: types.LongType(),
    Kind.DOUBLE: types.DoubleType(),
    Kind.VARCHAR: types.StringType(),
    Kind.DATE: types.DateType(),
    Kind.TIMESTAMP: types.TimestampNTZType(),
}


def spark_columns(schema: Schema) -> types.StructType:
    """The columns of a stream or query.

    >>> from tidemill.model.schema import Field, Schema
    >>> from tidemill.model.types import TIMESTAMP, decimal
    >>> spark_columns(Schema((Field("a", TIMESTAMP), Field("b", decimal(9, 2))))).simpleString()
    'struct<a:timestamp_ntz,b:decimal(9,2)>'
    """
    return types.StructType([types.StructField(f.name, _spark_type(f.type)) for f in schema])


def answer_columns(schema: Schema, form: Form = Form.INTERVAL) -> types.StructType:
    """The columns of a query and of time, as ``results`` or ``changes`` has them.

    >>> from tidemill.model.schema import Field, Schema
    >>> from tidemill.model.types import VARCHAR
    >>> answer_columns(Schema((Field("Start", VARCHAR),))).simpleString()
    'struct<Start:string,start_:bigint,end:bigint>'
    """
    first, second = time_names(schema, *NAMES[form])
    last = types.LongType() if form is Form.INTERVAL else types.IntegerType()
    times = [types.StructField(first, types.LongType()), types.StructField(second, last)]
    return types.StructType([*spark_columns(schema), *times])


def to_spark(frame: pl.DataFrame, columns: types.StructType) -> Iterator[pa.RecordBatch]:
    """The rows of a frame for Spark, which insists on its own among Arrow's types."""
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    yield from table.cast(to_arrow_schema(columns)).to_batches()


def _spark_type(type_: DataType) -> types.DataType:
    if type_.kind is Kind.DECIMAL:
        return types.DecimalType(type_.precision, type_.scale)
    return _TYPES[type_.kind]
