"""Frames that have types of their own: those in memory, and those that others have read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tidemill.runtime.reading.shaping import found_columns, shaped
from tidemill.runtime.reading.values import values_of

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
    chosen = [frame[name] for name in found_columns(frame.columns, schema, input_)]

    def written(places: list[int]) -> list[tuple[int | None, str]]:
        values = [values_of(column.gather(places)) for column in chosen]
        rows = [dict(zip(schema.names, row, strict=True)) for row in zip(*values, strict=True)]
        return [
            (None if first is None else first + place, json.dumps(row, default=str))
            for place, row in zip(places, rows, strict=True)
        ]

    return shaped(chosen, schema, input_, refuse, written)
