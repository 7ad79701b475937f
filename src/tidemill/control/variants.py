"""The ways to change a running query, and what each promises (Esmaili, M5 to M10; EXACT is ours).

With T the instant of the change, ``D = clear(old, T)`` and ``F = clear(new, T)``: from D on the old
version has nothing from before T in its windows, from F on the new one has full windows. P is the
first instant whose rows are in no answer of the old version: D, or less where windows slide. In all
of them the new version gets the rows from its ``fresh`` on, and answers from its ``since`` on.

    variant         old until       new fresh   new since       new given
    IMMEDIATE       T               T           F               as it comes
    DRAIN           D               P           clear(new, P)   as it comes
    QUERY ORDER     D               T           F               when the old one has ended
    STREAM ORDER    D               T           F               as it comes
    GRACEFUL        F               T           F               as it comes
    GRACEFUL DRAIN  clear(old, F)   T           F               as it comes
    EXACT           T               needs(new)  T               as it comes

EXACT is filled with rows from before T, as far back as its windows need them at T; so it can be had
where the streams keep these rows, whatever the windows are.

Where the windows of the new version do not forget by time there is no F: it answers from T on, from
windows that fill, and only IMMEDIATE can be had.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.algebra.reach import clear, first_needed, newest
from tidemill.catalog.records import BEGINNING
from tidemill.lang.statements import Change
from tidemill.model.time import END_OF_TIME, Time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidemill.algebra.plan import Plan

__all__ = ["GUARANTEES", "Guarantees", "Switch", "switch"]


@dataclass(frozen=True, slots=True)
class Guarantees:
    """What a variant promises, whatever the queries and the streams are (M10).

    Attributes:
        keeps_all: No answer is lost that the old version would have given of rows before the
            change, or the new one of rows after it.
        by_query: No answer of the new version is given before one of the old.
        by_stream: Answers are given in the order of time.
        gives_once: No instant is answered by both from the same rows.
        progresses: The new version answers, however long the old one takes.
        terminates: The old version ends at once.
    """

    keeps_all: bool
    by_query: bool
    by_stream: bool
    gives_once: bool
    progresses: bool
    terminates: bool


GUARANTEES: Mapping[Change, Guarantees] = {
    Change.IMMEDIATE: Guarantees(
        keeps_all=False,
        by_query=True,
        by_stream=True,
        gives_once=True,
        progresses=True,
        terminates=True,
    ),
    Change.DRAIN: Guarantees(
        keeps_all=False,
        by_query=True,
        by_stream=True,
        gives_once=True,
        progresses=False,
        terminates=False,
    ),
    Change.QUERY_ORDER: Guarantees(
        keeps_all=True,
        by_query=True,
        by_stream=False,
        gives_once=True,
        progresses=True,
        terminates=False,
    ),
    Change.STREAM_ORDER: Guarantees(
        keeps_all=True,
        by_query=False,
        by_stream=True,
        gives_once=True,
        progresses=True,
        terminates=False,
    ),
    Change.GRACEFUL: Guarantees(
        keeps_all=False,
        by_query=True,
        by_stream=True,
        gives_once=True,
        progresses=True,
        terminates=False,
    ),
    Change.GRACEFUL_DRAIN: Guarantees(
        keeps_all=True,
        by_query=False,
        by_stream=True,
        gives_once=False,
        progresses=True,
        terminates=False,
    ),
    Change.EXACT: Guarantees(
        keeps_all=True,
        by_query=True,
        by_stream=True,
        gives_once=True,
        progresses=True,
        terminates=True,
    ),
}


@dataclass(frozen=True, slots=True)
class Switch:
    """The numbers of a change.

    Attributes:
        at: The instant of the change.
        until: For each old plan, the first instant that it does not answer any more.
        fresh: The new version gets the rows from here on.
        since: The new version answers from here on.
        held: What it answers is given when the answer is known up to here.
        is_complete: Whether its windows are full from ``since`` on.
    """

    at: Time
    until: tuple[Time, ...]
    fresh: Time
    since: Time
    held: Time = BEGINNING
    is_complete: bool = True


def switch(using: Change, old: Sequence[Plan], new: Plan, at: Time) -> Switch | None:
    """The numbers of a change at an instant; ``None`` if windows do not forget by time."""
    if using is Change.EXACT:
        return Switch(at, tuple(at for _ in old), first_needed(new, at), at)
    full = clear(new, at)
    if using is Change.IMMEDIATE:
        until = tuple(at for _ in old)
        return Switch(at, until, at, at if full is None else full, is_complete=full is not None)
    if full is None:
        return None
    if using is Change.GRACEFUL:
        return Switch(at, tuple(full for _ in old), at, full)
    drained = _drained(old, full if using is Change.GRACEFUL_DRAIN else at)
    if drained is None:
        return None
    last = max(drained, default=at)
    match using:
        case Change.DRAIN:
            # Rows that are in no window that is still to be drained are for the new version.
            seen = (newest(p, Time(d - 1)) + 1 for p, d in zip(old, drained, strict=True) if d)
            first = Time(max([at, *seen]))
            later = clear(new, first)
            return Switch(at, drained, first, END_OF_TIME if later is None else later)
        case Change.QUERY_ORDER:
            return Switch(at, drained, at, full, held=last)
        case _:  # STREAM ORDER and GRACEFUL DRAIN
            return Switch(at, drained, at, full)


def _drained(plans: Sequence[Plan], time: Time) -> tuple[Time, ...] | None:
    """When each plan has nothing from before an instant in its windows, if they all forget."""
    found = [clear(plan, time) for plan in plans]
    kept = tuple(one for one in found if one is not None)
    return kept if len(kept) == len(found) else None
