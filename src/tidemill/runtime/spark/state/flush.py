"""Flushing Spark's files: what Spark has written for a batch is kept before the batch is done.

Spark writes offsets, commits, lists of files and changes of state, and gives them their names, but
never asks the file system to keep them. After a loss of power a commit could be there without the
state behind it. So the driver flushes what is new, once in each batch: when all tasks have
finished, and before Spark writes the commit. What Spark writes between two batches, such as the
commit itself, is flushed in the next one: a batch without its commit is computed again.

This reaches files on a local disk. On a shared file system it is left to that system.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tidemill.runtime.durable import sync_files

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SparkFiles"]


class SparkFiles:
    """The files of Spark's in a checkpoint.

    Args:
        directory: Where they are.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._known: dict[str, frozenset[str]] = {}

    def flush(self) -> None:
        """Keep what has been written since the last time: first the files, then their names.

        Raises:
            OSError: It cannot be kept.
        """
        new = {place: names for place, names in self._listed() if names}
        paths = [Path(place, name) for place, names in new.items() for name in names]
        sync_files(paths, missing_ok=True)  # Spark removes what is old at any time
        sync_files([Path(place) for place in new])

    def _listed(self) -> Iterator[tuple[str, frozenset[str]]]:
        """The new names in each directory; files that have no name of their own yet are hidden."""
        for place, directories, files in os.walk(self.directory):
            names = frozenset(n for n in (*files, *directories) if not n.startswith("."))
            yield place, names - self._known.get(place, frozenset())
            self._known[place] = names
