"""Batches: what flows between physical operators, as columns.

A batch is a Polars frame with one column for each column of the schema, and time columns. In
interval form these are ``START`` and ``END``: the row is valid in ``[START, END)``. Batches that
come from a source carry ``ID`` as well, the replay-stable number of the element; operators that
make no use of it leave it out. Combined elements (``physical/interval/combine.py``) have no columns
of a schema, but others of the engine's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from tidemill.model.types import DataType, Kind

if TYPE_CHECKING:
    from tidemill.model.schema import Schema

__all__ = [
    "END",
    "ID",
    "START",
    "TIME_TYPE",
    "Batch",
    "empty_batch",
    "interval_columns",
    "polars_schema",
    "polars_type",
]

Batch: TypeAlias = pl.DataFrame

START, END, ID = "@start", "@end", "@id"
"""No column people can name begins with @."""

TIME_TYPE = pl.Int64()

_TYPES: dict[Kind, pl.DataType] = {
    Kind.BOOLEAN: pl.Boolean(),
    Kind.INTEGER: pl.Int32(),
    Kind.BIGINT: pl.Int64(),
    Kind.DOUBLE: pl.Float64(),
    Kind.VARCHAR: pl.String(),
    Kind.DATE: pl.Date(),
    Kind.TIMESTAMP: pl.Datetime("us"),
}


def polars_type(type_: DataType) -> pl.DataType:
    """The type of a column that holds values of a type."""
    if type_.kind is Kind.DECIMAL:
        return pl.Decimal(type_.precision, type_.scale)
    return _TYPES[type_.kind]


def polars_schema(schema: Schema) -> dict[str, pl.DataType]:
    """The columns of a batch without its time columns."""
    return {field.name: polars_type(field.type) for field in schema}


def interval_columns(schema: Schema) -> list[str]:
    """The columns of a batch in interval form, in order, without ``ID``."""
    return [*schema.names, START, END]


def empty_batch(schema: Schema) -> Batch:
    """A batch in interval form with no rows."""
    return pl.DataFrame(schema={**polars_schema(schema), START: TIME_TYPE, END: TIME_TYPE})
