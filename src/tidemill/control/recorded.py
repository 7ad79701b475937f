"""Recorded: what rows were made of, from what is kept beside the answer (WITH PROVENANCE).

Nothing is computed again: where a plan asks for the rows of a hook, these are read, and what is
left of the plan chooses among them. The rows of streams are read with them, so it does not matter
what streams have kept, or whether they keep anything.

Law: what is told is what is told of kept streams (``tracing.py``), at every instant of both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.explain import describe
from tidemill.algebra.marked import ROW
from tidemill.algebra.plan import Relation, Source
from tidemill.algebra.tree import children, streams_of, with_children
from tidemill.control.instances import record_of
from tidemill.control.recording import Recording, recordings
from tidemill.control.speaking import speaking
from tidemill.errors import RunError
from tidemill.history.table_list import GoneError
from tidemill.model.batch import END, START
from tidemill.model.time import Time, time_text
from tidemill.provenance.hooks import looks_back
from tidemill.runtime.local.one_time import elements_at
from tidemill.runtime.one_time import NotKnownError
from tidemill.runtime.past import RemovedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidemill.algebra.plan import Plan
    from tidemill.catalog.entries import QueryEntry
    from tidemill.catalog.records import Instance, Record
    from tidemill.control.tracing import Kept
    from tidemill.history.table_view import TableView
    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema
    from tidemill.provenance.leaves import Leaf

__all__ = [
    "NotRecordedError",
    "Recorded",
    "Tables",
    "is_recorded",
    "recorded_at",
    "recorded_reads",
    "says_nothing",
]

_KEPT = "@kept "


class NotRecordedError(Exception):
    """What is asked for is not kept with the query."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of an instance, as they were looked at.

    Attributes:
        recordings: What they are.
        views: Their rows, one for each of these.
        least: The first instant for which the instance has rows.
        back: How many instants before one rows may have gone that explain it.
    """

    recordings: tuple[Recording, ...]
    views: tuple[TableView, ...]
    least: Time = Time(0)  # noqa: RUF009 — a number
    back: int = 0

    @property
    def begin(self) -> Time:
        """The first instant at which all rows are there."""
        return Time(max(self.least, *(view.since for view in self.views)))

    @property
    def since(self) -> Time:
        """The first instant that can be asked for."""
        return Time(self.begin + self.back) if self.begin else self.begin

    @property
    def known(self) -> Time:
        """Up to when all is known."""
        return Time(min(view.known for view in self.views))

    @property
    def present(self) -> Time | None:
        """The last instant that is known; after the end of the streams, that of the latest row."""
        found = [view.state.present for view in self.views]
        times = [time for time in found if time is not None]
        return Time(max(times)) if len(times) == len(found) else None

    @property
    def batch(self) -> int | None:
        """The last batch that all of this is of."""
        done = min(view.state.done for view in self.views)
        return done - 1 if done else None


@dataclass(slots=True)
class Recorded:
    """What plans with hidden columns are read from.

    Attributes:
        tables: What is kept.
        kept: What relations are read from.
    """

    tables: Tables
    kept: Kept
    _rows: dict[str, list[Batch]] = field(default_factory=dict)

    def elements(self, plan: Plan, first: Time, last: Time, given: Mapping[str, Batch]) -> Batch:
        """The elements of a plan that are there at instants from ``first`` to ``last``.

        Raises:
            NotRecordedError: They are not among what is kept.
            RemovedError: They have been removed while they were read.
        """
        used: dict[str, tuple[int, Schema]] = {}
        left = self._put_in(plan, used)
        if streams_of(left):
            raise NotRecordedError(f"rows of {', '.join(sorted(streams_of(left)))}")
        low = Time(max(first - looks_back(left), 0))
        if low < self.tables.begin or last >= self.tables.known:
            raise NotRecordedError(f"instants from {time_text(low)} to {time_text(last)}")
        whole = {n: self._read(n, low, last) for n in sorted({n for n, _ in used.values()})}

        def rows(name: str) -> Iterable[Batch]:
            if name in used:
                number, schema = used[name]
                return [whole[number].select(*schema.names, START, END)]
            return [given[name] if name in given else self.kept.relation(name)]

        return elements_at(left, rows, first, last)

    def _put_in(self, node: Plan, used: dict[str, tuple[int, Schema]]) -> Plan:
        """The plan with what is kept in the place of what would be computed."""
        for number, one in enumerate(self.tables.recordings):
            if node in one.hook.serves:
                name = f"{_KEPT}{number}.{one.hook.serves.index(node)}"
                used[name] = number, node.schema
                return Relation(name, node.schema)
        below = children(node)
        return with_children(node, tuple(self._put_in(b, used) for b in below)) if below else node

    def _read(self, number: int, first: Time, last: Time) -> Batch:
        """The rows of a hook; those of streams that they bring are remembered."""
        try:
            rows = self.tables.views[number].elements(first, last)
        except GoneError as error:
            raise RemovedError(self.tables.recordings[number].table.name) from error
        hook = self.tables.recordings[number].hook
        columns = [pl.col(kept).alias(name) for name, kept in hook.columns.items()]
        rows = rows.select(*columns, START, END)
        for leaf in hook.leaves:
            if leaf.has_ids:
                self._remember(leaf, rows)
        return rows

    def _remember(self, leaf: Leaf, rows: Batch) -> None:
        assert isinstance(leaf.plan, Source | Relation), "its rows have ids"
        names = zip(leaf.values, leaf.plan.schema.names, strict=True)
        brought = rows.filter(pl.col(leaf.mark).is_not_null()).select(
            pl.col(leaf.mark).alias(ROW), *(pl.col(hidden).alias(name) for hidden, name in names)
        )
        self._rows.setdefault(leaf.plan.name, []).append(brought)

    def rows_of(self, leaf: Leaf) -> Batch:
        """The rows of a source or relation that have been read."""
        assert isinstance(leaf.plan, Source | Relation), "its rows have ids"
        return pl.concat(self._rows[leaf.plan.name]).unique(ROW)


def is_recorded(query: QueryEntry) -> bool:
    """Whether what rows of a query were made of is kept, or was."""
    return any(one.provenance is not None for one in record_of(query).instances)


def recorded_at(
    query: QueryEntry, at: Time | None, views: Mapping[str, TableView]
) -> tuple[Tables, Time]:
    """What is kept at an instant; ``None`` stands for the last one that is known.

    Raises:
        RunError: Nothing is kept at that instant, or it is not known yet (``NotKnownError``).
    """
    record = record_of(query)
    if at is None:
        found = _tables(query, record, record.instances[-1], views)
        if found is not None and record.instances[-1].unrecorded:
            raise RunError(
                f'what rows of query "{query.name}" are made of is not kept any more, but up to'
                f" {time_text(found.known)}",
                hint="ask for an earlier instant, or write KEEP behind its streams",
            )
        at = None if found is None else found.present
        if at is None:
            raise NotKnownError(
                f'nothing is known yet of what rows of query "{query.name}" are made of',
                hint="let the pipeline run until rows have come",
            )
    parts = list(speaking(query.name, record, at))
    if not parts:
        raise says_nothing(query, at)
    tables, is_over = None, False
    if len(parts) == 1:
        instance = record.instance(parts[0].instance)
        tables, is_over = _tables(query, record, instance, views), instance.unrecorded
    if tables is None or at < tables.since or (is_over and at >= tables.known):
        since = "" if tables is None else f"; it is kept from {_from(tables.since)} on"
        since += f", up to {time_text(tables.known)}" if tables is not None and is_over else ""
        raise RunError(
            f'what rows of query "{query.name}" were made of at {time_text(at)} is not kept{since}',
            hint="write a longer KEEP behind WITH PROVENANCE, or KEEP behind its streams",
        )
    if at >= tables.known:
        raise NotKnownError(
            f'what rows of query "{query.name}" are made of is known up to'
            f" {time_text(tables.known)}, and at {time_text(at)} it can still change",
            hint="ask for an earlier instant, or AT NOW, the last one that is known",
        )
    return tables, at


def says_nothing(query: QueryEntry, at: Time) -> RunError:
    """The error that a query answers nothing at an instant."""
    return RunError(
        f'query "{query.name}" answers nothing at {time_text(at)}: it was stopped',
        hint="ask for an instant at which it runs; SHOW QUERIES says what has become of it",
    )


def _tables(
    query: QueryEntry, record: Record, instance: Instance, views: Mapping[str, TableView]
) -> Tables | None:
    """The tables of an instance; ``None`` if they are not there."""
    mine = tuple(recordings(query, record, instance))
    found = tuple(views[one.table.name] for one in mine if one.table.name in views)
    if not mine or len(found) < len(mine):
        return None
    if any(view.schema != one.hook.plan.schema for one, view in zip(mine, found, strict=True)):
        return None  # of another query that had this name
    back = looks_back(record.version(instance.version).plan)
    return Tables(mine, found, instance.replays or Time(0), back)


def recorded_reads(
    query: QueryEntry, tables: Tables, at: Time
) -> tuple[list[str], dict[str, object]]:
    """What would be read to explain an answer, as lines of text and as JSON."""
    count = len(tables.recordings)
    after = "" if tables.batch is None else f", after batch {tables.batch}"
    since = _from(tables.since)
    lines = [
        f"at {time_text(at)}; known up to {time_text(tables.known)}{after}",
        f'  query "{query.name}": what its rows are made of, kept with it from {since} on',
        "nothing is computed again; what is read leads to",
        *(f"  {', '.join(_leaf_names(one))}" for one in tables.recordings),
    ]
    told: dict[str, object] = {
        "at": at,
        "known": tables.known,
        "batch": tables.batch,
        "recorded": {"query": query.name, "since": tables.since, "plans": count},
    }
    return lines, told


def _leaf_names(one: Recording) -> list[str]:
    """What the rows of a table lead to, for people."""
    plans = [leaf.plan for leaf in one.hook.leaves]
    return [
        plan.name if isinstance(plan, Source | Relation) else f"rows of {describe(plan)}"
        for plan in plans
    ]


def _from(time: Time) -> str:
    return time_text(time) if time else "the beginning"
