"""Streams that keep their past, batch by batch, and what can be asked at each boundary."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from laws.catalogue import SOURCES, Inputs, P, R
from local import element_batch
from tidemill.binder.one_time import Question
from tidemill.catalog.catalog import Catalog
from tidemill.catalog.entries import Kept, RelationEntry, StreamEntry
from tidemill.control.asked import Asked
from tidemill.history.archive import Archive, MemoryStore
from tidemill.history.pieces import Entry, pieces_of
from tidemill.lang.statements import ConnectorCall, Name
from tidemill.model.batch import polars_schema
from tidemill.model.time import Time
from tidemill.runtime.past import Past, kept_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from laws.arrivals import Arrival, Step
    from tidemill.algebra.plan import Plan
    from tidemill.catalog.entries import Entry as CatalogEntry

__all__ = ["Keeping", "asked_of_all", "catalog_of", "kept_by_batch"]

CALL = ConnectorCall(Name("memory"))


@dataclass
class Keeping:
    """What streams keep while rows come.

    Attributes:
        keeps: For how long each stream keeps its rows; ``None`` for ever.
        relations: The rows of relations.
        steps: How many batches have come.
    """

    keeps: Mapping[str, int | None]
    relations: Mapping[str, pl.DataFrame]
    steps: int = 0
    archives: dict[str, Archive] = field(default_factory=dict)
    watermarks: dict[str, Time] = field(default_factory=dict)
    latest: dict[str, Time] = field(default_factory=dict)
    _stores: dict[str, MemoryStore] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for source in SOURCES:
            store = self._stores[source.name] = MemoryStore()
            self.archives[source.name] = Archive(store, source.name, done=0, since=Time(0))

    def step(self, step: Step) -> None:
        """Let a batch come, and what is too old go."""
        for source in SOURCES:
            elements, mark = step[source.name]
            self.watermarks[source.name] = Time(mark)
            archive, keeps = self.archives[source.name], self.keeps[source.name]
            if elements:
                rows = element_batch(source.schema, elements)
                self._stores[source.name].put(str(self.steps), rows)
                archive.add(Entry(self.steps, mark, tuple(pieces_of(str(self.steps), rows))))
                newest = max(element.time for element in elements)
                self.latest[source.name] = Time(max(newest, self.latest.get(source.name, 0)))
            first = 0 if keeps is None else max(mark - keeps, 0)
            archive.forget(Time(first), batch=self.steps + 1, least=1)
        self.steps += 1

    def past(self) -> Past:
        """What is kept at this boundary."""
        streams = kept_rows(self.archives, self.steps)
        rows = self.relations
        marks, latest = dict(self.watermarks), dict(self.latest)
        return Past(self.steps, marks, latest, streams, lambda entry: rows[entry.name])


def kept_by_batch(
    content: Inputs, arrival: Arrival, keeps: Mapping[str, int | None], boundary: int
) -> Keeping:
    """What streams have kept after so many batches."""
    relations = {
        one.name: pl.DataFrame(
            list(content.relations[one.name]), schema=polars_schema(one.schema), orient="row"
        )
        for one in (R, P)
    }
    keeping = Keeping(keeps, relations)
    for step in arrival.steps[:boundary]:
        keeping.step(step)
    return keeping


def catalog_of(*more: CatalogEntry) -> Catalog:
    """The streams and relations of the catalogue, and other entries."""
    catalog = Catalog()
    for source in SOURCES:
        catalog = catalog.added(StreamEntry(source.name, source.schema, CALL, keep=Kept()))
    for one in (R, P):
        catalog = catalog.added(RelationEntry(one.name, one.schema, CALL, one.validity))
    for entry in more:
        catalog = catalog.added(entry)
    return catalog


def asked_of_all(plan: Plan, answers: Sequence[str] = ()) -> Question:
    """The question that asks for all rows of a plan."""
    names = {f"@{name}": name for name in answers}
    return Question(plan, plan.schema.names, (), None, 0, names)


def asked(past: Past, *more: CatalogEntry) -> Asked:
    """What can be answered from a past alone."""
    return Asked(catalog_of(*more), past, lambda _name: None, {})
