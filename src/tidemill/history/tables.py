"""The kept answer of a query, its table: rows with the instants at which they were there.

Each batch adds what it has changed, in signed form (``CHANGES``); of a table whose rows come with
their ends, it adds these (``PAST``). From time to time changes are
settled: a row that has gone is kept with its start and end (``PAST``), one that is still there with
its start (``STANDING``). Pieces are never edited; those of about one size are merged, so that there
are few of them, and a piece of which half has ended too long ago is written anew without that.

A batch is added before it counts as done, and one that is not done is left out when the table is
opened again. Only batches before it are settled and merged, so it stays apart until it is done.

Law: at every instant from ``since`` on and before ``known`` the rows are those of the answer, after
any adding, settling, removing, opening and killing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from tidemill.history.settling import (
    Kind,
    joined,
    settled,
    span_of,
    summed,
)
from tidemill.history.table_list import (
    Piece,
    State,
    Store,
    header,
    line_of,
    read_state,
)
from tidemill.model.batch import END, SIGN, TIME_TYPE, Form
from tidemill.model.time import Time
from tidemill.physical.state.damaged import DamagedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidemill.catalog.entries import Kept
    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema

__all__ = ["LIMITS", "Limits", "Table"]


@dataclass(frozen=True, slots=True)
class Limits:
    """When pieces are made anew.

    Attributes:
        changes: Fewer changes than this are not worth settling.
        crowd: So many pieces of about one size are merged.
        most: A merged piece has at most so many rows, so that merging takes no longer.
        lines: So many lines of the list are made one.
    """

    changes: int = 4096
    crowd: int = 16
    most: int = 1 << 18
    lines: int = 256


LIMITS = Limits()


class Table:
    """The kept answer of a query, as it is written.

    Args:
        store: Where it is.
        schema: The columns of the answer.
        keep: For how long rows are kept that have gone.
        done: Batches before this one are done.
        key: The columns that rows are looked up by most likely.
        limits: When pieces are made anew.
        form: The form in which rows come: changes, or rows with their ends.

    Raises:
        DamagedError: The list of what is kept is not what was written.

    Attributes:
        state: What readers may see: that after the last batch that is done.
        store: Where it is.
        schema: The columns of the answer.
        keep: For how long rows are kept that have gone.
        form: The form in which rows come.
    """

    def __init__(  # noqa: PLR0913 — what a table is
        self,
        store: Store,
        schema: Schema,
        keep: Kept,
        *,
        done: int,
        key: Sequence[str] = (),
        limits: Limits = LIMITS,
        form: Form = Form.SIGNED,
    ) -> None:
        self.store = store
        self.schema = schema
        self.keep = keep
        self.form = form
        self._limits = limits
        self._order = [*key, *(name for name in schema.names if name not in key)]
        found = read_state(store.lines(), done)
        if found is not None and found.done > done:
            raise DamagedError(f"it has batch {found.done - 1}, and the next one is {done}")
        self.state = self._next = State(done=done) if found is None else found
        missing = [piece.name for piece in self.state.pieces if not store.has(piece.name)]
        if missing:
            raise DamagedError(f'its rows "{missing[0]}" are missing')
        self._over: list[str] = []
        self._lines = 0
        self._rewrite()
        store.keep_only(piece.name for piece in self._next.pieces)

    def take(self, batch: int, rows: Batch | None, *, known: Time, read: int | None = None) -> None:
        """Take in what a batch has changed; readers see it when it is published.

        Args:
            batch: The number of the batch, after all others.
            rows: The changes, in signed form, or rows with their ends; ``None`` if there are none.
            known: Up to when the answer is known then.
            read: The time of the latest row that was read for it.
        """
        if batch < self.state.done:
            return  # it was delivered before, with the same rows
        if self._next != self.state:  # it was cut short, and is taken again
            self._next = self.state
            self._over.clear()
            self._rewrite()
        self._maintain()
        piece = None if rows is None or rows.is_empty() else self._new(batch, rows)
        added = () if piece is None else (piece,)
        before = self._next
        self._next = replace(
            before,
            done=batch + 1,
            known=known,
            read=read if before.read is None or read is None else max(before.read, read),
            pieces=(*before.pieces, *added),
        )
        self.store.append(line_of(self._next, batch, piece))
        self._lines += 1

    def _new(self, batch: int, rows: Batch) -> Piece | None:
        """What a batch has brought."""
        name = f"{batch:012d}"
        if self.form is Form.INTERVAL:
            once = pl.repeat(1, rows.height, dtype=TIME_TYPE, eager=True).alias(SIGN)
            return self._put(Kind.PAST, name, rows.hstack([once]))
        net = summed(self.schema, rows)
        return self._put(Kind.CHANGES, name, net) if net.height else None

    def publish(self) -> None:
        """Let readers see what was taken: the batch is done."""
        self.state = self._next
        self.store.remove(self._over)
        self._over.clear()

    # Maintenance: of what is done, for readers of any instant that can be had now

    def _maintain(self) -> None:
        """Remove what nobody can ask for, and make many pieces one."""
        state, limits = self._next, self._limits
        first = state.first(self.keep)
        pieces = self._without_old(state.pieces, first)
        pieces = self._settled(pieces, first)
        for kind in (Kind.CHANGES, Kind.PAST):
            pieces = self._merged(pieces, kind, first)
        is_same = pieces == state.pieces
        if is_same and self._lines < limits.lines:
            return
        since = state.since if is_same else Time(max(state.since, first))
        self._next = replace(self._next, pieces=pieces, since=since)
        names = {piece.name for piece in pieces}
        self._over += [piece.name for piece in state.pieces if piece.name not in names]
        self._rewrite()

    def _without_old(self, pieces: tuple[Piece, ...], first: Time) -> tuple[Piece, ...]:
        """The pieces without those of which nothing, or less than half, is recent enough."""
        kept: list[Piece] = []
        for piece in pieces:
            if piece.kind is not Kind.PAST or piece.half > first:
                kept.append(piece)
            elif piece.last > first:
                kept += self._past([piece], first)
        return tuple(kept)

    def _settled(self, pieces: tuple[Piece, ...], first: Time) -> tuple[Piece, ...]:
        """The pieces with starts and ends in the place of changes, if those are many."""
        standing = [piece for piece in pieces if piece.kind is Kind.STANDING]
        changes = [piece for piece in pieces if piece.kind is Kind.CHANGES]
        least = max(self._limits.changes, sum(piece.rows for piece in standing))
        if sum(piece.rows for piece in changes) < least:
            return pieces
        past, there = settled(
            self.schema, self._rows(standing, Kind.STANDING), self._rows(changes, Kind.CHANGES)
        )
        recent = past.filter(pl.col(END) > first)
        others = [piece for piece in pieces if piece.kind is Kind.PAST]
        made = [
            self._put_next(kind, rows)
            for kind, rows in ((Kind.PAST, recent), (Kind.STANDING, there))
            if rows.height
        ]
        return (*others, *made)

    def _merged(self, pieces: tuple[Piece, ...], kind: Kind, first: Time) -> tuple[Piece, ...]:
        """The pieces with one in the place of many of about one size."""
        mine = [piece for piece in pieces if piece.kind is kind]
        by_size: dict[int, list[Piece]] = {}
        for piece in mine:
            by_size.setdefault(_size(piece.rows, self._limits.crowd), []).append(piece)
        for alike in by_size.values():
            rows = sum(piece.rows for piece in alike)
            if len(alike) < self._limits.crowd or rows > self._limits.most:
                continue
            if kind is Kind.PAST:
                made = self._past(alike, first)
            else:
                net = summed(self.schema, self._rows(alike, kind))
                made = [self._put_next(kind, net)] if net.height else []
            pieces = (*(piece for piece in pieces if piece not in alike), *made)
        return pieces

    def _past(self, pieces: Sequence[Piece], first: Time) -> list[Piece]:
        """One piece of the rows of some that had not gone at an instant, if there are any."""
        rows = self._rows(pieces, Kind.PAST)
        recent = rows.filter(pl.col(END) > first)
        return [self._put_next(Kind.PAST, recent)] if recent.height else []

    def _rows(self, pieces: Iterable[Piece], kind: Kind) -> Batch:
        return joined(self.schema, kind, (self.store.read(piece) for piece in pieces))

    def _put_next(self, kind: Kind, rows: Batch) -> Piece:
        """A piece that is no batch's own."""
        name = f"{kind.value}-{self._next.serial:08d}"
        self._next = replace(self._next, serial=self._next.serial + 1)
        if self.form is Form.INTERVAL:  # as they came: it is instants that are asked for
            return self._put(kind, name, rows)
        # Rows with equal keys stand together, so that a look-up leaves out most groups of rows.
        return self._put(kind, name, rows.sort(self._order))

    def _put(self, kind: Kind, name: str, rows: Batch) -> Piece:
        self.store.put(name, rows)
        return Piece(kind, name, rows.height, *span_of(kind, rows))

    def _rewrite(self) -> None:
        """Write the list as one line."""
        self.store.rewrite([header(self._next)])
        self._lines = 0


def _size(rows: int, base: int) -> int:
    """About how large a piece is.

    >>> _size(15, 16), _size(16, 16), _size(300, 16)
    (0, 1, 2)
    """
    size = 0
    while rows >= base:
        rows, size = rows // base, size + 1
    return size
