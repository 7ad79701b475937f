"""SHOW DECISIONS: what was chosen when queries were planned, why, and what else there was.

The decisions of a query that runs are those of the plan it runs with, over restarts; those of one
that does not run are of the plan that it would have. How the plan took over from another one is a
decision as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from tidemill.catalog.entries import QueryEntry
from tidemill.lang.statements import Name, ObjectKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.control.look import Look

__all__ = ["decisions_listing"]

MIGRATION: Final = "migration"
"""What is chosen where another plan takes over."""

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
        record = look.query_entry(Name(query)).record
        took = None if record is None else record.instances[-1].took
        if took is not None:
            work = f"{took.why}; {took.work:,.0f} us of work in all"
            yield query, planned.version, MIGRATION, took.using, None, None, work, [*took.others]
