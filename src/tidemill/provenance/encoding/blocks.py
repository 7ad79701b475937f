"""Blocks: the ids of some sets one after another, compressed together by an LZ77 codec (P15).

Sets that overlap repeat one another, and ids that are near each other have most bytes in common:
compressed together they take less than each by itself. What is decoded is a block.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidemill.provenance.encoding.lists import Lists

__all__ = ["packed", "unpacked"]

_CODEC = "zstd"
_HEAD = np.dtype("<i8")
"""Before the compressed bytes: how many there were."""


def packed(sets: Lists) -> bytes:
    """Some sets in one blob."""
    plain = np.concatenate([sets.lengths, sets.values]).astype(_HEAD, copy=False)
    told: bytes = pa.compress(pa.py_buffer(plain), codec=_CODEC, asbytes=True)
    return np.array(plain.nbytes, _HEAD).tobytes() + told


def unpacked(blob: bytes, count: int) -> Lists:
    """The sets of a blob, of which there are so many."""
    size = int(np.frombuffer(blob, _HEAD, 1)[0])
    told = pa.py_buffer(blob).slice(_HEAD.itemsize)
    plain = np.frombuffer(pa.decompress(told, size, codec=_CODEC), _HEAD).astype(np.int64)
    return Lists.with_lengths(plain[:count], plain[count:])
