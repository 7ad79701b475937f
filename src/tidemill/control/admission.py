"""Admission: whether there is room for one more query, by what all are expected to take together.

Parts that queries share count once. Where a query would exceed a limit of the session it is
refused, or admitted with a warning; what runs already is never stopped for a limit.

A query is planned for what the session may take. If that plan has no room beside those of other
queries, it is planned for what they leave: with less state, or less work. What it was planned for
stays with it, as others come and go.

Law: nothing is refused without limits, and a query whose parts all run already is never refused
for what it takes itself. What is admitted without a warning keeps to the limits with all others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import inf
from numbers import Real
from typing import TYPE_CHECKING, Final, cast

from tidemill.algebra.plan import Relation
from tidemill.algebra.tree import walk
from tidemill.catalog.entries import QueryEntry, Room
from tidemill.errors import PlanError, suggestion
from tidemill.optimizer.constants import DEFAULTS
from tidemill.optimizer.cost import cost_of
from tidemill.optimizer.estimates.flow import Pace
from tidemill.optimizer.statistics import Statistics

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidemill.optimizer.cost import PlanCost
    from tidemill.optimizer.planned import Planned

__all__ = ["NO_LIMITS", "SessionLimits", "admitted", "session_limits"]


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """How much the queries of a session may be expected to take.

    Attributes:
        cpu: How many microseconds of work a second of the streams may take; ``None`` for any.
        memory: How many bytes of state there may be; ``None`` for any.
        refuses: Whether a query is refused that would exceed them; it is told of otherwise.
    """

    cpu: float | None = None
    memory: float | None = None
    refuses: bool = True

    @property
    def are_there(self) -> bool:
        """Whether anything is limited."""
        return self.cpu is not None or self.memory is not None


NO_LIMITS = SessionLimits()
"""Every query is admitted."""


_OVER: Final = ("refuse", "admit")
_UNITS: Final = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}
_SECOND: Final = 1_000_000.0
_LEAST: Final = 1e-9
"""A limit is more than nothing."""


def session_limits(cpu: float | None, memory: float | str | None, over: str) -> SessionLimits:
    """Limits as people write them.

    Args:
        cpu: How many processors.
        memory: How many bytes, as a number or as ``"500 MB"``.
        over: ``"refuse"`` or ``"admit"``.

    Raises:
        PlanError: They are none.

    >>> session_limits(0.5, "2 MB", "refuse")
    SessionLimits(cpu=500000.0, memory=2000000.0, refuses=True)
    """
    if over not in _OVER:
        raise PlanError(
            f'there is no over_limit "{over}"',
            hint=suggestion(str(over), _OVER, what="choices"),
        )
    if not (cpu is None or _is_positive(cpu)):
        raise PlanError(
            "cpu_limit must be a number of processors, more than 0", hint="write cpu_limit=0.5"
        )
    size = _bytes(memory) if isinstance(memory, str) else memory
    if not (memory is None or (size is not None and _is_positive(size))):
        raise PlanError(
            "memory_limit must be a number of bytes, more than 0",
            hint='write memory_limit="500 MB", or a number',
        )
    return SessionLimits(
        None if cpu is None else cpu * _SECOND,
        None if size is None else float(size),
        over == "refuse",
    )


def _bytes(text: str) -> float | None:
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*", text)
    unit = None if found is None else _UNITS.get(found[2].upper())
    return None if found is None or unit is None else float(found[1]) * unit


def _is_positive(value: object) -> bool:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return is_number and 0 < cast("float", value) < inf


def admitted(
    entry: QueryEntry,
    plan: Callable[[QueryEntry], Planned],
    others: Mapping[str, Planned],
    limits: SessionLimits,
) -> tuple[QueryEntry, PlanError | None]:
    """A query with the room that it gets, and what is to be said if there is too little.

    As usual a query is planned for all that the session may take. If there is no room for that
    plan beside the others, it is planned for what they leave.

    Args:
        entry: The query.
        plan: How it would be computed.
        others: The queries that there are besides.
        limits: How much all of them may take.
    """
    if not limits.are_there:
        return entry, None
    had = _cost(others)
    usual = _over(entry.name, plan(entry), others, limits, had)
    if usual is None or not others:
        return entry, None if usual is None else usual.error
    room = Room(_left(limits.cpu, had.cpu), _left(limits.memory, had.memory))
    narrow = replace(entry, room=room)
    found = _over(entry.name, plan(narrow), others, limits, had)
    if found is None:
        return narrow, None
    nearer = found.lacks < usual.lacks
    return (narrow, found.error) if nearer else (entry, usual.error)


def _left(limit: float | None, taken: float) -> float | None:
    return None if limit is None else max(limit - taken, _LEAST)


@dataclass(frozen=True, slots=True)
class _Over:
    """What a query lacks.

    Attributes:
        lacks: How many times the limit all queries would take of what is exceeded most.
        error: What is to be said of it.
    """

    lacks: float
    error: PlanError


def _over(
    name: str,
    planned: Planned,
    others: Mapping[str, Planned],
    limits: SessionLimits,
    had: PlanCost,
) -> _Over | None:
    """What a plan exceeds, beside others; ``None`` if there is room for it."""
    after = _cost({**others, name: planned})
    lacks = [
        (what, taken, before, limit, of)
        for what, taken, before, limit, of in (
            ("CPU", after.cpu, had.cpu, limits.cpu, "us of work for a second of the streams"),
            ("memory", after.memory, had.memory, limits.memory, "bytes of state"),
        )
        if limit is not None and taken > limit and taken > before
    ]
    if not lacks:
        return None
    told = " and ".join(
        f"{what}: it takes {taken - before:,.0f} {of}, and {max(limit - before, 0):,.0f}"
        f" of {limit:,.0f} are left"
        for what, taken, before, limit, of in lacks
    )
    ways = " and ".join(_way(what, taken) for what, taken, *_ in lacks)
    error = PlanError(
        f'query "{name}" would exceed the limit of {told}'
        + f", with the {len(others)} others" * bool(others),
        hint=f'connect with {ways}, drop a query, or connect with over_limit="admit"',
    )
    return _Over(max(taken / limit for _, taken, _, limit, _ in lacks), error)


def _way(what: str, taken: float) -> str:
    if what == "CPU":
        return f"cpu_limit={taken / 1_000_000:.2g} or more"
    return f"memory_limit={taken:.0f} or more"


def _cost(queries: Mapping[str, Planned]) -> PlanCost:
    """What queries are expected to take together."""
    known = Statistics(
        {n: edge for one in queries.values() for n, edge in one.statistics.inputs.items()},
        {t: share for one in queries.values() for t, share in one.statistics.conditions.items()},
    )
    relations = {
        node.name
        for one in queries.values()
        for node in walk(one.bound)
        if isinstance(node, Relation)
    }
    partitions = max((one.target.partitions or 1 for one in queries.values()), default=1)
    plans = {name: one.physical for name, one in queries.items()}
    constants = next((one.constants for one in queries.values()), DEFAULTS)
    pace = Pace(partitions=partitions)
    return cost_of(plans, known, constants, pace, relations)
