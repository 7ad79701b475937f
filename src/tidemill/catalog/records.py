"""Records: what has become of a query, as a list of parts.

A query has versions, one for each statement that it was given. An instance is a version that runs:
all rows of the streams from ``fresh`` on are for it, of some streams those from a later instant on.
A part is a stretch of time that an instance answers. START, STOP, PAUSE, RESUME, the kinds of
ALTER, and migration are lists of parts that differ in a few numbers (``control/``); nothing else in
the engine knows about them.

Law: the answer of a query at an instant is the bag of all rows that its parts have there. What a
part has at an instant in ``[since, until)`` is the answer of its version to the streams as if each
began at its ``first``, and nothing at other instants.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from tidemill.algebra.reach import begun_at
from tidemill.algebra.tree import streams_of
from tidemill.model.time import END_OF_TIME, Time
from tidemill.model.types import BIGINT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.algebra.plan import Plan
    from tidemill.catalog.entries import Kept
    from tidemill.model.types import DataType

__all__ = [
    "BEGINNING",
    "Instance",
    "Moving",
    "Part",
    "Paused",
    "Record",
    "Status",
    "Took",
    "Version",
    "instance_name",
    "is_recording",
    "owner_name",
    "recording_name",
    "user_name",
]

BEGINNING = Time(0)


class Status(Enum):
    """What a query does (L4)."""

    RUNNING = "running"
    CHANGING = "changing"  # an old version still answers, or the new one does not answer yet
    PREPARING = "preparing"  # rows are taken in, and nothing is answered yet
    DRAINING = "draining"  # it answers up to an instant that has not come yet
    PAUSED = "paused"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Version:
    """What a query asks, from one change to the next.

    Attributes:
        number: Its number, from 1.
        text: The SELECT, in normal form.
        plan: What it means.
        uses: What it refers to.
        time: The type that the times of the answer have for its readers.
    """

    number: int
    text: str
    plan: Plan = field(repr=False)
    uses: frozenset[str] = frozenset()
    time: DataType = BIGINT

    @property
    def columns(self) -> tuple[tuple[str, DataType], ...]:
        """The columns of its answer for its readers, whether or not they may be NULL."""
        return tuple((one.name, one.type) for one in self.plan.schema)


@dataclass(frozen=True, slots=True)
class Took:
    """How an instance has taken over from another plan of the same version.

    Attributes:
        using: The way.
        work: What it was expected to take besides, in microseconds.
        why: Why it was chosen.
        others: What the other ways would have taken, or why they could not be had.
    """

    using: str
    work: float
    why: str
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Moving:
    """Another plan takes over from that of an instance, with what that remembers.

    Attributes:
        at: The instant that all its streams have to reach before, and none of its operators passes.
        before: The plan that has run, as a text.
        after: The one that takes over, as a text.
        batch: How many batches had been done when it took over; ``None`` while streams are waited
            for.
    """

    at: Time
    before: str = field(repr=False)
    after: str = field(repr=False)
    batch: int | None = None


@dataclass(frozen=True, slots=True)
class Instance:
    """A version that runs.

    Attributes:
        number: Its number among those of the query, from 1.
        version: What it computes.
        fresh: Rows of streams from before are not for it; ``BEGINNING`` if all are.
        epoch: When it began to run; it shares no state with those of other epochs.
        counts: Whether it remembers what stands, from its beginning on, so that a sink can be told
            what is withdrawn. An answer in memory, or of rows with ends, does not need it.
        is_cut: Whether a sink gets some instants of its answer only, or once did.
        replays: From when on its answer is asked for, if it is filled with rows that streams have
            kept.
        later: The streams whose rows are for it from a later instant on than ``fresh``, with that
            instant: those that have not kept what its windows hold, or of which less is needed.
        took: How it has taken over from another plan, if it has.
        moving: The plan that takes over, as long as that is under way.
        provenance: For how long what its rows are made of is kept; ``None`` if it is not.
        unrecorded: Whether no more of that is kept; what is kept stays.
    """

    number: int
    version: int
    fresh: Time = BEGINNING
    epoch: int = 0
    counts: bool = False
    is_cut: bool = False
    replays: Time | None = None
    later: tuple[tuple[str, Time], ...] = ()
    took: Took | None = None
    moving: Moving | None = None
    provenance: Kept | None = None
    unrecorded: bool = False

    @staticmethod
    def spread(firsts: Mapping[str, Time]) -> tuple[Time, tuple[tuple[str, Time], ...]]:
        """``fresh`` and ``later`` of an instance for which streams begin at some instants."""
        fresh = Time(min(firsts.values(), default=BEGINNING))
        return fresh, tuple(sorted((name, at) for name, at in firsts.items() if at > fresh))

    def firsts(self, plan: Plan) -> dict[str, Time]:
        """From when on rows are for it, by the streams that a plan reads."""
        later = dict(self.later)
        return {name: later.get(name, self.fresh) for name in streams_of(plan)}

    def begun(self, plan: Plan) -> Plan:
        """What it computes: a plan over the rows that are for it."""
        return begun_at(plan, self.firsts(plan)) if self.fresh or self.later else plan


@dataclass(frozen=True, slots=True)
class Part:
    """The instants that an instance answers.

    Attributes:
        instance: The instance, by its number.
        since: The first of them.
        until: The first after them.
        held: Its rows are given when the answer is known up to here, not before.
        joins: What is there at ``since`` was given by the part before, which means the same.
        hands_on: What is there at ``until`` stays, since the part after it goes on with it.
        released: Its rows do not wait for those of parts before it, or do not any more.
    """

    instance: int
    since: Time = BEGINNING
    until: Time = END_OF_TIME
    held: Time = BEGINNING
    joins: bool = False
    hands_on: bool = False
    released: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether it answers nothing."""
        return self.since >= self.until

    def cut(self, until: Time) -> Part:
        """The same, but nothing from an instant on."""
        if until >= self.until:
            return self
        return replace(self, until=until, hands_on=False)

    def begun(self, since: Time) -> Part:
        """The same, but nothing before an instant."""
        return self if since <= self.since else replace(self, since=since, joins=False)


