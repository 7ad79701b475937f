"""Frames that have types of their own: those in memory, and those that others have read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from tidemill.runtime.reading.shaping import found_columns, shaped
from tidemill.runtime.reading.values import values_of

if TYPE_CHECKING:
    from tidemill.model.schema import Schema
    from tidemill.runtime.reading.shaping import Input, Refuse

__all__ = ["from_arrow", "is_sound", "shaped_frame"]

_QUICK = 1 << 22
"""How many bytes are copied at most to see whether they are ASCII."""

_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)


def from_arrow(table: pa.Table | pa.RecordBatch) -> pl.DataFrame:
    """A table of Arrow as a frame; texts that are no UTF-8 are bytes.

    Arrow does not look whether a file that calls bytes a text is right, and Polars trusts it.
    """
    for place, column in enumerate(table.columns):
        if not is_sound(column):
            name = table.schema.names[place]
            table = table.set_column(place, name, column.cast(pa.large_binary()))
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame), "a table is a frame"
    return frame


def is_sound(column: pa.Array | pa.ChunkedArray) -> bool:
    """Whether a column has no text that is no UTF-8."""
    if not any(is_text(column.type) for is_text in _TEXTS):
        return True
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    if all(map(_is_ascii, chunks)):
        return True  # which is most often so, and found out in a third of the time
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _is_ascii(chunk: pa.Array) -> bool:
    """Whether all characters of a chunk are of ASCII, as far as that is quickly found out."""
    if pa.types.is_string_view(chunk.type):
        return False
    content = chunk.buffers()[2]
    return content is None or (content.size <= _QUICK and content.to_pybytes().isascii())


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
