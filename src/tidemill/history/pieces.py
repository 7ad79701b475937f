"""Pieces: what is known of kept rows, where they are, and how they are read.

    Piece        at most so many rows of a batch, in a file of the archive
    Reference    the same in a file of the source, or in a copy of it

Law: the rows of ``pieces_of`` and of ``referred`` are those that are given, each once and in their
order; ``joined`` has the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidemill.model.batch import ID, START
from tidemill.physical.state.damaged import DamagedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import polars as pl

    from tidemill.model.batch import Batch

__all__ = [
    "PIECE_ROWS",
    "Entry",
    "Piece",
    "Reference",
    "joined",
    "pieces_of",
    "read_piece",
    "referred",
]

PIECE_ROWS = 1 << 16
"""How many rows a piece has at most: a step of a replay reads one at least."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Rows of a file of the source, which stays, or of a copy of it.

    Attributes:
        path: The file; empty for one that the store has, under the name of the piece.
        size: How long it was.
        changed: When it was changed last, in nanoseconds.
        number: The id of its first row; those of others follow.
        skip: How many rows of it come before.
        count: How many rows of it these are, those that were refused too.
        watermark: Rows from before were late.
        arrival: When they came, if they have no time of their own.
        is_plain: Whether no row of the file before these was left out when it was read, so that
            their places are those in the file.
    """

    path: str
    size: int
    changed: int
    number: int
    skip: int
    count: int
    watermark: int
    arrival: int
    is_plain: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows of a batch that are kept together.

    Attributes:
        name: What the store calls them, or the file that they are in; of a reference, its path.
        rows: How many there are.
        first: The least of their times.
        last: The greatest of them.
        reference: Where they are, if they are not copied.
        skip: How many rows come before them under that name, if they are copied.
    """

    name: str
    rows: int
    first: int
    last: int
    reference: Reference | None = None
    skip: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """What a batch has brought.

    Attributes:
        batch: The number of the batch.
        watermark: How far the stream had come after it.
        pieces: The rows.
        begin: The first of the batches whose rows these are, if they are put together.
    """

    batch: int
    watermark: int
    pieces: tuple[Piece, ...]
    begin: int | None = None

    def straddles(self, done: int) -> bool:
        """Whether some of its rows are of batches before one, and others are not."""
        return self.begin is not None and self.begin < done <= self.batch

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(piece.rows for piece in self.pieces)

    @property
    def last(self) -> int:
        """The greatest time of them."""
        return max(piece.last for piece in self.pieces)


def pieces_of(name: str, rows: Batch, most: int | None = None) -> list[Piece]:
    """What is known of rows that are copied: pieces that a step can read one by one.

    Args:
        name: What the store calls them.
        rows: The rows.
        most: How many a piece has at most; ``None`` for as many as is usual.
    """
    starts, most = rows[START], most or PIECE_ROWS
    return [
        _piece_of(name, starts.slice(skip, most), skip=skip) for skip in range(0, rows.height, most)
    ]


def referred(elements: Batch, delivered: Reference, copy: str = "") -> list[Piece]:
    """What is known of rows of a file that came together; their ids say where they stand.

    Args:
        elements: Those that were taken.
        delivered: All of them.
        copy: What the store calls its copy of the file, if it has one.
    """
    starts, name = elements[START], delivered.path or copy
    places = elements[ID] - (delivered.number + delivered.skip)
    found: list[Piece] = []
    for skip in range(0, delivered.count, PIECE_ROWS):
        count = min(PIECE_ROWS, delivered.count - skip)
        if elements.height == delivered.count:
            some = starts.slice(skip, count)
        else:
            some = starts.filter(places.is_between(skip, skip + count - 1))
        if some.len():
            part = replace(delivered, skip=delivered.skip + skip, count=count)
            found.append(_piece_of(name, some, part))
    return found


def joined(pieces: Iterable[Piece]) -> list[Piece]:
    """The same rows in fewer pieces: those that stand one after another are read at once."""
    found: list[Piece] = []
    for piece in pieces:
        last = found[-1] if found else None
        if last is not None and _follows(last, piece):
            found[-1] = _together(last, piece)
        else:
            found.append(piece)
    return found


def _follows(one: Piece, other: Piece) -> bool:
    if one.name != other.name:
        return False
    if one.reference is None or other.reference is None:
        return other.reference is None and one.skip + one.rows == other.skip
    past = one.reference.skip + one.reference.count
    return other.reference == replace(one.reference, skip=past, count=other.reference.count)


def _together(one: Piece, other: Piece) -> Piece:
    reference = one.reference
    if reference is not None and other.reference is not None:
        reference = replace(reference, count=reference.count + other.reference.count)
    first, last = min(one.first, other.first), max(one.last, other.last)
    return Piece(one.name, one.rows + other.rows, first, last, reference, one.skip)


def _piece_of(
    name: str, starts: pl.Series, reference: Reference | None = None, skip: int = 0
) -> Piece:
    first, last = starts.min(), starts.max()
    assert isinstance(first, int), "there are rows"
    assert isinstance(last, int), "there are rows"
    return Piece(name, starts.len(), first, last, reference, skip)


def read_piece(found: Mapping[str, object]) -> Piece:
    """Some rows, as they were told.

    Raises:
        DamagedError: They are not what was written.
    """
    try:
        reference = found["reference"]
        told = {**found, "reference": None if reference is None else _reference(reference)}
        return Piece(**told)  # type: ignore[arg-type]
    except (TypeError, KeyError) as error:
        raise DamagedError(f"{found} are no rows that are kept") from error


def _reference(found: object) -> Reference:
    if not isinstance(found, dict):
        raise TypeError("it is no place")
    return Reference(**found)
