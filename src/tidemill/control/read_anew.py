"""What the verdict says of streams that nobody has read, or not for a while.

Rows that are there when a stream is read again were not asked for by any query, and are left out.
It is not known what times they have. If some are from the instant on from which a version is to
have all rows, they are missing, and its answer is exact only when windows have forgotten them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.tree import streams_of
from tidemill.catalog.entries import StreamEntry
from tidemill.model.time import Time, time_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidemill.catalog.catalog import Catalog
    from tidemill.catalog.entries import QueryEntry

__all__ = ["read_anew"]


def read_anew(
    catalog: Catalog, before: Iterable[QueryEntry], after: Iterable[QueryEntry], fresh: Time
) -> str:
    """Which streams are read from now on, and what is missing; empty if there are none.

    Args:
        catalog: What is registered.
        before: What runs.
        after: What runs from now on.
        fresh: From which instant on the new instance is to have all rows.
    """
    read, wanted = (
        frozenset[str]().union(*(streams_of(one.plan) for one in queries))
        for queries in (before, after)
    )
    found = [catalog.find(name) for name in sorted(wanted - read)]
    names = ", ".join(s.name for s in found if isinstance(s, StreamEntry) and _leaves_out(s))
    if not names:
        return ""
    return (
        f"{names}, what comes from now on: rows from {time_text(fresh)} on that are there"
        " already are missing"
    )


def _leaves_out(stream: StreamEntry) -> bool:
    """Whether rows from before can belong to instants that are still to come."""
    return stream.time_column is not None and stream.source.name.text.lower() != "memory"
