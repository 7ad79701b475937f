"""Parquet files: only the columns and row groups that are needed, in pieces of bounded size.

If a row is malformed, it is told with all its columns: then the rest of the file is read with all
of them.
"""

from __future__ import annotations

from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import parquet

from tidemill.errors import RunError
from tidemill.runtime.reading.blocks import BLOCK
from tidemill.runtime.reading.frames import from_arrow, shaped_frame
from tidemill.runtime.reading.parquet_columns import choose
from tidemill.runtime.reading.parquet_groups import UNREAD, runs_of
from tidemill.runtime.reading.parquet_pieces import Pieces
from tidemill.runtime.reading.shaping import Input, fail, found_columns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet
    from pathlib import Path
    from typing import BinaryIO

    import polars as pl

    from tidemill.model.schema import Schema
    from tidemill.runtime.reading.parquet_groups import Wanted
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


def read_parquet(  # noqa: PLR0913, PLR0917 — what is read, and how
    file: BinaryIO,
    schema: Schema,
    input_: Input,
    refuse: Refuse,
    needed: AbstractSet[str] | None = None,
    wanted: Wanted | None = None,
    *,
    begins_whole: bool = False,
) -> Iterator[pl.DataFrame]:
    """The rows of a file, piece by piece.

    Args:
        file: The file.
        schema: Its columns; others are left out.
        input_: What it is.
        refuse: What is done with malformed rows.
        needed: The columns that are wanted, one at least; ``None`` for all.
        wanted: The rows that are wanted; ``None`` for all. Others are there as well, some of them
            with other values, and marked by ``UNREAD``.
        begins_whole: Whether the first piece has all columns and values in any case.

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
    rows = _rows_at_once(content, columns)
    whole = Pieces(content, rows, schema, columns, input_)
    runs = [] if wanted is None else runs_of(content, schema, columns, wanted)
    if not runs and (needed is None or needed >= set(schema.names)):
        yield from whole.read(refuse)
        return
    done = 0
    if begins_whole:
        yield from islice(whole.read(refuse), 1)
        done = 1
        if not rows:
            return
    asked = schema.names if needed is None else [n for n in schema.names if n in needed]
    chosen = choose(content, schema, columns, asked)
    if wanted is not None and runs:
        rest = choose(content, schema, columns, wanted.timed)
        pieces = whole.skipping(runs, chosen, rest, asked, done)
    else:
        pieces = whole.chosen(chosen, done)
    for piece in pieces:
        if piece is None:
            break
        yield piece.select(*asked, *(name for name in (UNREAD,) if name in piece.columns))
        done += 1
    else:
        return
    for piece in whole.read(refuse, done):
        yield piece.select(asked)


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


def _rows_at_once(content: parquet.ParquetFile, columns: list[str]) -> int:
    """How many rows a piece has; 0 if all are read at once: of few, that takes less time."""
    if content.metadata.num_rows <= _AT_ONCE_ROWS:
        return 0
    # How wide rows are in memory is not written there: a text that is there often, is there once.
    types = {name: content.schema_arrow.field(name).type for name in columns}
    width = sum(type_.bit_width / 8 for type_ in types.values() if _is_fixed(type_))
    others = [name for name, type_ in types.items() if not _is_fixed(type_)]
    if others:
        some = next(content.iter_batches(_SAMPLE_ROWS, columns=others, use_threads=False))
        width += some.nbytes / max(some.num_rows, 1)
    return max(_SAMPLE_ROWS, min(_MOST_ROWS, BLOCK // (int(width) + 1)))


def _is_fixed(type_: pa.DataType) -> bool:
    """Whether all values of a type take as many bytes."""
    return bool(pa.types.is_primitive(type_))


@cache
def _is_readable(type_: pa.DataType) -> bool:
    """Whether a column of a type can have values of a type of the language."""
    inner = type_.value_type if pa.types.is_dictionary(type_) else type_
    return any(is_such(inner) for is_such in _READABLE)
