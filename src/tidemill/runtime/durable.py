"""Durable writes: what survives a loss of power, and in which order it gets there.

A file system may keep a new name before the bytes behind it, and forget a name that it has not been
asked to keep. So data is flushed before it gets its name, and a directory is flushed after a name
in it has changed.

Law: after a crash at any moment, a file written by ``write_durably`` has its old content or its new
one, and once the call has returned, the new one.
"""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = [
    "append_durably",
    "copy_durably",
    "make_directory",
    "rename_durably",
    "sync_directory",
    "sync_file",
    "sync_files",
    "write_durably",
]

_AT_ONCE = 4
"""How many files are flushed at a time."""

_PARALLEL_FROM = 4
"""Fewer files than this are flushed one after another."""


def write_durably(path: Path, content: bytes) -> None:
    """Replace a file, or make it; readers see the old content or the new one, nothing between."""
    unfinished = path.with_name(f".{path.name}.part")
    with unfinished.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    rename_durably(unfinished, path)


def copy_durably(source: Path, path: Path, *, changed: int) -> None:
    """Copy a file; readers see nothing or all of it.

    Args:
        source: The file.
        path: The copy; what was there is replaced.
        changed: When it is to have been changed last, in nanoseconds.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    shutil.copyfile(source, unfinished)
    os.utime(unfinished, ns=(changed, changed))
    sync_file(unfinished)
    rename_durably(unfinished, path)


def append_durably(path: Path, content: bytes) -> None:
    """Add to the end of a file, which is made if it is not there.

    A crash may leave a part of ``content`` at the end: readers must be able to tell.
    """
    is_new = not path.exists()
    with path.open("ab") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    if is_new:
        sync_directory(path.parent)


def rename_durably(old: Path, new: Path) -> None:
    """Give a file or directory, whose content has been flushed, its name."""
    old.rename(new)
    sync_directory(new.parent)


def make_directory(path: Path) -> None:
    """Make a directory and those above it that are missing, each with a name that lasts."""
    missing = []
    while not path.exists():
        missing.append(path)
        path = path.parent
    for directory in reversed(missing):
        directory.mkdir(exist_ok=True)
        sync_directory(directory.parent)


def sync_file(path: Path) -> None:
    """Keep the content of a file that another library has written."""
    _sync(path)


def sync_files(paths: Sequence[Path], *, missing_ok: bool = False) -> None:
    """Keep the content of several files; a file system takes some together for little more.

    Args:
        paths: The files, or directories.
        missing_ok: Whether another process may have removed some of them.
    """
    sync = _sync_if_there if missing_ok else _sync
    if len(paths) < _PARALLEL_FROM:
        for path in paths:
            sync(path)
        return
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(sync, paths))  # an error is raised here


def sync_directory(directory: Path) -> None:
    """Keep the names in a directory."""
    _sync(directory)


def _sync_if_there(path: Path) -> None:
    with suppress(FileNotFoundError):
        _sync(path)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
