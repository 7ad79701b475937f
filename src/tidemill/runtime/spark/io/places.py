"""Places: where Spark reads the streams of a plan from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.runtime import settling
from tidemill.runtime.connectors import source_place
from tidemill.runtime.local.frames import check_frame, kept_place
from tidemill.runtime.paths import file_path, word_of
from tidemill.runtime.spark.io.file_log import FileLog, require_place
from tidemill.runtime.spark.state.damage import entries_taken

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import polars as pl

    from tidemill.catalog.entries import StreamEntry
    from tidemill.runtime.connectors import Place
    from tidemill.runtime.spark.state.batch_log import BatchLog
    from tidemill.runtime.spark.state.checkpoint import Checkpoint

__all__ = [
    "check_sources",
    "file_logs_of",
    "places_of",
    "read_only_files",
    "source_name",
]


def check_sources(
    streams: Mapping[str, StreamEntry], checkpoint: Checkpoint, memory: Mapping[str, pl.DataFrame]
) -> None:
    """See whether the files and frames that streams read are there; nothing is written.

    Args:
        streams: The streams, by name.
        checkpoint: Where frames are kept that have been read before.
        memory: The frames that ``memory`` sources name.

    Raises:
        RunError: A source is not there, or a frame is not the one that has been read before.
    """
    for name, stream in streams.items():
        check_frame(name, stream, checkpoint, memory)
        if (path := file_path(source_place(name, stream.source))) is not None:
            require_place(name, path)


def places_of(
    streams: Mapping[str, StreamEntry], checkpoint: Checkpoint, memory: Mapping[str, pl.DataFrame]
) -> dict[str, Place]:
    """Where the rows of each stream come from; a frame in memory is written to a file.

    Args:
        streams: The streams, by name.
        checkpoint: Where frames are written to.
        memory: The frames that ``memory`` sources name.

    Raises:
        RunError: There is no such frame.
    """
    return {name: kept_place(name, stream, checkpoint, memory) for name, stream in streams.items()}


def file_logs_of(
    places: Mapping[str, Place], checkpoint: Checkpoint, batch_log: BatchLog
) -> dict[str, FileLog]:
    """The file logs of the streams whose files this host, and every worker, opens.

    Args:
        places: Where the rows of each stream come from.
        checkpoint: Where the order of their files is kept.
        batch_log: How many of them have been read.

    Raises:
        RunError: A file log is damaged.
    """
    logs = checkpoint.spark / "sources"
    return {
        name: FileLog(
            name,
            path,
            checkpoint.file_log(word_of(name)),
            settle=settling.SETTLE if place.settle is None else place.settle,
            taken=entries_taken(logs / source_name(name)),
            committed=batch_log.committed.get(name, 0),
            delivered=batch_log.delivered.get(name, 0),
        )
        for name, place in places.items()
        if (path := file_path(place)) is not None
    }


def read_only_files(streams: Iterable[StreamEntry]) -> bool:
    """Whether every source is a directory of files, or in memory."""
    places = (source_place(stream.name, stream.source) for stream in streams)
    return not any(place.format for place in places)


def source_name(stream: str) -> str:
    """What Spark calls the source of a stream."""
    return f"stream_{word_of(stream)}"
