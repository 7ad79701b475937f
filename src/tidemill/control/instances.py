"""Instances: the queries that a runtime is given for those that people have.

A runtime knows queries that run from some instant on and whose answers are taken as they are. What
a query has become is put together from the answers of its instances (``runtime/parted.py``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidemill.catalog.entries import QueryEntry
from tidemill.catalog.records import Instance, Record, Version, instance_name, user_name
from tidemill.control.delivered import cut_of, delivered_to, got
from tidemill.control.recording import recordings
from tidemill.control.standpoint import live_parts
from tidemill.lang.statements import ObjectKind
from tidemill.model.time import Time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tidemill.catalog.catalog import Catalog

__all__ = ["instance_name", "known_instances", "record_of", "running_queries", "user_name"]


def record_of(query: QueryEntry) -> Record:
    """What has become of a query."""
    if query.record is not None:
        return query.record
    version = Version(1, query.text, query.plan, query.uses, query.time)
    return Record((version,), (Instance(1, 1, provenance=query.provenance),))


def known_instances(query: QueryEntry, known: Callable[[str], Time]) -> dict[int, Time]:
    """Up to when the answer of each instance of a query is known, and its sink has got it.

    What its rows are made of is known so far as well, if that is kept.
    """
    record, delivered = record_of(query), delivered_to(query)
    found: dict[int, Time] = {}
    for one in record.instances:
        reached = [got(delivered, known(instance_name(query.name, one.number)))]
        if one.number not in record.ended and not one.unrecorded:
            reached += [known(r.table.name) for r in recordings(query, record, one)]
        found[one.number] = min(reached)
    return found


def running_queries(catalog: Catalog, known: Mapping[str, Time]) -> Catalog:
    """The catalog with an entry for each instance that runs, in the place of the queries.

    Args:
        catalog: What people have registered.
        known: Up to when the answers of instances are known; others are not known at all.
    """
    for query in list(catalog.entries(ObjectKind.QUERY)):
        assert isinstance(query, QueryEntry), "asked for queries"
        if query.record is not None or query.provenance is not None:
            catalog = catalog.replaced_by(query, list(_instances(query, known)))
    return catalog


def _instances(query: QueryEntry, known: Mapping[str, Time]) -> Iterator[QueryEntry]:
    record = record_of(query)
    reached = known_instances(query, lambda name: known.get(name, Time(0)))
    needed = {part.instance for part in live_parts(record, reached)}
    if record.paused is not None:
        needed |= {part.instance for part in record.paused.parts}
    for one in record.instances:
        if one.number in needed:
            version = record.version(one.version)
            yield replace(
                query,
                name=instance_name(query.name, one.number),
                plan=one.begun(version.plan),
                text=version.text,
                uses=version.uses,
                time=version.time,
                record=None,
                cut=cut_of(query.name, delivered_to(query), record, one, reached),
                replays=one.replays,
                moving=one.moving,
                provenance=None,
            )
            if not one.unrecorded:
                yield from (recording.table for recording in recordings(query, record, one))
