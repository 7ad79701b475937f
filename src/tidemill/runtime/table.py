"""A table as people hold it: the rows of a query at any instant that is known and kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from tidemill.model.time import Time, to_instant

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date, datetime

    import polars as pl

    from tidemill.history.table_view import Bag
    from tidemill.model.schema import Schema

__all__ = ["Table"]


class _Owner(Protocol):
    """What a table asks its session for."""

    def bag(
        self, table: str, at: Time | None = None, where: Mapping[str, object] | None = None
    ) -> Bag:
        """The rows of a table at an instant."""
        ...


@dataclass(frozen=True, slots=True, repr=False)
class Table:
    """A registered table.

    Attributes:
        name: What it is called.
        schema: Its columns.
        key: The columns that no two rows of one instant agree on; none if none are known.
        session: Where it is registered.
    """

    name: str
    schema: Schema
    key: tuple[str, ...]
    session: _Owner = field(compare=False)

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name} {field.type}" for field in self.schema)
        return f"Table({self.name}: {columns})"

    def snapshot(self, at: int | datetime | date | str | None = None) -> pl.DataFrame:
        """The rows at an instant, which is given as to ``Query.snapshot``.

        Raises:
            RunError: It is no instant, nothing has been run, or the table is not known yet at that
                instant, or not kept any more.
        """
        return self.session.bag(self.name, _instant(at)).rows

    def lookup(
        self, where: Mapping[str, object], at: int | datetime | date | str | None = None
    ) -> pl.DataFrame:
        """The rows that have these values at an instant; of files only what can have them is read.

        Args:
            where: The values of some columns, of the key or others; ``None`` is NULL.
            at: The instant, as of ``snapshot``.

        Raises:
            RunError: As of ``snapshot``; or there is no such column, or it cannot have the value.
        """
        return self.session.bag(self.name, _instant(at), where).rows

    def bag(self, at: int | datetime | date | str | None = None) -> Bag:
        """The rows at an instant, with what is known and kept after the batch that they are of.

        Raises:
            RunError: As of ``snapshot``.
        """
        return self.session.bag(self.name, _instant(at))


def _instant(at: int | datetime | date | str | None) -> Time | None:
    return None if at is None else Time(to_instant(at))
