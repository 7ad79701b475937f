"""Frames in memory in a checkpoint: written to files when they are first read.

A stream over a frame is read like one over files, so that a later session goes on where the last
one was, whether it is given the frame again or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.engine.ingest import Refused, readable
from tidemill.errors import RunError
from tidemill.runtime.connectors import Place, source_place
from tidemill.runtime.local.sources import memory_frame, named_frame
from tidemill.runtime.paths import word_of
from tidemill.runtime.reading.shaping import Input, found_columns

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from tidemill.catalog.entries import StreamEntry
    from tidemill.runtime.checkpoint import CheckpointDirectory

__all__ = ["check_frame", "kept_place"]


def check_frame(
    name: str,
    stream: StreamEntry,
    checkpoint: CheckpointDirectory,
    memory: Mapping[str, pl.DataFrame],
) -> None:
    """See whether the frame that a stream reads, if it reads one, is there; nothing is written.

    Args:
        name: The stream.
        stream: What is read.
        checkpoint: Where frames are kept that have been read before.
        memory: The frames that ``memory`` sources name.

    Raises:
        RunError: There is no such frame, or it is not the one that has been read before.
    """
    place = source_place(name, stream.source)
    if place.kind != "memory":
        return
    kept = checkpoint.kept_frame(word_of(name))
    if kept is not None and place.path not in memory:
        return
    frame = _frame(name, stream, place.path, memory)
    if kept is not None and not frame.equals(kept):
        raise RunError(
            f'frame "{place.path}" is not the one that this checkpoint has read for stream'
            f' "{name}"',
            hint="put the frame as it was, or write the rows that are new to files",
        )


def kept_place(
    name: str,
    stream: StreamEntry,
    checkpoint: CheckpointDirectory,
    memory: Mapping[str, pl.DataFrame],
) -> Place:
    """Where the rows of a stream come from; a frame in memory is written to a file.

    Args:
        name: The stream.
        stream: What is read.
        checkpoint: Where frames are written to.
        memory: The frames that ``memory`` sources name.

    Raises:
        RunError: There is no such frame.
    """
    place = source_place(name, stream.source)
    if place.kind != "memory":
        return place

    def frame() -> pl.DataFrame:
        return _frame(name, stream, place.path, memory)

    return Place("parquet", str(checkpoint.frame(word_of(name), frame)), settle=0)


def _frame(
    name: str, stream: StreamEntry, key: str, memory: Mapping[str, pl.DataFrame]
) -> pl.DataFrame:
    """A frame in memory as it is written."""
    schema, refused = readable(stream), Refused(stream)
    found = memory_frame(name, key, schema, memory, refused.add_malformed)
    if not refused.counts:
        return found
    # Malformed rows that the stream does not fail on are counted where rows are read.
    given = named_frame(name, key, memory)
    return given.select(found_columns(given.columns, schema, Input(f'frame "{key}"')))
