"""Opening a checkpoint: whether it is one, fits the settings and is free; dropping a query of it.

A session that opens a checkpoint has it alone until it closes it.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tidemill.errors import RunError
from tidemill.runtime.durable import make_directory
from tidemill.runtime.lock import LOCK_FILE, take_lock
from tidemill.runtime.spark.state.checkpoint import Checkpoint
from tidemill.runtime.spark.state.record import RECORD, Facts, read_record, write_record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.runtime.spark.driver.settings import SparkSettings

__all__ = ["forget_query", "open_checkpoint"]


def open_checkpoint(settings: SparkSettings, facts: Facts) -> Checkpoint:
    """The checkpoint of a session, which no other process can open until it is closed.

    A new one is not written down before ``create``.

    Raises:
        RunError: There is something else, a checkpoint that does not fit the settings or is not
            where it was made, or it is in use.
    """
    if settings.checkpoint is None:
        directory = Path(tempfile.mkdtemp(prefix="tidemill-"))
        return Checkpoint(directory, replace(facts, place=str(directory)))
    directory = Path(settings.checkpoint).resolve()
    _require_checkpoint_or_nothing(directory)
    try:
        make_directory(directory)
    except OSError as error:
        raise RunError(
            f'the checkpoint "{directory}" cannot be made: {error.strerror}',
            hint="choose a directory that can be written to",
        ) from error
    lock = take_lock(directory)
    try:
        if (directory / RECORD).is_file():
            facts = read_record(directory)
            _require_fit(directory, facts, settings)
        else:
            facts = replace(facts, place=str(directory))
    except BaseException:
        lock.release()
        raise
    return Checkpoint(directory, facts, lock)


def forget_query(checkpoint: str, name: str) -> bool:
    """Drop a query that a checkpoint knows while nothing runs; whether it was known.

    Its state goes with the next start. The files of its sink stay.

    Raises:
        RunError: The checkpoint is in use, or cannot be read or written.
    """
    directory = Path(checkpoint).resolve()
    if not (directory / RECORD).is_file():
        return False
    lock = take_lock(directory)
    try:
        facts = read_record(directory)
        if name.lower() not in facts.queries:
            return False
        queries = {key: known for key, known in facts.queries.items() if key != name.lower()}
        write_record(directory, replace(facts, queries=queries))
        return True
    finally:
        lock.release()


def _require_checkpoint_or_nothing(directory: Path) -> None:
    """Refuse a place that holds something else."""
    if not directory.exists() or (directory / RECORD).is_file():
        return
    ours = {LOCK_FILE, f".{RECORD}.part"}  # a start that was refused or killed leaves these
    if not directory.is_dir() or {path.name for path in directory.iterdir()} - ours:
        raise RunError(
            f'"{directory}" is not a checkpoint, and not empty', hint="choose a new directory"
        )


def _require_fit(directory: Path, facts: Facts, settings: SparkSettings) -> None:
    """Refuse settings under which the state would be that of other plans."""
    pids = facts.pids
    if settings.partitions not in (None, len(pids)):
        raise RunError(
            f'the checkpoint "{directory}" has {len(pids)} partitions, not {settings.partitions}',
            hint=f"write partitions={len(pids)}, or choose a new directory",
        )
    if settings.stages not in (None, facts.stages):
        raise RunError(
            f'the checkpoint "{directory}" has {facts.stages} stages, not {settings.stages}',
            hint=f"write stages={facts.stages}, or choose a new directory",
        )
    if differing := _differing(settings.planning.facts(), facts.planning):
        raise RunError(
            f'the checkpoint "{directory}" was made with other settings of {", ".join(differing)}',
            hint=f"write {', '.join(differing.values())}, or choose a new directory",
        )


def _differing(now: Mapping[str, object], then: Mapping[str, object]) -> dict[str, str]:
    """The settings of planning that are not what they were, and how to write what they were."""
    found = {}
    for name in [*now, *(name for name in then if name not in now)]:
        was = then.get(name)
        if name in now and name in then and now[name] == was:
            continue
        if name == "optimize":
            was = bool(was)
        elif isinstance(was, int):
            was = f"{was / 1_000_000:g}"  # the others count microseconds
        elif isinstance(was, str):
            was = f'"{was}"'
        found[name] = f"{name}={was}"
    return found
