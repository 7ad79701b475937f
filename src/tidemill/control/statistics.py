"""SHOW STATISTICS: what is known of what comes in, and how, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.plan import Relation, Source
from tidemill.algebra.tree import walk
from tidemill.catalog.entries import (
    ChangingRelationEntry,
    DerivedStreamEntry,
    FunctionEntry,
    QueryEntry,
    RelationEntry,
    StreamEntry,
)
from tidemill.errors import BindError
from tidemill.runtime.measuring.known import facts_of

if TYPE_CHECKING:
    from tidemill.catalog.catalog import Catalog
    from tidemill.lang.statements import Name
    from tidemill.runtime.measuring.measured import Measured

__all__ = ["statistics_listing"]

_COLUMNS = {
    "input": pl.String(),
    "what": pl.String(),
    "of": pl.String(),
    "value": pl.Float64(),
    "source": pl.String(),
    "rows": pl.Int64(),
    "as_of": pl.Int64(),
}


def statistics_listing(catalog: Catalog, measured: Measured, name: Name | None) -> pl.DataFrame:
    """What is known, one row a fact.

    Args:
        catalog: What is registered.
        measured: What was measured.
        name: What is asked about; ``None`` for everything.

    Raises:
        BindError: There is nothing of that name, or nothing comes into it.
    """
    names = None if name is None else _read_by(catalog, name)
    rows = [
        (f.input, f.what, f.of, f.value, f.origin.value, f.rows, f.as_of)
        for f in facts_of(catalog, measured, names)
    ]
    return pl.DataFrame(rows, schema=_COLUMNS, orient="row")


def _read_by(catalog: Catalog, name: Name) -> set[str]:
    """The streams and relations that something reads, or is."""
    entry = catalog.get(name)
    match entry:
        case StreamEntry() | RelationEntry():
            return {entry.name}
        case QueryEntry() | DerivedStreamEntry() | ChangingRelationEntry():
            return {n.name for n in walk(entry.plan) if isinstance(n, Source | Relation)}
        case FunctionEntry():
            raise BindError(
                f'"{entry.name}" is a function, and nothing comes into it',
                span=name.span,
                hint="name a query, a stream or a relation",
            )
