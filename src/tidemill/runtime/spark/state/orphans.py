"""Orphans: the Java process of a driver that was killed, which works on for a moment.

A killed driver leaves no lock behind, but its Java process finds out later that it is alone, and
until then it may begin another batch on the checkpoint. So a checkpoint names the Java process that
works on it, and one that is opened again waits until that has ended.

Law: while a pipeline runs on a checkpoint, no other Java process writes to it.
"""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

from tidemill.errors import RunError
from tidemill.runtime.durable import write_durably

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["JAVA_FILE", "await_orphan", "forget_java", "note_java"]

JAVA_FILE = "java.json"

_PATIENCE = 60.0
"""How long an orphan may take to end, in seconds; it stops its query and itself."""

_LOOK = 0.05


def note_java(directory: Path, java: int | None) -> None:
    """Note the Java process that works on a checkpoint; one that was not started here is unknown.

    Raises:
        OSError: It cannot be written.
    """
    if java is not None and (started := _started(java)) is not None:
        found = {
            "java": java,
            "started": started,
            "driver": os.getpid(),
            "host": socket.gethostname(),
        }
        write_durably(directory / JAVA_FILE, json.dumps(found).encode() + b"\n")


def forget_java(directory: Path) -> None:
    """Note that no Java process works on a checkpoint any more."""
    (directory / JAVA_FILE).unlink(missing_ok=True)


def await_orphan(
    directory: Path, patience: float = _PATIENCE, wait: Callable[[float], None] = sleep
) -> None:
    """Wait until the Java process of a driver that was killed has ended.

    Args:
        directory: The checkpoint; nobody else has it.
        patience: How long to wait, in seconds.
        wait: Waits for some seconds.

    Raises:
        RunError: It does not end.
    """
    try:
        found = json.loads((directory / JAVA_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return  # there is none, or the driver was killed when it wrote this, before it started one
    match found:
        case {"java": int(java), "started": int(started), "driver": int(driver), "host": str(host)}:
            if host != socket.gethostname() or driver == os.getpid():
                return
        case _:
            return
    end = monotonic() + patience
    while _started(java) == started:
        if monotonic() >= end:
            raise RunError(
                f'the checkpoint "{directory}" is still in use by the Java process {java} of a'
                f" driver that has ended",
                hint=f"end process {java}, and start again",
            )
        wait(_LOOK)


def _started(process: int) -> int | None:
    """When a process was started, in ticks of the kernel; ``None`` if it is not there.

    Where the kernel does not tell, nothing is known of other processes.
    """
    try:
        told = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    state, *rest = told.rpartition(")")[2].split()
    return None if state in "ZX" else int(rest[18])
