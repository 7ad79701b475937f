"""The list of a table: what is kept of an answer, as a value and as lines of JSON.

    {"table": 1, "done": 42, "since": 0, "serial": 3, "known": …, "read": …, "pieces": […]}
    {"batch": 42, "known": …, "read": …, "piece": {…}}

The first line stands for all batches before ``done``; each of the others adds what a batch has
brought.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Protocol

from tidemill.history.settling import Kind
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.state.damaged import DamagedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import polars as pl

    from tidemill.catalog.entries import Kept
    from tidemill.model.batch import Batch

__all__ = ["GoneError", "Piece", "State", "Store", "header", "line_of", "read_state"]


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows that are kept together.

    Attributes:
        kind: What they say.
        name: What the store calls them.
        rows: How many there are.
        first: The least of their times.
        last: The greatest of them; of rows that have gone, of their ends.
        half: Of rows that have gone, when half of them had.
    """

    kind: Kind
    name: str
    rows: int
    first: int
    last: int
    half: int = 0


@dataclass(frozen=True, slots=True)
class State:
    """What is kept after a batch.

    Attributes:
        done: The number of the batch after it.
        since: Rows that had gone before this instant may be missing.
        serial: The number of the next piece that is no batch's own.
        known: Up to when the answer is known, an instant that is not known itself.
        read: The time of the latest row that the query has read.
        pieces: The rows.
    """

    done: int = 0
    since: Time = Time(0)  # noqa: RUF009 — a number
    serial: int = 0
    known: Time = Time(0)  # noqa: RUF009 — a number
    read: int | None = None
    pieces: tuple[Piece, ...] = ()

    @property
    def present(self) -> Time | None:
        """The last instant that is known; after the end of the streams, that of the latest row."""
        if self.known < END_OF_TIME:
            return Time(self.known - 1) if self.known > 0 else None
        return Time(0 if self.read is None else self.read)

    def rows(self, *kinds: Kind) -> int:
        """How many rows of some kinds there are."""
        return sum(piece.rows for piece in self.pieces if piece.kind in kinds)

    def first(self, keep: Kept) -> Time:
        """The first instant at which the rows can be had."""
        present = self.present
        wanted = 0 if present is None else keep.first(present)
        return Time(max(self.since, wanted))


class GoneError(LookupError):
    """Rows that were to be read have been merged with others, or removed, meanwhile."""


class Store(Protocol):
    """Where a table is: files of a checkpoint, or memory."""

    def put(self, name: str, rows: Batch) -> None:
        """Keep rows under a name; what was there is replaced."""
        ...

    def read(
        self, piece: Piece, ask: Callable[[pl.LazyFrame], pl.LazyFrame] | None = None
    ) -> Batch:
        """The rows of a piece, or what is asked of them, read as far as that needs.

        Raises:
            GoneError: They are not there any more.
            DamagedError: They are not what was put.
        """
        ...

    def has(self, name: str) -> bool:
        """Whether there are rows under a name."""
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


def header(state: State) -> str:
    """The line that stands for all batches before ``done``."""
    pieces = [asdict(piece) for piece in state.pieces]
    written = {"table": 1, **asdict(state), "pieces": pieces}
    return json.dumps(written) + "\n"


def line_of(state: State, batch: int, piece: Piece | None) -> str:
    """The line that adds what a batch has brought."""
    told = None if piece is None else asdict(piece)
    written = {"batch": batch, "known": state.known, "read": state.read, "piece": told}
    return json.dumps(written) + "\n"


def read_state(lines: Iterable[object], done: int) -> State | None:
    """What is kept, by the list of it; ``None`` if there is none.

    Args:
        lines: The list.
        done: Batches before this one are done. Others are left out; if the state is one of later
            batches, so was the list, and it cannot be told any more how it was then.

    Raises:
        DamagedError: It is not what was written.
    """
    state: State | None = None
    for line in lines:
        try:
            match line:
                case {"table": 1, "pieces": list(pieces), **rest} if state is None:
                    state = State(**rest, pieces=tuple(map(_piece, pieces)))  # type: ignore[arg-type]
                case {"batch": int(batch), "known": int(known), "read": read, "piece": piece} if (
                    state is not None
                ):
                    added = () if piece is None else (_piece(piece),)
                    if batch < done:
                        state = replace(
                            state,
                            done=batch + 1,
                            known=Time(known),
                            read=read,
                            pieces=(*state.pieces, *added),
                        )
                case _:
                    raise DamagedError(f"{line} is no line of a table")
        except TypeError as error:
            raise DamagedError(f"{line} is no line of a table") from error
    return state


def _piece(found: Mapping[str, object]) -> Piece:
    try:
        return Piece(**{**found, "kind": Kind(str(found["kind"]))})  # type: ignore[arg-type]
    except (TypeError, KeyError, ValueError) as error:
        raise DamagedError(f"{found} are no rows of a table") from error
