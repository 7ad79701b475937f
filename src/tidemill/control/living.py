"""Living queries: what a lifecycle statement makes of a query that runs, and the verdict on it.

Everything here is a function of the record of the query, the statement and the moment between two
batches in which it takes effect; the session hands the result to the runtime.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from tidemill.algebra.keys import least_key
from tidemill.algebra.reach import is_silent
from tidemill.algebra.tree import streams_of
from tidemill.catalog.entries import QueryEntry
from tidemill.catalog.records import Instance, Part, Record, Version
from tidemill.connectors.forms import Delivered
from tidemill.control.change import Changed, alter, preferred
from tidemill.control.delivered import delivered_to, marked, refuse_overlaps, released
from tidemill.control.instances import known_instances, record_of
from tidemill.control.lifecycle import pause, resume, start, stop
from tidemill.control.recording import also_recorded, recorded
from tidemill.control.standpoint import (
    Standpoint,
    live_parts,
    next_instant,
    status,
)
from tidemill.control.strategies import UNPRICED, Prices, replan
from tidemill.control.verdict import exact_from
from tidemill.errors import RunError
from tidemill.lang.parse import parse_one
from tidemill.lang.statements import (
    AlterProvenance,
    AlterQuery,
    CreateQuery,
    CreateTable,
    Name,
    ObjectKind,
    PauseQuery,
    ReplanQuery,
    ResumeQuery,
    StartMode,
    StartQuery,
    StopMode,
    StopQuery,
)
from tidemill.model.time import Time, time_text

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from tidemill.catalog.catalog import Catalog
    from tidemill.lang.statements import Instant, Lifecycle
    from tidemill.runtime.runs import Moment

__all__ = [
    "altered",
    "asking",
    "begun_again",
    "begun_late",
    "carried_out",
    "ended",
    "lives_of",
    "new_version",
    "replanned",
    "rewritten",
    "standpoint",
]


def standpoint(query: QueryEntry, version: Version | None, moment: Moment) -> Standpoint:
    """What is known of a query in a moment.

    Raises:
        RunError: Its streams have ended, or it reads none.
    """
    record = record_of(query)
    known = known_instances(query, lambda name: moment.known.get(name, Time(0)))
    plans = [one.plan for one in (*record.versions, *([version] if version else []))]
    first = next_instant(query.name, plans, moment)
    sink, kept = delivered_to(query), moment.kept
    streams = frozenset[str]().union(*map(streams_of, plans))
    came = {name: Time(moment.latest.get(name, -1) + 1) for name in streams}
    return Standpoint(query.name, first, known=known, sink=sink, kept=kept, came=came)


def carried_out(
    statement: Lifecycle,
    query: QueryEntry,
    version: Version | None,
    here: Standpoint,
    prices: Prices = UNPRICED,
) -> Changed:
    """What a statement makes of the record of a query.

    Args:
        statement: What is asked for.
        query: The query.
        version: For ALTER QUERY … AS, what it is asked from now on.
        here: What is known.
        prices: For REPLAN, what its plans are expected to cost.

    Raises:
        RunError: It cannot be done now, or not at that instant.
    """
    changed = _carried_out(statement, query, version, here, prices)
    before = record_of(query)
    if not isinstance(statement, AlterProvenance):
        changed = replace(changed, record=also_recorded(before, changed.record, before.provenance))
    if here.sink is None:
        return changed
    record = marked(changed.record)
    refuse_overlaps(query, record)
    return replace(changed, record=record)


def _carried_out(
    statement: Lifecycle,
    query: QueryEntry,
    version: Version | None,
    here: Standpoint,
    prices: Prices,
) -> Changed:
    record = record_of(query)
    match statement:
        case AlterQuery(_, _, using, at):
            assert version is not None, "a changed query has a new version"
            _require_columns(query, record, version)
            _require_key(query, record, version)
            how = using or preferred(record, version.plan, here)
            return alter(record, version, how, _time(at), here)
        case ReplanQuery(_, migration):
            return replan(record, here, migration, prices)
        case AlterProvenance(_, provenance):
            return recorded(record, provenance, here)
        case StartQuery(_, mode, at):
            return start(record, mode or StartMode.FRESH, _time(at), here)
        case StopQuery(_, mode, at):
            return stop(record, mode or StopMode.IMMEDIATE, _time(at), here)
        case PauseQuery(_, mode):
            return pause(record, mode or StopMode.IMMEDIATE, here)
        case ResumeQuery(_, mode):
            return resume(record, mode or StartMode.WARM, here)
        case _:
            assert_never(statement)


def asking(query: QueryEntry, statement: AlterQuery) -> CreateQuery | CreateTable:
    """The statement that would create a query as it is asked from now on."""
    if not query.is_table:
        return CreateQuery(statement.name, statement.query, query.sink)
    created = parse_one(query.text)
    assert isinstance(created, CreateTable), "a table was created so"
    return CreateTable(statement.name, statement.query, created.keep)


def new_version(query: QueryEntry, text: str, bound: QueryEntry) -> Version:
    """The next version of a query, given what its new text is bound to."""
    number = len(record_of(query).versions) + 1
    return Version(number, text, bound.plan, bound.uses, bound.time)


def altered(query: QueryEntry, record: Record) -> QueryEntry:
    """The query with another record; what old versions refer to is still in use."""
    current = record.current
    uses = frozenset[str]().union(*(one.uses for one in record.versions))
    return replace(
        query, plan=current.plan, text=current.text, uses=uses, time=current.time, record=record
    )


def rewritten(query: QueryEntry, version: Version) -> QueryEntry:
    """A query that has not run, with another text."""
    before = record_of(query)
    instance = Instance(1, version.number, provenance=before.provenance)
    return altered(query, Record((*before.versions, version), (instance,)))


def begun_late(query: QueryEntry, moment: Moment) -> QueryEntry:
    """A query that is created when others have run.

    With history, it answers from windows that kept rows have filled, from the last instant that is
    known on. Else the streams are as if they began now (FRESH): its answer depends on that instant
    alone, whatever others have read and remember. Of several streams, those that keep what its
    windows hold are not as if they began now, unless FRESH is asked for.

    Raises:
        RunError: It is to have a history that streams have not kept.
    """
    record, delivered = record_of(query), delivered_to(query)
    try:
        first = next_instant(query.name, [query.plan], moment)
    except RunError:
        return query  # it reads relations only, or nothing will come any more
    if not first:
        return query
    here = Standpoint(query.name, first, sink=delivered, kept=moment.kept)
    since = None if query.start is StartMode.FRESH else _with_history(query, here, moment)
    is_signed = delivered in (Delivered.CHANGES, Delivered.UPSERTS)
    begun_: Instance | None = None
    if since is not None:
        begun_ = here.begun(1, record.current, since)
    elif query.start is not StartMode.FRESH:
        begun_ = here.begun_in_part(1, record.current)
    # Windows that are filled have rows that are to be announced at once.
    counts = is_signed and (begun_ is not None or not is_silent(query.plan))
    since = first if since is None else since
    instance = begun_ or Instance(1, record.current.number, first)
    instance = replace(instance, counts=counts, provenance=record.provenance)
    begun = replace(record, instances=(instance,), parts=(Part(1, since),))
    return replace(query, record=begun if delivered is None else marked(begun))


def _with_history(query: QueryEntry, here: Standpoint, moment: Moment) -> Time | None:
    """The first instant that a query answers whose windows are filled with kept rows, if it is to.

    Raises:
        RunError: It is to, and rows are missing.
    """
    known = min(moment.watermarks.get(name, Time(0)) for name in streams_of(query.plan))
    present, full = Time(max(known - 1, 0)), here.filled(query.plan)
    if full is not None and full <= here.next:
        return max(present, full)
    if query.start is not StartMode.HISTORY:
        return None
    missing = sorted(set(streams_of(query.plan)) - moment.kept.keys())
    what = f'stream "{missing[0]}" does not keep its past' if missing else "streams keep too little"
    when = "" if full is None else f"; it could answer with full windows from {time_text(full)} on"
    raise RunError(
        f'query "{query.name}" cannot start with history: {what}{when}',
        hint="write KEEP with a duration, or KEEP ALL, in CREATE STREAM; or write START FRESH",
    )


def replanned(
    catalog: Catalog, outdated: Container[str], moment: Moment, told: list[str]
) -> Catalog:
    """The catalog in which other plans take over from some, each at its instant (REPLAN).

    Args:
        catalog: What is registered.
        outdated: The queries that are to be planned anew.
        moment: Where the pipeline stands.
        told: Is told of queries that go on with the plans they have.
    """
    for query in list(catalog.entries(ObjectKind.QUERY)):
        assert isinstance(query, QueryEntry), "asked for queries"
        if query.name not in outdated:
            continue
        try:
            here = standpoint(query, None, moment)
            changed = carried_out(ReplanQuery(Name(query.name)), query, None, here)
        except RunError as error:
            told.append(f'query "{query.name}" goes on with the plan it had: {error.message}')
        else:
            catalog = catalog.replaced(altered(query, changed.record))
    return catalog


def ended(catalog: Catalog, known: Mapping[str, Time]) -> Catalog:
    """The catalog with those instances marked that have answered all they had to.

    Parts are marked that waited for them.
    """
    for query in list(catalog.entries(ObjectKind.QUERY)):
        assert isinstance(query, QueryEntry), "asked for queries"
        record = query.record
        if record is None:
            continue
        reached = known_instances(query, lambda name: known.get(name, Time(0)))
        parts = (*live_parts(record, reached), *(record.paused.parts if record.paused else ()))
        needed = {part.instance for part in parts}
        over = {one.number for one in record.instances} - needed
        marked_ = replace(record, ended=frozenset(over))
        if (delivered := delivered_to(query)) is not None:
            marked_ = released(delivered, marked_, reached)
        if marked_ != record:
            catalog = catalog.replaced(replace(query, record=marked_))
    return catalog


def begun_again(catalog: Catalog) -> Catalog:
    """The catalog for a run from the beginning of the streams: all instances run once more.

    Their rows wait for each other once more.
    """
    for query in list(catalog.entries(ObjectKind.QUERY)):
        if isinstance(query, QueryEntry) and query.record is not None:
            parts = tuple(replace(part, released=False) for part in query.record.parts)
            instances = tuple(replace(one, moving=None) for one in query.record.instances)
            record = replace(query.record, ended=frozenset(), parts=parts, instances=instances)
            catalog = catalog.replaced(replace(query, record=record))
    return catalog


def lives_of(query: QueryEntry, known: Mapping[int, Time]) -> tuple[str, str, str]:
    """The state of a query, its version, and from when its answer is complete."""
    record = record_of(query)
    first = exact_from(record)
    complete = "never" if first is None else "the beginning" if not first else time_text(first)
    return status(record, known).value, str(record.current.number), complete


def _require_columns(query: QueryEntry, record: Record, version: Version) -> None:
    """Refuse other columns where rows of both versions go to one place."""
    old, new = ((one.columns, one.time) for one in (record.current, version))
    if query.sink is not None and old != new:
        raise RunError(
            f'the sink of query "{query.name}" gets the columns of its first version, and the new'
            " one has others",
            hint="create another query with a sink of its own",
        )


def _require_key(query: QueryEntry, record: Record, version: Version) -> None:
    """Refuse another key where rows replace each other by it."""
    if delivered_to(query) is not Delivered.UPSERTS:
        return
    old, new = (least_key(one.plan) for one in (record.current, version))
    if old != new:
        was, now = (", ".join(sorted(key or ())) for key in (old, new))
        raise RunError(
            f'the sink of query "{query.name}" gets upserts by {was}, and the rows of the new'
            f" version would be replaced by {now}",
            hint="create another query with a sink of its own",
        )


def _time(at: Instant | None) -> Time | None:
    return None if at is None else Time(at.microseconds)
