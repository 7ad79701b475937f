"""Reach: for how long an element can matter, and from when on nothing from before an instant does.

Every time window has an end, so what a plan gives at an instant depends on a bounded part of the
past. That is what lets a query be changed while it runs, and says from when the change is exact.

Law of ``clear``: from ``clear(plan, t)`` on, the snapshots of the plan are the same whether or not
elements from before ``t`` are there. No earlier instant will do for every input.
Law of ``reach``: ``clear(plan, t) ≤ t + reach(plan)`` for every t, and equal for some.
Law of ``needs``: the snapshots from ``t`` on are the same whether or not elements of a stream from
before ``needs(plan, t)[stream]`` are there.

ROWS, SESSION and UNBOUNDED windows forget by what comes, not by time: they may need everything.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from tidemill.algebra.plan import (
    Aggregate,
    AntiJoin,
    Difference,
    Distinct,
    Dstream,
    Filter,
    Intersect,
    Istream,
    Join,
    JoinKind,
    MaxUnion,
    Plan,
    Project,
    Relation,
    RowWindow,
    Rstream,
    SemiJoin,
    SessionWindow,
    Source,
    StrictDifference,
    TimeWindow,
    Unbounded,
    Union,
    Window,
)
from tidemill.algebra.tree import children, transform_up, walk
from tidemill.model.time import END_OF_TIME, Time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "begin_by_time",
    "begun_at",
    "clear",
    "first_needed",
    "forgets",
    "is_silent",
    "needs",
    "newest",
    "reach",
    "since_of",
    "unbegun",
]


def clear(plan: Plan, time: Time | Mapping[str, Time]) -> Time | None:
    """The first instant from which on nothing from before ``time`` matters; ``None`` if none is.

    A plan that reads no stream never depends on one: it is clear from 0 on.

    Args:
        plan: The plan.
        time: The instant, or one for each stream.
    """
    known: dict[int, Time | None] = {}
    for node in walk(plan):
        below = [known[id(child)] for child in children(node)]
        known[id(node)] = None if None in below else _clear(node, [t for t in below if t], time)
    return known[id(plan)]


def _clear(node: Plan, below: list[Time], time: Time | Mapping[str, Time]) -> Time | None:
    """The same for one operator, given it for those of its inputs that depend on a stream."""
    match node:
        case Source(name):
            return time if isinstance(time, int) else time[name]
        case Relation():
            return Time(0)
        case _ if not below:
            return Time(0)
        case Window(_, TimeWindow(size, slide)):
            # The content moves at k·slide - 1, and holds what is after that less the size.
            return _time(-(-(below[0] + size) // slide) * slide - 1)
        case Window(_, RowWindow() | SessionWindow() | Unbounded()):
            return None
        case Istream() | Dstream():
            return _time(below[0] + 1)  # they look back an instant
        case Window() | Filter() | Project() | Distinct() | Aggregate() | Rstream():
            return below[0]
        case Join() | SemiJoin() | AntiJoin():
            return max(below)
        case Union() | MaxUnion() | Difference() | StrictDifference() | Intersect():
            return max(below)
        case _:
            assert_never(node)


def _time(time: int) -> Time:
    return Time(min(time, END_OF_TIME))


def reach(plan: Plan) -> int | None:
    """For how long after its time an element can matter at most; ``None`` if that is not bounded.

    At an instant u nothing from before ``u - reach(plan)`` matters.
    """
    known: dict[int, int | None] = {}
    for node in walk(plan):
        below = [known[id(child)] for child in children(node)]
        found = [length for length in below if length is not None]
        known[id(node)] = None if len(found) < len(below) else _reach(node, max(found, default=-1))
    total = known[id(plan)]
    return None if total is None else max(total, 0)


def _reach(node: Plan, below: int) -> int | None:
    """The same for one operator; -1 is that of what depends on no stream."""
    match node:
        case Source():
            return 0
        case _ if below < 0:
            return -1
        case Window(_, TimeWindow(size, slide)):
            return below + size + slide - 2
        case Window():
            return None
        case Istream() | Dstream():
            return below + 1
        case _:
            return below


def needs(plan: Plan, time: Time) -> dict[str, Time]:
    """The first instant of each stream whose elements can matter at ``time`` or later."""
    streams = sorted({node.name for node in walk(plan) if isinstance(node, Source)})
    return {name: _first(plan, time, name, streams) for name in streams}


def _first(plan: Plan, time: Time, stream: str, streams: Iterable[str]) -> Time:
    """The same for one stream: the latest instant before which nothing of it matters."""
    others = dict.fromkeys(streams, Time(0))

    def matters(since: Time) -> bool:
        found = clear(plan, {**others, stream: since})
        return found is None or found > time

    # What matters from an instant on matters from a later one on, so it is found by halving.
    low, high = Time(0), time
    while low < high:
        middle = Time((low + high + 1) // 2)
        low, high = (low, Time(middle - 1)) if matters(middle) else (middle, high)
    return low


def first_needed(plan: Plan, time: Time) -> Time:
    """The first instant whose elements can matter at ``time`` or later, on any stream."""
    return Time(min(needs(plan, time).values(), default=time))


def newest(plan: Plan, time: Time) -> Time:
    """The latest instant whose elements can matter at ``time``: windows that slide lie behind.

    Law: the snapshot at ``time`` does not change when elements after ``newest(plan, time)`` are
    left out.
    """
    match plan:
        case Source():
            return time
        case Relation():
            return Time(0)
        case Window(input_, TimeWindow(_, slide)):
            return newest(input_, Time(max((time + 1) // slide * slide - 1, 0)))
        case _:
            return max(newest(child, time) for child in children(plan))


def forgets(plan: Plan) -> bool:
    """Whether the plan forgets by time: there is an instant from which the past does not matter."""
    return reach(plan) is not None


def is_silent(plan: Plan) -> bool:
    """Whether the plan gives nothing, at any instant, if nothing comes on its streams.

    A row that is known to be there at an instant is there whatever comes. From ``clear(plan, t)``
    on, nothing is there of what came before ``t``: so if the plan is silent, no row that is known
    before anything from ``t`` on has come goes on beyond ``clear(plan, t)``.
    """
    match plan:
        case Source():
            return True
        case Relation():
            return False
        case Join(left, right, JoinKind.INNER) | SemiJoin(left, right) | Intersect(left, right):
            return is_silent(left) or is_silent(right)
        case Join(left, _, JoinKind.LEFT) | Join(_, left, JoinKind.RIGHT):
            return is_silent(left)
        case AntiJoin() | Difference() | StrictDifference():
            return is_silent(children(plan)[0])
        case _:
            return all(is_silent(child) for child in children(plan))


def begun_at(plan: Plan, time: Time | Mapping[str, Time]) -> Plan:
    """The plan as if all streams began at an instant (FStart, L3), or each at its own."""

    def begun(node: Plan) -> Plan | None:
        if not isinstance(node, Source):
            return None
        since = time if isinstance(time, int) else time[node.name]
        return replace(node, since=max(since, node.since)) if since else None

    return transform_up(plan, begun)


def since_of(plan: Plan) -> dict[str, Time]:
    """From when on the rows of each stream are for a plan."""
    found: dict[str, Time] = {}
    for node in walk(plan):
        if isinstance(node, Source):
            since = Time(node.since)
            found[node.name] = min(since, found.get(node.name, since))
    return found


def begin_by_time(plans: Iterable[Plan], stream: str) -> bool:
    """Whether all that read a stream take the rows of it that are from an instant on."""
    read = (node for plan in plans for node in walk(plan) if isinstance(node, Source))
    return all(node.since for node in read if node.name == stream)


def unbegun(plan: Plan) -> Plan:
    """The plan over the whole streams, whenever it was to begin."""

    def whole(node: Plan) -> Plan | None:
        return replace(node, since=0) if isinstance(node, Source) and node.since else None

    return transform_up(plan, whole)
