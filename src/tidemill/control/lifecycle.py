"""Lifecycle: what START, STOP, PAUSE and RESUME make of the record of a query (L2 to L8).

    START FRESH     the streams as if they began at T; answers from T on, from windows that fill
    START COLD      answers from the first instant on whose windows hold nothing from before T
    START WARM      answers from T on, from full windows
    START WITH HISTORY  the same at once, where streams keep what windows hold
    STOP IMMEDIATE  answers up to T
    STOP DRAIN      answers as long as windows hold something from before T
    PAUSE, RESUME   the same at one position: what is answered meanwhile is kept, and given later

The latest statement wins: it applies to everything that still answers (M9).
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from tidemill.algebra.reach import clear
from tidemill.catalog.records import Instance, Part, Paused, Status
from tidemill.control.change import Changed
from tidemill.control.counting import counting
from tidemill.control.standpoint import live_parts, status
from tidemill.errors import RunError
from tidemill.lang.statements import StartMode, StopMode
from tidemill.model.time import END_OF_TIME, Time, time_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.catalog.records import Record
    from tidemill.control.standpoint import Standpoint

__all__ = ["MOVES", "Move", "pause", "resume", "start", "stop"]


class Move(Enum):
    """What people can ask of a query."""

    START_FRESH = "START FRESH"
    START_COLD = "START COLD"
    START_WARM = "START WARM"
    START_HISTORY = "START WITH HISTORY"
    STOP_IMMEDIATE = "STOP IMMEDIATE"
    STOP_DRAIN = "STOP DRAIN"
    PAUSE_IMMEDIATE = "PAUSE IMMEDIATE"
    PAUSE_DRAIN = "PAUSE DRAIN"
    RESUME_WARM = "RESUME WARM"
    RESUME_COLD = "RESUME COLD"
    RESUME_FRESH = "RESUME FRESH"


_AWAKE = (Status.RUNNING, Status.CHANGING, Status.PREPARING)

MOVES: Mapping[Move, tuple[Status, ...]] = {
    Move.START_FRESH: (*_AWAKE, Status.DRAINING, Status.STOPPED),
    Move.START_COLD: (Status.DRAINING, Status.STOPPED),
    Move.START_WARM: (Status.DRAINING, Status.STOPPED),
    Move.START_HISTORY: (Status.STOPPED,),
    Move.STOP_IMMEDIATE: (*_AWAKE, Status.DRAINING, Status.PAUSED),
    Move.STOP_DRAIN: _AWAKE,
    Move.PAUSE_IMMEDIATE: _AWAKE,
    Move.PAUSE_DRAIN: _AWAKE,
    Move.RESUME_WARM: (Status.PAUSED,),
    Move.RESUME_COLD: (Status.PAUSED,),
    Move.RESUME_FRESH: (Status.PAUSED,),
}
"""In which states each can be asked for (L4)."""


def start(record: Record, mode: StartMode, at: Time | None, here: Standpoint) -> Changed:
    """Let a query answer again, or anew.

    Raises:
        RunError: It answers already, or the instant is too early.
    """
    _require(record, Move[f"START_{mode.name}"], here)
    plan = record.current.plan
    running = _drains(record, here)
    if mode is StartMode.WARM and running is not None:
        ends = [p for p in live_parts(record, here.known) if p.instance == running]
        least = max(here.next, *(here.must_end(record, part) for part in ends))
        first = _at(at, least, here, "START WARM is exact")
        return Changed(record.with_parts(*record.parts, Part(running, first)), at=first)
    if mode is StartMode.HISTORY:
        return _started_with_history(record, at, here)
    full = clear(plan, here.next)
    if mode is not StartMode.FRESH and full is None:
        raise RunError(
            f'query "{here.query}" has a window that counts rows, waits for a pause or keeps'
            " everything, or reads a relation that changes, so it is not known from when its"
            " windows are full",
            hint=f"write START QUERY {here.query} FRESH, which begins with empty windows",
        )
    least = here.next
    if mode is StartMode.FRESH:
        record = counting(record, here)
        live = live_parts(record, here.known)
        least = max([least, *(here.must_end(record, part) for part in live)])
    number = record.next_instance
    match mode:
        case StartMode.FRESH:
            fresh = _at(at, least, here, "START FRESH is exact")
            part = Part(number, fresh)
            parts = [one.cut(fresh) for one in record.parts]
        case StartMode.COLD:
            fresh = _at(at, here.next, here, "START COLD is exact")
            since = clear(plan, fresh)
            part, parts = Part(number, since or fresh), list(record.parts)
        case _:  # WARM
            fresh = here.next
            part = Part(number, _at(at, full or fresh, here, "START WARM is exact"))
            parts = list(record.parts)
    instance = Instance(number, record.current.number, fresh, here.epoch, here.withdraws)
    begun = replace(record, instances=(*record.instances, instance))
    at = part.since if mode is StartMode.WARM else fresh
    return Changed(begun.with_parts(*parts, part), at=at)


def _started_with_history(record: Record, at: Time | None, here: Standpoint) -> Changed:
    """Let a query that was stopped answer from windows that kept rows have filled."""
    plan = record.current.plan
    full, later = here.full(plan), clear(plan, here.next)
    if full is not None and full == later != here.next:
        raise RunError(
            f'query "{here.query}" cannot start with history: its streams do not keep the rows that'
            " its windows hold",
            hint=f"write KEEP behind its streams, or START QUERY {here.query} WARM, which waits for"
            " full windows",
        )
    if full is None:
        raise RunError(
            f'query "{here.query}" has a window that counts rows, waits for a pause or keeps'
            " everything, or reads a relation that changes, and its streams do not keep all rows",
            hint=f"write KEEP ALL behind its streams, or START QUERY {here.query} FRESH",
        )
    since = _at(at, full, here, "START WITH HISTORY is exact")
    instance = here.begun(record.next_instance, record.current, since)
    begun = replace(record, instances=(*record.instances, instance))
    return Changed(begun.with_parts(*record.parts, Part(instance.number, since)), at=since)


def stop(record: Record, mode: StopMode, at: Time | None, here: Standpoint) -> Changed:
    """Let a query answer up to an instant only.

    Raises:
        RunError: It does not answer, or the instant is too early.
    """
    _require(record, Move[f"STOP_{mode.name}"], here)
    if record.paused is not None:
        # What was kept back is given up.
        return Changed(replace(record, paused=None), at=record.paused.at)
    record = counting(record, here)
    time, parts = _stopped(record, mode, at, here, "STOP")
    return Changed(record.with_parts(*parts), at=time)


def pause(record: Record, mode: StopMode, here: Standpoint) -> Changed:
    """Keep the answer back from now on, until the query is resumed.

    Raises:
        RunError: It does not answer.
    """
    _require(record, Move[f"PAUSE_{mode.name}"], here)
    record = counting(record, here)
    time, parts = _stopped(record, mode, None, here, "PAUSE")
    later = (part for part in live_parts(record, here.known) if part.until > time)
    paused = Paused(time, tuple(later))
    return Changed(replace(record.with_parts(*parts), paused=paused), at=time)


def resume(record: Record, mode: StartMode, here: Standpoint) -> Changed:
    """Give what was kept back, and go on.

    WARM gives everything from the pause on, COLD what has nothing from before it, FRESH begins anew
    now.

    Raises:
        RunError: It is not paused.
    """
    _require(record, Move[f"RESUME_{mode.name}"], here)
    paused = record.paused
    assert paused is not None, "it is paused"
    awake = replace(record, paused=None)
    if mode is StartMode.FRESH:
        return start(awake, StartMode.FRESH, None, here)
    more: list[Part] = []
    for part in paused.parts:
        since: Time | None = paused.at
        if mode is StartMode.COLD:
            since = clear(record.version_of(part).plan, paused.at)
        if since is None:
            raise _not_by_time(here.query, "RESUME COLD")
        more.append(part.begun(since))
    return Changed(awake.with_parts(*awake.parts, *more), at=paused.at)


def _stopped(
    record: Record, mode: StopMode, at: Time | None, here: Standpoint, what: str
) -> tuple[Time, list[Part]]:
    """When it stops, and the parts that are left."""
    live = live_parts(record, here.known)
    first = max((here.must_end(record, part) for part in live), default=here.next)
    time = _at(at, first, here, f"{what} {mode.value} is exact")
    parts: list[Part] = []
    for part in record.parts:
        until: Time | None = time
        if part in live and mode is StopMode.DRAIN:
            until = clear(record.version_of(part).plan, time)
            if record.instance(part.instance).fresh >= time:
                until = time  # it has not begun, and does not any more
        if until is None:
            raise _not_by_time(here.query, f"{what} DRAIN")
        parts.append(part.cut(until) if part in live else part)
    return time, parts


def _not_by_time(query: str, what: str) -> RunError:
    return RunError(
        f'{what} is not possible for query "{query}": it has a window that counts rows, waits for a'
        " pause or keeps everything, or reads a relation that changes",
        hint="write IMMEDIATE, or FRESH to begin anew",
    )


def _drains(record: Record, here: Standpoint) -> int | None:
    """The instance of the current version that still runs, if one does."""
    live = {part.instance for part in live_parts(record, here.known)}
    current = record.current.number
    found = [one.number for one in record.instances if one.version == current]
    return max((number for number in found if number in live), default=None)


def _at(at: Time | None, first: Time, here: Standpoint, what: str) -> Time:
    """The instant that is asked for, or the first one that can be had."""
    if at is not None and at < first:
        raise RunError(
            f'{what} for query "{here.query}" from {time_text(first)} on, not at {time_text(at)}',
            hint=f"write AT {first} or later, or leave AT out",
        )
    found = first if at is None else at
    assert found < END_OF_TIME, "streams that have ended are refused before"
    return found


def _require(record: Record, move: Move, here: Standpoint) -> None:
    found = status(record, here.known)
    if move is Move.START_HISTORY and found is Status.DRAINING:
        raise RunError(
            f'query "{here.query}" is still to answer up to where it was stopped, so'
            f" {move.value} is not possible yet",
            hint=f"wait until it has stopped, or write START QUERY {here.query}",
        )
    if found not in MOVES[move]:
        raise RunError(
            f'query "{here.query}" is {found.value}, so {move.value} is not possible',
            hint=_WAYS[found].format(here.query),
        )


_WAYS = {
    Status.RUNNING: "write STOP QUERY {0} or PAUSE QUERY {0} first",
    Status.CHANGING: "write STOP QUERY {0} or PAUSE QUERY {0} first",
    Status.PREPARING: "wait until it answers, or write STOP QUERY {0}",
    Status.DRAINING: "write START QUERY {0}, or STOP QUERY {0} IMMEDIATE",
    Status.PAUSED: "write RESUME QUERY {0}, or STOP QUERY {0} to give up what was kept back",
    Status.STOPPED: "write START QUERY {0}",
}
