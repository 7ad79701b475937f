"""Parquet files: only the declared columns are read, so many rows at a time as fit into a block."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import parquet

from tidemill.errors import RunError
from tidemill.runtime.reading.blocks import BLOCK
from tidemill.runtime.reading.frames import from_arrow, shaped_frame
from tidemill.runtime.reading.shaping import Input, fail, found_columns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

    import polars as pl

    from tidemill.model.schema import Schema
    from tidemill.runtime.reading.shaping import Refuse

__all__ = ["parquet_names", "read_parquet", "rows_of_parquet"]

_SAMPLE_ROWS = 1 << 6
"""How many rows show how wide they are."""

_AT_ONCE_ROWS = 1 << 14
"""Up to how many rows a file is read at once."""

_MOST_ROWS = 1 << 19
"""How many rows are read at a time at most."""

_READABLE = (
    pa.types.is_null,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal128,
    pa.types.is_temporal,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,
    pa.types.is_large_binary,
)


def read_parquet(
    file: BinaryIO, schema: Schema, input_: Input, refuse: Refuse
) -> Iterator[pl.DataFrame]:
    """The rows of a file, piece by piece.

    Args:
        file: The file.
        schema: Its columns; others are left out.
        input_: What it is.
        refuse: What is done with malformed rows.

    Raises:
        RunError: It does not have the columns, or ``refuse`` raises it.
    """
    content = parquet.ParquetFile(file, pre_buffer=False)
    there = content.schema_arrow
    columns = found_columns(there.names, schema, input_)
    for field, column in zip(schema, columns, strict=True):
        found = there.field(column).type
        if not _is_readable(found):
            raise RunError(
                f'column "{field.name}" of {input_.where} is {found} and not {field.type}',
                hint="leave it out of the declaration, or write it with another type",
            )
    first = 1
    for batch in _batches(content, columns):
        frame = from_arrow(batch.select(columns))
        yield shaped_frame(frame, schema, input_, refuse, first=first)
        first += frame.height


def rows_of_parquet(path: Path | str, schema: Schema, skip: int, count: int) -> pl.DataFrame:
    """Some rows of a file that has been read before, none of them malformed; in full types.

    Args:
        path: The file.
        schema: The columns to read.
        skip: How many rows come before them.
        count: How many they are.
    """
    input_ = Input(f'file "{path}"', str(path), "row")
    with parquet.ParquetFile(path, pre_buffer=False) as content:
        columns = found_columns(content.schema_arrow.names, schema, input_)
        groups, first = list[int](), 0
        begins = 0
        for number in range(content.num_row_groups):
            past = first + content.metadata.row_group(number).num_rows
            if first < skip + count and past > skip:
                begins = begins if groups else first
                groups.append(number)
            first = past
        table = content.read_row_groups(groups, columns=columns, use_threads=False)
    some = table.slice(skip - begins, count).select(columns)
    return shaped_frame(from_arrow(some), schema, input_, fail, first=skip + 1)


def parquet_names(path: Path | str) -> list[str]:
    """The names of the columns of a file."""
    with parquet.ParquetFile(path, pre_buffer=False) as content:
        return list(content.schema_arrow.names)


def _batches(
    content: parquet.ParquetFile, columns: list[str]
) -> Iterator[pa.Table | pa.RecordBatch]:
    """The rows, all at once if they are few: that takes two thirds of the time."""
    if content.metadata.num_rows <= _AT_ONCE_ROWS:
        yield content.read(columns=columns, use_threads=False)
        return
    # How wide rows are in memory is not written there: a text that is there often, is there once.
    first = next(content.iter_batches(_SAMPLE_ROWS, columns=columns, use_threads=False))
    width = first.nbytes // max(first.num_rows, 1) + 1
    rows = max(_SAMPLE_ROWS, min(_MOST_ROWS, BLOCK // width))
    yield from content.iter_batches(rows, columns=columns, use_threads=False)


@cache
def _is_readable(type_: pa.DataType) -> bool:
    """Whether a column of a type can have values of a type of the language."""
    inner = type_.value_type if pa.types.is_dictionary(type_) else type_
    return any(is_such(inner) for is_such in _READABLE)
