"""Standpoint: what is known of a query when it is decided what becomes of it.

Rows that have come cannot be asked for again, unless their stream keeps them, so without that a
part can begin with the first instant of which no row has come; and what has been given is final, so
a part can end only where nothing was given that goes on beyond. That is the earliest instant at
which a change is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidemill.algebra.reach import clear, is_silent, needs
from tidemill.algebra.tree import streams_of
from tidemill.catalog.records import BEGINNING, Instance, Status
from tidemill.connectors.forms import Delivered
from tidemill.errors import RunError
from tidemill.model.time import END_OF_TIME, Time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.algebra.plan import Plan
    from tidemill.catalog.records import Part, Record, Version
    from tidemill.runtime.runs import Moment

__all__ = ["Standpoint", "live_parts", "next_instant", "status"]


@dataclass(frozen=True, slots=True)
class Standpoint:
    """What is known of a query between two batches.

    Attributes:
        query: What it is called.
        next: The first instant of which no row has come, on any stream of old and new plans.
        epoch: That of instances that begin now.
        known: Up to when the answer of each instance is known.
        sink: What the sink of the query gets; ``None`` if its answer is in memory.
        kept: From which instant on all rows of a stream are kept, of those that keep their past.
        came: Of each stream, the first instant from which on no row has come; ``next`` of others.
    """

    query: str
    next: Time
    epoch: int = 0
    known: Mapping[int, Time] = field(default_factory=dict)
    sink: Delivered | None = None
    kept: Mapping[str, Time] = field(default_factory=dict)
    came: Mapping[str, Time] = field(default_factory=dict)

    def full(self, plan: Plan) -> Time | None:
        """The first instant, from now on, at which an instance that begins now has full windows.

        ``None`` if there is none: windows do not forget by time, and streams do not keep all.
        """
        found = self.filled(plan)
        return None if found is None else max(found, self.next)

    def filled(self, plan: Plan) -> Time | None:
        """The first instant at which windows are full that have got all that is kept or comes."""
        had = {name: min(self.kept.get(name, self.next), self.next) for name in streams_of(plan)}
        return clear(plan, had)

    def begun(
        self, number: int, version: Version, since: Time, least: Mapping[str, Time] | None = None
    ) -> Instance:
        """An instance that begins now and has full windows at an instant, which can be had.

        Args:
            number: Its number.
            version: What it computes.
            since: The instant.
            least: Rows of streams from before are not for it.
        """
        begins = {} if least is None else least
        firsts = {
            name: Time(max(min(first, self.next), begins.get(name, BEGINNING)))
            for name, first in needs(version.plan, since).items()
        }
        return self._begun(number, version, since, firsts)

    def begun_in_part(self, number: int, version: Version) -> Instance | None:
        """An instance with the past of those streams only that have kept what its windows hold.

        The other streams are as if they began now. ``None`` if that helps nothing: no stream has
        kept anything that its windows hold.
        """
        needed = needs(version.plan, self.next)
        had = {name: min(self.kept.get(name, self.next), self.next) for name in needed}
        firsts = {name: t if had[name] <= t else self.next for name, t in needed.items()}
        if all(first >= self.next for first in firsts.values()):
            return None
        return self._begun(number, version, self.next, firsts)

    def _begun(
        self, number: int, version: Version, since: Time, firsts: Mapping[str, Time]
    ) -> Instance:
        fresh, later = Instance.spread(firsts)
        return Instance(
            number,
            version.number,
            fresh,
            self.epoch,
            self.withdraws,
            replays=since if fresh < self.next else None,
            later=later,
        )

    @property
    def is_final(self) -> bool:
        """Whether rows are given with their ends, which cannot be taken back."""
        return self.sink is Delivered.RESULTS

    @property
    def withdraws(self) -> bool:
        """Whether what stands is withdrawn where a part ends, by the instance that gave it."""
        return self.sink in (Delivered.CHANGES, Delivered.UPSERTS)

    def least_end(self, record: Record, part: Part) -> Time | None:
        """The first instant at which a part can end; ``None`` if there is none."""
        plan = record.version_of(part).plan
        if self.is_final:
            return clear(plan, self.next) if is_silent(plan) else None
        if not self.withdraws:
            return self.next
        if part.hands_on:
            return part.until
        if record.instance(part.instance).counts:
            return max(self.next, Time(part.since + 1)) if part.joins else self.next
        takes_over = self.takes_over(plan)
        return None if takes_over is None else Time(takes_over + 1)

    def must_end(self, record: Record, part: Part) -> Time:
        """The first instant at which a part can end.

        Raises:
            RunError: There is none.
        """
        found = self.least_end(record, part)
        if found is None:
            raise RunError(
                f'the sink of query "{self.query}" has got rows that go on for ever, or for as long'
                " as others come, so its answer cannot end",
                hint="create another query with a sink of its own, and drop this one",
            )
        return found

    def takes_over(self, plan: Plan) -> Time | None:
        """From when on an instance that begins now can go on for another one of the same plan.

        An instant before, the same rows are there in both (KB62).
        """
        full = self.full(plan)
        return None if full is None else Time(full + 1)


def next_instant(query: str, plans: list[Plan], moment: Moment) -> Time:
    """The first instant of which nothing has come, on the streams of some plans.

    Raises:
        RunError: There is no such instant, because the streams have ended or there are none.
    """
    streams = frozenset[str]().union(*map(streams_of, plans))
    if not streams:
        raise RunError(
            f'query "{query}" reads relations only, so its answer is known for ever',
            hint="drop it, and create another one",
        )
    came = [Time(t + 1) for name, t in moment.latest.items() if name in streams]
    passed = [t for name, t in moment.watermarks.items() if name in streams]
    found = Time(max((Time(0), *came, *passed)))
    if found >= END_OF_TIME:
        raise RunError(
            f'the streams of query "{query}" have ended', hint="drop it, and create another one"
        )
    return found


def live_parts(record: Record, known: Mapping[int, Time]) -> list[Part]:
    """The parts that still have something to answer."""
    running = [part for part in record.parts if part.instance not in record.ended]
    return [part for part in running if part.until > known.get(part.instance, Time(0))]


def status(record: Record, known: Mapping[int, Time]) -> Status:
    """What a query does, given up to when the answer of each instance is known."""
    if record.paused is not None:
        return Status.PAUSED
    live = live_parts(record, known)
    endless = [part for part in live if part.until == END_OF_TIME]
    if not live:
        return Status.STOPPED
    if not endless:
        return Status.DRAINING
    speaking = [part for part in live if part.since <= known.get(part.instance, Time(0))]
    if len(live) > len(endless):
        return Status.CHANGING
    if not speaking and any(part.since > 0 for part in endless):
        return Status.PREPARING
    return Status.RUNNING
