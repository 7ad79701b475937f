"""What is read of a table: its rows at an instant, as they were after one batch.

Law: whatever is written meanwhile, all that a view tells is of the batch before ``done``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from tidemill.errors import RunError, suggestion
from tidemill.history.settling import Kind, columns_of, joined, settled, there
from tidemill.model.batch import END, SIGN, START, TIME, TIME_TYPE, polars_type
from tidemill.model.time import END_OF_TIME, Time, time_text
from tidemill.physical.frames import pick
from tidemill.physical.kernels.sweep import GROUP, encode, repeat

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.catalog.entries import Kept
    from tidemill.history.table_list import State, Store
    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema

__all__ = ["Bag", "TableView", "TooOldError"]


class TooOldError(RunError):
    """The rows of a table at an instant are not kept any more."""


@dataclass(frozen=True, slots=True)
class Bag:
    """The rows of a table at an instant.

    Attributes:
        rows: The rows, in their order.
        at: The instant.
        known: Up to when the table is known, an instant that is not known itself.
        since: The first instant at which its rows can be had.
        done: The number of the batch after the one that this is of.
    """

    rows: pl.DataFrame
    at: Time
    known: Time
    since: Time
    done: int


@dataclass(frozen=True, slots=True)
class TableView:
    """A table after a batch.

    Attributes:
        name: What it is called.
        schema: The columns of its rows.
        keep: For how long rows are kept that have gone.
        state: What is kept.
        store: Where it is.
    """

    name: str
    schema: Schema
    keep: Kept
    state: State
    store: Store

    @property
    def known(self) -> Time:
        """Up to when it is known, an instant that is not known itself."""
        return self.state.known

    @property
    def since(self) -> Time:
        """The first instant at which its rows can be had."""
        return self.state.first(self.keep)

    def at(self, time: Time | None = None, where: Mapping[str, object] | None = None) -> Bag:
        """The rows at an instant.

        Args:
            time: The instant; ``None`` for the last one that is known, after the end of the streams
                that of the latest row that was read.
            where: Values of columns that the rows have; of files only groups of rows are read that
                can have them.

        Raises:
            RunError: It is not known yet at that instant, or not kept any more (``TooOldError``);
                or there is no such column, or it cannot have such a value.
            GoneError: A batch has been written meanwhile, and this one is not there any more.
            DamagedError: The rows are not what was written.
        """
        at = self._instant(time)
        matches = self._matching(where or {})
        found = []
        for piece in self.state.pieces:
            if piece.first > at or (piece.kind is Kind.PAST and piece.last <= at):
                continue
            found.append(self.store.read(piece, partial(_asked, matches, piece.kind, at)))
        rows_ = self._bag(found)
        return Bag(rows_, at, self.known, self.since, self.state.done)

    def changes(self) -> Batch:
        """All that is kept, in signed form; rows that had gone before ``since`` may be there."""
        names = list(columns_of(self.schema, Kind.CHANGES))
        found = [pl.DataFrame(schema=columns_of(self.schema, Kind.CHANGES))]
        for piece in self.state.pieces:
            rows = self.store.read(piece)
            if piece.kind is Kind.CHANGES:
                found.append(pick(rows, names))
                continue
            found.append(pick(rows.rename({START: TIME}), names))
            if piece.kind is Kind.PAST:
                ends = pick(rows.rename({END: TIME}), names)
                found.append(ends.with_columns(-pl.col(SIGN)))
        return pl.concat(found)

    def elements(self, first: Time, last: Time) -> Batch:
        """The elements that are there at instants from ``first`` to ``last``.

        Of a row that is there several times each is one; what ends where an equal one begins is
        told as it was given.

        Raises:
            GoneError: A batch has been written meanwhile, and this one is not there any more.
            DamagedError: The rows are not what was written.
        """
        past = [pl.DataFrame(schema=columns_of(self.schema, Kind.PAST))]
        open_: dict[Kind, list[Batch]] = {Kind.STANDING: [], Kind.CHANGES: []}
        during = (pl.col(START) <= last) & (pl.col(END) > first)
        for piece in self.state.pieces:
            if piece.kind is not Kind.PAST:  # where a row ends, a later change may say
                open_[piece.kind].append(self.store.read(piece))
            elif piece.first <= last and piece.last > first:
                past.append(self.store.read(piece, lambda rows: rows.filter(during)))
        if any(open_.values()):
            standing, changes = (joined(self.schema, kind, rows) for kind, rows in open_.items())
            gone, there_ = settled(self.schema, standing, changes)
            past += [gone, there_.with_columns(pl.lit(END_OF_TIME, TIME_TYPE).alias(END))]
        names = list(columns_of(self.schema, Kind.PAST))
        rows = pl.concat([pick(one, names) for one in past]).filter(during)
        return repeat(rows, SIGN)

    def _bag(self, found: list[pl.DataFrame]) -> pl.DataFrame:
        types = columns_of(self.schema, Kind.CHANGES)
        del types[TIME]
        whole = pl.concat([pl.DataFrame(schema=types), *(pick(frame, types) for frame in found)])
        names, (numbered,) = encode(self.schema.names, [whole])
        net = numbered.group_by(GROUP).agg(pl.col(SIGN).sum())
        assert net.is_empty() or int(net[SIGN].min()) >= 0, "what goes has come"  # type: ignore[arg-type]
        net = net.filter(pl.col(SIGN) > 0)
        rows = repeat(names[net[GROUP]].hstack([net[SIGN]]), SIGN)
        return rows.sort(self.schema.names, nulls_last=False)

    def _instant(self, time: Time | None) -> Time:
        present = self.state.present
        at = present if time is None else time
        if at is None:
            raise RunError(
                f'nothing is known yet of table "{self.name}"',
                hint="wait until rows have come, for example with session.await_idle()",
            )
        if at >= self.known:
            raise RunError(
                f'table "{self.name}" is known up to {time_text(self.known)}, and at'
                f" {time_text(at)} it can still change",
                hint="ask for an earlier instant, or for the last one that is known",
            )
        if at < self.since:
            raise TooOldError(
                f'table "{self.name}" is kept from {time_text(self.since)} on, and not at'
                f" {time_text(at)} any more",
                hint="ask for a later instant; CREATE TABLE … KEEP says for how long it is kept",
            )
        return at

    def _matching(self, where: Mapping[str, object]) -> list[pl.Expr]:
        """What the columns must be."""
        by_name = {field.name.lower(): field for field in self.schema}
        found = []
        for name, value in where.items():
            field = by_name.get(name.lower())
            if field is None:
                raise RunError(
                    f'table "{self.name}" has no column "{name}"',
                    hint=suggestion(name, self.schema.names),
                )
            column = pl.col(field.name)
            if value is None:
                found.append(column.is_null())
                continue
            try:
                wanted = pl.Series([value]).cast(polars_type(field.type))
                is_same = wanted.len() == 1 and wanted.cast(pl.Series([value]).dtype)[0] == value
            except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError):
                is_same = False
            if not is_same and value == value:  # noqa: PLR0124 — NaN is no other value
                raise RunError(
                    f'column "{field.name}" of table "{self.name}" is {field.type}, and cannot be'
                    f" {value!r}",
                    hint="look up a value of the column's type",
                )
            found.append(column.eq_missing(pl.lit(wanted[0], polars_type(field.type))))
        return found


def _asked(matches: list[pl.Expr], kind: Kind, at: Time, rows: pl.LazyFrame) -> pl.LazyFrame:
    """The rows that match and count at an instant; what is asked of columns goes down to files."""
    for match in matches:
        rows = rows.filter(match)
    return there(kind, rows, at)
