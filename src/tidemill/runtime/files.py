"""Files as rows of a stream or relation: which there are, and what is in them.

Columns are found by name, without regard to case; those the stream does not declare are left out.
A value that its column's type cannot represent exactly makes its row malformed. A file of 0 bytes
is one without rows, whatever its format.
"""

from __future__ import annotations

import io
import os
from contextlib import closing
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from tidemill.errors import RunError
from tidemill.model.batch import polars_schema
from tidemill.runtime.reading.csv_files import read_csv
from tidemill.runtime.reading.json_files import read_json
from tidemill.runtime.reading.parquet_files import read_parquet, rows_of_parquet
from tidemill.runtime.reading.shaping import Input, fail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from collections.abc import Set as AbstractSet
    from typing import BinaryIO, TypeAlias

    from tidemill.model.schema import Schema
    from tidemill.runtime.reading.parquet_groups import Wanted
    from tidemill.runtime.reading.shaping import Refuse

    _Reader: TypeAlias = Callable[[BinaryIO, Schema, Input, Refuse], Iterator[pl.DataFrame]]

__all__ = ["READERS", "is_pattern", "list_files", "read_file", "rows_of_file"]

READERS: dict[str, _Reader] = {"parquet": read_parquet, "csv": read_csv, "json": read_json}

_UNITS = {"parquet": "row"}


def is_pattern(path: Path) -> bool:
    """Whether the last part of a path is a pattern, and not the name of something that is there."""
    return not path.exists() and any(c in path.name for c in "*?[")


def list_files(path: Path, known: AbstractSet[str] = frozenset()) -> list[Path]:
    """The files that a path means, by their names.

    Args:
        path: A file, a directory, or a pattern with ``*``, ``?`` or ``[…]`` in its last part.
        known: Names in the directory that are left out, at next to no cost.

    Raises:
        RunError: The name of one of them is no text.
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
    found = [one for one in paths if one.is_file()]
    for one in found:
        _require_text(one)
    return found


def _require_text(path: Path) -> None:
    """Refuse a name whose bytes are no UTF-8: it could be neither noted nor shown."""
    try:
        path.name.encode()
    except UnicodeEncodeError as error:
        shown = os.fsencode(path).decode(errors="backslashreplace")
        raise RunError(
            f'the name of file "{shown}" is not UTF-8', hint="give it another name"
        ) from error


def read_file(  # noqa: PLR0913 — what is read, and how
    path: Path | str,
    kind: str,
    schema: Schema,
    refuse: Refuse = fail,
    *,
    content: bytes | None = None,
    needed: AbstractSet[str] | None = None,
    wanted: Wanted | None = None,
    begins_whole: bool = False,
) -> Iterator[pl.DataFrame]:
    """The rows of a file, piece by piece, each of bounded size.

    Args:
        path: Where the file is.
        kind: Its format.
        schema: The columns to read.
        refuse: What is done with malformed rows; if it is not said, they are an error.
        content: What is in it, if that has been read already.
        needed: The columns that are needed, one at least; ``None`` for all. A format that has all
            of them together gives all.
        wanted: The rows that are wanted; ``None`` for all. Others are there as well; a format that
            says where they stand gives some of them with other values, marked by ``UNREAD``.
        begins_whole: Whether the first piece has all columns and values in any case.

    Raises:
        RunError: It cannot be read, or does not have the columns of the schema.
    """
    is_shown = content is not None or not _leads_elsewhere(Path(path))
    input_ = Input(f'file "{path}"', str(path), _UNITS.get(kind, "line"), is_shown=is_shown)
    try:
        with closing(io.BytesIO(content) if content is not None else Path(path).open("rb")) as file:
            if _is_empty(file):
                return
            if kind == "parquet":
                yield from read_parquet(
                    file, schema, input_, refuse, needed, wanted, begins_whole=begins_whole
                )
            else:
                yield from READERS[kind](file, schema, input_, refuse)
    except (pl.exceptions.PolarsError, pa.ArrowException, OSError) as error:
        reason = f": {str(error).splitlines()[0]}" if is_shown and str(error) else ""
        raise RunError(
            f'file "{path}" cannot be read as {kind}{reason}',
            hint="fix it, or replace it with an empty file; rows read before are not lost",
        ) from (error if is_shown else None)


def rows_of_file(  # noqa: PLR0913 — which rows of what
    path: Path | str, kind: str, schema: Schema, skip: int, count: int, *, is_plain: bool
) -> pl.DataFrame:
    """Some of the rows that ``read_file`` gives, malformed ones left out.

    Args:
        path: Where the file is.
        kind: Its format.
        schema: The columns to read.
        skip: How many rows come before them.
        count: How many they are.
        is_plain: Whether none of those that come before is malformed.

    Raises:
        RunError: It cannot be read.
    """
    if kind == "parquet" and is_plain:
        return rows_of_parquet(path, schema, skip, count)
    frames: list[pl.DataFrame] = [pl.DataFrame(schema=polars_schema(schema))]
    left = count
    for frame in read_file(path, kind, schema, lambda _malformed: None):
        if skip < frame.height and left:
            frames.append(frame.slice(skip, left))
            left -= frames[-1].height
        skip = max(skip - frame.height, 0)
        if not left:
            break
    return pl.concat(frames)


def _is_empty(file: BinaryIO) -> bool:
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    return size == 0


def _leads_elsewhere(path: Path) -> bool:
    """Whether a name stands for a file of another directory, of which errors tell nothing.

    A user who may put a link into a directory need not be allowed to read what it leads to.
    """
    if not path.is_symlink():
        return False  # then it is where its name says, whatever its directory is
    real = Path(os.path.realpath(path))
    return not real.is_relative_to(os.path.realpath(path.parent))
