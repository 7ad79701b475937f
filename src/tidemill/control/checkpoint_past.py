"""The past that a checkpoint has, read while a pipeline may go on with it, in whatever process.

    commit.json, or batches.jsonl     the boundary: which batch is done, how far streams had come
    kept/<stream>/kept.jsonl          which rows a stream keeps, by batch
    relations/                        the rows of relations that queries have read

Nothing is written and no lock is taken. The boundary is read first and the lists after it: a batch
is in its list before it is done, so every batch of the boundary is in the list, or its rows are too
old by now, or it was put together with others; batches beyond the boundary are left out. Files are
replaced as a whole or grow at their ends, where a line counts once it is whole.

Law: what is read is the past at a boundary that there was, whatever is written meanwhile.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tidemill.connectors.connector import Engine
from tidemill.errors import RunError
from tidemill.history.archive import read_entries
from tidemill.model.time import Time
from tidemill.physical.state.damaged import DamagedError
from tidemill.runtime.archive_files import ArchiveFiles, archive_place
from tidemill.runtime.batch_ends import BatchEnd, last_end
from tidemill.runtime.checkpoint import KEPT, CheckpointDirectory
from tidemill.runtime.damage import damaged, telling_where
from tidemill.runtime.local.commit import read_commit
from tidemill.runtime.local.keeping import later
from tidemill.runtime.local.pack_files import MANIFEST, PackFiles
from tidemill.runtime.past import KeptRows, Past
from tidemill.runtime.record import RECORD, read_record, relation_digest, stream_digest

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tidemill.catalog.entries import RelationEntry, StreamEntry
    from tidemill.runtime.record import Facts

_TRIES = 20
"""How often a boundary is read at most."""

__all__ = ["boundary", "engine_of", "past_in"]


def engine_of(directory: Path) -> Engine | None:
    """The engine that a checkpoint is of; ``None`` if nothing has been run in it.

    Raises:
        RunError: It is damaged.
    """
    path = directory / RECORD
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return Engine(found.get("engine", Engine.SPARK.value))  # others came later
    except FileNotFoundError:
        return None
    except (ValueError, AttributeError) as error:
        raise damaged(f'"{path}"', error) from error


def boundary(directory: Path, engine: Engine, *, has_left: bool = False) -> BatchEnd:
    """The boundary of the last batch that is done.

    Args:
        directory: The checkpoint.
        engine: The engine that it is of.
        has_left: Whether what came on streams counts that were read before, and then no more.

    Raises:
        RunError: What says it is damaged.
    """
    if engine is Engine.SPARK:
        return last_end(directory)
    return _last_commit(directory, has_left=has_left)


def _last_commit(directory: Path, *, has_left: bool) -> BatchEnd:
    """The last commit of a pipeline of the local engine."""
    text = PackFiles(directory).manifest()
    if text is None:
        return BatchEnd()
    try:
        commit = read_commit(json.loads(text))
    except (ValueError, DamagedError) as error:
        raise damaged(f'"{directory / MANIFEST}"', error) from error
    reached = {name: stream.reached for name, stream in commit.streams.items()}
    if has_left:
        left = commit.left.items()
        reached |= {n: later(reached.get(n), one) for n, one in left}
    latest = {
        name: max(t for t in (one.latest, one.within, -1) if t is not None)
        for name, one in reached.items()
    }
    return BatchEnd(
        commit.step,
        {name: one.watermark for name, one in reached.items()},
        {name: time for name, time in latest.items() if time >= 0},
    )


def past_in(directory: Path, streams: Iterable[StreamEntry]) -> Past:
    """The past that a checkpoint has.

    Args:
        directory: The checkpoint.
        streams: The streams that keep their past, as they are registered.

    Raises:
        RunError: It is damaged, or cannot be read.
    """
    with telling_where(directory):
        engine = engine_of(directory)
        if engine is None:
            return Past()
        facts = read_record(directory, engine.value)
        end, kept = _end_and_kept(directory, engine, list(streams))
        return Past(
            end.done,
            {name: Time(mark) for name, mark in end.watermarks.items()},
            {name: Time(time) for name, time in end.latest.items()},
            kept,
            _Relations(directory, facts).rows,
        )


def _end_and_kept(
    directory: Path, engine: Engine, streams: list[StreamEntry]
) -> tuple[BatchEnd, dict[str, KeptRows]]:
    """The boundary, and the lists of what streams have kept up to it.

    Batches that are done are put together. If that happens after the boundary was read, a part of
    the rows may be beyond it; but then there is a later boundary, which is read instead.
    """
    for _ in range(_TRIES):
        end = boundary(directory, engine)
        found = dict(_kept(directory, streams))
        if not any(e.straddles(end.done) for kept in found.values() for e in kept.entries):
            break
    else:
        raise RunError(
            "batches are put together faster than the boundary can be read", hint="ask again"
        )
    return end, {name: kept.before(end.done) for name, kept in found.items()}


def _kept(directory: Path, streams: Iterable[StreamEntry]) -> Iterable[tuple[str, KeptRows]]:
    """What is in the list of each stream; of a new stream, nothing is said."""
    for stream in streams:
        files = ArchiveFiles(archive_place(directory / KEPT, stream.name), stream)
        lines = list(files.lines())
        match lines:
            case [{"stream": str(digest)}, *_] if digest == stream_digest(stream):
                pass
            case _:
                continue
        try:
            since, entries = read_entries(lines)
        except DamagedError as error:
            raise damaged(f'what stream "{stream.name}" has kept', error) from error
        yield stream.name, KeptRows(since, tuple(entries), files.get)


@dataclass(frozen=True, slots=True)
class _Relations:
    """The relations that queries of a checkpoint have read."""

    directory: Path
    facts: Facts

    def rows(self, relation: RelationEntry) -> pl.DataFrame | None:
        """The rows of one, as they were then; ``None`` if none has read it, or another one."""
        known = self.facts.relations.get(relation.name.lower())
        if known is None or known.declaration != relation_digest(relation):
            return None
        checkpoint = CheckpointDirectory(self.directory, self.facts)
        return pl.read_ipc_stream(checkpoint.check_relation(relation, None))
