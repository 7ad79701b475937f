"""Delivered: which instants of an instance its sink gets, and when their rows leave.

What a sink has got is final. So rows wait (``model/spans.py``)

- of a part that is given when those before it have ended (QUERY ORDER),
- of a part that withdraws and announces, until parts that end before it have done so: changes are
  applied in the order in which they come,
- of a query that is paused, until it is resumed.

It is a function of the record and of up to when instances are known, asked between two batches.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

from tidemill.algebra.reach import is_silent
from tidemill.connectors.check import guarantee
from tidemill.connectors.connector import Guarantee
from tidemill.connectors.forms import Delivered
from tidemill.errors import RunError
from tidemill.model.spans import Cut, Leaves, Span
from tidemill.model.time import END_OF_TIME, Time, time_text
from tidemill.runtime.shapes import shape_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.catalog.entries import QueryEntry
    from tidemill.catalog.records import Instance, Part, Record

__all__ = ["cut_of", "delivered_to", "got", "marked", "refuse_overlaps", "released"]


def delivered_to(query: QueryEntry) -> Delivered | None:
    """What the sink of a query gets; ``None`` if its answer is in memory."""
    is_kept = guarantee(query.sink) is Guarantee.SESSION
    return None if is_kept else shape_of(query).delivered


def got(delivered: Delivered | None, known: Time) -> Time:
    """Up to when a sink has got all of an answer, given up to when the answer is known.

    What is withdrawn at an instant leaves when that instant has passed.
    """
    is_signed = delivered in (Delivered.CHANGES, Delivered.UPSERTS)
    return Time(max(known - 1, 0)) if is_signed and known < END_OF_TIME else known


def cut_of(
    query: str,
    delivered: Delivered | None,
    record: Record,
    instance: Instance,
    known: Mapping[int, Time],
) -> Cut | None:
    """Which instants of an instance the sink of its query gets; ``None`` for all of them.

    Args:
        query: What the query is called.
        delivered: What its sink gets; ``None`` if its answer is in memory.
        record: What has become of it.
        instance: One of its instances.
        known: Up to when the answer of each instance is known.
    """
    if delivered is None or not instance.is_cut:
        return None
    spans = [
        Span(part.since, part.until, _leaves(part), *_seams(part))
        for part in released(delivered, record, known).parts
        if part.instance == instance.number
    ]
    if record.paused is not None:
        later = [part.begun(record.paused.at) for part in record.paused.parts]
        spans += [
            Span(part.since, part.until, Leaves.KEPT, *_seams(part))
            for part in later
            if part.instance == instance.number and not part.is_empty
        ]
    return Cut(f"{query}:{instance.number}", tuple(spans), instance.counts)


def _seams(part: Part) -> tuple[bool, bool]:
    return part.joins, part.hands_on


def _leaves(part: Part) -> Leaves:
    return Leaves.AT_ONCE if part.released else Leaves.HELD


def released(delivered: Delivered, record: Record, known: Mapping[int, Time]) -> Record:
    """The record with those parts marked whose rows do not wait for others any more.

    One that was marked stays so, whatever is known: some of its rows may have left.
    """
    parts = (
        replace(part, released=part.released or not _waits(delivered, record, number, known))
        for number, part in enumerate(record.parts)
    )
    return replace(record, parts=tuple(parts))


def _waits(delivered: Delivered, record: Record, number: int, known: Mapping[int, Time]) -> bool:
    """Whether the rows of a part wait for those of parts before it."""
    part, by_time = record.parts[number], delivered is not Delivered.RESULTS
    return any(
        one.instance != part.instance
        and (bool(part.held) or (by_time and one.until <= part.since))
        and one.instance not in record.ended
        and known.get(one.instance, 0) < one.until
        for one in record.parts[:number]
    )


def marked(record: Record) -> Record:
    """The record with those instances marked of which a sink gets some instants only.

    One that was marked stays so: rows may wait that its sink is to get.
    """
    return replace(
        record,
        instances=tuple(
            replace(one, is_cut=one.is_cut or one.counts or not _is_whole(record, one))
            for one in record.instances
        ),
    )


def _is_whole(record: Record, instance: Instance) -> bool:
    """Whether an instance answers everything from its beginning on."""
    match [part for part in record.parts if part.instance == instance.number]:
        case [part] if part.until == END_OF_TIME and not (part.held or part.joins):
            # What is there although nothing has come, such as a relation, is there from 0 on.
            is_silent_ = is_silent(record.version(instance.version).plan)
            return part.since == 0 or (part.since <= instance.fresh and is_silent_)
        case _:
            return False


def refuse_overlaps(query: QueryEntry, record: Record) -> None:
    """Refuse that two parts answer one instant, where a row replaces another by its key.

    Raises:
        RunError: Two of them do.
    """
    if delivered_to(query) is not Delivered.UPSERTS:
        return
    for one, other in combinations(record.parts, 2):
        first, past = max(one.since, other.since), min(one.until, other.until)
        if first < past:
            raise RunError(
                f'the sink of query "{query.name}" gets upserts, and there would be two answers'
                f" from {time_text(first)} to {_past_text(past)}, of which one would replace rows"
                " of the other",
                hint="write USING GRACEFUL, DRAIN or IMMEDIATE; IMMEDIATE for STOP and PAUSE; or"
                " COLD for START and RESUME",
            )


def _past_text(time: Time) -> str:
    return "the end" if time == END_OF_TIME else time_text(time)
