"""The cache: copies of packs of segments as files on this host, mapped into memory.

Every process of the host reads them without copying. The cache can be lost at any time, in whole or
in part; it is bounded, and the files that were not used for longest go first. A file appears under
its name only when it is complete.

The directory lies in a folder that every user of the host may write to. So it is used only if it is
private: a directory and no link, which belongs to this user, and which no other user can enter.
Otherwise nothing is cached, which is slower and never wrong. What is read from it is compared with
the digest that the manifest has (``packs.py``).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Cache", "cache_directory", "forget_cache", "is_private"]

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def is_private(directory: Path) -> bool:
    """Whether this is a directory, no link, of this user, that no other user can enter."""
    try:
        facts = directory.lstat()
    except OSError:
        return False
    is_own = facts.st_uid == os.getuid()
    return stat.S_ISDIR(facts.st_mode) and is_own and not facts.st_mode & _OTHERS


def _make_private(directory: Path) -> bool:
    """Make a directory and the one above it, if they are not there; whether both are private."""
    for place in (directory.parent, directory):
        try:
            place.mkdir(mode=0o700, exist_ok=True)
        except OSError:
            return False
        if not is_private(place):
            return False
    return True


def cache_directory(checkpoint: Path) -> Path:
    """Where the hosts keep copies of the state of a checkpoint; each looks whether it may use it.

    It is in the temporary folder, not in the home directory, which may be far away: a cache is
    large and must be quick. If another user has taken the folder's name, there is a new folder with
    a name that cannot be guessed, for this session.
    """
    name = hashlib.sha256(str(checkpoint.resolve()).encode()).hexdigest()[:16]
    folder = _usual_folder()
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return folder / name  # the workers will see, and do without
    if is_private(folder):
        return folder / name
    other = Path(tempfile.mkdtemp(prefix="tidemill-"))
    sys.stderr.write(f'tidemill: "{folder}" is not private; the cache is in "{other}"\n')
    return other / name


def forget_cache(directory: Path, *, is_over: bool) -> None:
    """Remove the copies if they cannot be used again; links are removed, never followed.

    A part that cannot be removed stays: it holds copies, and nothing is built on it.

    Args:
        directory: Where they are.
        is_over: Whether the checkpoint is removed as well.
    """
    if directory.parent != _usual_folder():
        shutil.rmtree(directory.parent, ignore_errors=True)  # which refuses a link
    elif is_over:
        shutil.rmtree(directory, ignore_errors=True)


def _usual_folder() -> Path:
    return Path(tempfile.gettempdir()) / f"tidemill-{os.getuid()}"


class Cache:
    """Packs of one checkpoint on this host.

    Args:
        directory: Where the files are; it and the directory above it must be private.
        limit: How many bytes they may take together.
    """

    def __init__(self, directory: Path, *, limit: int) -> None:
        self._directory = directory
        self._limit = limit
        self._is_swept = False
        self._is_usable = _make_private(directory)
        if not self._is_usable and str(directory) not in _TOLD:
            _TOLD.add(str(directory))
            # Standard error of a worker is the log of Spark.
            sys.stderr.write(f'tidemill: "{directory}" is not private; nothing is cached\n')

    def read(self, name: str) -> pa.Buffer | None:
        """The bytes of a pack, if it is here."""
        if not self._is_usable:
            return None
        path = self._directory / name
        try:
            if not stat.S_ISREG(path.lstat().st_mode):
                return None
            os.utime(path)
            return pa.memory_map(str(path)).read_buffer()
        except (OSError, pa.ArrowInvalid):
            return None  # lost, or empty: the store has it

    def remove(self, name: str) -> None:
        """Forget a pack."""
        if self._is_usable:
            _unlink(self._directory / name)

    def write(self, name: str, blob: bytes) -> None:
        """Keep a pack."""
        if not self._is_usable:
            return
        try:
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
                _unlink(path)

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        """The files, by the time of their last use; links and directories are not ours."""
        for path in self._directory.iterdir():
            try:
                facts = path.lstat()
            except FileNotFoundError:
                continue  # another process was faster
            if stat.S_ISREG(facts.st_mode):
                yield facts.st_mtime, facts.st_size, path


_TOLD: set[str] = set()
"""The directories that this process has said something about."""


def _unlink(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return  # it only takes room
