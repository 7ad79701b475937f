"""Given answers: what a query has given in a job, put together from those of its instances."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.catalog.entries import QueryEntry
from tidemill.control.instances import instance_name
from tidemill.errors import RunError
from tidemill.model.time import END_OF_TIME, Time
from tidemill.runtime.answers import Answer
from tidemill.runtime.parted import Piece, parted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.catalog.catalog import Catalog
    from tidemill.runtime.runs import Runs

__all__ = ["answer_in", "is_in"]


def answer_in(
    job: Runs,
    catalog: Catalog,
    past: Mapping[str, Answer],
    query: str,
    version: int | None = None,
) -> Answer | None:
    """What a query has given in a job; ``None`` if it was not there.

    Args:
        job: What runs, or was run.
        catalog: What is registered now.
        past: What instances gave that do not run any more.
        query: The query.
        version: What one version of it gave; without it, all that have the columns of the newest.

    Raises:
        RunError: It has no such version, or its answer is not kept.
    """
    entry = catalog.find(query)
    if not isinstance(entry, QueryEntry) or entry.record is None:
        if version not in (None, 1):
            raise _no_version(query, version, 1)
        return job.answer(query) if is_in(job, catalog, past, query) else None
    record = entry.record
    if version is not None and not 0 < version <= len(record.versions):
        raise _no_version(query, version, len(record.versions))
    schema = record.version(version or record.current.number).plan.schema
    pieces: list[Piece] = []
    for part in record.parts:
        asked = record.version_of(part)
        is_wanted = version == asked.number if version else asked.plan.schema == schema
        if is_wanted:
            name = instance_name(entry.name, part.instance)
            given = past.get(name) or job.answer(name)
            if given is None:  # it was over before this session began
                given = Answer(schema, is_whole=False)
                given.known = END_OF_TIME if part.instance in record.ended else Time(0)
            pieces.append(Piece(given, part.since, part.until, part.held))
    return parted(schema, pieces)


def is_in(job: Runs, catalog: Catalog, past: Mapping[str, Answer], query: str) -> bool:
    """Whether a job has a query, and not another one that had its name then."""
    entry, planned = catalog.find(query), job.planned(query)
    if isinstance(entry, QueryEntry) and entry.record is not None:
        names = (instance_name(entry.name, one.number) for one in entry.record.instances)
        return any(job.planned(name) is not None or name in past for name in names)
    if planned is None or not isinstance(entry, QueryEntry):
        return True  # the job knows what it has; nothing else has the name now
    return planned.bound == entry.plan


def _no_version(query: str, version: int | None, newest: int) -> RunError:
    return RunError(
        f'query "{query}" has no version {version}', hint=f"its versions are 1 to {newest}"
    )
