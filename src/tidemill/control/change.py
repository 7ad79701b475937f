"""Change: what ALTER QUERY makes of the record of a query.

Law: what is given before the change is what was given; from then on the answer is the formula of
the variant (``variants.py``), computed of runs that nothing has disturbed. A change on top of
another treats all versions that still answer as the old one (M9).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

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

__all__ = ["Changed", "alter", "earliest", "replan"]


@dataclass(frozen=True, slots=True)
class Changed:
    """What a statement makes of a query.

    Attributes:
        record: What has become of it.
        switch: The numbers of the change; ``None`` if nothing is running that it concerns.
        using: The variant of a change of meaning.
        at: The instant at which it begins to take effect; ``None`` if nothing is running.
    """

    record: Record
    switch: Switch | None = None
    using: Change | None = None
    at: Time | None = None


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
    instance = Instance(
        record.next_instance, version.number, numbers.fresh, here.epoch, here.withdraws
    )
    part = Part(instance.number, numbers.since, END_OF_TIME, numbers.held)
    ends = dict(zip(live, numbers.until, strict=True))
    cut = [one.cut(ends[one]) if one in ends else one for one in record.parts]
    changed = replace(asked, instances=(*asked.instances, instance)).with_parts(*cut, part)
    return Changed(changed, numbers, using, numbers.at)


def replan(record: Record, here: Standpoint) -> Changed:
    """Let another plan for the same meaning take over (GenMig, KB62).

    From ``clear + 1`` on the new instance answers. An instant before, the same rows are in both, so
    that nothing is withdrawn or announced.

    Raises:
        RunError: It does not run, or its windows do not forget by time.
    """
    live = live_parts(record, here.known)
    open_ = [part for part in live if part.until == END_OF_TIME]
    if record.paused is not None:
        raise RunError(
            f'query "{here.query}" is paused, and keeps the plan it has',
            hint=f"write RESUME QUERY {here.query} first",
        )
    if not open_:
        raise RunError(
            f'query "{here.query}" does not run, so it has no plan to be replaced',
            hint=f"write START QUERY {here.query}; it is planned then",
        )
    plans = [record.version_of(part).plan for part in live]
    # What is to begin later has nothing from before in its windows, nor has what takes over.
    first = max(here.next, *(record.instance(part.instance).fresh for part in open_))
    numbers = switch(Change.GRACEFUL, plans, record.current.plan, first)
    ends = [part.since + 1 if here.withdraws else here.must_end(record, part) for part in open_]
    if numbers is None:
        raise _forgets_nothing(here.query, "REPLAN needs windows that forget by time")
    after = Time(max([numbers.since + 1, *ends]))
    instance = Instance(
        record.next_instance, record.current.number, numbers.fresh, here.epoch, here.withdraws
    )
    seam, held = here.withdraws, max(part.held for part in open_)
    cut = [
        replace(part.cut(after), hands_on=seam) if part in open_ else part for part in record.parts
    ]
    begun = replace(record, instances=(*record.instances, instance))
    changed = begun.with_parts(*cut, Part(instance.number, after, held=held, joins=seam))
    numbers = replace(numbers, until=tuple(after for _ in live), since=after)
    return Changed(changed, numbers, at=numbers.at)


def _numbers(using: Change, record: Record, new: Plan, at: Time | None, here: Standpoint) -> Switch:
    live = live_parts(record, here.known)
    for part in live:
        here.must_end(record, part)
    first = earliest(using, record, new, here)
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

    if switch(using, old, new, here.next) is None:
        return None
    # Later changes end later, so the first one that is late enough is found by halving.
    low, high = here.next, Time(max([here.next, *(end for end in ends if end is not None)]))
    while low < high:
        middle = Time((low + high) // 2)
        low, high = (low, middle) if is_exact(middle) else (Time(middle + 1), high)
    return low


def _forgets_nothing(query: str, what: str) -> RunError:
    return RunError(
        f'{what} for query "{query}": it has a window that counts rows, waits for a pause or keeps'
        " everything, so there is no instant from which it is known to be exact",
        hint="write USING IMMEDIATE, which begins with empty windows",
    )
