"""Parquet files: only the columns that are needed, so many rows at a time as fit into a block.

What a piece is follows from the file and from what was declared; it is the same whatever columns
are needed. If a row is malformed, it is told with all its columns: then the rest of the file is
read with all of them.
"""

from __future__ import annotations

from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import parquet

from tidemill.errors import RunError
from tidemill.model.schema import Schema
from tidemill.runtime.reading.blocks import BLOCK
from tidemill.runtime.reading.frames import from_arrow, is_sound, shaped_frame
from tidemill.runtime.reading.parquet_columns import choose
from tidemill.runtime.reading.shaping import Input, fail, found_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from collections.abc import Set as AbstractSet
    from pathlib import Path
    from typing import BinaryIO

    import polars as pl

    from tidemill.engine.ingest import Malformed
    from tidemill.runtime.reading.parquet_columns import Chosen
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


def read_parquet(  # noqa: PLR0913 — what is read, and how
    file: BinaryIO,
    schema: Schema,
    input_: Input,
    refuse: Refuse,
    needed: AbstractSet[str] | None = None,
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
        begins_whole: Whether the first piece has all columns in any case.

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
    whole = _Pieces(content, rows, schema, columns, input_)
    if needed is None or needed >= set(schema.names):
        yield from whole.read(refuse)
        return
    done = 0
    if begins_whole:
        yield from islice(whole.read(refuse), 1)
        done = 1
        if not rows:
            return
    wanted = [name for name in schema.names if name in needed]
    chosen = choose(content, schema, columns, needed)
    for piece in whole.chosen(chosen, done):
        if piece is None:
            break
        yield piece.select(wanted)
        done += 1
    else:
        return
    for piece in whole.read(refuse, done):
        yield piece.select(wanted)


class _Pieces:
    """The pieces of a file.

    Args:
        content: The file.
        rows: How many rows each of them has; 0 if there is only one.
        schema: What was declared.
        columns: What the columns are called in the file.
        input_: What it is.
    """

    def __init__(
        self,
        content: parquet.ParquetFile,
        rows: int,
        schema: Schema,
        columns: list[str],
        input_: Input,
    ) -> None:
        self._content = content
        self._rows = rows
        self._schema = schema
        self._columns = columns
        self._input = input_

    def read(self, refuse: Refuse, skip: int = 0) -> Iterator[pl.DataFrame]:
        """Pieces with all columns, without the first ones."""
        first = 1 + skip * self._rows
        for batch in islice(self._batches(self._columns), skip, None):
            frame = from_arrow(batch.select(self._columns))
            yield shaped_frame(frame, self._schema, self._input, refuse, first=first)
            first += frame.height

    def chosen(self, chosen: Chosen, skip: int) -> Iterator[pl.DataFrame | None]:
        """Pieces with some columns, up to one with a malformed row, which is ``None``."""
        schema = Schema(chosen.read)
        found: list[Malformed] = []
        called = dict(zip(self._schema.names, self._columns, strict=True))
        columns = [called[field.name] for field in chosen.read]
        for batch in islice(self._batches([*columns, *chosen.texts]), skip, None):
            frame = from_arrow(batch.select(columns))
            shaped = shaped_frame(frame, schema, self._input, found.append)
            is_good = not found and all(is_sound(batch.column(name)) for name in chosen.texts)
            yield shaped if is_good else None

    def _batches(self, columns: list[str]) -> Iterator[pa.Table | pa.RecordBatch]:
        if not self._rows:
            yield self._content.read(columns=columns, use_threads=False)
            return
        batches = self._content.iter_batches(self._rows, columns=columns, use_threads=False)
        yield from _cut(batches, self._rows)


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


def _cut(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table | pa.RecordBatch]:
    """The rows in pieces of one size: batches may end with the groups that rows are written in."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        if not waiting and batch.num_rows == rows:
            yield batch
            continue
        waiting.append(batch)
        count += batch.num_rows
        while count >= rows:
            table = pa.Table.from_batches(waiting)
            yield table.slice(0, rows)
            waiting, count = table.slice(rows).to_batches(), count - rows
    if waiting:
        yield pa.Table.from_batches(waiting)


def _is_fixed(type_: pa.DataType) -> bool:
    """Whether all values of a type take as many bytes."""
    return bool(pa.types.is_primitive(type_))


@cache
def _is_readable(type_: pa.DataType) -> bool:
    """Whether a column of a type can have values of a type of the language."""
    inner = type_.value_type if pa.types.is_dictionary(type_) else type_
    return any(is_such(inner) for is_such in _READABLE)
