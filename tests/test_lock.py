"""One process at a time has a checkpoint, and a killed one leaves no lock behind."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.errors import RunError
from tidemill.runtime.lock import LOCK_FILE, SharedLock, take_lock

if TYPE_CHECKING:
    from tidemill.runtime.lock import Lock

HOLDER = """
import subprocess, sys, time
from pathlib import Path
from tidemill.runtime.lock import take_lock
lock = take_lock(Path(sys.argv[1]))
child = subprocess.Popen(["sleep", "60"], close_fds=False)
print(child.pid, flush=True)
time.sleep(60)
"""


def failure(directory: Path) -> RunError:
    with pytest.raises(RunError) as caught:
        take_lock(directory)
    return caught.value


def test_a_checkpoint_in_use_says_who_uses_it(tmp_path: Path) -> None:
    lock = take_lock(tmp_path)
    error = failure(tmp_path)
    assert error.message.startswith(
        f'the checkpoint "{tmp_path}" is in use by process {os.getpid()} of "'
    )
    assert f'" on host "{socket.gethostname()}" since 20' in error.message
    assert error.hint == "stop it first, or choose another checkpoint"
    lock.release()
    lock.release()
    take_lock(tmp_path).release()


def test_a_lock_that_nobody_has_any_more_is_free(tmp_path: Path) -> None:
    take_lock(tmp_path)
    take_lock(tmp_path).release()


def test_a_killed_process_leaves_no_lock_although_its_children_live(tmp_path: Path) -> None:
    holder = subprocess.Popen(  # noqa: S603 — our own program
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    child = int(holder.stdout.readline())
    try:
        assert f"is in use by process {holder.pid} " in failure(tmp_path).message
        holder.kill()
        holder.wait()
        os.kill(child, 0)  # it lives
        take_lock(tmp_path).release()
    finally:
        os.kill(child, signal.SIGKILL)
        holder.stdout.close()


def test_the_content_of_a_lock_is_only_for_people(tmp_path: Path) -> None:
    lock = take_lock(tmp_path)
    for content in (b"", b"{", b"\xff", b"[]"):
        (tmp_path / LOCK_FILE).write_bytes(content)
        assert failure(tmp_path).message.endswith("is in use by another process")
    lock.release()
    take_lock(tmp_path).release()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(_handle: int, _operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", fail)
    error = failure(tmp_path)
    assert error.message == f'the checkpoint "{tmp_path}" cannot be locked: {os.strerror(number)}'


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).symlink_to(tmp_path / "elsewhere")
    assert "cannot be locked" in failure(tmp_path).message
    assert not (tmp_path / "elsewhere").exists()
    (tmp_path / "file").touch()
    assert "cannot be locked" in failure(tmp_path / "file").message


@given(st.lists(st.integers(0, 4)))
def test_others_have_the_lock_when_no_share_is_held(moves: list[int]) -> None:
    """Each move takes a share, or lets go of one; one share is only forgotten."""
    with TemporaryDirectory() as place:
        directory, shared = Path(place), SharedLock()
        held: dict[int, Lock] = {}
        for move in moves:
            if move not in held:
                held[move] = shared.take(directory)
            elif move == 0:
                del held[move]
            else:
                held[move].release()
                held.pop(move).release()  # once more is no matter
            if held:
                with pytest.raises(RunError, match="is in use"):
                    take_lock(directory)
                with pytest.raises(RunError, match="is in use"):
                    SharedLock().take(directory)
            else:
                take_lock(directory).release()
        for lock in held.values():
            lock.release()
        take_lock(directory).release()
