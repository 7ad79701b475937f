"""SHOW and DESCRIBE: what is registered, and what there is to write, as tables of text."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, assert_never

import polars as pl

from tidemill.catalog.listing import describe_connector, describe_entry, show, show_connectors
from tidemill.control.shown import stream_listing
from tidemill.control.tables import table_listing
from tidemill.lang.statements import (
    Describe,
    DescribeConnector,
    ObjectKind,
    Show,
    ShowConnectors,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidemill.catalog.listing import Listing
    from tidemill.control.queries import LivingQueries
    from tidemill.model.time import Time

__all__ = ["Shows", "listed"]


Shows: TypeAlias = Show | ShowConnectors | Describe | DescribeConnector
"""The statements that show something and change nothing."""


def listed(
    statement: Shows, queries: LivingQueries, kept_from: Callable[[], Mapping[str, Time]]
) -> pl.DataFrame:
    """What a statement shows.

    Args:
        statement: What is to be shown.
        queries: The queries of the session.
        kept_from: Tells from which instant on rows of each stream are kept, if nothing runs that
            could tell.

    Raises:
        TidemillError: There is nothing of that name.
    """
    listing = _listing(statement, queries, kept_from)
    return pl.DataFrame(listing, schema=dict.fromkeys(listing, pl.String))


def _listing(
    statement: Shows, queries: LivingQueries, kept_from: Callable[[], Mapping[str, Time]]
) -> Listing:
    match statement:
        case Show(ObjectKind.QUERY):
            return queries.look.listing()
        case Show(ObjectKind.TABLE):
            return table_listing(queries.look, queries.directory)
        case Show(ObjectKind.STREAM):
            since = queries.look.kept_from()
            return stream_listing(queries.catalog, kept_from() if since is None else since)
        case Show(kind):
            return show(queries.catalog, kind)
        case ShowConnectors():
            return show_connectors()
        case DescribeConnector(name):
            return describe_connector(name)
        case Describe(name):
            return describe_entry(queries.catalog.get(name))
        case _:
            assert_never(statement)
