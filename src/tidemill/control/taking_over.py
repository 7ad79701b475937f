"""Taking over: how another plan for the same meaning goes on for the one that runs.

The plan runs as a further instance, and answers from an instant on, up to which the old one does.
An instant before, the same rows are there in both, so that nothing is withdrawn or announced. The
ways differ in which rows the new instance gets and in when its windows are full:

    GENMIG          rows from now on; when windows that reach as far as they can have forgotten all
                    that came before, whenever that was (KB62)
    PARALLEL TRACK  of each stream, rows after the last that came; when the last has ended (KB61)
    REPLAY          rows that streams have kept as well; as soon as these fill the windows

Law: whichever it is, the answer is that of the query at every instant.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidemill.algebra.reach import clear
from tidemill.algebra.starts import merging
from tidemill.algebra.tree import streams_of
from tidemill.catalog.records import BEGINNING, Instance, Part
from tidemill.control.standpoint import live_parts
from tidemill.errors import RunError
from tidemill.lang.statements import Migration
from tidemill.model.time import END_OF_TIME, Time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.algebra.plan import Plan
    from tidemill.catalog.records import Record
    from tidemill.control.standpoint import Standpoint

__all__ = ["Refusal", "Strategy", "Taking"]


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way for another plan to take over.

    Attributes:
        using: What it is called.
        record: What becomes of the query.
        since: From when on the new plan answers.
        length: For how long the old one still does.
        replays: Of how long a time rows are replayed.
        work: The work that it takes besides that of the new plan, in microseconds.
        pause: For how long no answer comes, in microseconds.
    """

    using: Migration
    record: Record
    since: Time
    length: int
    replays: int = 0
    work: float = 0.0
    pause: float = 0.0


@dataclass(frozen=True, slots=True)
class Refusal:
    """A way that cannot be had, why, and what can be done about it."""

    using: Migration
    why: str
    hint: str


@dataclass(frozen=True, slots=True)
class Taking:
    """A query in a moment in which another plan can take over.

    Attributes:
        record: What has become of it.
        here: What is known.
        open: The parts that would go on for ever.
        begins: From when on the rows of each stream are for those that answer these. What is to
            begin later has nothing from before in its windows, nor has what takes over.
    """

    record: Record
    here: Standpoint
    open: tuple[Part, ...]
    begins: Mapping[str, Time]

    @staticmethod
    def of(record: Record, here: Standpoint) -> Taking:
        """A query, given what is known.

        Raises:
            RunError: It does not run.
        """
        live = live_parts(record, here.known)
        open_ = tuple(part for part in live if part.until == END_OF_TIME)
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
        plan = record.current.plan
        running = [record.instance(part.instance).firsts(plan) for part in open_]
        begins = {name: max(firsts[name] for firsts in running) for name in streams_of(plan)}
        return Taking(record, here, open_, begins)

    @property
    def plan(self) -> Plan:
        """What the query asks."""
        return self.record.current.plan

    @property
    def fresh(self) -> Time:
        """The instant from which on no row has come that is for the query."""
        return Time(max(self.here.next, *self.begins.values(), BEGINNING))

    def genmig(self) -> Strategy | Refusal:
        """The old plan answers until windows have forgotten whatever can have come."""
        full = clear(self.plan, self.fresh)
        if full is None:
            return self._forgets_nothing(Migration.GENMIG)
        return self._from(Migration.GENMIG, full, dict.fromkeys(self.begins, self.fresh))

    def parallel_track(self) -> Strategy | Refusal:
        """The old plan answers until the last row that came has ended, of each stream."""
        what = merging(self.plan)
        if what is not None:
            return Refusal(
                Migration.PARALLEL_TRACK,
                f"the query has {what}, whose rows do not belong to rows from before the start or"
                " to later ones alone",
                "write REPLAN USING GENMIG",
            )
        firsts = {
            name: Time(max(self.here.came.get(name, self.here.next), begun))
            for name, begun in self.begins.items()
        }
        full = clear(self.plan, firsts)
        if full is None:
            return self._forgets_nothing(Migration.PARALLEL_TRACK)
        return self._from(Migration.PARALLEL_TRACK, full, firsts)

    def replay(self) -> Strategy | Refusal:
        """The new plan gets rows that streams have kept, and answers when they fill its windows."""
        # Rows from before that are not for those that run either.
        kept = {
            name: BEGINNING if time <= self.begins.get(name, BEGINNING) else time
            for name, time in self.here.kept.items()
        }
        full = replace(self.here, kept=kept).full(self.plan)
        if full is None or full == clear(self.plan, self.fresh):
            return Refusal(
                Migration.REPLAY,
                "its streams do not keep the rows that its windows hold",
                "write KEEP behind its streams, or leave USING out",
            )
        return self._from(Migration.REPLAY, full, None)

    def _from(
        self, using: Migration, full: Time, firsts: Mapping[str, Time] | None
    ) -> Strategy | Refusal:
        """The way in which a new instance answers when its windows are full.

        Args:
            using: What it is called.
            full: From when on they are.
            firsts: From when on the rows of each stream are for it; ``None`` for what is kept.
        """
        record, here = self.record, self.here
        # Before it begins, parts that are not open answer, and what it lacks may still matter.
        ends = [
            part.since + 1 if here.withdraws else max(part.since, here.must_end(record, part))
            for part in self.open
        ]
        after = Time(max([full + 1, *ends]))
        number, version = record.next_instance, record.current
        if firsts is None:
            instance = here.begun(number, version, Time(after - 1), self.begins)
        else:
            fresh, later = Instance.spread(firsts)
            instance = Instance(
                number, version.number, fresh, here.epoch, here.withdraws, later=later
            )
        seam, held = here.withdraws, max(part.held for part in self.open)
        cut = [
            replace(part.cut(after), hands_on=seam) if part in self.open else part
            for part in record.parts
        ]
        begun = replace(record, instances=(*record.instances, instance))
        changed = begun.with_parts(*cut, Part(instance.number, after, held=held, joins=seam))
        first = min(instance.firsts(self.plan).values(), default=here.next)
        replays = 0 if instance.replays is None else max(here.next - first, 0)
        return Strategy(using, changed, after, max(after - here.next, 0), replays)

    def _forgets_nothing(self, using: Migration) -> Refusal:
        return Refusal(
            using,
            "it has a window that counts rows, waits for a pause or keeps everything, or reads a"
            " relation that changes, so there is no instant from which it is known to be exact",
            "write KEEP ALL behind its streams, so that they can be replayed",
        )
