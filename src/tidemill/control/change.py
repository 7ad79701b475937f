"""Change: what ALTER QUERY makes of the record of a query.

Law: what is given before the change is what was given; from then on the answer is the formula of
the variant (``variants.py``), computed of runs that nothing has disturbed. A change on top of
another treats all versions that still answer as the old one (M9).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidemill.algebra.reach import clear
from tidemill.catalog.records import Instance, Part, Status
from tidemill.control.counting import counting
from tidemill.control.standpoint import live_parts, status
from tidemill.control.variants import Switch, switch
from tidemill.errors import RunError
from tidemill.lang.statements import Change
from tidemill.model.time import END_OF_TIME, Time, time_text

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.catalog.records import Record, Version
    from tidemill.control.standpoint import Standpoint
    from tidemill.control.taking_over import Refusal, Strategy

__all__ = ["Changed", "alter", "earliest", "preferred"]


@dataclass(frozen=True, slots=True)
class Changed:
    """What a statement makes of a query.

    Attributes:
        record: What has become of it.
        switch: The numbers of the change; ``None`` if nothing is running that it concerns.
        using: The variant of a change of meaning.
        at: The instant at which it begins to take effect; ``None`` if nothing is running.
        strategies: For another plan of the same meaning, how it can take over, the one that does
            first, and those that cannot be had.
        why: Why it takes over so.
    """

    record: Record
    switch: Switch | None = None
    using: Change | None = None
    at: Time | None = None
    strategies: tuple[Strategy | Refusal, ...] = ()
    why: str = ""


def alter(
    record: Record, version: Version, using: Change, at: Time | None, here: Standpoint
) -> Changed:
    """Change what a query asks.

    Args:
        record: What has become of it so far.
        version: What it is asked from now on.
        using: How.
        at: When; ``None`` for as early as it is exact.
        here: What is known.

    Raises:
        RunError: It is paused, the variant cannot be had, or the instant is too early.
    """
    if record.paused is not None:
        raise RunError(
            f'query "{here.query}" is paused, and cannot be changed',
            hint=f"write RESUME QUERY {here.query} first",
        )
    if status(record, here.known) is Status.STOPPED:
        return Changed(replace(record, versions=(*record.versions, version)))
    record = counting(record, here)
    asked = replace(record, versions=(*record.versions, version))
    live = live_parts(record, here.known)
    numbers = _numbers(using, record, version.plan, at, here)
    number = record.next_instance
    if using is Change.EXACT:
        instance = here.begun(number, version, numbers.since)
    else:
        instance = Instance(number, version.number, numbers.fresh, here.epoch, here.withdraws)
    part = Part(instance.number, numbers.since, END_OF_TIME, numbers.held)
    ends = dict(zip(live, numbers.until, strict=True))
    cut = [one.cut(ends[one]) if one in ends else one for one in record.parts]
    changed = replace(asked, instances=(*asked.instances, instance)).with_parts(*cut, part)
    return Changed(changed, numbers, using, numbers.at)


def preferred(record: Record, new: Plan, here: Standpoint) -> Change:
    """How a query is changed if it is not said: EXACT, if kept rows make it exact sooner."""
    exact, later = (earliest(using, record, new, here) for using in (Change.EXACT, Change.GRACEFUL))
    if exact is None:
        return Change.GRACEFUL
    waits = None if later is None else clear(new, later)
    return Change.EXACT if waits is None or exact < waits else Change.GRACEFUL


def _numbers(using: Change, record: Record, new: Plan, at: Time | None, here: Standpoint) -> Switch:
    live = live_parts(record, here.known)
    for part in live:
        here.must_end(record, part)
    first = earliest(using, record, new, here)
    if first is None and using is Change.EXACT:
        raise RunError(
            f'EXACT is not possible for query "{here.query}": its streams do not keep the rows that'
            " the windows of the new version hold",
            hint="write KEEP in CREATE STREAM, or USING GRACEFUL, which waits for full windows",
        )
    if first is None:
        raise _forgets_nothing(here.query, f"{using.value} is not possible")
    if at is not None and at < first:
        raise RunError(
            f'query "{here.query}" cannot be changed at {time_text(at)}: the earliest instant at'
            f" which {using.value} is exact is {time_text(first)}",
            hint=f"write AT {first} or later, or leave AT out",
        )
    old = [record.version_of(part).plan for part in live]
    numbers = switch(using, old, new, first if at is None else at)
    if numbers is None:  # before the first row there is no past that could be missing
        raise _forgets_nothing(here.query, f"{using.value} is not possible")
    return numbers


def earliest(using: Change, record: Record, new: Plan, here: Standpoint) -> Time | None:
    """The first instant at which a change is exact; ``None`` if there is none.

    No row from that instant on has come, and nothing was given that goes on after its end.
    """
    live = live_parts(record, here.known)
    old = [record.version_of(part).plan for part in live]
    ends = [here.least_end(record, part) for part in live]
    if None in ends:
        return None

    def is_exact(at: Time) -> bool:
        numbers = switch(using, old, new, at)
        pairs = zip(numbers.until, ends, strict=True) if numbers else ()
        return all(end is not None and until >= end for until, end in pairs)

    first: Time | None = here.next
    if using is Change.EXACT:
        first = here.full(new)
        if first == clear(new, here.next) != here.next:
            return None  # no row that is kept helps
    if first is None or switch(using, old, new, first) is None:
        return None
    # Later changes end later, so the first one that is late enough is found by halving.
    low, high = first, Time(max([first, *(end for end in ends if end is not None)]))
    while low < high:
        middle = Time((low + high) // 2)
        low, high = (low, middle) if is_exact(middle) else (Time(middle + 1), high)
    return low


def _forgets_nothing(query: str, what: str) -> RunError:
    """The error that there is no instant from which nothing from before matters."""
    return RunError(
        f'{what} for query "{query}": it has a window that counts rows, waits for a pause or keeps'
        " everything, or reads a relation that changes, so there is no instant from which it is"
        " known to be exact",
        hint="write USING IMMEDIATE, which begins with empty windows",
    )
