"""What people see of queries that live: one line a query, whatever instances run for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from tidemill.catalog.entries import QueryEntry
from tidemill.catalog.listing import show
from tidemill.catalog.records import is_recording
from tidemill.control.instances import known_instances, user_name
from tidemill.control.living import lives_of
from tidemill.lang.statements import ObjectKind
from tidemill.model.time import Time, time_text
from tidemill.runtime.progress import QueryProgress

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tidemill.catalog.catalog import Catalog
    from tidemill.catalog.listing import Listing
    from tidemill.catalog.records import Record
    from tidemill.runtime.metrics import OperatorMetrics
    from tidemill.runtime.progress import Progress

__all__ = [
    "VersionRow",
    "by_query",
    "query_listing",
    "stream_listing",
    "version_rows",
    "with_queries",
]

VersionRow: TypeAlias = tuple[int, str, int | None, int | None, int | None]
"""A version of a query: its number and text, and fresh, since and until of one of its parts."""


def query_listing(catalog: Catalog, known: Mapping[str, Time], *, is_running: bool) -> Listing:
    """The queries, with what they do and from when on their answers are complete.

    Args:
        catalog: What is registered.
        known: Up to when the answers of instances are known; others are not known at all.
        is_running: Whether they run.
    """
    listing = show(catalog, ObjectKind.QUERY)
    lives: list[tuple[str, str, str]] = []
    for entry in catalog.entries(ObjectKind.QUERY):
        assert isinstance(entry, QueryEntry), "asked for queries"
        reached = known_instances(entry, lambda name: known.get(name, Time(0)))
        state, version, complete = lives_of(entry, reached)
        lives.append((state if is_running else "not running", version, complete))
    titles = ("state", "version", "complete_from")
    more = {title: [one[i] for one in lives] for i, title in enumerate(titles)}
    return {"name": listing.pop("name"), **more, **listing}


def stream_listing(catalog: Catalog, kept: Mapping[str, Time]) -> Listing:
    """The streams, with the instant from which on the rows of each are there that are kept.

    Args:
        catalog: What is registered.
        kept: Those instants; of streams that are not read now they are not known.
    """
    listing = show(catalog, ObjectKind.STREAM)
    since = [kept.get(name) for name in listing["name"]]
    return {**listing, "kept_from": ["" if one is None else _from(one) for one in since]}


def _from(time: Time) -> str:
    return time_text(time) if time else "the beginning"


def version_rows(record: Record) -> list[VersionRow]:
    """What a query has been asked, and which instants each version answers."""
    rows: list[VersionRow] = []
    for asked in record.versions:
        parts = [part for part in record.parts if record.version_of(part) is asked]
        fresh = (record.instance(part.instance).fresh for part in parts)
        spans = [(f, part.since, part.until) for f, part in zip(fresh, parts, strict=True)]
        rows += [(asked.number, asked.text, *span) for span in spans]
        if not spans:
            rows.append((asked.number, asked.text, None, None, None))
    return rows


def by_query(found: Progress) -> Progress:
    """How far a job has come; instances count for their queries, what is kept with them not."""
    queries: dict[str, QueryProgress] = {}
    for query in found.queries:
        if is_recording(query.name):
            continue
        name = user_name(query.name)
        before = queries.get(name, QueryProgress(name, 0))
        rows, left = before.rows + query.rows, before.to_replay + query.to_replay
        queries[name] = QueryProgress(name, rows, left)
    return replace(found, queries=tuple(queries.values()))


def with_queries(found: Iterable[OperatorMetrics]) -> Iterator[OperatorMetrics]:
    """What operators have done for queries; instances are named as these."""
    for one in found:
        queries = dict.fromkeys(user_name(name) for name in one.queries if not is_recording(name))
        if queries or not one.queries:
            yield replace(one, queries=tuple(queries))
