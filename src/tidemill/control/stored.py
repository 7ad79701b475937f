"""Stored records: what is kept of queries that were changed, and how they are taken up again.

Law: taking up what was stored of a catalog gives the catalog, whichever of its versions a query was
created as.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.binder.definitions import define
from tidemill.catalog.entries import QueryEntry
from tidemill.catalog.records import Record, Version
from tidemill.control.living import altered
from tidemill.errors import RunError
from tidemill.lang.parse import parse_one
from tidemill.lang.statements import CreateQuery, CreateTable, ObjectKind, Select
from tidemill.runtime.records_file import stored

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.catalog.catalog import Catalog
    from tidemill.connectors.connector import Engine
    from tidemill.runtime.records_file import StoredRecord

__all__ = ["records_of", "with_records"]


def records_of(catalog: Catalog) -> dict[str, StoredRecord]:
    """What is kept of the queries that were changed, or began late."""
    entries = catalog.entries(ObjectKind.QUERY)
    return {
        entry.name.lower(): stored(entry.record)
        for entry in entries
        if isinstance(entry, QueryEntry) and entry.record is not None
    }


def with_records(
    catalog: Catalog, found: Mapping[str, StoredRecord], engine: Engine | None
) -> Catalog:
    """The catalog with what has become of its queries.

    Args:
        catalog: What is registered; queries that have a record keep it.
        found: What was kept.
        engine: Where the queries run.

    Raises:
        RunError: A query was changed, and is none of its versions here.
    """
    for entry in list(catalog.entries(ObjectKind.QUERY)):
        kept = found.get(entry.name.lower())
        if kept is None or not isinstance(entry, QueryEntry) or entry.record is not None:
            continue
        if entry.text not in kept.texts:
            raise RunError(
                f'query "{entry.name}" is not the one that this checkpoint runs: that one asks '
                f"{kept.texts[-1]}",
                hint="create it as it was or as it is now, and then write ALTER QUERY",
            )
        without = catalog.replaced_by(entry, ())
        versions: list[Version] = []
        for number, text in enumerate(kept.texts, start=1):
            statement = parse_one(text)
            assert isinstance(statement, CreateQuery | CreateTable | Select), "queries are kept"
            bound = define(statement, without, allow_unbounded=True, engine=engine, looks_up=False)
            assert isinstance(bound, QueryEntry), "these define queries"
            versions.append(Version(number, text, bound.plan, bound.uses, bound.time))
        record = Record(tuple(versions), kept.instances, kept.parts, kept.paused, kept.ended)
        catalog = catalog.replaced(altered(entry, record))
    return catalog
