"""The cache: copies of segments as files on this host, mapped into memory.

Every process of the host reads them without copying. The cache can be lost at any time, in whole or
in part; it is bounded, and the files that were not used for longest go first. A file appears under
its name only when it is complete.
"""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING
from uuid import uuid4

import polars as pl
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Cache"]


class Cache:
    """Segments of one checkpoint on this host.

    Args:
        directory: Where the files are.
        limit: How many bytes they may take together.
    """

    def __init__(self, directory: Path, *, limit: int) -> None:
        self._directory = directory
        self._limit = limit
        self._is_swept = False

    def write(self, name: str, frame: pl.DataFrame) -> bytes:
        """Keep a segment; its bytes, in Arrow's IPC format."""
        buffer = io.BytesIO()
        frame.write_ipc(buffer)
        blob = buffer.getvalue()
        self._put(name, blob)
        return blob

    def restore(self, name: str, blob: bytes) -> pl.DataFrame:
        """Keep a segment that was lost here; its rows."""
        self._put(name, blob)
        return pl.read_ipc(io.BytesIO(blob))

    def read(self, name: str) -> pl.DataFrame | None:
        """The rows of a segment, if it is here."""
        path = self._directory / name
        try:
            frame = _mapped(path)
            os.utime(path)
        except (OSError, pa.ArrowInvalid, pl.exceptions.PolarsError):
            return None  # lost, or damaged: the shelf has it
        return frame

    def remove(self, name: str) -> None:
        """Forget a segment."""
        (self._directory / name).unlink(missing_ok=True)

    def _put(self, name: str, blob: bytes) -> None:
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


def _mapped(path: Path) -> pl.DataFrame:
    """The rows of a file, mapped into memory if Arrow knows their types."""
    try:
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    except pa.ArrowNotImplementedError:  # numbers of 128 bits
        return pl.read_ipc(path)
    frame = pl.from_arrow(table, rechunk=False)
    assert isinstance(frame, pl.DataFrame), "a table is a frame"
    return frame
