"""The archive of a stream in files of a checkpoint.

    kept/<stream>/kept.jsonl               the list of what is kept (``history/archive.py``)
    kept/<stream>/000000000007-0.parquet   rows of batch 7: the columns of the stream, and ids
    kept/<stream>/file-000000000003.parquet   a copy of a file of the source

The time of a row is in its time column, so that it is written only of streams without one. Rows of
a reference are in a file of the source, or in a copy of it, which takes a tenth of the time that it
takes to write them anew; they are numbered, timed and judged as they were then.

Law: ``get`` gives what was put, or an error that says what is missing.
"""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from tidemill.engine.ingest import Refused, file_number, readable, timed
from tidemill.errors import RunError
from tidemill.history.archive import MemoryStore, kept_columns
from tidemill.history.pieces import PIECE_ROWS
from tidemill.model.batch import END, ID, START, TIME_TYPE
from tidemill.model.time import Time
from tidemill.physical.state.damaged import DamagedError, require_columns
from tidemill.runtime.damage import damaged
from tidemill.runtime.durable import (
    copy_durably,
    make_directory,
    write_durably,
)
from tidemill.runtime.files import rows_of_file
from tidemill.runtime.listed_files import ListedFiles
from tidemill.runtime.paths import word_of
from tidemill.runtime.reading.parquet_files import parquet_names
from tidemill.runtime.settling import Mark, mark_of, require_unchanged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidemill.catalog.entries import StreamEntry
    from tidemill.history.pieces import Piece, Reference
    from tidemill.model.batch import Batch
    from tidemill.runtime.settling import FileRows

__all__ = ["ArchiveFiles", "MemoryArchive", "archive_place", "forget_archives", "piece_name"]

_LIST = "kept.jsonl"
_WORTH_COPYING = 1 << 20
"""How large a file is at least that is copied as it is; rows of small ones are put together."""

_LEVEL = 1
"""How hard files are compressed: rows are written in every batch, and read rarely."""


def archive_place(directory: Path, stream: str) -> Path:
    """Where the archive of a stream is, given where all of them are."""
    return directory / word_of(stream)


def forget_archives(directory: Path, kept: Iterable[str]) -> None:
    """Remove the archives of all streams but some."""
    wanted = {word_of(name) for name in kept}
    for path in directory.iterdir() if directory.is_dir() else ():
        if path.name not in wanted and path.is_dir():
            shutil.rmtree(path)


def piece_name(batch: int, part: int = 0) -> str:
    """What some rows of a batch are called."""
    return f"{batch:012d}-{part}"


