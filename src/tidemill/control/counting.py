"""Counting: how an instance that can withdraw what stands takes over from one that cannot.

A sink that gets changes is told what is withdrawn where a part ends. That takes an instance which
remembers what stands, from its beginning on; a query that is created does not, since that costs as
much as its answer. So before a part of such an instance ends, the version migrates to itself: a
second instance, which counts, goes on where windows hold nothing that it has not got: from before
it began, or before what streams have kept. At that instant neither withdraws or announces anything.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidemill.catalog.records import Part
from tidemill.control.standpoint import live_parts
from tidemill.errors import RunError
from tidemill.model.time import Time

if TYPE_CHECKING:
    from tidemill.catalog.records import Record
    from tidemill.control.standpoint import Standpoint

__all__ = ["counting"]


def counting(record: Record, here: Standpoint) -> Record:
    """The record with an instance that counts behind every part that is open.

    Raises:
        RunError: Windows do not forget by time.
    """
    if not here.withdraws:
        return record
    for part in live_parts(record, here.known):
        old = record.instance(part.instance)
        if old.counts or part.hands_on:
            continue
        time = here.takes_over(record.version_of(part).plan)
        if time is None:
            raise RunError(
                f'query "{here.query}" has a window that counts rows, waits for a pause or keeps'
                " everything, or reads a relation that changes, so it is not known what its sink"
                " has to be told to withdraw",
                hint="create another query with a sink of its own, and drop this one",
            )
        number, before = record.next_instance, Time(max(time - 1, 0))
        version = record.version_of(part)
        new = here.begun(number, version, before, old.firsts(version.plan))
        ends = replace(part, until=time, hands_on=True)
        goes_on = Part(number, time, part.until, part.held, joins=True)
        place = record.parts.index(part)
        parts = [*record.parts[:place], ends, goes_on, *record.parts[place + 1 :]]
        record = replace(record, instances=(*record.instances, new)).with_parts(*parts)
    return record
