"""The archive of a stream: its rows as they were taken, by batch, for as long as it keeps them.

    {"stream": …, "since": 0}                                       whose rows, and from when on
    {"batch": 7, "watermark": …, "pieces": [{"name": …, "rows": …, "first": …, "last": …}, …]}

A row is kept with its time and its id if it was taken; one that was refused is not there. A batch
is added before it counts as done, and one that is not done is left out when the archive is opened
again. Rows are removed with their batches, once no row of the batch is recent enough.

Law: after any adding, removing, opening and killing, the rows from ``since`` on that ``rows`` gives
are those of the batches that are done, each once.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Protocol

import polars as pl

from tidemill.model.batch import END, ID, START, TIME_TYPE, polars_schema
from tidemill.model.time import Time
from tidemill.physical.state.damaged import DamagedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tidemill.catalog.entries import StreamEntry
    from tidemill.model.batch import Batch

__all__ = [
    "Archive",
    "Entry",
    "MemoryStore",
    "Piece",
    "Reference",
    "Store",
    "kept_columns",
    "piece_of",
    "read_entries",
    "read_piece",
]

_LEAST_REMOVED = 16
"""So many batches at least are removed together: the list of those that stay is written anew."""

_SHARE_REMOVED = 10
"""One in so many batches at least is removed then."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Rows of a file of the source, which stays.

    Attributes:
        path: The file.
        size: How long it was.
        changed: When it was changed last, in nanoseconds.
        number: The id of its first row; those of others follow.
        skip: How many rows of it come before.
        count: How many rows of it these are, those that were refused too.
        watermark: Rows from before were late.
        arrival: When they came, if they have no time of their own.
    """

    path: str
    size: int
    changed: int
    number: int
    skip: int
    count: int
    watermark: int
    arrival: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows of a batch that are kept together.

    Attributes:
        name: What the store calls them; of a reference, its path.
        rows: How many there are.
        first: The least of their times.
        last: The greatest of them.
        reference: Where they are, if they are not copied.
    """

    name: str
    rows: int
    first: int
    last: int
    reference: Reference | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """What a batch has brought.

    Attributes:
        batch: The number of the batch.
        watermark: How far the stream had come after it.
        pieces: The rows.
    """

    batch: int
    watermark: int
    pieces: tuple[Piece, ...]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(piece.rows for piece in self.pieces)

    @property
    def last(self) -> int:
        """The greatest time of them."""
        return max(piece.last for piece in self.pieces)


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
        self._store.remove(self._names(gone))

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
    def _names(entries: Iterable[Entry]) -> list[str]:
        pieces = (piece for entry in entries for piece in entry.pieces)
        return [piece.name for piece in pieces if piece.reference is None]


class MemoryStore:
    """An archive that ends with its process."""

    def __init__(self) -> None:
        self._rows: dict[str, Batch] = {}

    def put(self, name: str, rows: Batch) -> None:
        """Keep rows under a name."""
        self._rows[name] = rows

    def get(self, piece: Piece) -> Batch:
        """The rows of a piece."""
        return self._rows[piece.name]

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


def piece_of(name: str, rows: Batch, reference: Reference | None = None) -> Piece:
    """What is known of some rows, of which there are some."""
    first, last = rows[START].min(), rows[START].max()
    assert isinstance(first, int), "there are rows"
    assert isinstance(last, int), "there are rows"
    return Piece(name, rows.height, first, last, reference)


def read_entries(lines: Iterable[object]) -> tuple[Time, list[Entry]]:
    """From when on rows are kept, and the batches, by the list of what is kept.

    Raises:
        DamagedError: It is not what was written.
    """
    found = _read(lines)
    return (Time(0), []) if found is None else found[1:]


def _line(entry: Entry) -> str:
    return json.dumps(asdict(entry)) + "\n"


def _read(lines: Iterable[object]) -> tuple[str, Time, list[Entry]] | None:
    header: tuple[str, Time] | None = None
    entries: list[Entry] = []
    for line in lines:
        match line:
            case {"stream": str(stream), "since": int(since)} if header is None:
                header = stream, Time(since)
            case {"batch": int(batch), "watermark": int(mark), "pieces": list(pieces)} if header:
                entries.append(Entry(batch, mark, tuple(map(read_piece, pieces))))
            case _:
                raise DamagedError(f"{line} is no line of what is kept")
    return None if header is None else (*header, entries)


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