class ArchiveFiles(ListedFiles):
    """The files of an archive.

    Args:
        place: Where they are.
        stream: Whose rows they hold.
    """

    def __init__(self, place: Path, stream: StreamEntry) -> None:
        super().__init__(place, _LIST)
        self._stream = stream

    def put(self, name: str, rows: Batch) -> None:
        """Keep rows under a name; what was there is replaced.

        Raises:
            OSError: They cannot be written.
        """
        make_directory(self._place)
        times = () if self._stream.time_column is not None else (START,)
        written = rows.select(*self._stream.schema.names, *times, ID)
        content = io.BytesIO()
        written.write_parquet(
            content, compression="zstd", compression_level=_LEVEL, row_group_size=PIECE_ROWS
        )
        write_durably(self._path(name), content.getvalue())

    def copy(self, file: FileRows) -> str | None:
        """Copy a file of the source as it is, if that is the best way; what the copy is called.

        It is for a large Parquet file that has no columns but those of the stream.

        Raises:
            RunError: It has changed since it was taken.
            OSError: It cannot be copied.
        """
        if file.kind != "parquet" or file.mark.size < _WORTH_COPYING:
            return None
        name = f"file-{file_number(file.first):012d}"
        path = self._path(name)
        if mark_of(path) != (mark := Mark(file.mark.size, file.mark.changed)):
            names = set(parquet_names(file.path))
            if names != set(self._stream.schema.names):
                return None
            make_directory(self._place)
            copy_durably(Path(file.path), path, changed=mark.changed)
            require_unchanged(file.path, mark)
        return name

    def get(self, piece: Piece) -> Batch:
        """The rows of a piece.

        Raises:
            RunError: They are not there, or not what they were.
        """
        if piece.reference is not None:
            return self._referenced(piece.reference, piece)
        path = self._path(piece.name)
        try:
            found = pl.scan_parquet(path, glob=False, hive_partitioning=False)
            rows = self._elements(found.slice(piece.skip, piece.rows).collect())
            require_columns(rows, kept_columns(self._stream))
        except (FileNotFoundError, DamagedError, pl.exceptions.PolarsError) as error:
            raise damaged(f'"{path}"', error) from error
        if rows.height != piece.rows:
            raise damaged(f'"{path}"', f"it has {rows.height} rows, and {piece.rows} were written")
        return rows

    def lines(self) -> Iterator[object]:
        """The list of what is kept, line by line.

        Raises:
            RunError: A line is not what was written, or the list is gone and the rows are not.
        """
        path = self._place / _LIST
        if not path.exists() and any(self._place.glob("*.parquet")):
            # The list is there before the first of them.
            raise damaged(f'"{path}"', "it is not there, and rows are that it names")
        return super().lines()

    def _elements(self, rows: pl.DataFrame) -> Batch:
        """Rows as they are written, with their times."""
        column = self._stream.time_column
        start = pl.col(START if column is None else column).cast(TIME_TYPE)
        timed_ = rows.with_columns(start.alias(START), (start + 1).alias(END))
        return timed_.select(*self._stream.schema.names, START, END, ID)

    def _referenced(self, reference: Reference, piece: Piece) -> Batch:
        """The rows of a file of the source, or of a copy of it, that were taken then."""
        if reference.path:
            return rows_of_source(self._stream, reference, piece)
        path = self._path(piece.name)
        require_copy(path, Mark(reference.size, reference.changed))
        return _taken(self._stream, path, "parquet", reference, piece)


class MemoryArchive(MemoryStore):
    """An archive that ends with its process; what it names of files of the source is read there.

    Args:
        stream: Whose rows it holds.
    """

    def __init__(self, stream: StreamEntry) -> None:
        super().__init__()
        self._stream = stream

    def get(self, piece: Piece) -> Batch:
        """The rows of a piece.

        Raises:
            RunError: They are in a file that is not what it was.
        """
        if piece.reference is not None:
            return rows_of_source(self._stream, piece.reference, piece)
        return super().get(piece)


def rows_of_source(stream: StreamEntry, reference: Reference, piece: Piece) -> Batch:
    """The rows of a file of the source that were taken then.

    Raises:
        RunError: It is not there any more, or was changed.
    """
    path = Path(reference.path)
    if mark_of(path) != Mark(reference.size, reference.changed):
        raise RunError(
            f'file "{path}" of stream "{stream.name}" has been changed or removed, and the'
            " stream keeps its past by reference to its files",
            hint="bring it back as it was, or drop the query that needs it and create it with START"
            " FRESH; leave BY REFERENCE out where files do not stay",
        )
    return _taken(stream, path, stream.source.name.text.lower(), reference, piece)


def _taken(stream: StreamEntry, path: Path, kind: str, reference: Reference, piece: Piece) -> Batch:
    """Rows of a file as the elements that were taken of it."""
    skip, count = reference.skip, reference.count
    rows = rows_of_file(path, kind, readable(stream), skip, count, is_plain=reference.is_plain)
    elements = timed(
        stream,
        rows,
        first_id=reference.number + reference.skip,
        arrival=Time(reference.arrival),
        refused=Refused(stream),
    )
    taken = elements.filter(pl.col(START) >= reference.watermark)
    if taken.height != piece.rows:
        raise damaged(f'"{path}"', f"it has {taken.height} rows that were {piece.rows}")
    return taken


def require_copy(path: Path, mark: Mark) -> None:
    """Refuse a copy that is not what was written.

    Raises:
        RunError: It is not there, or another one.
    """
    found = mark_of(path)
    if found is None:
        missing = FileNotFoundError(str(path))
        raise damaged(f'"{path}"', "it is not there") from missing
    if found.size != mark.size:
        raise damaged(f'"{path}"', f"it has {found.size} bytes, and {mark.size} were written")
