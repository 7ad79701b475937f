"""Places: where Spark reads the streams of a plan from."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

from tidemill.runtime import settling
from tidemill.runtime.connectors import Place, source_place
from tidemill.runtime.files import READERS
from tidemill.runtime.local.sources import memory_frame
from tidemill.runtime.spark.feed import Feed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import polars as pl

    from tidemill.catalog.entries import StreamEntry
    from tidemill.runtime.spark.checkpoint import Checkpoint
    from tidemill.runtime.spark.ledger import Ledger

__all__ = ["feeds_of", "places_of", "read_only_files", "source_name", "word_of"]

_SCHEME = "://"

_LONG = 100
"""Longer words are not fit for the name of a file."""


def places_of(
    streams: Mapping[str, StreamEntry], checkpoint: Checkpoint, memory: Mapping[str, pl.DataFrame]
) -> dict[str, Place]:
    """Where the rows of each stream come from; a frame in memory is written to a file.

    Args:
        streams: The streams, by name.
        checkpoint: Where frames are written to.
        memory: The frames that ``memory`` sources name.

    Raises:
        RunError: A source is not described rightly, or there is no such frame.
    """
    return {name: _place(name, stream, checkpoint, memory) for name, stream in streams.items()}


def feeds_of(
    places: Mapping[str, Place], checkpoint: Checkpoint, ledger: Ledger
) -> dict[str, Feed]:
    """The feeds of the streams that are read from files that this host, and every worker, opens.

    Args:
        places: Where the rows of each stream come from.
        checkpoint: Where the order of their files is kept.
        ledger: How many of them have been read.
    """
    return {
        name: Feed(
            name,
            _path(place),
            checkpoint.feed(word_of(name)),
            settle=settling.SETTLE if place.settle is None else place.settle,
            committed=ledger.committed.get(name, 0),
            delivered=ledger.delivered.get(name, 0),
        )
        for name, place in places.items()
        if place.kind in READERS and (_SCHEME not in place.path or place.path.startswith("file:"))
    }


def read_only_files(streams: Iterable[StreamEntry]) -> bool:
    """Whether every source is a directory of files, or in memory."""
    return all(stream.source.name.text.lower() in (*READERS, "memory") for stream in streams)


def source_name(stream: str) -> str:
    """The name that Spark knows a stream by."""
    return f"stream_{word_of(stream)}"


def word_of(name: str) -> str:
    """A name of letters, digits and underscores, different for different names.

    >>> word_of("Bid"), word_of("a b")
    ('bid', 'a_20_b')
    """
    word = "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in name.lower())
    return word if len(word) < _LONG else hashlib.sha256(word.encode()).hexdigest()


def _place(
    name: str, stream: StreamEntry, checkpoint: Checkpoint, memory: Mapping[str, pl.DataFrame]
) -> Place:
    place = source_place(name, stream.source)
    if place.kind != "memory":
        return place

    def frame() -> pl.DataFrame:
        return memory_frame(name, place.path, stream.schema, memory)

    return Place("parquet", str(checkpoint.frame(word_of(name), frame)), settle=0)


def _path(place: Place) -> Path:
    path = unquote(urlparse(place.path).path) if _SCHEME in place.path else place.path
    return Path(path).absolute()
