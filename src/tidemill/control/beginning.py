"""The next start of a checkpoint: when queries begin that it does not know.

It is decided by where the pipeline stands that nobody runs (``between.py``), and written down
before it takes effect. What is refused before it has begun is as it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.catalog.entries import QueryEntry
from tidemill.control.between import begun_between, standing
from tidemill.lang.statements import ObjectKind

if TYPE_CHECKING:
    from tidemill.catalog.catalog import Catalog
    from tidemill.control.kept import KeptCatalog

__all__ = ["begun", "queries_of", "taken_back"]


def begun(kept: KeptCatalog, before: Catalog) -> Catalog:
    """The catalog in which queries begin that the checkpoint does not know, written down.

    Raises:
        RunError: A query is to have a history that streams have not kept.
    """
    after = begun_between(before, kept.known(), lambda: standing(kept.directory, before))
    if after is not before:
        kept.write_records(after)  # before it takes effect
    return after


def taken_back(kept: KeptCatalog, before: Catalog, catalog: Catalog) -> Catalog:
    """The catalog with queries as they were before that were to begin, and have not."""
    known, was, now = kept.known(), queries_of(before), queries_of(catalog)
    without = catalog
    for name, entry in was.items():
        if name.lower() not in known and now.get(name) != entry:
            without = without.replaced(entry)
    if without is not catalog:
        kept.write_records(without)
    return without


def queries_of(catalog: Catalog) -> dict[str, QueryEntry]:
    """The queries of a catalog, by name."""
    entries = catalog.entries(ObjectKind.QUERY)
    return {entry.name: entry for entry in entries if isinstance(entry, QueryEntry)}
