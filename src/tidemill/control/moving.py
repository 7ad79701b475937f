"""Moving State: another plan takes over from that of an instance, with what that remembers (Z42).

The instance stays what it is: its answer goes on under its name, and nothing is cut, withdrawn or
announced. What is under way is in its record, in two steps. First the streams of the query are
waited for: none of its operators passes the instant that the furthest stream has reached, until all
have come there (Z52). Then the other plan runs; that is forgotten when a batch has been done.

Law: the switch is at an instant that all streams have reached and no operator has passed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidemill.algebra.tree import streams_of
from tidemill.catalog.entries import QueryEntry, RelationEntry
from tidemill.catalog.records import Instance, Moving, instance_name
from tidemill.control.change import Changed
from tidemill.control.instances import record_of
from tidemill.control.living import altered, standpoint
from tidemill.control.standpoint import live_parts
from tidemill.control.taking_over import Refusal as NotPossible
from tidemill.control.taking_over import Strategy
from tidemill.control.verdict import verdict_on
from tidemill.errors import RunError
from tidemill.lang.statements import Migration, Name, ObjectKind, ReplanQuery
from tidemill.lang.unparse import unparse
from tidemill.migration.compare import compared
from tidemill.migration.moves import Begun, Carried, Filled, Handed, Refusal, Standing
from tidemill.model.time import END_OF_TIME, Time, time_text
from tidemill.optimizer.explain.physical import describe
from tidemill.optimizer.migration_costs import moving_pause
from tidemill.physical.plan import Apply, Input, walk_physical
from tidemill.runtime.moving import plan_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.algebra.plan import Plan
    from tidemill.catalog.catalog import Catalog
    from tidemill.catalog.records import Record
    from tidemill.control.verdict import Verdict
    from tidemill.migration.moves import Move, Moves
    from tidemill.optimizer.planned import Planned
    from tidemill.physical.plan import PhysicalPlan
    from tidemill.runtime.runs import Moment, Runs

__all__ = ["Possible", "Way", "advanced", "moved", "possible", "running_instance"]


@dataclass(frozen=True, slots=True)
class Way:
    """From which plan to which an instance goes.

    Attributes:
        instance: The instance.
        running: The plan that it runs with.
        after: The one that takes over.
        partitions: How many partitions there are.
    """

    instance: Instance
    running: Planned
    after: Planned
    partitions: int

    @classmethod
    def of(cls, entry: QueryEntry, moment: Moment, job: Runs, after: Planned | None) -> Way:
        """The way of a query that runs.

        Args:
            entry: The query.
            moment: Where the pipeline stands.
            job: What runs.
            after: The plan that takes over; ``None`` for the one that would be made today.

        Raises:
            RunError: It does not run, or is paused.
        """
        instance = running_instance(entry, moment)
        name = instance_name(entry.name, instance.number)
        running = job.planned(name)
        assert running is not None, "it runs"
        made = job.planned_again(name) if after is None else after
        return cls(instance, running, made, job.partitions)


def running_instance(entry: QueryEntry, moment: Moment) -> Instance:
    """The instance of a query that answers from now on.

    Raises:
        RunError: There is none, or it is paused.
    """
    record, here = record_of(entry), standpoint(entry, None, moment)
    open_ = [part for part in live_parts(record, here.known) if part.until == END_OF_TIME]
    if record.paused is not None:
        raise RunError(
            f'query "{entry.name}" is paused, and keeps the plan it has',
            hint=f"write RESUME QUERY {entry.name} first",
        )
    if not open_:
        raise RunError(
            f'query "{entry.name}" does not run, so it has no plan to be replaced',
            hint=f"write START QUERY {entry.name}; it is planned then",
        )
    return record.instance(open_[-1].instance)


@dataclass(frozen=True, slots=True)
class Possible:
    """A plan that can take over with what another one remembers.

    Attributes:
        way: From which plan to which.
        moves: How its operators get their state.
        at: The instant that all streams have to reach before.
        waits: For how long, in the time of the streams, the one is waited for that is least far.
        record: What becomes of the query; as it was, if it runs with this plan already.
    """

    way: Way
    moves: Moves
    at: Time
    waits: int
    record: Record

    @property
    def is_new(self) -> bool:
        """Whether it is another plan."""
        return self.way.after.version != self.way.running.version

    def told(self, verdict: Verdict) -> Verdict:
        """The verdict, with what is given until then and what becomes of state."""
        old, new = self.way.running.physical, self.way.after.physical
        told = _meanwhile(self.at, self.waits) if self.is_new else "it runs with this plan already"
        moved_ = tuple(_told(new, self.moves))
        return replace(verdict, meanwhile=told, shared=tuple(_shared(old, new)), moved=moved_)

    def strategy(self, rows: int) -> Strategy:
        """The same as one of the ways for another plan to take over.

        Args:
            rows: How many rows are remembered now.
        """
        pause = moving_pause(rows, self.way.after.constants) if self.is_new else 0.0
        return Strategy(Migration.MOVING_STATE, self.record, self.at, self.waits, pause=pause)


def possible(
    catalog: Catalog, entry: QueryEntry, way: Way, moment: Moment
) -> Possible | NotPossible:
    """How a plan can take over with what another one remembers, or why not.

    Args:
        catalog: What is registered.
        entry: The query.
        way: From which plan to which it goes.
        moment: Where the pipeline stands.
    """
    record, instance = record_of(entry), way.instance
    if (why := _not_yet(entry, instance, moment)) is not None:
        return NotPossible(Migration.MOVING_STATE, *why)
    old, new = way.running.physical, way.after.physical
    moves = compared(old, new, _relations(catalog, new), way.partitions)
    if isinstance(moves, Refusal):
        hint = "write USING GENMIG or REPLAY, or leave USING out"
        return NotPossible(Migration.MOVING_STATE, moves.why, hint)
    at, waits = _instant(record.version(instance.version).plan, moment)
    if way.after.version != way.running.version:
        texts = plan_text(way.running), plan_text(way.after)
        moving = Moving(at, *texts, None if waits else moment.batches)
        record = _with(record, replace(instance, moving=moving))
    return Possible(way, moves, at, waits, record)


def moved(catalog: Catalog, entry: QueryEntry, way: Way, moment: Moment) -> tuple[Record, Verdict]:
    """What becomes of a query whose state is to be moved to another plan, and the verdict on it.

    Raises:
        RunError: The state cannot be moved.
    """
    found = possible(catalog, entry, way, moment)
    if isinstance(found, NotPossible):
        raise RunError(
            f'REPLAN USING MOVING STATE is not possible for query "{entry.name}": {found.why}',
            hint=found.hint,
        )
    statement = ReplanQuery(Name(entry.name), Migration.MOVING_STATE)
    here = standpoint(entry, None, moment)
    changed = Changed(found.record, at=found.at)
    return found.record, found.told(verdict_on(unparse(statement), record_of(entry), changed, here))


def advanced(catalog: Catalog, moment: Moment) -> Catalog:
    """The catalog in which plans have taken over whose streams have come far enough.

    What has been done with a batch is not under way any more.
    """
    for query in list(catalog.entries(ObjectKind.QUERY)):
        assert isinstance(query, QueryEntry), "asked for queries"
        if query.record is None or all(one.moving is None for one in query.record.instances):
            continue
        instances = tuple(_next(query.record, one, moment) for one in query.record.instances)
        if instances != query.record.instances:
            record = replace(query.record, instances=instances)
            catalog = catalog.replaced(altered(query, record))
    return catalog


def _next(record: Record, instance: Instance, moment: Moment) -> Instance:
    """An instance with what is under way now."""
    moving = instance.moving
    if moving is None:
        return instance
    if moving.batch is not None:
        return replace(instance, moving=None) if moment.batches > moving.batch else instance
    plan = record.version(instance.version).plan
    if all(moment.reached.get(name, Time(0)) >= moving.at for name in streams_of(plan)):
        return replace(instance, moving=replace(moving, batch=moment.batches))
    return instance


def _not_yet(entry: QueryEntry, instance: Instance, moment: Moment) -> tuple[str, str] | None:
    """Why the state of an instance cannot be moved now, and what to do, if it cannot."""
    if instance.moving is not None:
        return (
            "a plan is already taking over",
            "wait until its streams have come as far as the furthest of them",
        )
    streams = streams_of(record_of(entry).version(instance.version).plan)
    least = min(moment.reached.get(name, Time(0)) for name in streams)
    known = moment.known.get(instance_name(entry.name, instance.number), Time(0))
    if instance.replays is not None and known < least:
        return (
            "it is being filled with rows that its streams have kept",
            "wait until it has caught up",
        )
    return None


def _instant(plan: Plan, moment: Moment) -> tuple[Time, int]:
    """The instant of the switch, and how far the last stream is from it."""
    reached = [moment.reached.get(name, Time(0)) for name in streams_of(plan)]
    return max(reached), max(reached) - min(reached)


def _with(record: Record, instance: Instance) -> Record:
    """The record with an instance in the place of that of its number."""
    kept = (instance if one.number == instance.number else one for one in record.instances)
    return replace(record, instances=tuple(kept))


def _relations(catalog: Catalog, plan: PhysicalPlan) -> frozenset[str]:
    """The relations that a plan reads."""
    names = {part.name for part in walk_physical([plan]) if isinstance(part, Input)}
    return frozenset(n for n in names if isinstance(catalog.find(n), RelationEntry))


def _meanwhile(at: Time, waits: int) -> str:
    if not waits:
        return "the other plan goes on with the next batch; the answer goes on as it was"
    return (
        f"the plan that runs answers until all streams have come to {time_text(at)}; none of its"
        " operators passes that instant before, also where other queries share them; then the"
        " other plan goes on"
    )


def _shared(old: PhysicalPlan, new: PhysicalPlan) -> Iterator[str]:
    there = {part.fingerprint for part in walk_physical([old])}
    for part in walk_physical([new]):
        if isinstance(part, Apply) and part.traits.remembers and part.fingerprint in there:
            yield describe(part)


def _told(new: PhysicalPlan, moves: Moves) -> Iterator[tuple[str, str]]:
    """What becomes of each operator that was not there, in words."""
    for part in walk_physical([new]):
        if (move := moves.get(part.fingerprint)) is not None:
            yield from _told_of(part, move)


def _told_of(part: PhysicalPlan, move: Move) -> Iterator[tuple[str, str]]:
    match move:
        case Carried(old):
            yield "carried", f"{describe(part)} from {describe(old)}"
        case Begun():
            yield "begins empty", f"{describe(part)}: nothing more will come"
        case Filled(ports):
            for number, source in enumerate(ports, 1):
                yield _told_port(f"{describe(part)}, input {number}", source)


def _told_port(what: str, source: Handed | Standing) -> tuple[str, str]:
    match source:
        case Handed(old, port, through):
            how = " through a filter or a projection" if through else ""
            return "carried", f"{what} from {describe(old)}, input {port + 1}{how}"
        case Standing(below):
            return "computed", f"{what} from what {describe(below)} has given"
