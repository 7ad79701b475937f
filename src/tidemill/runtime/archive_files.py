"""The archive of a stream in files of a checkpoint.

    kept/<stream>/kept.jsonl               the list of what is kept (``history/archive.py``)
    kept/<stream>/000000000007-0.parquet   rows of batch 7: the columns of the stream, and ids

The time of a row is in its time column, so that it is written only of streams without one. Rows of
a reference are in a file of the source; they are numbered, timed and judged as they were then.

Law: ``get`` gives what was put, or an error that says what is missing.
"""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from tidemill.engine.ingest import Refused, readable, timed
from tidemill.errors import RunError
from tidemill.history.archive import kept_columns
from tidemill.model.batch import END, ID, START, TIME_TYPE, polars_schema
from tidemill.model.time import Time
from tidemill.physical.state.damaged import DamagedError, require_columns
from tidemill.runtime.damage import damaged, json_lines
from tidemill.runtime.durable import append_durably, make_directory, write_durably
from tidemill.runtime.files import read_file
from tidemill.runtime.paths import word_of
from tidemill.runtime.settling import Mark, mark_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tidemill.catalog.entries import StreamEntry
    from tidemill.engine.ingest import Malformed
    from tidemill.history.archive import Piece, Reference
    from tidemill.model.batch import Batch

__all__ = ["ArchiveFiles", "archive_place", "forget_archives", "piece_name"]

_LIST = "kept.jsonl"
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


class ArchiveFiles:
    """The files of an archive.

    Args:
        place: Where they are.
        stream: Whose rows they hold.
    """

    def __init__(self, place: Path, stream: StreamEntry) -> None:
        self._place = place
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
        written.write_parquet(content, compression="zstd", compression_level=_LEVEL)
        write_durably(self._path(name), content.getvalue())

    def get(self, piece: Piece) -> Batch:
        """The rows of a piece.

        Raises:
            RunError: They are not there, or not what they were.
        """
        if piece.reference is not None:
            return self._referenced(piece.reference, piece)
        path = self._path(piece.name)
        try:
            rows = self._elements(pl.read_parquet(io.BytesIO(path.read_bytes())))
            require_columns(rows, kept_columns(self._stream))
        except (FileNotFoundError, DamagedError, pl.exceptions.PolarsError) as error:
            raise damaged(f'"{path}"', error) from error
        if rows.height != piece.rows:
            raise damaged(f'"{path}"', f"it has {rows.height} rows, and {piece.rows} were written")
        return rows

    def keep_only(self, names: Iterable[str]) -> None:
        """Remove the files of all other rows, and those that were not finished."""
        wanted = {self._path(name).name for name in names} | {_LIST}
        for path in list(self._place.iterdir()):
            if path.name not in wanted and path.is_file():
                path.unlink()

    def remove(self, names: Iterable[str]) -> None:
        """Remove the files of some rows."""
        for name in names:
            self._path(name).unlink(missing_ok=True)

    def lines(self) -> Iterator[object]:
        """The list of what is kept, line by line.

        Raises:
            RunError: A line is not what was written, or the list is gone and the rows are not.
        """
        path = self._place / _LIST
        if path.exists():
            return json_lines(path)
        if any(self._place.glob("*.parquet")):  # the list is there before the first of them
            raise damaged(f'"{path}"', "it is not there, and rows are that it names")
        return iter(())

    def append(self, line: str) -> None:
        """Add a line to the list."""
        append_durably(self._place / _LIST, line.encode())

    def rewrite(self, lines: Sequence[str]) -> None:
        """Replace the list, at once."""
        make_directory(self._place)
        write_durably(self._place / _LIST, "".join(lines).encode())

    def _path(self, name: str) -> Path:
        return self._place / f"{name}.parquet"

    def _elements(self, rows: pl.DataFrame) -> Batch:
        """Rows as they are written, with their times."""
        column = self._stream.time_column
        start = pl.col(START if column is None else column).cast(TIME_TYPE)
        timed_ = rows.with_columns(start.alias(START), (start + 1).alias(END))
        return timed_.select(*self._stream.schema.names, START, END, ID)

    def _referenced(self, reference: Reference, piece: Piece) -> Batch:
        """The rows of a file of the source that were taken then."""
        path, stream = Path(reference.path), self._stream
        if mark_of(path) != Mark(reference.size, reference.changed):
            raise RunError(
                f'file "{path}" of stream "{stream.name}" has been changed or removed, and the'
                " stream keeps its past by reference to its files",
                hint="bring it back as it was; leave BY REFERENCE out where files do not stay",
            )
        kind = stream.source.name.text.lower()
        frames = list(read_file(path, kind, readable(stream), _ignored))
        whole = pl.concat([pl.DataFrame(schema=polars_schema(readable(stream))), *frames])
        rows = whole.slice(reference.skip, reference.count)
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


def _ignored(_malformed: Malformed) -> None:
    """What was malformed was told when it came."""
