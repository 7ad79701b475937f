"""A table in files of a checkpoint.

    tables/<name>/table.jsonl                 the list of what is kept (``history/table_list.py``)
    tables/<name>/000000000007.parquet        what batch 7 has changed
    tables/<name>/standing-00000003.parquet   rows that are there, with their starts
    tables/<name>/past-00000002.parquet       rows that have gone, with their starts and ends
    provenance/<query>/…                      the same of tables that are kept with a query

Law: ``read`` gives what was put, or an error that says what is missing.
"""

from __future__ import annotations

import io
import shutil
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from tidemill.catalog.records import is_recording, owner_name
from tidemill.history.table_list import GoneError
from tidemill.physical.state.damaged import DamagedError
from tidemill.runtime.durable import write_durably
from tidemill.runtime.listed_files import ListedFiles
from tidemill.runtime.paths import word_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from tidemill.history.table_list import Piece
    from tidemill.model.batch import Batch

__all__ = ["MemoryTable", "TableFiles", "forget_recordings", "forget_table", "table_place"]

Ask: TypeAlias = "Callable[[pl.LazyFrame], pl.LazyFrame]"

_LIST = "table.jsonl"
_LEVEL = 1
_GROUP_ROWS = 4096
"""So many rows have their least and greatest values noted, and are read or left out together."""

_MOST_ROWS = 1 << 16
"""The same of rows that are not looked up by values, and written faster so."""


def table_place(checkpoint: Path, table: str) -> Path:
    """Where a table is, given where the checkpoint is; what is kept with a query is beside it."""
    if is_recording(table):
        return _recordings_place(checkpoint, owner_name(table)) / word_of(table.rpartition(":")[2])
    return checkpoint / "tables" / word_of(table.lower())


def _recordings_place(checkpoint: Path, query: str) -> Path:
    return checkpoint / "provenance" / word_of(query.lower())


def forget_table(checkpoint: Path, table: str) -> None:
    """Remove a table that was dropped."""
    place = table_place(checkpoint, table)
    if place.is_dir():
        shutil.rmtree(place)


def forget_recordings(checkpoint: Path, query: str) -> None:
    """Remove what was kept of what the rows of a query that was dropped were made of."""
    place = _recordings_place(checkpoint, query)
    if place.is_dir():
        shutil.rmtree(place)


class TableFiles(ListedFiles):
    """The files of a table.

    Args:
        place: Where they are.
        by_values: Whether rows are looked up by values, and not by instants alone.
    """

    def __init__(self, place: Path, *, by_values: bool = True) -> None:
        super().__init__(place, _LIST)
        self._by_values = by_values

    @property
    def is_there(self) -> bool:
        """Whether there is a table."""
        return (self._place / _LIST).is_file()

    def put(self, name: str, rows: Batch) -> None:
        """Keep rows under a name; what was there is replaced.

        Raises:
            OSError: They cannot be written.
        """
        content = io.BytesIO()
        size = _GROUP_ROWS if self._by_values else _MOST_ROWS
        rows.write_parquet(
            content, compression="zstd", compression_level=_LEVEL, row_group_size=size
        )
        write_durably(self._path(name), content.getvalue())

    def read(self, piece: Piece, ask: Ask | None = None) -> Batch:
        """The rows of a piece, or what is asked of them, read as far as that needs.

        Raises:
            GoneError: They are not there any more.
            DamagedError: They are not what was put.
        """
        path = self._path(piece.name)
        try:
            rows = pl.scan_parquet(path, glob=False, hive_partitioning=False)
            found = (rows if ask is None else ask(rows)).collect()
        except (OSError, pl.exceptions.PolarsError) as error:
            if not path.is_file():
                raise GoneError(f'"{path}" is missing') from error
            raise DamagedError(f'"{path}": {error}') from error
        if ask is None and found.height != piece.rows:
            raise DamagedError(f'"{path}" has {found.height} rows, and {piece.rows} were written')
        return found

    def has(self, name: str) -> bool:
        """Whether there are rows under a name."""
        return self._path(name).is_file()


class MemoryTable:
    """A table that ends with its process."""

    def __init__(self) -> None:
        self._rows: dict[str, Batch] = {}

    def put(self, name: str, rows: Batch) -> None:
        """Keep rows under a name."""
        self._rows[name] = rows

    def read(self, piece: Piece, ask: Ask | None = None) -> Batch:
        """The rows of a piece, or what is asked of them.

        Raises:
            GoneError: They are not there any more.
        """
        rows = self._rows.get(piece.name)
        if rows is None:
            raise GoneError(piece.name)
        return rows if ask is None else ask(rows.lazy()).collect()

    def has(self, name: str) -> bool:
        """Whether there are rows under a name."""
        return name in self._rows

    def keep_only(self, names: Iterable[str]) -> None:
        """Remove the rows under all other names."""
        self.remove(self._rows.keys() - set(names))

    def remove(self, names: Iterable[str]) -> None:
        """Remove the rows under some names."""
        for name in names:
            self._rows.pop(name, None)

    def lines(self) -> Iterator[object]:
        """Nothing: it begins empty."""
        return iter(())

    def append(self, line: str) -> None:
        """Nothing is written."""

    def rewrite(self, lines: Sequence[str]) -> None:
        """Nothing is written."""
