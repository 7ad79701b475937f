"""Notes: statements that have a meaning, but probably not the one that was wanted.

A window of ``[RANGE 300]`` over times of the calendar is 300 microseconds long. An aggregate over a
stream without a window looks at each instant by itself. With a unit, or with ``[NOW]``, there is no
warning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tidemill.algebra.annotations import is_chronon
from tidemill.algebra.plan import Source
from tidemill.algebra.tree import walk
from tidemill.catalog.entries import DerivedStreamEntry, StreamEntry
from tidemill.errors import Note
from tidemill.lang.spans import span_of, value_span
from tidemill.lang.windows import Windowed
from tidemill.model.types import TIMESTAMP

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.binder.context import Context
    from tidemill.lang.windows import WindowClause

__all__ = ["note_bare_number", "note_missing_window"]


def note_bare_number(clause: WindowClause, plan: Plan, context: Context) -> None:
    """Warn of a length of time without a unit where times are those of the calendar."""
    if not clause.is_without_unit:
        return
    for part in walk(plan):
        if isinstance(part, Source) and _is_of_calendar(part.name, context):
            size = clause.size
            context.notes.append(
                Note(
                    f"{clause.frame} {size} without a unit means {size} microseconds",
                    value_span(clause, "size"),
                    f"write the unit: {clause.frame} {size} SECONDS, or {clause.frame} {size} "
                    "MICROSECONDS if that is meant",
                )
            )
            return


def _is_of_calendar(stream: str, context: Context) -> bool:
    entry = context.catalog.find(stream)
    if not isinstance(entry, StreamEntry):
        return False
    # The time of arrival is that of the calendar on Spark only.
    return any(f.name == entry.time_column and f.type == TIMESTAMP for f in entry.schema)


def note_missing_window(select: exp.Select, context: Context) -> None:
    """Warn of an aggregate over streams none of which has a window."""
    nodes = [select.args["from_"].this, *(join.this for join in select.args.get("joins") or [])]
    if any(node.find(Windowed) is not None for node in nodes):
        return
    for node in nodes:
        if isinstance(node, exp.Table) and _is_momentary(node.name, context):
            name = node.name
            context.notes.append(
                Note(
                    f'an aggregate over stream "{name}" without a window looks at each instant by '
                    "itself",
                    span_of(node),
                    f"write FROM {name} [RANGE 10 MINUTES], for example, or FROM {name} [NOW] if "
                    "that is meant",
                )
            )
            return


def _is_momentary(name: str, context: Context) -> bool:
    """Whether a name is that of a stream whose rows are valid for one instant."""
    if name.lower() in context.tables:
        return False
    entry = context.catalog.find(name)
    if isinstance(entry, DerivedStreamEntry):
        return is_chronon(entry.plan)
    return isinstance(entry, StreamEntry)
