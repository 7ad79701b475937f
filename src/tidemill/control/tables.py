"""Reading tables: from what runs, or from the checkpoint of a session that may be another one.

``bag_of`` is what everything that reads a table goes through. Law: its rows are those of the table
at one instant after one batch that is done, whatever is written meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.catalog.listing import show
from tidemill.control.checkpoint_past import boundary, engine_of
from tidemill.control.given import is_in
from tidemill.errors import RunError
from tidemill.history.table_list import GoneError, read_state
from tidemill.history.table_view import Bag, TableView
from tidemill.lang.statements import Name, ObjectKind, ReplanQuery
from tidemill.model.time import time_text
from tidemill.physical.state.damaged import DamagedError
from tidemill.runtime.damage import damaged, telling_where
from tidemill.runtime.table_files import TableFiles, table_place

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tidemill.catalog.catalog import Catalog
    from tidemill.catalog.entries import QueryEntry
    from tidemill.catalog.listing import Listing
    from tidemill.control.look import Look
    from tidemill.history.table_list import State
    from tidemill.lang.statements import Lifecycle
    from tidemill.model.time import Time

__all__ = ["bag_of", "refuse_read", "stored_table", "table_listing", "table_view", "view_of"]

_TRIES = 100
"""So often it is tried to read what is being written; each try meets another batch."""


def bag_of(
    look: Look,
    directory: Path | None,
    table: QueryEntry,
    at: Time | None = None,
    where: Mapping[str, object] | None = None,
) -> Bag:
    """The rows of a table at an instant, after one batch.

    Args:
        look: What can be seen of the queries of the session.
        directory: The checkpoint of the session, if it has one.
        table: The table, as it is registered.
        at: The instant; ``None`` for the last one that is known, after the end of the streams that
            of the latest row that was read.
        where: Values that columns have.

    Returns:
        The rows, with the instant, up to when the table is known (``known``), from when on it is
        kept (``since``), and the number of the batch after the one that all this is of (``done``).

    Raises:
        RunError: Nothing has been run, or the instant is not known yet or not kept any more.
    """
    before: State | None = None
    for _ in range(_TRIES):
        view = table_view(look, directory, table)
        try:
            return view.at(at, where)
        except DamagedError as error:
            raise damaged(f'table "{table.name}"', error) from error
        except GoneError as error:
            if view.state == before:  # nothing was written meanwhile
                raise damaged(f'table "{table.name}"', error) from error
            before = view.state
    raise RunError(
        f'table "{table.name}" was written faster than it could be read',
        hint="ask again; larger batches are written less often",
    )


def table_view(look: Look, directory: Path | None, table: QueryEntry) -> TableView:
    """A table after the last batch that is done.

    Raises:
        RunError: Nothing has been run.
    """
    found = view_of(look, directory, table)
    if found is None:
        raise RunError(
            f'table "{table.name}" has not been run yet',
            hint="call session.run() or session.start()",
        )
    return found


def view_of(look: Look, directory: Path | None, table: QueryEntry) -> TableView | None:
    """A table after the last batch that is done; ``None`` if it has not begun."""
    job = look.active
    is_here = look.is_running or directory is None
    if job is not None and is_here and is_in(job, look.catalog, look.past, table.name):
        view = job.table(table.name)
        if view is not None:
            return view
    return None if directory is None else stored_table(directory, table)


def table_listing(look: Look, directory: Path | None) -> Listing:
    """The tables, with the first instant at which their rows can be had."""
    listing = show(look.catalog, ObjectKind.TABLE)
    listing["kept_from"] = []
    for name in listing["name"]:
        entry = look.table_entry(Name(name))
        try:
            since = table_view(look, directory, entry).since
        except RunError:
            listing["kept_from"].append("not running")
        else:
            listing["kept_from"].append(time_text(since) if since else "the beginning")
    return listing


def refuse_read(catalog: Catalog, query: QueryEntry, statement: Lifecycle) -> None:
    """Refuse to change or stop a table that others read: for them it is the query it was.

    Raises:
        RunError: Others read it.
    """
    readers = catalog.dependants(query) if query.is_table else []
    if readers and not isinstance(statement, ReplanQuery):
        raise RunError(
            f'table "{query.name}" is read by {", ".join(readers)}, so it stays as it is',
            hint="drop what reads it first, or create another table",
        )


def stored_table(directory: Path, table: QueryEntry) -> TableView | None:
    """A table in a checkpoint, which another process may be writing; ``None`` if it has not begun.

    Raises:
        RunError: It is damaged, or cannot be read.
    """
    assert table.keep is not None, "it is a table"
    store = TableFiles(table_place(directory, table.name))
    with telling_where(directory):
        for _ in range(_TRIES):
            done = _done(directory)
            try:
                state = read_state(store.lines(), done)
            except DamagedError as error:
                raise damaged(f'table "{table.name}"', error) from error
            if state is None:
                return None
            if state.done <= done:  # otherwise batches have been done between the two
                return TableView(table.name, table.plan.schema, table.keep, state, store)
    raise RunError(
        f'table "{table.name}" was written faster than it could be read', hint="ask again"
    )


def _done(directory: Path) -> int:
    """The number of the batch after the last one that is done."""
    engine = engine_of(directory)
    return 0 if engine is None else boundary(directory, engine).done
