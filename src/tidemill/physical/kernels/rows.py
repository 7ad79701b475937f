"""Rows as operators keep them: with numbers for names, and elements in one form.

To Polars some names of columns are patterns: ``*``, and all between ``^`` and ``$``. Operators
that keep whole rows number their columns, and give them their names back when rows leave.

An operator that counts rows need not know which form they come in: a change of a signed stream is
an element that begins at its time and never ends, and counts as often as its sign says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import (
    END,
    SIGN,
    START,
    TIME,
    TIME_TYPE,
    Form,
    polars_type,
    time_columns,
)
from tidemill.model.time import END_OF_TIME
from tidemill.physical.frames import framed, pick

if TYPE_CHECKING:
    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema

__all__ = ["elements_of", "number_columns", "numbered", "restored"]


def number_columns(schema: Schema) -> dict[str, pl.DataType]:
    """The columns of numbered rows, without time."""
    return {f"@{i}": polars_type(field.type) for i, field in enumerate(schema)}


def numbered(batch: Batch, schema: Schema) -> pl.DataFrame:
    """The batch in interval form with numbers for names."""
    row = [batch.get_column(name).alias(f"@{i}") for i, name in enumerate(schema.names)]
    return framed([*row, batch.get_column(START), batch.get_column(END)])


def restored(frame: pl.DataFrame, schema: Schema, form: Form = Form.INTERVAL) -> Batch:
    """The rows with their names, and their time columns."""
    batch = pick(frame, (*number_columns(schema), *time_columns(form)))
    batch.columns = [*schema.names, *time_columns(form)]
    return batch


def elements_of(batch: Batch) -> tuple[pl.DataFrame, pl.Series]:
    """The batch with ``START`` and ``END``, in whichever form it is, and how often each counts."""
    if SIGN not in batch.columns:
        return batch, pl.Series([1], dtype=pl.Int64).new_from_index(0, batch.height)
    never = pl.Series(END, [END_OF_TIME], TIME_TYPE).new_from_index(0, batch.height)
    return batch.hstack([batch[TIME].alias(START), never]), batch[SIGN]
