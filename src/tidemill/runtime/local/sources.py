"""Sources of the local runtime: files of a directory, and frames in memory.

A source delivers batches of rows with the columns and types of its stream.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from tidemill.engine.ingest import check_keys
from tidemill.errors import RunError, closest
from tidemill.runtime import settling
from tidemill.runtime.connectors import source_place
from tidemill.runtime.files import READERS, list_files, read_file, shaped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tidemill.catalog.entries import RelationEntry
    from tidemill.lang.statements import ConnectorCall
    from tidemill.model.schema import Schema

__all__ = ["memory_frame", "read_relation", "read_source"]


def read_source(
    name: str, source: ConnectorCall, schema: Schema, memory: Mapping[str, pl.DataFrame]
) -> Iterator[pl.DataFrame]:
    """The rows of a stream or relation, batch by batch.

    Args:
        name: The stream or relation.
        source: Where its rows are.
        schema: Its columns.
        memory: The frames that ``memory`` sources name.

    Raises:
        RunError: The source cannot be read, or does not have these columns.
    """
    place = source_place(name, source)
    if place.kind == "memory":
        yield memory_frame(name, place.path, schema, memory)
        return
    if place.kind not in READERS:
        raise RunError(
            f'the local engine cannot read "{source.name.text}", the source of "{name}"',
            hint=closest(place.kind, [*READERS, "memory"])
            or f"it reads {', '.join([*READERS, 'memory'])}",
        )
    found = map(str, _files(name, place.path, place.kind))
    seconds = settling.SETTLE if place.settle is None else place.settle
    marks = list(settling.await_settled(name, found, seconds).items())
    for first in range(0, len(marks), place.files_per_batch):
        frames = []
        for path, mark in marks[first : first + place.files_per_batch]:
            frames.append(read_file(Path(path), place.kind, schema))
            settling.require_unchanged(path, mark)
        yield pl.concat(frames)


def read_relation(entry: RelationEntry, memory: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """All rows of a relation.

    Raises:
        RunError: They cannot be read, or use a key twice.
    """
    frame = pl.concat(list(read_source(entry.name, entry.source, entry.schema, memory)))
    check_keys(entry, frame)
    return frame


def memory_frame(
    name: str, key: str, schema: Schema, memory: Mapping[str, pl.DataFrame]
) -> pl.DataFrame:
    """A frame in memory, with the columns and types of the stream that reads it.

    Raises:
        RunError: There is no such frame, or it does not have these columns.
    """
    if key not in memory:
        raise RunError(
            f'there is no frame "{key}" in memory for "{name}"',
            hint=closest(key, memory) or f"give one with session.put({key!r}, frame)",
        )
    return shaped(memory[key], schema, f'frame "{key}"')


def _files(name: str, path: str, kind: str) -> list[Path]:
    found = list_files(Path(path))
    if not found:
        raise RunError(
            f'there is nothing to read for "{name}" at "{path}"',
            hint=f"give a {kind} file, a directory of them, or a pattern such as data/*.{kind}",
        )
    return found
