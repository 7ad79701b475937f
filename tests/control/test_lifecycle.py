"""START, STOP, PAUSE and RESUME against a model that looks at one answer at a time (L2 to L8).

A row comes at every instant, and the answer at t depends on the rows in ``(t - SIZE, t]``: the
first of them is ``lo``, the last t itself. Each control element keeps the answers that the table of
L3 says, by these two numbers alone; the record has to answer just these, and as often.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from laws.catalogue import S
from laws.living import version
from tidemill.algebra.plan import RowWindow, TimeWindow, Window
from tidemill.catalog.records import Record, Status
from tidemill.control.change import alter
from tidemill.control.lifecycle import MOVES, Move, pause, resume, start, stop
from tidemill.control.standpoint import Standpoint, status
from tidemill.errors import RunError
from tidemill.lang.statements import Change, StartMode, StopMode
from tidemill.model.time import Time

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE, FAR = 7, 400


class Answered(NamedTuple):
    """An answer: its instant, and the first row that it depends on."""

    time: int
    lo: int


def answers(first: int, fresh: int = 0) -> Counter[Answered]:
    """All answers from an instant on, of windows over the rows from ``fresh`` on."""
    return Counter(Answered(t, max(fresh, t - SIZE + 1)) for t in range(first, FAR))


class Lifecycle(RuleBasedStateMachine):
    """A query that is started and stopped again and again."""

    def __init__(self) -> None:
        super().__init__()
        self.record = Record((version(1, Window(S, TimeWindow(SIZE))),))
        self.now = 0
        self.answered = answers(0)
        self.kept: tuple[int, Counter[Answered]] | None = None
        self.keeps = 0

    def here(self) -> Standpoint:
        return replace(standing(self.now, self.record), kept={S.name: Time(self.first_kept())})

    def first_kept(self) -> int:
        return max(self.now - self.keeps, 0)

    def status(self) -> Status:
        return status(self.record, self.here().known)

    def can(self, move: Move) -> bool:
        return self.status() in MOVES[move]

    def keep(self, choice: Callable[[Answered], bool]) -> None:
        self.answered = Counter({one: n for one, n in self.answered.items() if choice(one)})

    @initialize(steps=st.integers(1, 10), keeps=st.sampled_from([0, 3, SIZE - 1, 100]))
    def begin(self, steps: int, keeps: int) -> None:
        self.now, self.keeps = steps, keeps

    @precondition(lambda self: self.now < FAR - 60)
    @rule(steps=st.integers(1, 12))
    def pass_time(self, steps: int) -> None:
        self.now += steps

    @rule(mode=st.sampled_from(StopMode), later=st.sampled_from([0, 0, 3]))
    def stop(self, mode: StopMode, later: int) -> None:
        at = self.now + later
        if not self.can(Move[f"STOP_{mode.name}"]):
            with pytest.raises(RunError, match="is not possible"):
                stop(self.record, mode, Time(at), self.here())
            return
        was_paused = self.record.paused is not None
        self.record = stop(self.record, mode, Time(at), self.here()).record
        self.kept = None
        if not was_paused:
            self._stopped(mode, at)

    def _stopped(self, mode: StopMode, at: int) -> None:
        """IMMEDIATE keeps what depends on rows before only, DRAIN what depends on one of them."""
        if mode is StopMode.IMMEDIATE:
            self.keep(lambda one: one.time < at)
        else:
            self.keep(lambda one: one.lo < at)

    @rule(mode=st.sampled_from(StopMode))
    def pause(self, mode: StopMode) -> None:
        if not self.can(Move[f"PAUSE_{mode.name}"]):
            with pytest.raises(RunError, match="is not possible"):
                pause(self.record, mode, self.here())
            return
        self.record = pause(self.record, mode, self.here()).record
        at = self.now
        self.kept = at, Counter({one: n for one, n in self.answered.items() if one.time >= at})
        self._stopped(mode, at)

    @rule(mode=st.sampled_from([StartMode.WARM, StartMode.COLD, StartMode.FRESH]))
    def resume(self, mode: StartMode) -> None:
        if not self.can(Move[f"RESUME_{mode.name}"]):
            with pytest.raises(RunError, match="is not possible"):
                resume(self.record, mode, self.here())
            return
        self.record = resume(self.record, mode, self.here()).record
        assert self.kept is not None
        (at, whole), self.kept = self.kept, None
        match mode:
            case StartMode.FRESH:
                self.keep(lambda one: one.time < self.now)
                self.answered += answers(self.now, self.now)
            case StartMode.WARM:
                self.answered += whole
            case StartMode.COLD:
                first = at + SIZE - 1  # full windows with nothing from before the pause
                self.answered += Counter({o: n for o, n in whole.items() if o.time >= first})
            case StartMode.HISTORY:
                raise AssertionError("it is not drawn")

    @rule(mode=st.sampled_from(StartMode))
    def start(self, mode: StartMode) -> None:
        if not self.can(Move[f"START_{mode.name}"]):
            with pytest.raises(RunError, match="is not possible"):
                start(self.record, mode, None, self.here())
            return
        if mode is StartMode.HISTORY and self.first_kept() == self.now > 0:
            with pytest.raises(RunError, match="do not keep the rows"):
                start(self.record, mode, None, self.here())
            return
        drains = [one.fresh for one in self.record.instances if self._drains(one.number)]
        self.record = start(self.record, mode, None, self.here()).record
        match mode:
            case StartMode.FRESH:
                self.keep(lambda one: one.time < self.now)
                self.answered += answers(self.now, self.now)
            case StartMode.COLD:
                self.answered += answers(self.now + SIZE - 1)
            case StartMode.WARM if drains:
                self.answered += answers(self.now, drains[-1])
            case StartMode.WARM:  # what has stopped needs time to fill its windows
                self.answered += answers(self.now + SIZE - 1)
            case StartMode.HISTORY:
                full = self.first_kept() + SIZE - 1 if self.first_kept() else 0
                self.answered += answers(max(self.now, full))

    def _drains(self, instance: int) -> bool:
        """Whether an instance has something left to answer, so that its windows are full."""
        return any(p.instance == instance and p.until > self.now for p in self.record.parts)

    @invariant()
    def answers_what_the_model_says(self) -> None:
        found = Counter(
            t for part in self.record.parts for t in range(part.since, min(part.until, FAR))
        )
        wanted: Counter[int] = Counter()
        for one, n in self.answered.items():
            wanted[one.time] += n
        assert found == +wanted

    @invariant()
    def is_in_a_state_of_the_diagram(self) -> None:
        last = max((one.time for one in self.answered), default=-1)
        if self.record.paused is not None:
            assert self.status() is Status.PAUSED
        elif last < self.now:
            assert self.status() is Status.STOPPED
        elif last < FAR - 1:
            assert self.status() is Status.DRAINING
        else:
            assert self.status() in (Status.RUNNING, Status.CHANGING, Status.PREPARING)


TestLifecycle = Lifecycle.TestCase
TestLifecycle.settings = settings(max_examples=100, stateful_step_count=20, deadline=None)


def standing(now: int, record: Record) -> Standpoint:
    return Standpoint("q", Time(now), known={one.number: Time(now) for one in record.instances})


def test_a_paused_query_cannot_be_changed() -> None:
    record = Record((version(1, Window(S, TimeWindow(5))),))
    paused = pause(record, StopMode.IMMEDIATE, standing(10, record)).record
    new, here = version(2, Window(S, TimeWindow(3))), standing(10, paused)
    with pytest.raises(RunError, match="paused"):
        alter(paused, new, Change.GRACEFUL, None, here)


def test_a_stop_during_a_change_stops_both_versions() -> None:
    """M9: after IMMEDIATE nothing is answered, and a version that has not begun never does."""
    record = Record((version(1, Window(S, TimeWindow(50))),))
    new = version(2, Window(S, TimeWindow(10)))
    changed = alter(record, new, Change.DRAIN, None, standing(100, record)).record
    stopped = stop(changed, StopMode.IMMEDIATE, None, standing(120, changed)).record
    assert [(p.since, p.until) for p in stopped.parts] == [(0, 120)]
    assert status(stopped, {1: Time(120), 2: Time(120)}) is Status.STOPPED


def test_a_window_of_rows_is_not_drained() -> None:
    record = Record((version(1, Window(S, RowWindow(5))),))
    with pytest.raises(RunError, match="STOP DRAIN is not possible"):
        stop(record, StopMode.DRAIN, None, standing(10, record))
    stopped = stop(record, StopMode.IMMEDIATE, None, standing(10, record)).record
    with pytest.raises(RunError, match="not known from when its windows are full"):
        start(stopped, StartMode.COLD, None, standing(20, stopped))
    assert start(stopped, StartMode.FRESH, None, standing(20, stopped)).record.parts[-1].since == 20
