"""Files and frames as rows of a stream or relation: the declared columns, with their types.

Columns are found by name, without regard to case; those the stream does not declare are left out.
Files without types, and frames with others, are converted; what cannot be converted is an error
that names the file and the column.
"""

from __future__ import annotations

import io
import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
from pyarrow import parquet

from tidemill.errors import RunError, suggestion
from tidemill.model.batch import polars_schema, polars_type
from tidemill.model.types import Kind

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from tidemill.model.schema import Field, Schema

__all__ = ["READERS", "is_pattern", "list_files", "read_file", "shaped"]


def _read_parquet(source: Path | io.BytesIO) -> pl.DataFrame:
    """The rows of a Parquet file; for small files Arrow's reader takes two thirds of the time."""
    frame = pl.from_arrow(parquet.ParquetFile(source).read(use_threads=False))
    assert isinstance(frame, pl.DataFrame), "a table is a frame"
    return frame


def _opened(source: Path | io.BytesIO) -> io.BytesIO:
    """The content; of a path, Polars takes some names for patterns."""
    return io.BytesIO(source.read_bytes()) if isinstance(source, Path) else source


READERS: dict[str, Callable[[Path | io.BytesIO], pl.DataFrame]] = {
    "parquet": _read_parquet,
    "csv": lambda source: pl.read_csv(_opened(source), infer_schema=False),
    "json": lambda source: pl.read_ndjson(_opened(source), infer_schema_length=None),
}


def is_pattern(path: Path) -> bool:
    """Whether the last part of a path is a pattern, and not the name of something that is there."""
    return not path.exists() and any(c in path.name for c in "*?[")


def list_files(path: Path, known: AbstractSet[str] = frozenset()) -> list[Path]:
    """The files that a path means, by their names.

    Args:
        path: A file, a directory, or a pattern with ``*``, ``?`` or ``[…]`` in its last part.
        known: Names in the directory that are left out, at next to no cost.
    """
    if path.is_file():
        return [] if path.name in known else [path]
    place, pattern = (path.parent, path.name) if is_pattern(path) else (path, "*")
    try:
        names = set(os.listdir(place)) - known  # noqa: PTH208 — names, of many files
    except (FileNotFoundError, NotADirectoryError):
        return []
    chosen = (name for name in names if not name.startswith(("_", ".")))
    paths = (place / name for name in sorted(chosen) if fnmatchcase(name, pattern))
    return [path for path in paths if path.is_file()]


def read_file(
    path: Path | str, kind: str, schema: Schema, *, content: bytes | None = None
) -> pl.DataFrame:
    """The rows of a file, which is at ``path`` or whose content has been read already.

    Raises:
        RunError: It cannot be read, or does not have the columns of the schema.
    """
    try:
        frame = READERS[kind](Path(path) if content is None else io.BytesIO(content))
    except (pl.exceptions.PolarsError, pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise RunError(
            f'file "{path}" cannot be read as {kind}: {reason}',
            hint="mend it, or put a file without rows in its place; rows read before are not lost",
        ) from error
    return shaped(frame, schema, f'file "{path}"')


def shaped(frame: pl.DataFrame, schema: Schema, where: str) -> pl.DataFrame:
    """The frame with the columns and types of the schema."""
    if list(frame.schema.items()) == list(polars_schema(schema).items()):
        return frame
    by_lower = {column.lower(): column for column in reversed(frame.columns)}
    series = []
    for field in schema:
        if field.name.lower() not in by_lower:
            raise RunError(
                f'{where} has no column "{field.name}"',
                hint=suggestion(field.name, frame.columns),
            )
        series.append(_column(frame[by_lower[field.name.lower()]], field, where))
    return pl.DataFrame(series)


def _column(column: pl.Series, field: Field, where: str) -> pl.Series:
    target = polars_type(field.type)
    try:
        if column.dtype == pl.String and field.type.kind is Kind.TIMESTAMP:
            column = column.str.to_datetime(time_unit="us", time_zone=None)
        elif column.dtype == pl.String and field.type.kind is Kind.DATE:
            column = column.str.to_date()
        elif column.dtype == pl.String and field.type.kind is Kind.BOOLEAN:
            column = column.str.to_lowercase().replace_strict(
                {"true": True, "false": False}, return_dtype=pl.Boolean()
            )
        return column.cast(target).alias(field.name)
    except pl.exceptions.PolarsError as error:
        raise RunError(
            f'column "{field.name}" of {where} is {column.dtype} and not {field.type}',
            hint=str(error).splitlines()[0],
        ) from error
