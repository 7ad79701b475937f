"""The lock of a checkpoint: one process at a time, and one session in it.

The kernel holds the lock for the process that has the file open, so one that is killed leaves none
behind. The file itself stays; it names the process that had it last, for the error that others get.
Processes that this one starts do not get the descriptor.

Law: of a shared lock, others can take the lock exactly when no share of it is held.
"""

from __future__ import annotations

import errno
import fcntl
import getpass
import json
import os
import socket
from datetime import UTC, datetime
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING
from weakref import finalize

from tidemill.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["LOCK_FILE", "Lock", "SharedLock", "take_lock"]

LOCK_FILE = "lock"


class Lock:
    """A lock that is held until it is released, nobody has it any more, or its process ends."""

    def __init__(self, release: Callable[[], object]) -> None:
        self._release = finalize(self, release)

    def release(self) -> None:
        """Let others have it."""
        self._release()


class SharedLock:
    """The lock of a checkpoint as the parts of one session share it.

    The first part that takes a share takes the lock, and the last one that releases its share
    releases it: a session writes to the checkpoint of the job that it runs.
    """

    def __init__(self) -> None:
        self._guard = RLock()  # a share may be collected while another one is taken
        self._shares = 0
        self._lock: Lock | None = None

    def take(self, directory: Path) -> Lock:
        """A share of the lock of a checkpoint.

        Raises:
            RunError: Another session has it, or the file system cannot hold one.
        """
        with self._guard:
            if self._lock is None:
                self._lock = take_lock(directory)
            self._shares += 1
            return Lock(self._drop)

    def _drop(self) -> None:
        with self._guard:
            self._shares -= 1
            if not self._shares and self._lock is not None:
                self._lock.release()
                self._lock = None


def take_lock(directory: Path) -> Lock:
    """The lock of a checkpoint.

    Raises:
        RunError: Another process has it, or the file system cannot hold one.
    """
    path = directory / LOCK_FILE
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise _cannot(directory, error) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _write_holder(handle)
    except OSError as error:
        holder = os.pread(handle, 4096, 0)
        os.close(handle)
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise RunError(
                f'the checkpoint "{directory}" is in use by {_holder_text(holder)}',
                hint="stop it first, or choose another checkpoint",
            ) from None
        raise _cannot(directory, error) from error
    return Lock(partial(os.close, handle))


def _cannot(directory: Path, error: OSError) -> RunError:
    return RunError(
        f'the checkpoint "{directory}" cannot be locked: {error.strerror}',
        hint="choose a directory that can be written to, on a file system that has locks (flock)",
    )


def _write_holder(handle: int) -> None:
    holder = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "user": _user(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    content = json.dumps(holder).encode() + b"\n"
    os.pwrite(handle, content, 0)
    if os.fstat(handle).st_size > len(content):  # some file systems wait for the disk here
        os.ftruncate(handle, len(content))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the number of the user has no name
        return str(os.getuid())


def _holder_text(content: bytes) -> str:
    try:
        match json.loads(content):
            case {"pid": int(pid), "host": str(host), "user": str(user), "since": str(since)}:
                return f'process {pid} of "{user}" on host "{host}" since {since}'
    except ValueError:
        pass  # it has just been taken, and is being written
    return "another process"
