"""Laws of operators that hand over their state (``physical/handover.py``).

An operator runs twice on what comes to it: in one run its state is handed over at some watermarks,
in the other one it is kept.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from laws.test_traits import Noted
from physical.run import Advance, Arrive, Schedule, batch, normal, saved_and_loaded
from tidemill.model.batch import END, ID, SIGN, START, TIME, Form, time_columns
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.handover import handover_of, takes_what_stands
from tidemill.physical.plan import Apply, Input

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from tidemill.model.batch import Batch
    from tidemill.physical.handover import HandsOver
    from tidemill.physical.operator import Operator, State

__all__ = ["LAWS", "Run", "alone", "changes", "handed_over", "hands"]

_IN_FULL = {"Join", "MultiJoin", "Counting", "ToIntervals"}
"""Those that give the rows of their inputs, and not what they make of them."""

_OF_ROWS = {START, END, TIME, SIGN, ID}
"""Columns of the engine's own that rows have everywhere."""


def alone(operator: Operator, schedule: Schedule, *, ids: bool = False) -> Noted:
    """What comes to an operator that is run by a schedule."""
    steps: list[tuple[list[tuple[int, Batch]], Time]] = []
    batches: list[tuple[int, Batch]] = []
    next_id = 0
    for event in (*schedule.events, Advance(END_OF_TIME)):
        if isinstance(event, Arrive):
            came = batch(schedule.schemas[event.port], event.elements, schedule.form(event.port))
            if ids:
                numbers = pl.int_range(next_id, next_id + came.height, dtype=pl.Int64, eager=True)
                came = came.with_columns(numbers.alias(ID))
                next_id += came.height
            batches.append((event.port, came))
        else:
            steps.append((batches, Time(event.time)))
            batches = []
    inputs = (Input(f"S{port}", schema) for port, schema in enumerate(schedule.schemas))
    return Noted(Apply(operator, tuple(inputs), own="alone"), steps)


def form(batch_: Batch) -> Form:
    return Form.SIGNED if SIGN in batch_.columns else Form.INTERVAL


def changes(batches: list[Batch], since: int = 0) -> Counter[tuple[object, ...]]:
    """What changes from a time on: two bags have the same snapshots from then on if these agree."""
    net: Counter[tuple[object, ...]] = Counter()
    for one in batches:
        times = time_columns(form(one))
        rows = one.select(pl.exclude(ID, *times), *times)
        for *row, first, second in rows.iter_rows():
            ends = [(first, second)] if SIGN in times else [(first, 1), (second, -1)]
            for time, sign in ends:
                if max(time, since) < END_OF_TIME:
                    net[(*normal(row), max(time, since))] += sign
    return Counter({change: count for change, count in net.items() if count})


@dataclass
class Run:
    """An operator, what it remembers, and what it has emitted so far."""

    operator: Operator
    state: State = field(init=False)
    out: list[Batch] = field(default_factory=list)
    least: int = 0

    def __post_init__(self) -> None:
        self.state = self.operator.new_state()

    def steps(self, note: Noted) -> Iterator[tuple[int, Time]]:
        """Run all steps; each that tells a time is given after it."""
        before = Time(0)
        for number, (batches, time) in enumerate(note.steps):
            for port, one in batches:
                self._emit(self.operator.on_batch(self.state, port, one))
            if time > before:
                self._emit(self.operator.on_watermark(self.state, time))
                self.promise(time)
                yield number, time
                before = time

    def promise(self, time: Time) -> None:
        """Nothing that is emitted later starts before this; what was promised is kept."""
        promised = min(time, self.operator.held(self.state))
        assert promised >= self.least, "time does not go back"
        self.least = promised

    def _emit(self, made: Iterator[Batch]) -> None:
        for one in made:
            first = one[time_columns(form(one))[0]].min()
            assert first is None or (isinstance(first, int) and first >= self.least)
            self.out.append(one)


def hands(operator: Operator) -> HandsOver:
    """The methods of an operator that hands over."""
    found = handover_of(operator)
    assert found is not None, "it hands over"
    return found


