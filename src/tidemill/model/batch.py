"""Batches: what flows between physical operators, as columns.

A batch is a Polars frame with one column for each column of the schema, and time columns. In
interval form these are ``START`` and ``END``: the row is valid in ``[START, END)``. In signed form
they are ``TIME`` and ``SIGN``: from ``TIME`` on the row is there so many times more, or less.

Batches that come from a source carry ``ID`` as well, the replay-stable number of the element;
operators that make no use of it leave it out. Combined elements (see ``aggregate/combine.py``)
have no columns of a schema, but others of the engine's own.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from tidemill.model.types import DataType, Kind

if TYPE_CHECKING:
    from tidemill.model.schema import Schema

__all__ = [
    "END",
    "ID",
    "SIGN",
    "START",
    "TIME",
    "TIME_TYPE",
    "Batch",
    "Form",
    "empty_batch",
    "interval_columns",
    "polars_schema",
    "polars_type",
    "signed_columns",
    "time_columns",
]

Batch: TypeAlias = pl.DataFrame

START, END, ID = "@start", "@end", "@id"
TIME, SIGN = "@time", "@sign"
"""No column people can name begins with @."""

TIME_TYPE = pl.Int64()


class Form(Enum):
    """How a batch says when rows are there: by their ends, or by a message when they go."""

    INTERVAL = "interval"
    SIGNED = "signed"


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


def signed_columns(schema: Schema) -> list[str]:
    """The columns of a batch in signed form, in order."""
    return [*schema.names, TIME, SIGN]


def time_columns(form: Form) -> tuple[str, str]:
    """The time columns of a form."""
    return (START, END) if form is Form.INTERVAL else (TIME, SIGN)


def empty_batch(schema: Schema, form: Form = Form.INTERVAL) -> Batch:
    """A batch with no rows."""
    return pl.DataFrame(
        schema={**polars_schema(schema), **dict.fromkeys(time_columns(form), TIME_TYPE)}
    )
