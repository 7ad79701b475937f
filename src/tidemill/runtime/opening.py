"""Opening a checkpoint: whether it is one, fits the settings and is free; dropping a query of it.

A session that opens a checkpoint has it alone until it closes it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tidemill.errors import RunError
from tidemill.runtime.durable import make_directory
from tidemill.runtime.lock import LOCK_FILE, take_lock
from tidemill.runtime.record import RECORD, Facts, read_record, write_record
from tidemill.runtime.records_file import RECORDS_FILE
from tidemill.runtime.statement_log import STATEMENTS_FILE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.runtime.lock import Lock

__all__ = ["forget_queries", "is_checkpoint", "make_place", "open_directory"]


def open_directory(
    place: str,
    facts: Facts,
    *,
    partitions: int | None = None,
    stages: int | None = None,
    take: Callable[[Path], Lock] = take_lock,
) -> tuple[Path, Facts, Lock]:
    """The checkpoint at a place, which no other process can open until its lock is released.

    A new one is not written down yet.

    Args:
        place: Where it is, or is to be.
        facts: What a new one is made for; one that is there must be for the same engine.
        partitions: How many partitions it must have; ``None`` for any number.
        stages: How many stages it must have; ``None`` for any number.
        take: Takes its lock; a session that has it already gives a share.

    Returns:
        Where it is, what it knows, and its lock.

    Raises:
        RunError: There is something else, a checkpoint that does not fit the settings or is not
            where it was made, or it is in use.
    """
    directory = Path(place).resolve()
    make_place(directory)
    lock = take(directory)
    try:
        if not (directory / RECORD).is_file():
            return directory, replace(facts, place=str(directory)), lock
        found = read_record(directory, facts.engine)
        _require_fit(directory, found, partitions, stages)
    except BaseException:
        lock.release()
        raise
    return directory, found, lock


def is_checkpoint(directory: Path) -> bool:
    """Whether a session has written something here."""
    return any((directory / name).is_file() for name in (RECORD, STATEMENTS_FILE))


def make_place(directory: Path) -> None:
    """Make the directory of a checkpoint, unless it is there.

    Raises:
        RunError: There is something else, or it cannot be made.
    """
    _require_checkpoint_or_nothing(directory)
    try:
        make_directory(directory)
    except OSError as error:
        raise RunError(
            f'the checkpoint "{directory}" cannot be made: {error.strerror}',
            hint="choose a directory that can be written to",
        ) from error


def forget_queries(directory: Path, engine: str, is_gone: Callable[[str], bool]) -> bool:
    """Drop queries that a checkpoint knows while nothing runs; whether any was known.

    Their state goes with the next start. The files of their sinks stay.

    Args:
        directory: The checkpoint, whose lock the session has.
        engine: The engine that the session has.
        is_gone: Whether a query, by its name in lower case, is dropped.

    Raises:
        RunError: The checkpoint is that of another engine, or cannot be read or written.
    """
    if not (directory / RECORD).is_file():
        return False
    facts = read_record(directory, engine)
    queries = {key: known for key, known in facts.queries.items() if not is_gone(key)}
    if len(queries) == len(facts.queries):
        return False
    write_record(directory, replace(facts, queries=queries))
    return True


def _require_checkpoint_or_nothing(directory: Path) -> None:
    """Refuse a place that holds something else."""
    if not directory.exists() or (directory / RECORD).is_file():
        return
    # Statements come before the first start, and one that was refused or killed leaves a lock.
    ours = {LOCK_FILE, STATEMENTS_FILE, RECORDS_FILE, f".{RECORD}.part", f".{RECORDS_FILE}.part"}
    if not directory.is_dir() or {path.name for path in directory.iterdir()} - ours:
        raise RunError(
            f'"{directory}" is not a checkpoint, and not empty', hint="choose a new directory"
        )


def _require_fit(
    directory: Path,
    facts: Facts,
    partitions: int | None,
    stages: int | None,
) -> None:
    """Refuse settings under which the state would not be where it is."""
    pids = facts.pids
    if partitions not in (None, len(pids)):
        raise RunError(
            f'the checkpoint "{directory}" has {len(pids)} partitions, not {partitions}',
            hint=f"write partitions={len(pids)}, or choose a new directory",
        )
    if stages not in (None, facts.stages):
        raise RunError(
            f'the checkpoint "{directory}" has {facts.stages} stages, not {stages}',
            hint=f"write stages={facts.stages}, or choose a new directory",
        )
