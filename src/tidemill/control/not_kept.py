"""Why rows are not there that are asked for: what streams have kept, and when that is enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.reach import clear
from tidemill.algebra.tree import streams_of
from tidemill.model.time import END_OF_TIME, Time, time_text
from tidemill.runtime.one_time import NotKeptError

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.runtime.past import Past

__all__ = ["no_past", "not_kept"]


def no_past(stream: str) -> NotKeptError:
    """The error that says that a stream keeps nothing of its past."""
    return NotKeptError(
        f'stream "{stream}" does not keep its past, so there is nothing to answer from',
        hint="write KEEP with a duration, or KEEP ALL, in CREATE STREAM",
    )


def not_kept(past: Past, plan: Plan, time: Time, name: str, least: Time) -> NotKeptError:
    """The error that says from when on a plan can be asked, by what a stream has kept.

    Args:
        past: What is kept.
        plan: What is asked.
        time: Of which instant.
        name: The stream.
        least: From when on its rows are needed.
    """
    kept = past.streams.get(name)
    if kept is None:
        return NotKeptError(
            f'stream "{name}" has kept nothing yet',
            hint="let the pipeline run; it keeps the rows that come from then on",
        )
    other = dict.fromkeys(streams_of(plan), Time(0))
    possible = clear(plan, {**other, name: kept.since})
    if possible is None:
        when = "its windows forget by what comes and not by time, so that they need all rows"
    elif possible >= END_OF_TIME:
        when = "no instant can be asked for"
    else:
        when = f"it can be asked from {time_text(possible)} on"
    return NotKeptError(
        f'stream "{name}" has kept its rows from {time_text(kept.since)} on, and at'
        f" {time_text(time)} those from {time_text(least)} on are needed; {when}",
        hint="write a longer KEEP, or KEEP ALL, in CREATE STREAM, for what comes from then on",
    )
