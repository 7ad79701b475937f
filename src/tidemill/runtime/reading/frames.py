"""Frames that have types of their own: those in memory, and those that others have read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tidemill.model.batch import polars_schema
from tidemill.runtime.reading.shaping import found_columns, shaped

if TYPE_CHECKING:
    import polars as pl

    from tidemill.model.schema import Schema
    from tidemill.runtime.reading.shaping import Input, Refuse

__all__ = ["shaped_frame"]


def shaped_frame(
    frame: pl.DataFrame, schema: Schema, input_: Input, refuse: Refuse, *, first: int | None = 1
) -> pl.DataFrame:
    """The rows of a frame with the columns and types of a schema; malformed ones are told.

    Args:
        frame: The rows.
        schema: What was declared.
        input_: What the rows come from.
        refuse: What is done with malformed rows.
        first: The number of the first row, if rows have numbers.

    Raises:
        RunError: A column is missing or has a type that says something else, or ``refuse`` raises.
    """
    is_typed = list(frame.schema.items()) == list(polars_schema(schema).items())
    if is_typed and all(f.nullable or not frame[f.name].null_count() for f in schema):
        return frame
    chosen = frame.select(found_columns(frame.columns, schema, input_))

    def written(places: list[int]) -> list[tuple[int | None, str]]:
        rows = chosen[places].rows(named=True)
        return [
            (None if first is None else first + place, json.dumps(row, default=str))
            for place, row in zip(places, rows, strict=True)
        ]

    return shaped(chosen, schema, input_, refuse, written)
