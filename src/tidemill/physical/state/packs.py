"""Packs: some segments in one blob, one after another, each in Arrow's IPC stream format.

To store a blob costs the same for ten rows as for a thousand, so what a batch adds is stored as
one, but for segments that are large by themselves. A segment is read where it stands: from a file
that is mapped into memory nothing is copied.

The manifest knows the digest of each segment. It is checked when a segment is opened, once in the
life of a process, not in each batch. A digest of this kind cannot be forged, as a checksum can.
"""

from __future__ import annotations

import io
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import polars as pl
import pyarrow as pa

from tidemill.physical.state.damaged import DamagedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Place", "packed", "unpacked"]

_ALIGNED = 64
"""Where Arrow likes values to begin, and so every segment does."""

_OWN_PACK_BYTES = 1 << 18
"""A segment of this many bytes is stored by itself, so that it need not be moved with others."""


class Place(NamedTuple):
    """Where a segment is: in which pack, from which byte on, how many bytes, and their digest."""

    pack: str
    start: int
    length: int
    digest: str


def packed(
    name: str, frames: Iterable[pl.DataFrame]
) -> Iterator[tuple[str, bytes, list[tuple[int, Place]]]]:
    """Packs of some frames: the name of each, its bytes, and the frames in it with their places.

    Args:
        name: What the names begin with; no other packs have it.
        frames: The frames, which are told by their numbers.
    """
    small = io.BytesIO()
    places: list[tuple[int, Place]] = []
    for number, frame in enumerate(frames):
        if frame.estimated_size() >= _OWN_PACK_BYTES:
            alone = io.BytesIO()
            pack = f"{name}.{number}"
            place = _put(alone, pack, frame)
            yield pack, alone.getvalue(), [(number, place)]
        else:
            places.append((number, _put(small, name, frame)))
    if places:
        yield name, small.getvalue(), places


def _put(buffer: io.BytesIO, pack: str, frame: pl.DataFrame) -> Place:
    """Write a frame at the end of a buffer."""
    start = buffer.tell()
    frame.write_ipc_stream(buffer)
    length = buffer.tell() - start
    digest = _digest(buffer.getbuffer()[start:])
    buffer.write(b"\0" * (-buffer.tell() % _ALIGNED))
    return Place(pack, start, length, digest)


def _digest(content: memoryview | pa.Buffer) -> str:
    return blake2b(content, digest_size=16).hexdigest()


def unpacked(pack: pa.Buffer, place: Place) -> pl.DataFrame:
    """The rows at a place.

    Raises:
        DamagedError: They are not there.
    """
    if not 0 <= place.start <= place.start + place.length <= pack.size:
        raise DamagedError(f"{place} is after the end")
    part = pack.slice(place.start, place.length)
    if _digest(part) != place.digest:
        raise DamagedError(f"{place} holds something else")
    try:
        table = pa.ipc.open_stream(part).read_all()
    except pa.ArrowNotImplementedError:  # numbers of 128 bits
        return pl.read_ipc_stream(io.BytesIO(part.to_pybytes()))
    frame = pl.from_arrow(table, rechunk=False)
    assert isinstance(frame, pl.DataFrame), "a table is a frame"
    return frame
