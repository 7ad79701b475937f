"""Alternatives: what the other ways of doing what is asked of a query would give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.connectors.forms import Delivered
from tidemill.control.change import earliest
from tidemill.control.standpoint import live_parts
from tidemill.control.strategies import way_text
from tidemill.control.taking_over import Refusal
from tidemill.control.variants import switch
from tidemill.lang.statements import Change
from tidemill.model.time import time_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidemill.catalog.records import Record
    from tidemill.control.change import Changed
    from tidemill.control.standpoint import Standpoint
    from tidemill.control.taking_over import Strategy
    from tidemill.control.variants import Switch
    from tidemill.model.time import Time

__all__ = ["Alternative", "meanwhile_text", "other_ways", "way_told"]


@dataclass(frozen=True, slots=True)
class Alternative:
    """What another way of changing would give; no times if it cannot be had.

    Another way for a plan to take over has besides for how long both plans run, what work that is
    and for how long no answer comes, in microseconds.
    """

    using: str
    at: Time | None
    exact_from: Time | None
    meanwhile: str
    length: int | None = None
    work: float | None = None
    pause: float | None = None


def other_ways(before: Record, changed: Changed, here: Standpoint) -> Iterable[Alternative]:
    """The other ways to do what is asked for."""
    if changed.using is not None:
        return _alternatives(before, changed, here)
    return [way_told(one, here) for one in changed.strategies[1:]]


def way_told(way: Strategy | Refusal, here: Standpoint) -> Alternative:
    """What a way takes in which another plan could take over."""
    if isinstance(way, Refusal):
        return Alternative(way.using.value, None, None, way.why)
    told = way_text(way)
    costs = way.length, way.work, way.pause
    return Alternative(way.using.value, here.next, way.since, told, *costs)


def _alternatives(before: Record, changed: Changed, here: Standpoint) -> list[Alternative]:
    old = [before.version_of(part).plan for part in live_parts(before, here.known)]
    new = changed.record.current.plan
    found: list[Alternative] = []
    for using in Change:
        if using is changed.using:
            continue
        at = earliest(using, before, new, here)
        numbers = None if at is None else switch(using, old, new, at)
        if numbers is None:
            is_exact = using is Change.EXACT
            why = "streams do not keep their past" if is_exact else "windows do not forget by time"
            found.append(Alternative(using.value, None, None, why))
            continue
        if here.sink is Delivered.UPSERTS and max([numbers.at, *numbers.until]) > numbers.since:
            both = "rows of two versions would replace each other"
            found.append(Alternative(using.value, None, None, both))
            continue
        exact = max([numbers.since, *numbers.until]) if numbers.is_complete else None
        found.append(Alternative(using.value, numbers.at, exact, meanwhile_text(numbers)))
    return found


def meanwhile_text(numbers: Switch) -> str:
    """What is given between the change and the instant from which it is exact."""
    last = max(numbers.until, default=numbers.at)
    if not numbers.is_complete:
        return "the new version answers from windows that fill"
    if last < numbers.since:
        return f"nothing is answered from {time_text(last)} to {time_text(numbers.since)}"
    if last > numbers.since:
        both = f"both versions answer from {time_text(numbers.since)} to {time_text(last)}"
        held = ", the new one's rows are given after that" if numbers.held else ""
        return f"the old version answers; {both}{held}"
    return "the old version answers"
