"""The past: what streams have kept at the boundary of a batch, and how far they had come.

It is a value: batches that come later, and rows that are removed later, do not change what it says,
so that all that is read with it is of one boundary. Rows that it names may have been removed since.

Law: the rows from ``since`` on that it names are those that the batches before the boundary took.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import polars as pl

from tidemill.history.pieces import joined
from tidemill.model.batch import START

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tidemill.catalog.entries import RelationEntry
    from tidemill.history.archive import Archive
    from tidemill.history.pieces import Entry, Piece
    from tidemill.model.batch import Batch
    from tidemill.model.time import Time

_AT_ONCE = 16
"""So many pieces are read at once at most, if they stand one after another."""

__all__ = ["KeptRows", "Past", "RemovedError", "kept_rows"]


class RemovedError(Exception):
    """Rows were removed, because they are too old, before they were read."""


@dataclass(frozen=True, slots=True)
class KeptRows:
    """What a stream has kept.

    Attributes:
        since: All rows from this instant on are there.
        entries: The batches before the boundary.
        get: Reads the rows of a piece.
    """

    since: Time
    entries: tuple[Entry, ...]
    get: Callable[[Piece], Batch]

    def before(self, done: int) -> KeptRows:
        """The same of the batches before one only."""
        return replace(self, entries=tuple(e for e in self.entries if e.batch < done))

    def rows(self, first: Time, last: Time) -> Iterator[Batch]:
        """The rows whose times are from ``first`` to ``last``.

        Raises:
            RemovedError: They have been removed.
            RunError: They cannot be read.
        """
        for entry in self.entries:
            wanted = [one for one in entry.pieces if one.last >= first and one.first <= last]
            # What stands together in a file is read at once: a part of it takes as long.
            for piece in _together(wanted):
                rows = self._got(piece)
                if piece.first >= first and piece.last <= last:
                    yield rows
                else:
                    yield rows.filter((pl.col(START) >= first) & (pl.col(START) <= last))

    def _got(self, piece: Piece) -> Batch:
        try:
            return self.get(piece)
        except LookupError as error:
            raise RemovedError(piece.name) from error
        except Exception as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise RemovedError(piece.name) from error
            raise


def _together(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """The same rows in fewer pieces, none of them very large."""
    for begin in range(0, len(pieces), _AT_ONCE):
        yield from joined(pieces[begin : begin + _AT_ONCE])


def kept_rows(archives: Mapping[str, Archive], done: int) -> dict[str, KeptRows]:
    """What the archive of each stream has of the batches before one."""
    return {name: _kept_rows(archive, done) for name, archive in archives.items()}


def _kept_rows(archive: Archive, done: int) -> KeptRows:
    entries = tuple(entry for entry in archive.entries if entry.batch < done)
    return KeptRows(archive.since, entries, archive.get)


@dataclass(frozen=True, slots=True)
class Past:
    """What is kept, at the boundary of a batch.

    Attributes:
        done: Batches before this one count, and no others.
        watermarks: How far each stream had come; others are at their beginning.
        latest: The greatest time of a row that each stream had taken.
        streams: What the streams have kept that keep their past.
        relation: Gives the rows of a relation that queries have read; ``None`` if none have.
    """

    done: int = 0
    watermarks: Mapping[str, Time] = field(default_factory=dict)
    latest: Mapping[str, Time] = field(default_factory=dict)
    streams: Mapping[str, KeptRows] = field(default_factory=dict)
    relation: Callable[[RelationEntry], pl.DataFrame | None] = lambda _relation: None

    @property
    def batch(self) -> int | None:
        """The last batch that counts; ``None`` if there was none."""
        return self.done - 1 if self.done else None
