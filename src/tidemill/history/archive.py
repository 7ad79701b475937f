"""The archive of a stream: its rows as they were taken, by batch, for as long as it keeps them.

    {"stream": …, "since": 0}                                       whose rows, and from when on
    {"batch": 7, "watermark": …, "pieces": [{"name": …, "rows": …, "first": …, "last": …}, …]}

A row is kept with its time and its id if it was taken; one that was refused is not there. A batch
is added before it counts as done, and one that is not done is left out when the archive is opened
again. Rows are removed with their batches, once no row of the batch is recent enough. Batches of
few rows are put together, so that there are not many files.

Law: after any adding, removing, merging, opening and killing, the rows from ``since`` on that
``rows`` gives are those of the batches that are done, each once.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Protocol

import polars as pl

from tidemill.history.pieces import PIECE_ROWS, Entry, joined, pieces_of, read_piece
from tidemill.model.batch import END, ID, START, TIME_TYPE, polars_schema
from tidemill.model.time import Time
from tidemill.physical.state.damaged import DamagedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tidemill.catalog.entries import StreamEntry
    from tidemill.history.pieces import Piece
    from tidemill.model.batch import Batch

__all__ = ["Archive", "MemoryStore", "Store", "kept_columns", "read_entries"]

_LEAST_REMOVED = 16
"""So many batches at least are removed together: the list of those that stay is written anew."""

_LEAST_MERGED = 64
"""So many small batches at least are put together."""

_FEW = PIECE_ROWS // 4
"""A batch with fewer rows is small."""

_SHARE_REMOVED = 10
"""One in so many batches at least is removed then."""


class Store(Protocol):
    """Where an archive is: files of a checkpoint, or memory."""

    def put(self, name: str, rows: Batch) -> None:
        """Keep rows under a name; what was there is replaced."""
        ...

    def get(self, piece: Piece) -> Batch:
        """The rows of a piece, with ``kept_columns``."""
        ...

    def keep_only(self, names: Iterable[str]) -> None:
        """Remove the rows under all other names."""
        ...

    def remove(self, names: Iterable[str]) -> None:
        """Remove the rows under some names."""
        ...

    def lines(self) -> Iterator[object]:
        """The list of what is kept, line by line."""
        ...

    def append(self, line: str) -> None:
        """Add a line to the list."""
        ...

    def rewrite(self, lines: Sequence[str]) -> None:
        """Replace the list, at once."""
        ...


class Archive:
    """The rows that a stream keeps.

    Args:
        store: Where they are.
        stream: What tells the stream from others; rows of another one are removed.
        done: Batches before this one are done.
        since: From when on rows are kept that come now, if none are there.

    Raises:
        DamagedError: The list of what is kept is not what was written.

    Attributes:
        since: All rows from this instant on are there.
        entries: The batches, in their order.
    """

    def __init__(self, store: Store, stream: str, *, done: int, since: Time) -> None:
        self._store = store
        self._stream = stream
        self.since, self.entries = since, list[Entry]()
        found = _read(store.lines())
        is_mine = found is not None and found[0] == stream
        if found is not None and is_mine:
            _, self.since, entries = found
            self.entries = [entry for entry in entries if entry.batch < done]
        store.rewrite(self._lines())
        store.keep_only(self._names(self.entries))

    def add(self, entry: Entry) -> None:
        """Take in what a batch has brought; one that is taken again replaces itself."""
        if self.entries and self.entries[-1].batch >= entry.batch:
            self.entries = [one for one in self.entries if one.batch < entry.batch]
            self.entries.append(entry)
            self._store.rewrite(self._lines())
            return
        self.entries.append(entry)
        self._store.append(_line(entry))

    def forget(self, first: Time, *, batch: int, least: int = _LEAST_REMOVED) -> None:
        """Remove batches without a row from an instant on, and before a batch that is needed.

        Args:
            first: Rows from here on stay.
            batch: Batches from here on stay.
            least: Fewer batches than this are not worth it.
        """
        gone = [e for e in self.entries if e.last < first and e.batch < batch]
        if len(gone) < max(least, len(self.entries) // _SHARE_REMOVED, 1):
            return
        numbers = {entry.batch for entry in gone}
        self.entries = [entry for entry in self.entries if entry.batch not in numbers]
        self.since = max(self.since, *(Time(entry.last + 1) for entry in gone))
        self._store.rewrite(self._lines())
        # A copy of a file may hold rows of several batches.
        self._store.remove(self._names(gone) - self._names(self.entries))

    def merge(self, first: Time, *, least: int | None = None) -> None:
        """Put the rows of the latest batches together, if there are many and all are small.

        All of them are done, and nobody is on the way through them, piece by piece.

        Args:
            first: Rows from before are left out.
            least: Fewer batches than this are not worth it; ``None`` for the usual number.
        """
        small = self._small()
        if len(small) < (least or _LEAST_MERGED):
            return
        pieces = (piece for entry in small for piece in joined(entry.pieces))
        rows = pl.concat([self._store.get(piece) for piece in pieces])
        recent = rows.filter(pl.col(START) >= first)
        if recent.height < rows.height:
            self.since = max(self.since, first)
        merged: list[Entry] = []
        if recent.height:
            name = f"merged-{small[-1].batch:012d}"
            self._store.put(name, recent)
            begin = small[0].batch if small[0].begin is None else small[0].begin
            pieces_ = tuple(pieces_of(name, recent))
            merged.append(replace(small[-1], pieces=pieces_, begin=begin))
        self.entries = [*self.entries[: -len(small)], *merged]
        self._store.rewrite(self._lines())
        self._store.remove(self._names(small) - self._names(self.entries))

    def _small(self) -> list[Entry]:
        """The latest batches, as far as each has few rows that the store has itself."""
        found: list[Entry] = []
        for entry in reversed(self.entries):
            if entry.rows >= _FEW or any(piece.reference is not None for piece in entry.pieces):
                break
            found.append(entry)
        return found[::-1]

    def rows(self, first: Time, past: Time, before: int | None = None) -> Iterator[Batch]:
        """The rows whose times are in ``[first, past)``, of batches before one.

        Raises:
            RunError: They cannot be read.
        """
        for entry in self.entries:
            for piece in entry.pieces if before is None or entry.batch < before else ():
                if piece.last >= first and piece.first < past:
                    rows = self._store.get(piece)
                    inside = (pl.col(START) >= first) & (pl.col(START) < past)
                    yield (
                        rows if first <= piece.first and piece.last < past else rows.filter(inside)
                    )

    def get(self, piece: Piece) -> Batch:
        """The rows of a piece.

        Raises:
            RunError: They cannot be read.
        """
        return self._store.get(piece)

    def _lines(self) -> list[str]:
        header = json.dumps({"stream": self._stream, "since": self.since}) + "\n"
        return [header, *map(_line, self.entries)]

    @staticmethod
    def _names(entries: Iterable[Entry]) -> set[str]:
        pieces = (piece for entry in entries for piece in entry.pieces)
        return {p.name for p in pieces if p.reference is None or not p.reference.path}


class MemoryStore:
    """An archive that ends with its process."""

    def __init__(self) -> None:
        self._rows: dict[str, Batch] = {}

    def put(self, name: str, rows: Batch) -> None:
        """Keep rows under a name."""
        self._rows[name] = rows

    def get(self, piece: Piece) -> Batch:
        """The rows of a piece."""
        return self._rows[piece.name].slice(piece.skip, piece.rows)

    def keep_only(self, names: Iterable[str]) -> None:
        """Remove the rows under all other names."""
        wanted = set(names)
        self._rows = {name: rows for name, rows in self._rows.items() if name in wanted}

    def remove(self, names: Iterable[str]) -> None:
        """Remove the rows under some names."""
        for name in names:
            self._rows.pop(name, None)

    def lines(self) -> Iterator[object]:
        """Nothing: it begins empty."""
        return iter(())

    def append(self, line: str) -> None:
        """Nothing is written."""

    def rewrite(self, lines: Sequence[str]) -> None:
        """Nothing is written."""


def kept_columns(stream: StreamEntry) -> dict[str, pl.DataType]:
    """The columns of elements as they are kept and given once more."""
    return {**polars_schema(stream.schema), START: TIME_TYPE, END: TIME_TYPE, ID: TIME_TYPE}


def read_entries(lines: Iterable[object]) -> tuple[Time, list[Entry]]:
    """From when on rows are kept, and the batches, by the list of what is kept.

    Raises:
        DamagedError: It is not what was written.
    """
    found = _read(lines)
    return (Time(0), []) if found is None else found[1:]


def _line(entry: Entry) -> str:
    written = asdict(entry)
    if entry.begin is None:
        del written["begin"]
    return json.dumps(written) + "\n"


def _read(lines: Iterable[object]) -> tuple[str, Time, list[Entry]] | None:
    header: tuple[str, Time] | None = None
    entries: list[Entry] = []
    for line in lines:
        match line:
            case {"stream": str(stream), "since": int(since)} if header is None:
                header = stream, Time(since)
            case {
                "batch": int(batch),
                "watermark": int(mark),
                "pieces": list(pieces),
                **rest,
            } if header:
                begin = rest.get("begin")
                assert begin is None or isinstance(begin, int), "it is what was written"
                entries.append(Entry(batch, mark, tuple(map(read_piece, pieces)), begin))
            case _:
                raise DamagedError(f"{line} is no line of what is kept")
    return None if header is None else (*header, entries)