@dataclass(frozen=True, slots=True)
class Paused:
    """Where a query was paused.

    Attributes:
        at: From which instant on its answer is kept back.
        parts: What it would have answered.
    """

    at: Time
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """What has become of a query.

    Attributes:
        versions: What it has been asked, one after another.
        instances: Those that run, or have run and whose answer is still read.
        parts: What is answered when, and by which of them.
        paused: Where it was paused, if it is.
        ended: The instances that have answered all they had to, by their numbers.
    """

    versions: tuple[Version, ...]
    instances: tuple[Instance, ...] = (Instance(1, 1),)
    parts: tuple[Part, ...] = (Part(1),)
    paused: Paused | None = None
    ended: frozenset[int] = frozenset()

    @property
    def current(self) -> Version:
        """What it is asked now."""
        return self.versions[-1]

    def version(self, number: int) -> Version:
        """A version by its number."""
        return self.versions[number - 1]

    def instance(self, number: int) -> Instance:
        """An instance by its number; there is one for each part."""
        return next(one for one in self.instances if one.number == number)

    def version_of(self, part: Part) -> Version:
        """What a part answers."""
        return self.version(self.instance(part.instance).version)

    def with_parts(self, *parts: Part) -> Record:
        """The same with other parts; empty ones are left out, and what goes on is one part."""
        kept: list[Part] = []
        for part in parts:
            last = kept[-1] if kept else None
            if part.is_empty:
                continue
            if last is not None and _goes_on(last, part):
                kept[-1] = replace(last, until=part.until, hands_on=part.hands_on)
            else:
                kept.append(part)
        return replace(self, parts=tuple(kept))

    @property
    def provenance(self) -> Kept | None:
        """For how long what rows are made of is kept from now on; ``None`` if it is not."""
        last = self.instances[-1] if self.instances else None
        return None if last is None or last.unrecorded else last.provenance

    @property
    def next_instance(self) -> int:
        """The number of an instance that begins now."""
        return 1 + max((one.number for one in self.instances), default=0)


def instance_name(query: str, number: int) -> str:
    """What a runtime calls an instance; no query that people create has such a name.

    >>> instance_name("q", 1), instance_name("q", 2)
    ('q', '@q:2')
    """
    return query if number == 1 else f"@{query}:{number}"


def user_name(name: str) -> str:
    """What people call the query of an instance; what is kept with it has a name of its own.

    >>> user_name("@q:2"), user_name("q"), user_name("@@q:2.0")
    ('q', 'q', '@@q:2.0')
    """
    is_instance = name.startswith("@") and not is_recording(name)
    return name[1:].rpartition(":")[0] if is_instance else name


def recording_name(query: str, instance: int, hook: int) -> str:
    """What a runtime calls a table of what the rows of an instance are made of."""
    return f"@@{query}:{instance}.{hook}"


def is_recording(name: str) -> bool:
    """Whether a runtime calls such a table so; it is no query that people know."""
    return name.startswith("@@")


def owner_name(name: str) -> str:
    """What people call the query that something runs for.

    >>> owner_name("@q:2"), owner_name("@@q:2.0")
    ('q', 'q')
    """
    return name[2:].rpartition(":")[0] if is_recording(name) else user_name(name)


def _goes_on(one: Part, other: Part) -> bool:
    """Whether a part begins where another one of the same instance ends."""
    if one.hands_on or other.joins:
        return False
    return (one.instance, one.until, one.held) == (other.instance, other.since, other.held)
