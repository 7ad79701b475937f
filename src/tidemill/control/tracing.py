"""Tracing from what is kept: plans with hidden columns, computed in this process.

The rows of streams come with their ids, those of relations with their places. Of what a stream has
kept the rows are read that a plan can be made of (``provenance/wanted.py``), and once for all plans
of an explanation that can be made of these.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl
from polars.selectors import float as floats

from tidemill.algebra.marked import ROW, TIME
from tidemill.algebra.plan import Relation, Source
from tidemill.algebra.reach import newest
from tidemill.algebra.tree import share
from tidemill.catalog.entries import StreamEntry
from tidemill.history.archive import kept_columns
from tidemill.model.batch import ID, START, TIME_TYPE
from tidemill.optimizer.logical.rewrite import optimize
from tidemill.provenance.leaves import ids_among
from tidemill.provenance.wanted import Part, choice, is_all, rows_wanted, within
from tidemill.runtime.local.one_time import elements_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tidemill.algebra.plan import Plan
    from tidemill.control.asked import Asked
    from tidemill.model.batch import Batch
    from tidemill.model.time import Time
    from tidemill.provenance.leaves import Leaf

__all__ = ["Kept"]

EVERYTHING = frozenset({Part()})
"""All rows of a stream."""


@dataclass(frozen=True, slots=True)
class _Slice:
    """Rows of a stream that have been read.

    Attributes:
        first: From when on.
        last: Up to when.
        parts: Which rows are there, besides others.
        rows: The rows.
    """

    first: Time
    last: Time
    parts: frozenset[Part]
    rows: Batch

    def has(self, first: Time, last: Time, parts: frozenset[Part]) -> bool:
        """Whether all rows of some time are there that are wanted."""
        return self.first <= first and last <= self.last and within(parts, self.parts)


@dataclass(slots=True)
class Kept:
    """What plans with hidden columns are computed from, at one boundary.

    Attributes:
        asked: What is known and kept there.
        read: How many rows of each stream have been read.
    """

    asked: Asked
    read: dict[str, int] = field(default_factory=dict)
    _slices: dict[str, list[_Slice]] = field(default_factory=dict)
    _shared: dict[tuple[object, ...], Plan] = field(default_factory=dict)
    _done: dict[tuple[int, Time, Time], Batch] = field(default_factory=dict)

    def elements(self, plan: Plan, first: Time, last: Time, given: Mapping[str, Batch]) -> Batch:
        """The elements of a plan that are there at instants from ``first`` to ``last``.

        Raises:
            RunError: Rows that are needed are not kept.
            RemovedError: They have been removed while they were read.
        """
        plan = share(plan, self._shared)
        key = id(plan), first, last
        if given:
            return self._computed(plan, first, last, given)
        if key not in self._done:
            self._done[key] = self._computed(plan, first, last, given)
        return self._done[key]

    def _computed(self, plan: Plan, first: Time, last: Time, given: Mapping[str, Batch]) -> Batch:
        needed = self.asked.needed(plan, first, given)
        latest = newest(plan, last)
        better = optimize(plan)
        wanted = rows_wanted(better)

        def rows(name: str) -> Iterable[Batch]:
            if name in given:
                return [given[name]]
            if name in needed:
                return [self.stream(name, needed[name], latest, wanted[name]).drop(ROW, TIME)]
            return [self.relation(name)]

        return elements_at(better, rows, first, last, ids_among(plan.schema.names))

    def stream(
        self, name: str, first: Time, last: Time, parts: frozenset[Part] = EVERYTHING
    ) -> Batch:
        """The rows of a stream whose times are from ``first`` to ``last``, with hidden columns.

        Args:
            name: The stream.
            first: From when on.
            last: Up to when.
            parts: Which rows are wanted; others may be there, too.
        """
        known = self._slices.setdefault(name, [])
        found = next((one for one in known if one.has(first, last, parts)), None)
        if found is None:
            found = _Slice(first, last, parts, self._read(name, first, last, parts))
            known.append(found)
        if (found.first, found.last) == (first, last):
            return found.rows
        return found.rows.filter((pl.col(START) >= first) & (pl.col(START) <= last))

    def _read(self, name: str, first: Time, last: Time, parts: frozenset[Part]) -> Batch:
        def batches() -> Iterator[Batch]:
            for rows in self.asked.past.streams[name].rows(first, last):
                self.read[name] = self.read.get(name, 0) + rows.height
                yield rows.with_columns(hidden)

        hidden = [pl.col(ID).alias(ROW), pl.col(START).alias(TIME)]
        chosen = None if is_all(parts) else choice(parts, batches)
        found = [rows if chosen is None else chosen(rows) for rows in batches()]
        whole = pl.concat(found) if found else self._nothing(name).with_columns(hidden)
        # There is one zero.
        return whole.with_columns(floats() + 0.0).sort(START, ID)

    def _nothing(self, name: str) -> Batch:
        entry = self.asked.catalog.find(name)
        assert isinstance(entry, StreamEntry), "it keeps its past"
        return pl.DataFrame(schema=kept_columns(entry))

    def rows_of(self, leaf: Leaf) -> Batch:
        """The rows of a source or relation that have been read, some of them more than once."""
        assert isinstance(leaf.plan, Source | Relation), "its rows have ids"
        known = self._slices.get(leaf.plan.name)
        if known is None:
            return self.relation(leaf.plan.name).rename({ID: ROW})
        return pl.concat([one.rows for one in known])

    def relation(self, name: str) -> Batch:
        """The rows of a relation, with their places as ids."""
        rows = pl.concat(self.asked.relation_rows(name))
        return rows.with_columns(pl.int_range(pl.len(), dtype=TIME_TYPE).alias(ID))
