"""Sources of the local runtime: files of a directory, and frames in memory.

A source delivers batches of rows with the columns and types of its stream. Columns are found by
name, without regard to case; those the stream does not declare are left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from tidemill.errors import RunError, closest, suggestion
from tidemill.model.batch import polars_type
from tidemill.model.types import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tidemill.lang.statements import ConnectorCall
    from tidemill.model.schema import Field, Schema

__all__ = ["read_source"]

_READERS: dict[str, Callable[[Path], pl.DataFrame]] = {
    "parquet": pl.read_parquet,
    "csv": lambda path: pl.read_csv(path, infer_schema=False),
    "json": lambda path: pl.read_ndjson(path, infer_schema_length=None),
}

_FILE_ARGUMENTS = ("path", "files_per_batch")


def read_source(
    name: str, source: ConnectorCall, schema: Schema, memory: Mapping[str, pl.DataFrame]
) -> Iterator[pl.DataFrame]:
    """The rows of a stream or relation, batch by batch.

    Args:
        name: The stream or relation.
        source: Where its rows are.
        schema: Its columns.
        memory: The frames that ``memory`` sources name.

    Raises:
        RunError: The source cannot be read, or does not have these columns.
    """
    kind = source.name.text.lower()
    arguments = _arguments(name, source)
    if kind == "memory":
        yield _memory(name, str(arguments["name"]), schema, memory)
        return
    if kind not in _READERS:
        raise RunError(
            f'the local engine cannot read "{source.name.text}", the source of "{name}"',
            hint=closest(kind, [*_READERS, "memory"])
            or f"it reads {', '.join([*_READERS, 'memory'])}",
        )
    files = _files(name, str(arguments["path"]), kind)
    size = int(arguments["files_per_batch"])
    for first in range(0, len(files), size):
        frames = [_file(path, kind, schema) for path in files[first : first + size]]
        yield pl.concat(frames)


def _arguments(name: str, source: ConnectorCall) -> dict[str, str | int | float | bool]:
    """What the source is told, by name; the first thing may stand without its name."""
    kind = source.name.text
    first, known = ("name", ("name",)) if kind.lower() == "memory" else ("path", _FILE_ARGUMENTS)
    given: dict[str, str | int | float | bool] = {"files_per_batch": 1, **dict(source.named)}
    if len(source.positional) > 1:
        raise RunError(f'the source of "{name}" takes one {first}', hint=f"write {kind}('…')")
    if source.positional:
        given[first] = source.positional[0]
    unknown = [key for key, _ in source.named if key not in known]
    if unknown:
        raise RunError(
            f'the source of "{name}" takes no argument "{unknown[0]}"',
            hint=suggestion(unknown[0], known, what="arguments"),
        )
    if first not in given:
        raise RunError(f'the source of "{name}" needs a {first}', hint=f"write {kind}('…')")
    if not isinstance(given["files_per_batch"], int) or given["files_per_batch"] < 1:
        raise RunError(f'files_per_batch of "{name}" must be a positive number', hint="write 1")
    return given


def _memory(
    name: str, key: str, schema: Schema, memory: Mapping[str, pl.DataFrame]
) -> pl.DataFrame:
    if key not in memory:
        raise RunError(
            f'there is no frame "{key}" in memory for "{name}"',
            hint=closest(key, memory) or f"give one with session.put({key!r}, frame)",
        )
    return _shaped(memory[key], schema, f'frame "{key}"')


def _files(name: str, path: str, kind: str) -> list[Path]:
    root = Path(path)
    if root.is_file():
        return [root]
    pattern = root.parent.glob(root.name) if any(c in path for c in "*?[") else root.glob("*")
    found = sorted(p for p in pattern if p.is_file() and not p.name.startswith(("_", ".")))
    if not found:
        raise RunError(
            f'there is nothing to read for "{name}" at "{path}"',
            hint=f"give a {kind} file, a directory of them, or a pattern such as data/*.{kind}",
        )
    return found


def _file(path: Path, kind: str, schema: Schema) -> pl.DataFrame:
    try:
        frame = _READERS[kind](path)
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise RunError(
            f'file "{path}" cannot be read as {kind}: {reason}',
            hint="mend or remove the file; rows read before are not lost",
        ) from error
    return _shaped(frame, schema, f'file "{path}"')


def _shaped(frame: pl.DataFrame, schema: Schema, where: str) -> pl.DataFrame:
    """The frame with the columns and types of the schema."""
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
