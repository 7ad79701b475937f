"""The cache: copies of packs of segments as files on this host, mapped into memory.

Every process of the host reads them without copying. The cache can be lost at any time, in whole or
in part; it is bounded, and the files that were not used for longest go first. A file appears under
its name only when it is complete.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Cache"]


class Cache:
    """Packs of one checkpoint on this host.

    Args:
        directory: Where the files are.
        limit: How many bytes they may take together.
    """

    def __init__(self, directory: Path, *, limit: int) -> None:
        self._directory = directory
        self._limit = limit
        self._is_swept = False

    def read(self, name: str) -> pa.Buffer | None:
        """The bytes of a pack, if it is here."""
        path = self._directory / name
        try:
            os.utime(path)
            return pa.memory_map(str(path)).read_buffer()
        except (OSError, pa.ArrowInvalid):
            return None  # lost, or empty: the shelf has it

    def remove(self, name: str) -> None:
        """Forget a pack."""
        (self._directory / name).unlink(missing_ok=True)

    def write(self, name: str, blob: bytes) -> None:
        """Keep a pack."""
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            unfinished = self._directory / f"{name}.{uuid4().hex}.part"
            unfinished.write_bytes(blob)
            unfinished.rename(self._directory / name)
        except OSError:
            return  # a full disk only makes the next batch slower
        if not self._is_swept:  # a task has a cache of its own, so this is once a task
            self._is_swept = True
            self._sweep()

    def _sweep(self) -> None:
        """Remove the files not used for longest until the others fit."""
        files = sorted(self._files(), reverse=True)
        size = 0
        for _, bytes_, path in files:
            size += bytes_
            if size > self._limit:
                path.unlink(missing_ok=True)

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        for path in self._directory.iterdir():
            try:
                facts = path.stat()
            except FileNotFoundError:
                continue  # another process was faster
            yield facts.st_mtime, facts.st_size, path
