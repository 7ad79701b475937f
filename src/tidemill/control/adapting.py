"""Adapting: between two batches it is looked whether a query is worth another plan (Z35, Z70).

One query is looked at a time. What it would cost with the plan that would be made now, by what is
known now, is compared with what its own plan costs; ``reoptimize.py`` decides. A look takes as long
as planning, so the next one waits until looks have taken less than a hundredth of the time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Final
from zlib import crc32

from tidemill.algebra.tree import streams_of
from tidemill.catalog.entries import QueryEntry
from tidemill.control.altering import changed_in
from tidemill.control.instances import instance_name, record_of
from tidemill.control.living import altered, standpoint
from tidemill.control.reoptimize import Effect, Watched, considered, effect, pressure
from tidemill.control.standpoint import live_parts
from tidemill.engine.adaptations import Adaptation, Kind
from tidemill.errors import RunError, TidemillError
from tidemill.lang.statements import Adapt, Name, ObjectKind, ReplanQuery
from tidemill.optimizer.cost import PACE, plan_cost
from tidemill.optimizer.hysteresis import Offer
from tidemill.physical.plan import Apply, walk_physical
from tidemill.runtime.adaptation_log import Logged

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.catalog.catalog import Catalog
    from tidemill.catalog.records import Record
    from tidemill.control.adapt_setting import AdaptSetting
    from tidemill.control.look import Look
    from tidemill.optimizer.planned import Planned
    from tidemill.runtime.adaptation_log import AdaptationLog
    from tidemill.runtime.runs import Moment, Runs

__all__ = ["PLAN", "Reoptimizer", "trees_told"]

PLAN: Final = "plan"
"""What of a query is changed here."""

_QUOTA: Final = 0.01
"""Which share of the time looks may take."""

_PRESSED: Final = 4
"""So many times as often it is looked when something presses."""

_LEAST_ROWS: Final = 1_000
"""The effect of a change is known when so many rows have come since."""

_SECOND: Final = 1_000_000.0


@dataclass(slots=True)
class _Told:
    """What a query had done at the last look."""

    instances: tuple[int, ...] = ()
    busy: float = 0.0
    rows: int = 0


class Reoptimizer:
    """Looks at queries, one after the other.

    Args:
        log: Is told what is decided.
        clock: What time it is, in seconds.
    """

    def __init__(self, log: AdaptationLog, clock: Callable[[], float] = perf_counter) -> None:
        self._log = log
        self._clock = clock
        self._batches = 0
        self._rests_until = -inf
        self._next = 0
        self._watched: dict[str, Watched] = {}
        self._told: dict[str, _Told] = {}
        self._is_pressed = False

    def look(self, setting: AdaptSetting, look: Look, moment: Moment) -> Catalog | None:
        """The catalog in which another plan takes over, if it is time to look and one is to.

        Args:
            setting: Whether and how often.
            look: What can be seen of the queries.
            moment: Where the pipeline stands.
        """
        if setting.adapt is Adapt.OFF:
            return None
        self._batches += 1
        every = max(setting.every // (_PRESSED if self._is_pressed else 1), 1)
        began = self._clock()
        if self._batches < every or began < self._rests_until:
            return None
        self._batches = 0
        try:
            return self._looked(setting, look, moment)
        except TidemillError:
            return None  # what cannot be planned or changed now goes on as it is
        finally:
            now = self._clock()
            self._rests_until = now + (now - began) / _QUOTA

    def _looked(self, setting: AdaptSetting, look: Look, moment: Moment) -> Catalog | None:
        entries = look.catalog.entries(ObjectKind.QUERY)
        queries = [e for e in entries if isinstance(e, QueryEntry) and e.name in look.begun()]
        if not queries or look.active is None:
            return None
        self._next = (self._next + 1) % len(queries)
        query = queries[self._next]
        if _migrates(query, moment):
            return None
        each = self._each(query, look.active)
        watched = self._watched.get(query.name, Watched())
        if each is None:
            return None
        cause = pressure(watched, each, look.active.progress().state_bytes, setting.memory)
        self._is_pressed = cause is not None
        if watched.taken:
            self._watched[query.name] = self._judged(query, watched, each, moment)
            return None
        return self._compared(setting, look, moment, query, (each, cause))

    def _each(self, query: QueryEntry, job: Runs) -> float | None:
        """For how many microseconds a row was worked since the last look, if enough have come."""
        record = record_of(query)
        numbers = tuple(
            n for n in (one.number for one in record.instances) if n not in record.ended
        )
        names = {instance_name(query.name, number) for number in numbers}
        mine = [m for m in job.metrics().values() if names.intersection(m.queries)]
        busy = sum(one.seconds for one in mine)
        gates = job.gates
        rows = sum(gates[name].rows for name in streams_of(query.plan) if name in gates)
        before = self._told.get(query.name, _Told())
        is_other = before.instances != numbers  # what it took to migrate does not count
        if not is_other and rows - before.rows < _LEAST_ROWS:
            return None
        self._told[query.name] = _Told(numbers, busy, rows)
        if is_other:
            return None
        return max(busy - before.busy, 0.0) * _SECOND / (rows - before.rows)

    def _compared(
        self,
        setting: AdaptSetting,
        look: Look,
        moment: Moment,
        query: QueryEntry,
        found: tuple[float, str | None],
    ) -> Catalog | None:
        """Compare the plan that runs with the one that would be made now."""
        each, cause = found
        assert look.active is not None, "it runs"
        own, best = look.planned(query.name), look.planner(query)
        costs = [_cost(one, best) for one in (own, best)]
        acts = setting.adapt is Adapt.ON
        statement = ReplanQuery(Name(query.name))
        watched = self._watched.get(query.name, Watched())
        number = 0 if _is_same(own, best) else crc32(best.version.encode()) or 1
        price, record = 0.0, None
        if number and costs[1] < costs[0]:
            record, _ = changed_in(moment, look, statement, query, None)
            price = _price(record)
        offer = Offer(number, costs[0] / _SECOND, costs[1] / _SECOND, price)
        watched, is_taken = considered(watched, offer, each, moment.next, acts=acts)
        self._watched[query.name] = watched
        if not is_taken or record is None:
            return None
        told = Adaptation(
            Kind.CHANGED if acts else Kind.ADVISED,
            moment.next,
            own.version,
            best.version,
            cause or f"every {setting.every} batches",
            own=costs[0],
            best=costs[1],
            price=price,
            before=round(each * 1_000),
        )
        self._log.append([Logged(query.name, PLAN, told)])
        return look.catalog.replaced(altered(query, record)) if acts else None

    def _judged(self, query: QueryEntry, watched: Watched, each: float, moment: Moment) -> Watched:
        """Find out what a change has brought."""
        after, what = effect(watched, each, moment.next)
        told = Adaptation(
            Kind.KEPT,
            moment.next,
            "",
            "",
            "it is avoided for a while" if what is Effect.WORSE else "its effect",
            before=round(watched.before * 1_000),
            after=round(each * 1_000),
        )
        self._log.append([Logged(query.name, PLAN, told)])
        return after


def trees_told(job: Runs, user_name: Callable[[str], str]) -> list[Logged]:
    """What joins have decided in their partitions since this was asked last."""
    return [
        Logged(query, f"tree of joins in {one.place}", one.what)
        for one in job.adapted()
        for query in dict.fromkeys(map(user_name, one.queries))
    ]


def _migrates(query: QueryEntry, moment: Moment) -> bool:
    """Whether it does not run, is paused, or another plan is about to take over."""
    record = record_of(query)
    try:
        here = standpoint(query, None, moment)
    except RunError:
        return True  # its streams have ended, or it reads none
    return record.paused is not None or len(live_parts(record, here.known)) != 1


def _cost(planned: Planned, now: Planned) -> float:
    """What a plan takes by what is known now, in microseconds a second of the streams."""
    pace = replace(PACE, partitions=now.target.partitions or 1)
    return plan_cost(planned.physical, now.statistics, now.constants, pace).cpu


def _is_same(own: Planned, best: Planned) -> bool:
    """Whether a plan has only operators that the one that runs has; trees of joins do not count."""
    there = [part.operator for part in walk_physical([own.physical]) if isinstance(part, Apply)]
    new = (part.operator for part in walk_physical([best.physical]) if isinstance(part, Apply))
    return all(operator in there for operator in new)


def _price(record: Record) -> float:
    """What it takes for another plan to take over, in microseconds."""
    took = record.instances[-1].took
    return 0.0 if took is None else took.work
