"""Queries that are created between two sessions of a checkpoint: they begin when the next starts.

A query that no session has run begins late if the pipeline has come somewhere: with history where
kept rows allow, else as if its streams began at the first instant of which nothing has come. Where
the pipeline stands, what does not run cannot say; the checkpoint does.

Law: it begins as one that is created in a session that has started and has read nothing yet.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidemill.catalog.entries import QueryEntry
from tidemill.catalog.records import Instance, Part
from tidemill.control.checkpoint_past import boundary, engine_of, past_in
from tidemill.control.instances import record_of
from tidemill.control.living import begun_late
from tidemill.errors import RunError
from tidemill.lang.statements import ObjectKind
from tidemill.model.time import Time
from tidemill.runtime.kept_streams import kept_streams
from tidemill.runtime.runs import Moment

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator
    from pathlib import Path

    from tidemill.catalog.catalog import Catalog

__all__ = ["begun_between", "shown_between", "standing", "with_unread"]


def standing(directory: Path, catalog: Catalog) -> Moment:
    """Where the pipeline of a checkpoint stands that nobody runs.

    Args:
        directory: The checkpoint.
        catalog: What is registered.

    Raises:
        RunError: It is damaged, or cannot be read.
    """
    engine = engine_of(directory)
    if engine is None:
        return Moment()
    streams = kept_streams(catalog)
    past = past_in(directory, streams.values())
    end = boundary(directory, engine, has_left=True)
    latest = {name: Time(time) for name, time in end.latest.items()}
    watermarks = {name: Time(mark) for name, mark in end.watermarks.items()}
    kept: dict[str, Time] = {}
    for name in streams.keys() & watermarks.keys():
        # What a stream keeps that has not kept anything begins with what comes.
        came = Time(max(latest.get(name, -1) + 1, watermarks[name]))
        kept[name] = past.streams[name].since if name in past.streams else came
    return with_unread(Moment(latest, watermarks, kept=kept), catalog)


def with_unread(moment: Moment, catalog: Catalog) -> Moment:
    """The moment with streams that keep their past and of which nothing has come: all of it will.

    Args:
        moment: Where a pipeline stands.
        catalog: What is registered.
    """
    known = {**moment.latest, **moment.watermarks, **moment.kept}
    unread = {name: Time(0) for name in kept_streams(catalog) if name not in known}
    return replace(moment, kept={**moment.kept, **unread})


def begun_between(catalog: Catalog, known: Container[str], moment: Callable[[], Moment]) -> Catalog:
    """The catalog whose new queries begin where the pipeline stands; the same if there are none.

    Args:
        catalog: What is registered.
        known: The queries that have begun, by their names in lower case.
        moment: Tells where the pipeline stands; it is asked if there are any.

    Raises:
        RunError: One is to have a history that streams have not kept.
    """
    found = list(_not_begun(catalog, known))
    here = moment() if found else Moment()
    for query in found:
        begun = begun_late(query, here)
        if begun is not query:
            catalog = catalog.replaced(begun)
    return catalog


def shown_between(catalog: Catalog, known: Container[str], moment: Callable[[], Moment]) -> Catalog:
    """The same, to be looked at: a query that would be refused never answers."""
    found = list(_not_begun(catalog, known))
    here = moment() if found else Moment()
    for query in found:
        try:
            begun = begun_late(query, here)
        except RunError:
            begun = replace(query, record=replace(record_of(query), instances=(), parts=()))
        catalog = catalog.replaced(begun)
    return catalog


def _not_begun(catalog: Catalog, known: Container[str]) -> Iterator[QueryEntry]:
    """The queries of which no instance has run, nor was decided when it is to begin."""
    for query in catalog.entries(ObjectKind.QUERY):
        assert isinstance(query, QueryEntry), "asked for queries"
        if query.name.lower() not in known and _is_new(query):
            yield query


def _is_new(query: QueryEntry) -> bool:
    """Whether nothing has become of a query but that its text was changed."""
    record = record_of(query)
    first = Instance(1, record.current.number, provenance=record.provenance)
    return (record.instances, record.parts) == ((first,), (Part(1),))
