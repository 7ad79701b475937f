"""The checkpoint of the local engine: a directory that a pipeline in this process is taken up from.

What all engines keep is in ``runtime/checkpoint.py``. Besides, there are here:

commit.json     how far the pipeline has come, and where its state is
packs/          the state of operators
input.jsonl     which files were taken, and what the next step reads
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidemill.connectors.connector import Engine
from tidemill.runtime.checkpoint import CheckpointDirectory
from tidemill.runtime.lock import take_lock
from tidemill.runtime.opening import open_directory
from tidemill.runtime.record import Facts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidemill.optimizer.planning import Planning
    from tidemill.runtime.lock import Lock

__all__ = ["LocalCheckpoint", "open_local"]


class LocalCheckpoint(CheckpointDirectory):
    """A directory with the state of a pipeline in this process."""

    @property
    def input_log(self) -> Path:
        """Where it is kept which files were taken."""
        return self.directory / "input.jsonl"

    def begin(self) -> None:
        """Note that there is a commit; from now on there must be one."""
        if not self.facts.begun:
            self.know(replace(self.facts, begun=True))

    def close(self) -> None:
        """Let others have it."""
        if self._lock is not None:
            self._lock.release()


def open_local(
    place: str,
    planning: Planning,
    partitions: int | None,
    take: Callable[[Path], Lock] = take_lock,
) -> LocalCheckpoint:
    """The checkpoint of a session, which no other process can open until it is closed.

    A new one is not written down before ``create``.

    Args:
        place: Where it is, or is to be.
        planning: How queries are planned.
        partitions: How many partitions state is kept in; ``None`` for as many as there are, or one.
        take: Takes its lock; a session that has it already gives a share.

    Raises:
        RunError: There is something else, a checkpoint that does not fit the settings or is not
            where it was made, or it is in use.
    """
    pids = tuple(range(partitions or 1))
    facts = Facts(pids, stages=0, planning=planning.facts(), engine=Engine.LOCAL.value)
    return LocalCheckpoint(*open_directory(place, facts, partitions=partitions, take=take))
