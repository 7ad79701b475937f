"""Recording: what the rows of a query are made of is kept beside its answer (WITH PROVENANCE).

For each hook of an instance (``provenance/hooks.py``) a runtime is given one query more, whose
answer is a table. So what is known of tables holds for it: rows are kept exactly once, for as long
as is said, on both engines, and are read at any instant that is known, also by other processes. No
catalog knows of these tables: they follow from the query and its instances, and are given up with
it.

Law: of an instance, the tables have at each instant the rows of its hooks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidemill.algebra.patterns import UpdatePattern, update_pattern
from tidemill.binder.definitions import kept_with
from tidemill.catalog.entries import Kept, QueryEntry
from tidemill.catalog.records import recording_name
from tidemill.connectors.table import ENDED_SINK, TABLE_SINK
from tidemill.control.change import Changed
from tidemill.control.strategies import replan
from tidemill.errors import RunError
from tidemill.model.time import END_OF_TIME
from tidemill.model.types import BIGINT
from tidemill.provenance.hooks import hooks_of, looks_back

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.catalog.records import Instance, Record
    from tidemill.control.standpoint import Standpoint
    from tidemill.lang.statements import ConnectorCall, Provenance
    from tidemill.provenance.hooks import Hook

__all__ = [
    "Recording",
    "also_recorded",
    "recorded",
    "recordings",
    "require_recordable",
    "unrecorded",
]


@dataclass(frozen=True, slots=True)
class Recording:
    """A table of what the rows of an instance are made of.

    Attributes:
        hook: What its rows are.
        table: What a runtime is given for it.
    """

    hook: Hook
    table: QueryEntry


def recordings(query: QueryEntry, record: Record, one: Instance) -> list[Recording]:
    """The tables of an instance; none if nothing is kept with it."""
    if one.provenance is None:
        return []
    version = record.version(one.version)
    plan = one.begun(version.plan)
    keep = _kept(one.provenance, plan)
    return [
        Recording(
            hook,
            replace(
                query,
                name=recording_name(query.name, one.number, number),
                plan=hook.plan,
                text=version.text,
                uses=version.uses,
                sink=_sink(hook.plan),
                time=BIGINT,
                record=None,
                cut=None,
                replays=one.replays,
                keep=keep,
                moving=None,
                provenance=None,
            ),
        )
        for number, hook in enumerate(hooks_of(plan))
    ]


def require_recordable(plan: Plan) -> None:
    """Refuse a query whose rows cannot tell what they are made of while it runs.

    Raises:
        PlanError: A window stands over rows that other operators have made.
    """
    hooks_of(plan)


def also_recorded(before: Record, after: Record, keep: Kept | None) -> Record:
    """A record whose new instances have what their rows are made of kept as well, if that is so."""
    if keep is None:
        return after
    old = {one.number for one in before.instances}
    instances = tuple(
        one if one.number in old else replace(one, provenance=keep) for one in after.instances
    )
    return replace(after, instances=instances)


def recorded(record: Record, provenance: Provenance | None, here: Standpoint) -> Changed:
    """Keep what rows are made of from now on, or do not.

    To be kept from its beginning on, it is computed by an instance that takes over, as for another
    plan. It answers when its windows are full, and what its rows are made of is whole then.

    Args:
        record: What has become of the query.
        provenance: For how long it is kept; ``None`` if it is not.
        here: What is known.

    Raises:
        RunError: It does not run, or there is no instant from which it would be exact.
        PlanError: A window stands over rows that other operators have made.
    """
    keep = None if provenance is None else kept_with(provenance)
    if keep == record.provenance:
        return Changed(record, at=here.next)
    if keep is None:
        return Changed(unrecorded(record), at=here.next)
    require_recordable(record.current.plan)
    try:
        changed = replan(record, here)
    except RunError as error:
        if record.paused is not None or not any(p.until == END_OF_TIME for p in record.parts):
            raise
        raise RunError(
            f'what rows of query "{here.query}" are made of cannot be kept from now on: it has a'
            " window that counts rows, waits for a pause or keeps everything, so it is not known"
            " which rows are in it",
            hint="write KEEP ALL behind its streams, so that they can be replayed; or CREATE QUERY"
            " … WITH PROVENANCE from the beginning",
        ) from error
    return replace(changed, record=also_recorded(record, changed.record, keep))


def unrecorded(record: Record) -> Record:
    """A record without anything kept from now on; what is kept already stays."""
    ended = (replace(one, unrecorded=one.provenance is not None) for one in record.instances)
    return replace(record, instances=tuple(ended))


def _kept(keep: Kept, plan: Plan) -> Kept:
    """For how long rows are kept: what explains the first instant that can be asked for as well."""
    return keep if keep.length is None else Kept(keep.length + looks_back(plan))


def _sink(plan: Plan) -> ConnectorCall:
    """Rows whose ends are known when they come are kept as they come, which takes less."""
    return TABLE_SINK if update_pattern(plan) is UpdatePattern.STRICT else ENDED_SINK
