"""Tables as one-time queries read them: from their kept rows, which needs no KEEP of streams.

Everything of an answer is of one boundary, although a table that is written meanwhile may be read
after a later batch than another, or than the streams. For a table keeps its word: at an instant
that it was known at, its rows are the same after every later batch, as are those of a stream. So an
instant before the least of what is known has, at all boundaries from the latest of them on, one
bag of rows. What may be different later is that it is not kept any more, and that is an error.

Tables are looked at before streams are, so that streams have come at least as far: rows that a
table has removed are computed from streams at an instant that is known of them as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidemill.control.tables import bag_of, view_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    import polars as pl

    from tidemill.catalog.entries import QueryEntry
    from tidemill.control.look import Look
    from tidemill.history.table_view import TableView
    from tidemill.model.time import Time

__all__ = ["KeptTables", "kept_tables"]


def _no_rows(table: QueryEntry, _time: Time) -> pl.DataFrame:
    raise AssertionError(f'table "{table.name}" was not looked at')


@dataclass(frozen=True, slots=True)
class KeptTables:
    """Tables, as they were looked at.

    Attributes:
        views: Each by its name; those that have not begun are missing.
        rows: The rows of one at an instant, after the batch of its view or a later one.
    """

    views: Mapping[str, TableView] = field(default_factory=dict)
    rows: Callable[[QueryEntry, Time], pl.DataFrame] = _no_rows


def kept_tables(look: Look, directory: Path | None, tables: Iterable[QueryEntry]) -> KeptTables:
    """Tables of a session, as they are after the last batch that is done.

    Args:
        look: What can be seen of the queries of the session.
        directory: The checkpoint of the session, if it has one.
        tables: The tables, as they are registered.

    Raises:
        RunError: One is damaged.
    """
    found = {table.name: view_of(look, directory, table) for table in tables}
    return KeptTables(
        {name: view for name, view in found.items() if view is not None},
        lambda table, time: bag_of(look, directory, table, time).rows,
    )
