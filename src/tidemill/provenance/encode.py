"""How sets of row ids are stored: the contributors of each row of an answer.

A set is a list of 64-bit ids that rises; a column has a set for each row of an answer. Rows of a
file have ids that follow one another, sets of windows that slide have most of their ids in common:

    SINGLE      the ids                                                     8 bytes an id
    INTERVAL    runs of ids, as the first and the last                      16 bytes a run
    DELTA       what differs from the last set told in full                 8 an id or gap, 1 a set
    DICTIONARY  blocks of sets compressed together, if that takes less      what zstd makes of them
    ADAPTIVE    what takes least

Law:    ``decode(encode(sets, encoding)) == sets``, and a frame that is written to a file and read
        decodes to the same. Frames of one encoding, one after the other, decode to the sets one
        after the other.
        ``size`` of ADAPTIVE is at most that of each other encoding and one byte for each set.
        ``covering`` has the least and the greatest id of each set, and takes 16 bytes whatever is
        in between; it is no encoding, as it cannot be decoded: it tells what is to be replayed.

Decoding: a set has what its row tells together: its ids, those of its runs, of its block, and those
of the full set ``BACK`` rows before without the dropped ones. So no column says how a set is
stored. ADAPTIVE stores each set as the change or in full, of these the long runs by their ends and
other ids as they are, and then compresses the blocks that take less so.

Cost:   a few passes through all ids; for DELTA a search for each id in the full set; DICTIONARY and
        ADAPTIVE call the codec once for each block. To decode one set, its block is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tidemill.provenance.encoding.blocks import packed, unpacked
from tidemill.provenance.encoding.changes import DROP_BYTES, changes_of, kept
from tidemill.provenance.encoding.lists import Lists, joined
from tidemill.provenance.encoding.runs import ID_BYTES, ids_of_runs, mixed_bytes, runs_of, split

if TYPE_CHECKING:
    from tidemill.provenance.encoding.lists import Flags, Ints

__all__ = [
    "BACK",
    "DROPPED",
    "HIGH",
    "IDS",
    "LOW",
    "PACKED",
    "RUNS",
    "Encoded",
    "Encoding",
    "covering",
    "decode",
    "encode",
    "size",
]

IDS, RUNS, DROPPED, BACK, PACKED = "@ids", "@runs", "@dropped", "@back", "@packed"
"""Ids; first and last ids of runs; places and lengths of gaps in the full set, and how many rows
before it stands, 0 for none; a block of sets, in the row of its first, and b"" in the others."""

LOW, HIGH = "@low", "@high"

_WIDTHS = {IDS: ID_BYTES, RUNS: ID_BYTES, DROPPED: DROP_BYTES // 2}
_TYPES = {IDS: pl.Int64(), RUNS: pl.Int64(), DROPPED: pl.UInt32()}

_FULL_EVERY, _FULL_AT_MOST_EVERY = 64, 256
_COMPRESSED_FROM = 256
"""So many bytes are compressed; of fewer, little is left to be saved."""


class Encoding(Enum):
    """How sets are stored."""

    SINGLE = "single"
    INTERVAL = "interval"
    DELTA = "delta"
    DICTIONARY = "dictionary"
    ADAPTIVE = "adaptive"


@dataclass(frozen=True, slots=True)
class Encoded:
    """Sets as they are stored.

    Attributes:
        frame: A row for each set, with all that is needed to decode it.
    """

    frame: pl.DataFrame


def encode(
    sets: pl.Series,
    encoding: Encoding,
    *,
    full_every: int = _FULL_EVERY,
    compressed_from: int | None = _COMPRESSED_FROM,
) -> Encoded:
    """Store sets of ids.

    Args:
        sets: Lists of ids that rise, none of them NULL. Neighbours should be of one group.
        encoding: How.
        full_every: How many sets make a block, 256 at most. The first of a block is full, and a
            block is compressed as one.
        compressed_from: How many bytes of ids a block has that is compressed. None, if none is:
            a file that is compressed as a whole takes less without.

    >>> sets = pl.Series([[1, 2, 3, 4], [2, 3, 4, 5], [9]])
    >>> encode(sets, Encoding.INTERVAL).frame.to_series().to_list()
    [[1, 4], [2, 5], [9, 9]]
    >>> encode(sets, Encoding.DELTA).frame.rows()
    [([1, 2, 3, 4], [], 0), ([5], [0, 1], 1), ([9], [], 0)]
    """
    assert 1 <= full_every <= _FULL_AT_MOST_EVERY, "BACK has eight bits"
    given = Lists.of(sets)
    assert given.rise(), "ids are in order, and none is there twice"
    blocks = _Blocks(given, full_every, compressed_from)
    match encoding:
        case Encoding.SINGLE:
            return _frame({IDS: given})
        case Encoding.INTERVAL:
            runs = runs_of(given)
            return _frame({RUNS: runs.ends(np.ones(len(runs.starts), dtype=np.bool_))})
        case Encoding.DELTA:
            changes = changes_of(given, full_every)
            told = given.where(changes.is_new)
            return _frame({IDS: told, DROPPED: changes.dropped}, back=changes.back)
        case Encoding.DICTIONARY:
            blobs = blocks.packed(ID_BYTES * given.lengths)
            return _frame({IDS: given.of_rows(~blocks.are_in(blobs))}, blobs=blocks.column(blobs))
        case Encoding.ADAPTIVE:
            return _adaptive(given, blocks)


def _adaptive(sets: Lists, blocks: _Blocks) -> Encoded:
    """The smallest form of each set; of a block, if it is smaller still."""
    changes = changes_of(sets, blocks.length)
    full = mixed_bytes(sets)
    as_change = mixed_bytes(sets.where(changes.is_new))
    as_change += DROP_BYTES // 2 * changes.dropped.lengths
    is_change = changes.are_changes & (as_change < full)
    blobs = blocks.packed(np.where(is_change, as_change, full))
    is_plain = ~blocks.are_in(blobs)
    is_change &= is_plain
    is_told = changes.is_new | ~np.repeat(is_change, sets.lengths)
    ids, runs = split(runs_of(sets.where(is_told).of_rows(is_plain)))
    return _frame(
        {IDS: ids, RUNS: runs, DROPPED: changes.dropped.of_rows(is_change)},
        back=np.where(is_change, changes.back, 0),
        blobs=blocks.column(blobs),
    )


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Sets in blocks.

    Attributes:
        sets: The sets.
        length: How many are in a block.
        compressed_from: How many bytes of ids a block has that is compressed; None, if none is.
    """

    sets: Lists
    length: int
    compressed_from: int | None

    def packed(self, otherwise: Ints) -> dict[int, bytes]:
        """The blocks that take less compressed, by the number of the first set.

        Args:
            otherwise: How many bytes each set takes otherwise.
        """
        found: dict[int, bytes] = {}
        if self.compressed_from is None or not len(self.sets):
            return found
        starts = np.arange(0, len(self.sets), self.length)
        plain = ID_BYTES * np.add.reduceat(self.sets.lengths, starts)
        limits = np.add.reduceat(otherwise, starts)
        # Each block is compressed by itself, so that it can be read by itself.
        for start in starts[plain >= self.compressed_from].tolist():
            blob = packed(self.sets.at(self._rows(start)))
            if len(blob) < limits[start // self.length]:
                found[start] = blob
        return found

    def _rows(self, start: int) -> Ints:
        return np.arange(start, min(start + self.length, len(self.sets)))

    def are_in(self, blobs: dict[int, bytes]) -> Flags:
        """Of each set, whether its block is among these."""
        starts = np.fromiter(blobs, np.int64, len(blobs))
        return np.isin(np.arange(len(self.sets)) // self.length, starts // self.length)

    def column(self, blobs: dict[int, bytes]) -> pl.Series:
        """Blobs by row."""
        cells: list[bytes | None] = [None] * len(self.sets)
        for start, blob in blobs.items():
            rows = self._rows(start)
            cells[start : start + len(rows)] = [blob, *[b""] * (len(rows) - 1)]
        return pl.Series(PACKED, cells, pl.Binary())


def _frame(
    lists: dict[str, Lists], *, back: Ints | None = None, blobs: pl.Series | None = None
) -> Encoded:
    columns = [values.column(name, _TYPES[name]) for name, values in lists.items()]
    if back is not None:
        columns.append(pl.Series(BACK, back, pl.UInt8()))
    if blobs is not None:
        columns.append(blobs)
    return Encoded(pl.DataFrame(columns))


def decode(encoded: Encoded) -> pl.Series:
    """The sets that are stored.

    >>> decode(encode(pl.Series([[1, 2, 3], []]), Encoding.ADAPTIVE)).to_list()
    [[1, 2, 3], []]
    """
    frame = encoded.frame
    parts: list[Lists] = []
    if IDS in frame.columns:
        parts.append(Lists.of(frame[IDS]))
    if RUNS in frame.columns:
        parts.append(ids_of_runs(Lists.of(frame[RUNS])))
    if PACKED in frame.columns:
        parts.append(_unpacked(frame[PACKED]))
    sets = joined(parts)
    if BACK in frame.columns:
        bases = np.arange(frame.height) - frame[BACK].cast(pl.Int64).to_numpy()
        sets = joined([kept(sets, bases, Lists.of(frame[DROPPED])), sets])
    return sets.column("ids", pl.Int64())


def _unpacked(blobs: pl.Series) -> Lists:
    """For each row the ids that a block has of it."""
    sizes = blobs.bin.size()
    starts = (sizes > 0).fill_null(False).arg_true().to_numpy()
    rows = sizes.is_not_null().arg_true().to_numpy()
    counts = np.diff(np.searchsorted(rows, starts), append=len(rows))
    # Each block was compressed by itself.
    found = [unpacked(blobs[int(s)], int(n)) for s, n in zip(starts, counts, strict=True)]
    lengths = np.zeros(len(blobs), dtype=np.int64)
    none = np.zeros(0, dtype=np.int64)
    lengths[rows] = np.concatenate([none, *(block.lengths for block in found)])
    return Lists.with_lengths(lengths, np.concatenate([none, *(b.values for b in found)]))


def size(encoded: Encoded) -> int:
    """How many bytes of payload are stored: what lists hold, not where each begins.

    >>> size(encode(pl.Series([[1, 2, 3], [7]]), Encoding.INTERVAL))
    32
    """
    frame = encoded.frame
    total = sum(
        width * int(frame[name].list.len().sum())
        for name, width in _WIDTHS.items()
        if name in frame.columns
    )
    total += frame.height if BACK in frame.columns else 0
    return total + (int(frame[PACKED].bin.size().sum()) if PACKED in frame.columns else 0)


def covering(sets: pl.Series) -> pl.DataFrame:
    """The least and the greatest id of each set, NULL for an empty one (P18).

    >>> covering(pl.Series([[3, 5, 9], []], dtype=pl.List(pl.Int64))).rows()
    [(3, 9), (None, None)]
    """
    return pl.DataFrame([sets.list.first().alias(LOW), sets.list.last().alias(HIGH)])
