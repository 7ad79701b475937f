"""What is missing: the functions and frames that statements name and only a process can give.

A checkpoint keeps statements, and the rows of a frame once it has been read. A callback is a
function of a process: a session that goes on with a query that calls it has to give it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.catalog.entries import QueryEntry, RelationEntry, StreamEntry, object_use, uses_of
from tidemill.connectors.callback import CALLBACK
from tidemill.connectors.check import arguments_of
from tidemill.connectors.connector import Use
from tidemill.control.instances import user_name
from tidemill.errors import RunError
from tidemill.lang.statements import ConnectorCall, ObjectKind
from tidemill.runtime.checkpoint import keeps_rows
from tidemill.runtime.connectors import source_place

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from tidemill.catalog.catalog import Catalog

__all__ = ["refuse_missing"]


def refuse_missing(
    catalog: Catalog, frames: Collection[str], callbacks: Collection[str], directory: Path
) -> None:
    """Refuse to start queries without what only this process can give.

    Args:
        catalog: The queries that are to run, and what they read.
        frames: The names of the frames that there are.
        callbacks: The names of the functions that there are.
        directory: The checkpoint, which keeps the rows of frames that have been read.

    Raises:
        RunError: Something is missing; all of it is named.
    """
    asked: dict[str, str] = {}
    for entry in _needed(catalog):
        match entry:
            case QueryEntry(name, sink=ConnectorCall() as sink):
                function = arguments_of(sink, Use.SINK)
                key = function.text("name")
                if function.connector is CALLBACK and key not in callbacks:
                    needs = f'callback "{key}", which query "{user_name(name)}" is to call'
                    asked[needs] = f"session.callback({key!r}, function)"
            case StreamEntry(name) | RelationEntry(name):
                place = source_place(name, entry.source)
                is_here = place.kind != "memory" or place.path in frames
                if not is_here and not keeps_rows(directory, name):
                    needs = f'frame "{place.path}", which "{name}" reads'
                    asked[needs] = f"session.put({place.path!r}, frame)"
            case _:
                pass  # a query whose answer stays in memory
    if asked:
        raise RunError(
            f"there is no {', and no '.join(sorted(asked))}",
            hint=f"write {', '.join(sorted(set(asked.values())))} before the session starts",
        )


def _needed(catalog: Catalog) -> Iterator[QueryEntry | StreamEntry | RelationEntry]:
    """The queries and all that they read, each once."""
    by_use = {object_use(entry.name): entry for entry in catalog.objects.values()}
    waiting = [object_use(query.name) for query in catalog.entries(ObjectKind.QUERY)]
    seen: set[str] = set()
    while waiting:
        use = waiting.pop()
        entry = by_use.get(use)
        if use in seen or entry is None:
            continue
        seen.add(use)
        waiting += sorted(uses_of(entry))
        if isinstance(entry, QueryEntry | StreamEntry | RelationEntry):
            yield entry
