"""Tracing from what is kept: plans with hidden columns, computed in this process.

The rows of streams come with their ids, those of relations with their places. What a stream has
kept is read once for all plans of an explanation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.marked import ROW
from tidemill.algebra.plan import Relation, Source
from tidemill.algebra.reach import newest
from tidemill.catalog.entries import StreamEntry
from tidemill.history.archive import kept_columns
from tidemill.model.batch import ID, START, TIME_TYPE
from tidemill.runtime.local.one_time import elements_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidemill.algebra.plan import Plan
    from tidemill.control.asked import Asked
    from tidemill.model.batch import Batch
    from tidemill.model.time import Time
    from tidemill.provenance.annotate import Leaf

__all__ = ["Kept"]


@dataclass(slots=True)
class Kept:
    """What plans with hidden columns are computed from, at one boundary.

    Attributes:
        asked: What is known and kept there.
        read: How many rows of each stream have been read.
    """

    asked: Asked
    read: dict[str, int] = field(default_factory=dict)
    _slices: dict[str, tuple[Time, Time, Batch]] = field(default_factory=dict)

    def elements(self, plan: Plan, first: Time, last: Time, given: Mapping[str, Batch]) -> Batch:
        """The elements of a plan that are there at instants from ``first`` to ``last``.

        Raises:
            RunError: Rows that are needed are not kept.
            RemovedError: They have been removed while they were read.
        """
        needed = self.asked.needed(plan, first, given)
        latest = newest(plan, last)

        def rows(name: str) -> Iterable[Batch]:
            if name in given:
                return [given[name]]
            if name in needed:
                return [self.stream(name, needed[name], latest)]
            return [self.relation(name)]

        return elements_at(plan, rows, first, last)

    def stream(self, name: str, first: Time, last: Time) -> Batch:
        """The rows of a stream whose times are from ``first`` to ``last``, with their ids."""
        known = self._slices.get(name)
        if known is None or first < known[0] or last > known[1]:
            low, high = (
                (first, last)
                if known is None
                else (
                    min(first, known[0]),
                    max(last, known[1]),
                )
            )
            found = list(self.asked.past.streams[name].rows(low, high))
            rows = pl.concat(found) if found else self._nothing(name)
            known = low, high, rows.sort(START, ID)
            self._slices[name] = known
            self.read[name] = known[2].height
        low, high, rows = known
        if (low, high) == (first, last):
            return rows
        return rows.filter((pl.col(START) >= first) & (pl.col(START) <= last))

    def _nothing(self, name: str) -> Batch:
        entry = self.asked.catalog.find(name)
        assert isinstance(entry, StreamEntry), "it keeps its past"
        return pl.DataFrame(schema=kept_columns(entry))

    def rows_of(self, leaf: Leaf) -> Batch:
        """The rows of a source or relation that have been read."""
        assert isinstance(leaf.plan, Source | Relation), "its rows have ids"
        known = self._slices.get(leaf.plan.name)
        rows = self.relation(leaf.plan.name) if known is None else known[2]
        return rows.rename({ID: ROW})

    def relation(self, name: str) -> Batch:
        """The rows of a relation, with their places as ids."""
        rows = pl.concat(self.asked.relation_rows(name))
        return rows.with_columns(pl.int_range(pl.len(), dtype=TIME_TYPE).alias(ID))
