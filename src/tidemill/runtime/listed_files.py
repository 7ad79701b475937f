"""Listed files: rows in files of a directory, and a list that says which of them count.

What is not in the list is not there, so that a kill between two writes leaves files that nobody
looks at, and that go when the directory is opened again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.runtime.damage import json_lines
from tidemill.runtime.durable import append_durably, make_directory, write_durably

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

__all__ = ["ListedFiles"]


class ListedFiles:
    """Parquet files, and their list.

    Args:
        place: The directory.
        listed: What the list is called.
    """

    def __init__(self, place: Path, listed: str) -> None:
        self._place = place
        self._listed = listed

    def keep_only(self, names: Iterable[str]) -> None:
        """Remove the files of all other rows, and those that were not finished."""
        wanted = {self._path(name).name for name in names} | {self._listed}
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
            RunError: A line is not what was written.
        """
        path = self._place / self._listed
        return json_lines(path) if path.exists() else iter(())

    def append(self, line: str) -> None:
        """Add a line to the list."""
        append_durably(self._place / self._listed, line.encode())

    def rewrite(self, lines: Sequence[str]) -> None:
        """Replace the list, at once."""
        make_directory(self._place)
        write_durably(self._place / self._listed, "".join(lines).encode())

    def _path(self, name: str) -> Path:
        return self._place / f"{name}.parquet"
