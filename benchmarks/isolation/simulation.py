"""A processor that slides a window and reads it, one step after the other, in simulated time.

A step reads a sub-window or applies a slide, and is not interrupted. Between two steps a slide that
is due goes first, then one-time queries, then the periodic ones in turn. SERIAL alone goes on with
the query that has begun.

    staleness            when an answer is given - when the last slide that it shows was due
    response time        when it is given - when it was asked
    inter-execution time between two answers of a periodic query
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.isolation.history import (
    Abort,
    Commit,
    CommitSlide,
    History,
    Read,
    TakeBack,
    Write,
)
from benchmarks.isolation.levels import state_of
from benchmarks.isolation.scheduling import Scan, Scheduler, Window

if TYPE_CHECKING:
    from benchmarks.isolation.history import Action
    from benchmarks.isolation.load import Asked, Workload

__all__ = ["Answer", "Outcome", "simulate"]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that was given.

    Attributes:
        query: Which query.
        is_once: Whether it was asked once.
        asked: When it was asked; if it is periodic, when it began.
        began: When it read first.
        given: When it was given.
        shown: When the last slide was due that it shows.
    """

    query: str
    is_once: bool
    asked: float
    began: float
    given: float
    shown: float

    @property
    def staleness(self) -> float:
        """How old it is when it is given."""
        return self.given - self.shown

    @property
    def response(self) -> float:
        """How long it was waited for."""
        return self.given - self.asked


@dataclass(slots=True)
class Outcome:
    """What came of a run.

    Attributes:
        answers: Those that were given.
        aborts: How many times a query was aborted.
        reread: How many sub-windows were read again to be taken back.
        copies: The greatest number of overwritten sub-windows that were kept at once.
        waited: How long slides waited at most.
        slides_met: How many slides came while a query was running, by how often that happened.
        end: When it was over.
        history: What was done.
    """

    answers: list[Answer]
    aborts: int
    reread: int
    copies: int
    waited: float
    slides_met: Counter[int]
    end: float
    history: History

    @property
    def abort_ratio(self) -> float:
        """Which share of the queries that began was aborted."""
        begun = self.aborts + len(self.answers)
        return self.aborts / begun if begun else 0.0


@dataclass(slots=True)
class _Running:
    """A query on its way."""

    asked: Asked
    number: int
    since: float
    scan: Scan
    began: float | None = None
    met: int = 0


@dataclass(slots=True)
class _Run:
    """A run on its way."""

    work: Workload
    scheduler: Scheduler
    rereads: bool
    window: Window
    now: float = 0.0
    running: list[_Running] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    aborts: int = 0
    reread: int = 0
    copies: int = 0
    waited: float = 0.0
    met: Counter[int] = field(default_factory=Counter)
    actions: list[Action] = field(default_factory=list)
    begun: int = 0
    turn: int = 0
    asked: int = 0

    def go(self) -> None:
        while self.now < self.work.end:
            self._ask()
            if self._may_slide():
                self._slide()
            else:
                self._step(self._chosen())

    def _ask(self) -> None:
        """One-time queries that have come begin to run, and a periodic one if there is none."""
        once = self.work.once
        while self.asked < len(once) and self._time(once[self.asked]) <= self.now:
            self._begin(once[self.asked])
            self.asked += 1
        if not any(one.asked.time is None for one in self.running):
            periodic = self.work.periodic
            self._begin(periodic[self.turn % len(periodic)])
            self.turn += 1

    def _time(self, asked: Asked) -> float:
        return self.now if asked.time is None else asked.time

    def _begin(self, asked: Asked) -> None:
        number, self.begun = self.begun, self.begun + 1
        scan = Scan(self._transaction(asked, number), asked.length, self.window.latest)
        self.running.append(_Running(asked, number, self._time(asked), scan))

    @staticmethod
    def _transaction(asked: Asked, number: int) -> str:
        return f"{asked.name}.{number}"

    def _may_slide(self) -> bool:
        is_due = self.work.due(self.window.latest + 1) <= self.now
        return is_due and not (self.scheduler is Scheduler.SERIAL and self._has_begun())

    def _has_begun(self) -> bool:
        return any(one.scan.read for one in self.running)

    def _slide(self) -> None:
        slide = self.window.slide()
        self.waited = max(self.waited, self.now - self.work.due(slide))
        self.actions += (Write(slide), CommitSlide(slide))
        self.now += self.work.slide_cost(slide)
        for one in self.running:
            if one.began is None:
                continue
            one.met += 1
            if self.scheduler.is_latest:
                self.now += self.work.load.costs.test
                if one.scan.is_hit(self.window):
                    self._hit(one)
        if self.scheduler is Scheduler.WS:
            kept = {v for one in self.running for v in one.scan.kept(self.window)}
            self.copies = max(self.copies, len(kept))

    def _hit(self, one: _Running) -> None:
        """A running query has read what is no longer in its window."""
        if self.rereads:
            self.actions.append(TakeBack(one.scan.name, one.scan.take_back(self.window)))
            return
        self.aborts += 1
        self.met[one.met] += 1
        self.actions.append(Abort(one.scan.name))
        number, self.begun = self.begun, self.begun + 1
        one.scan = Scan(self._transaction(one.asked, number), one.asked.length, self.window.latest)
        one.met = 0
        one.began = None

    def _chosen(self) -> _Running:
        """The query that goes on."""
        if self.scheduler is Scheduler.SERIAL and self._has_begun():
            return next(one for one in self.running if one.scan.read)
        once = [one for one in self.running if one.asked.time is not None]
        return (once or self.running)[0]

    def _step(self, one: _Running) -> None:
        """A query reads a sub-window."""
        scan = one.scan
        if one.began is None:
            one.began, scan.start = self.now, self.window.latest
        if self.scheduler is not Scheduler.SERIAL:
            self.now += self.work.load.costs.step
        if scan.again:
            self.reread += 1
            self.now += self.work.read_cost(one.asked, scan.again.pop())
        else:
            version = scan.next_version(self.scheduler, self.window)
            scan.take(self.window, version)
            self.actions.append(Read(scan.name, version % self.window.n, version))
            self.now += self.work.read_cost(one.asked, version)
        if scan.is_complete:
            self._commit(one)

    def _commit(self, one: _Running) -> None:
        state = state_of(one.scan.read.values())
        assert state is not None, "no scheduler lets a query read what never was"
        assert one.began is not None, "what is complete has begun"
        self.actions.append(Commit(one.scan.name))
        self.running.remove(one)
        self.met[one.met] += 1
        is_once = one.asked.time is not None
        shown = self.work.due(state)
        self.answers.append(Answer(one.asked.name, is_once, one.since, one.began, self.now, shown))


def simulate(work: Workload, scheduler: Scheduler, *, rereads: bool = False) -> Outcome:
    """What comes of a workload under a scheduler.

    Args:
        work: What is asked.
        scheduler: Who says what is read next.
        rereads: Whether old copies are kept, so that a query that is hit takes back what it has
            read of them instead of beginning again.
    """
    run = _Run(work, scheduler, rereads, Window(work.load.n))
    run.go()
    return Outcome(
        run.answers,
        run.aborts,
        run.reread,
        run.copies,
        run.waited,
        run.met,
        run.now,
        History(work.load.n, tuple(run.actions)),
    )
