"""SHOW DECISIONS: what was chosen when queries were planned, why, and what else there was.

The decisions of a query that runs are those of the plan it runs with, over restarts; those of one
that does not run are of the plan that it would have. How the plan took over from another one is a
decision as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from tidemill.catalog.entries import QueryEntry
from tidemill.engine.adaptations import Kind
from tidemill.lang.statements import Name, ObjectKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidemill.control.look import Look
    from tidemill.engine.adaptations import Adaptation
    from tidemill.runtime.adaptation_log import Logged

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
    "at": pl.Int64(),
    "effect": pl.String(),
}


def decisions_listing(
    look: Look, name: Name | None, adapted: Sequence[Logged] = ()
) -> pl.DataFrame:
    """What was decided, one row a decision.

    Args:
        look: What can be seen of the queries.
        name: The query; ``None`` for all.
        adapted: What was decided while they ran, the earliest first.

    Raises:
        BindError: There is no such query.
    """
    return pl.DataFrame(list(_rows(look, name, adapted)), schema=_COLUMNS, orient="row")


def _rows(look: Look, name: Name | None, adapted: Sequence[Logged]) -> Iterator[tuple[object, ...]]:
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
            yield query, planned.version, *chosen, others, None, None
        record = look.query_entry(Name(query)).record
        took = None if record is None else record.instances[-1].took
        if took is not None:
            work = f"{took.why}; {took.work:,.0f} us of work in all"
            yield (
                query,
                planned.version,
                MIGRATION,
                took.using,
                None,
                None,
                work,
                [*took.others],
                None,
                None,
            )
        own = [one for one in adapted if one.query.lower() == query.lower()]
        yield from _adapted(query, planned.version, own)


def _adapted(query: str, version: str, every: Sequence[Logged]) -> Iterator[tuple[object, ...]]:
    """What was decided while a query ran; the effect of a change stands in its row."""
    for number, one in enumerate(every):
        what = one.what
        if what.kind is Kind.KEPT:
            continue
        others = [f"{what.old}: {what.own:,.0f} us a second"]
        why = f"{what.kind.value}: {what.cause}; {what.price:,.0f} us of work"
        chosen = (one.subject, what.new, what.best, None, why)
        after = next((o.what for o in every[number + 1 :] if o.subject == one.subject), None)
        yield query, version, *chosen, others, what.time, _effect(what.kind, after)


def _effect(kind: Kind, after: Adaptation | None) -> str | None:
    """What a change has brought, as far as that is known."""
    is_known = after is not None and after.kind in (Kind.KEPT, Kind.UNDONE)
    if kind is not Kind.CHANGED or after is None or not is_known:
        return None
    undone = "; undone" if after.kind is Kind.UNDONE else ""
    return f"{after.after:,} ns of work for a row, and {after.before:,} before{undone}"
