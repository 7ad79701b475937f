"""SHOW DECISIONS: what was chosen when queries were planned, why, and what else there was.

The decisions of a query that runs are those of the plan it runs with, over restarts; those of one
that does not run are of the plan that it would have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.catalog.entries import QueryEntry
from tidemill.lang.statements import ObjectKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.control.look import Look
    from tidemill.lang.statements import Name

__all__ = ["decisions_listing"]

_COLUMNS = {
    "query": pl.String(),
    "plan": pl.String(),
    "subject": pl.String(),
    "chosen": pl.String(),
    "cpu": pl.Float64(),
    "memory": pl.Float64(),
    "why": pl.String(),
    "alternatives": pl.List(pl.String()),
}


def decisions_listing(look: Look, name: Name | None) -> pl.DataFrame:
    """What was decided, one row a decision.

    Args:
        look: What can be seen of the queries.
        name: The query; ``None`` for all.

    Raises:
        BindError: There is no such query.
    """
    return pl.DataFrame(list(_rows(look, name)), schema=_COLUMNS, orient="row")


def _rows(look: Look, name: Name | None) -> Iterator[tuple[object, ...]]:
    if name is None:
        entries = look.catalog.entries(ObjectKind.QUERY)
        names = [entry.name for entry in entries if isinstance(entry, QueryEntry)]
    else:
        names = [look.query_entry(name).name]
    for query in names:
        planned = look.planned(query)
        for one in planned.decisions:
            others = [other.text() for other in one.alternatives]
            chosen = (one.subject, one.chosen, one.cpu, one.memory, one.why)
            yield query, planned.version, *chosen, others