def handed_over(
    operator: Operator, state: State, time: Time, other: Operator | None = None
) -> State:
    """A new state, maybe of another operator, that remembers what a state does."""
    heir = operator if other is None else other
    new = heir.new_state()
    for port in range(len(operator.traits.takes)):
        given = hands(operator).remembered(state, port, time)
        hands(heir).remember(new, port, given, time)
    return new


def goes_on(note: Noted, kept: AbstractSet[int]) -> None:
    """A state that was handed over, twice in a row, goes on like one that was kept."""
    operator = note.part.operator
    run = Run(operator)
    for number, time in run.steps(note):
        if number not in kept:
            once = handed_over(operator, saved_and_loaded(operator, run.state), time)
            run.state = handed_over(operator, once, time)
            run.promise(time)
        stands(run, time)
    assert changes(run.out) == changes(note.out())
    assert not run.state.rows(), "in the end nothing is left"


def stands(run: Run, time: Time) -> None:
    """What stands is what was emitted and has not ended."""
    standing = hands(run.operator).standing(run.state, time)
    if form(standing) is Form.SIGNED:
        assert ((standing[SIGN] > 0) & (standing[TIME] < time)).all()
    else:
        assert ((standing[START] < standing[END]) & (standing[END] > time)).all()
    assert changes([standing], time) == changes(run.out, time)


def stands_always(note: Noted, kept: AbstractSet[int]) -> None:
    """What stands is known of a state that was never handed over."""
    run = Run(note.part.operator)
    for number, time in run.steps(note):
        if number not in kept:
            stands(run, time)


def means(note: Noted, kept: AbstractSet[int]) -> None:
    """What is remembered has a form the input can have, and those who got it remember the same."""
    operator = note.part.operator
    run = Run(operator)
    for number, time in run.steps(note):
        if number in kept:
            continue
        new = handed_over(operator, run.state, time)
        for port, takes in enumerate(note.traits.takes):
            given = hands(operator).remembered(run.state, port, time)
            again = hands(operator).remembered(new, port, time)
            counted = {n for n in given.columns if n.startswith("@")} - _OF_ROWS
            assert counted or takes is None or form(given) is takes
            if not counted:
                assert changes([given], time) == changes([again], time)


def takes_what_stood(note: Noted, kept: AbstractSet[int]) -> None:
    """A state that remembers what stands below goes on as if it had seen it come."""
    if not takes_what_stands(note.traits):
        return
    run, filled = Run(note.part.operator), False
    for number, time in run.steps(note):
        if number not in kept and not filled and time < END_OF_TIME:
            filled, run.state = True, run.operator.new_state()
            for port in range(len(note.traits.takes)):
                came = [b for steps, _ in note.steps[: number + 1] for p, b in steps if p == port]
                if came:
                    below = as_it_stands(pl.concat(came, how="diagonal"), time)
                    hands(run.operator).remember(run.state, port, below, time)
            run.promise(time)
            stands(run, time)
    assert changes(run.out) == changes(note.out())


def as_it_stands(came: Batch, time: int) -> Batch:
    """What came in, as one who has it all might put it: merged, and without what is over."""
    rows = came.drop(ID, strict=False)
    if form(came) is Form.INTERVAL:
        start = pl.col(START).clip(lower_bound=time - 1)
        return rows.filter(pl.col(END) > time).with_columns(start)
    others = [name for name in rows.columns if name != SIGN]
    moved = rows.with_columns(pl.col(TIME).clip(lower_bound=time - 1))
    net = moved.group_by(others).agg(pl.col(SIGN).sum())
    return net.filter(pl.col(SIGN) != 0).select(rows.columns)


def is_in_full(note: Noted, kept: AbstractSet[int]) -> None:
    """Of each row that is given all elements that can matter are: as often, and as long."""
    if type(note.part.operator).__name__ not in _IN_FULL:
        return
    run = Run(note.part.operator)
    for number, time in run.steps(note):
        for port in range(len(note.traits.takes)) if number not in kept else ():
            came = [b for steps, _ in note.steps[: number + 1] for p, b in steps if p == port]
            given = changes([hands(run.operator).remembered(run.state, port, time)], time)
            rows = {change[:-1] for change in given}
            alive = changes(came, time).items()
            assert given == Counter({c: count for c, count in alive if c[:-1] in rows})


LAWS = (goes_on, stands_always, means, takes_what_stood, is_in_full)
