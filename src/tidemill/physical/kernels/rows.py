"""Rows whose columns have numbers for names.

To Polars some names of columns are patterns: ``*``, and all between ``^`` and ``$``. Operators
that keep whole rows number their columns, and give them their names back when rows leave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import END, START, interval_columns, polars_type

if TYPE_CHECKING:
    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema

__all__ = ["number_columns", "numbered", "restored"]


def number_columns(schema: Schema) -> dict[str, pl.DataType]:
    """The columns of numbered rows, without time."""
    return {f"@{i}": polars_type(field.type) for i, field in enumerate(schema)}


def numbered(batch: Batch, schema: Schema) -> pl.DataFrame:
    """The batch in interval form with numbers for names."""
    row = [batch.get_column(name).alias(f"@{i}") for i, name in enumerate(schema.names)]
    return pl.DataFrame([*row, batch.get_column(START), batch.get_column(END)])


def restored(frame: pl.DataFrame, schema: Schema) -> Batch:
    """The rows with their names, and their time columns."""
    batch = frame.select(*number_columns(schema), START, END)
    batch.columns = interval_columns(schema)
    return batch
