"""Pieces of a Parquet file: as many rows at a time as fit into a block.

What a piece is follows from the file and from what was declared; it is the same whatever is read.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import polars as pl
import pyarrow as pa

from tidemill.model.batch import polars_schema
from tidemill.model.schema import Schema
from tidemill.runtime.reading.frames import from_arrow, is_sound, shaped_frame
from tidemill.runtime.reading.parquet_groups import UNREAD, Run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyarrow import parquet

    from tidemill.engine.ingest import Malformed
    from tidemill.runtime.reading.parquet_columns import Chosen
    from tidemill.runtime.reading.shaping import Input, Refuse

__all__ = ["Pieces"]


class _Part(NamedTuple):
    """Rows of a run, or how many there are if nothing is read of them."""

    run: Run
    rows: int
    batch: pa.Table | pa.RecordBatch | None

    def cut(self, at: int) -> tuple[_Part, _Part]:
        """The first rows, and the others."""
        first, others = (None, None) if self.batch is None else _halves(self.batch, at)
        return self._replace(rows=at, batch=first), self._replace(rows=self.rows - at, batch=others)


class Pieces:
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
        names = self._names_of(chosen)
        for batch in islice(self._batches(names), skip, None):
            yield self._shaped(batch, chosen)

    def skipping(
        self, runs: Iterable[Run], chosen: Chosen, rest: Chosen, asked: Iterable[str], skip: int
    ) -> Iterator[pl.DataFrame | None]:
        """Pieces of which some runs are not read; the last is ``None`` if it has malformed rows.

        Args:
            runs: The groups of the file.
            chosen: What is read of groups that are wanted.
            rest: What is read of those that are not.
            asked: The columns that pieces have.
            skip: How many pieces are left out.
        """
        asked = list(asked)
        types = polars_schema(self._schema)
        for parts in islice(_joined(self._parts(runs, chosen, rest), self._rows), skip, None):
            frames: list[pl.DataFrame] = []
            for run, rows, batch in parts:
                frame = None
                if batch is not None:
                    frame = self._shaped(batch, chosen if run.instead is None else rest)
                    if frame is None:
                        break
                frames.append(_filled(frame, rows, run, asked, types))
            yield pl.concat(frames) if len(frames) == len(parts) else None

    def _parts(self, runs: Iterable[Run], chosen: Chosen, rest: Chosen) -> Iterator[_Part]:
        """The rows of runs, with what is read of them."""
        for run in runs:
            names, groups = self._names_of(chosen if run.instead is None else rest), [*run.groups]
            if not names:
                yield _Part(run, run.rows, None)
            elif not self._rows:
                table = self._content.read_row_groups(groups, columns=names, use_threads=False)
                yield _Part(run, run.rows, table)
            else:
                for batch in self._content.iter_batches(
                    self._rows, row_groups=groups, columns=names, use_threads=False
                ):
                    yield _Part(run, batch.num_rows, batch)

    def _names_of(self, chosen: Chosen) -> list[str]:
        """What the columns are called that are read or looked at."""
        called = dict(zip(self._schema.names, self._columns, strict=True))
        return [*(called[field.name] for field in chosen.read), *chosen.texts]

    def _shaped(self, batch: pa.Table | pa.RecordBatch, chosen: Chosen) -> pl.DataFrame | None:
        """Rows with the columns that were read; ``None`` if one of them is malformed."""
        found: list[Malformed] = []
        columns = self._names_of(chosen)[: len(chosen.read)]
        frame = from_arrow(batch.select(columns))
        shaped = shaped_frame(frame, Schema(chosen.read), self._input, found.append)
        is_good = not found and all(is_sound(batch.column(name)) for name in chosen.texts)
        return shaped if is_good else None

    def _batches(self, columns: list[str]) -> Iterator[pa.Table | pa.RecordBatch]:
        if not self._rows:
            yield self._content.read(columns=columns, use_threads=False)
            return
        batches = self._content.iter_batches(self._rows, columns=columns, use_threads=False)
        yield from _cut(batches, self._rows)


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


def _joined(parts: Iterable[_Part], rows: int) -> Iterator[list[_Part]]:
    """Parts in pieces of one size; in one piece if that is 0."""
    waiting: list[_Part] = []
    count = 0
    for part in parts:
        left = part
        while rows and count + left.rows >= rows:
            first, left = left.cut(rows - count)
            yield [*waiting, first]
            waiting, count = [], 0
        if left.rows:
            waiting.append(left)
            count += left.rows
    if waiting:
        yield waiting


def _halves(
    batch: pa.Table | pa.RecordBatch, at: int
) -> tuple[pa.Table | pa.RecordBatch, pa.Table | pa.RecordBatch]:
    return batch.slice(0, at), batch.slice(at)


def _filled(
    frame: pl.DataFrame | None,
    rows: int,
    run: Run,
    asked: Iterable[str],
    types: Mapping[str, pl.DataType],
) -> pl.DataFrame:
    """Rows with the columns that are asked for, and whether they only stand for others.

    Args:
        frame: What has been read of them.
        rows: How many they are.
        run: Where they stand.
        asked: The columns.
        types: The types of columns.
    """
    marks = pl.repeat(run.instead is not None, rows, dtype=pl.Boolean(), eager=True).alias(UNREAD)
    there = marks.to_frame() if frame is None else frame.with_columns(marks)
    if run.instead is None:
        return there.select(*asked, UNREAD)
    constants = [
        pl.lit(run.instead[name], dtype=types[name]).alias(name)
        for name in asked
        if name not in there.columns
    ]
    return there.with_columns(constants).select(*asked, UNREAD)
