"""An operator that hands over its state goes on in another one as if nothing had happened.

Drawn are a plan, how it is planned, inputs and how they arrive, as for the laws of traits. Each
operator runs twice on what comes to it: in one run its state is handed over at some watermarks, in
the other one it is kept.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from polars.exceptions import PolarsError

from laws.test_traits import DRAWN, Noted, noted
from physical.run import normal, saved_and_loaded
from tidemill.model.batch import END, ID, SIGN, START, TIME, Form, time_columns
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.handover import handover_of, takes_what_stands

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from laws.catalogue import Inputs
    from tidemill.algebra.plan import Plan
    from tidemill.model.batch import Batch
    from tidemill.optimizer.physical.techniques import Technique
    from tidemill.physical.handover import HandsOver
    from tidemill.physical.operator import Operator, State

CANNOT = {
    "Number": "how many rows have come is no row, and one number must not be given twice",
    "Stretch": "what waits belongs to its spans, and was given as often as they said",
    "Coalesce": "what is long enough passes at once, and nothing says until when it stands",
    "Split": "what is short enough passes at once, and nothing says until when it stands",
    "Hold": "what it has let go stands, and it does not remember that",
    "MultiJoin": "of elements that wait for an evaluation nothing but their place says so",
}
"""Operators that remember and do not hand over, all or some of them, and why."""


def form(batch: Batch) -> Form:
    return Form.SIGNED if SIGN in batch.columns else Form.INTERVAL


def changes(batches: list[Batch], since: int = 0) -> Counter[tuple[object, ...]]:
    """What changes from a time on: two bags have the same snapshots from then on if these agree."""
    net: Counter[tuple[object, ...]] = Counter()
    for batch in batches:
        times = time_columns(form(batch))
        rows = batch.select(pl.exclude(ID, *times), *times)
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
    state: State
    out: list[Batch] = field(default_factory=list)
    least: int = 0

    def take(self, batches: list[tuple[int, Batch]]) -> None:
        for port, batch in batches:
            self._emit(self.operator.on_batch(self.state, port, batch))

    def tell(self, time: Time) -> None:
        self._emit(self.operator.on_watermark(self.state, time))
        self.promise(time)

    def promise(self, time: Time) -> None:
        """Nothing that is emitted later starts before this; what was promised is kept."""
        promised = min(time, self.operator.held(self.state))
        assert promised >= self.least, "time does not go back"
        self.least = promised

    def _emit(self, made: Iterator[Batch]) -> None:
        for batch in made:
            first = batch[time_columns(form(batch))[0]].min()
            assert first is None or (isinstance(first, int) and first >= self.least)
            self.out.append(batch)


def hands(operator: Operator) -> HandsOver:
    found = handover_of(operator)
    assert found is not None, "it hands over"
    return found


def handed_over(operator: Operator, state: State, time: Time) -> State:
    """A new state that remembers what another one does."""
    new, ports = operator.new_state(), range(len(operator.traits.takes))
    for port in ports:
        hands(operator).remember(new, port, hands(operator).remembered(state, port, time), time)
    return new


def goes_on(note: Noted, chosen: set[int]) -> None:
    """A state that was handed over at some steps goes on like one that was kept."""
    operator, before, since = note.part.operator, Time(0), None
    kept, moved = Run(operator, operator.new_state()), Run(operator, operator.new_state())
    for number, (batches, time) in enumerate(note.steps):
        for run in (kept, moved):
            run.take(batches)
            if time > before:
                run.tell(time)
        if number in chosen and time > before:
            new = handed_over(operator, saved_and_loaded(operator, moved.state), time)
            new = handed_over(operator, saved_and_loaded(operator, new), time)
            moved.state = saved_and_loaded(operator, new)
            moved.promise(time)
            since = since or (len(kept.out), len(moved.out))
        if since is not None and time > before:
            stands(moved, time)
            assert time < END_OF_TIME or not moved.state.rows(), "in the end nothing is left"
        before = max(time, before)
    if since is not None:
        assert changes(kept.out[since[0] :]) == changes(moved.out[since[1] :])


def stands(run: Run, time: Time) -> None:
    """What stands is what was emitted and has not ended."""
    standing = hands(run.operator).standing(run.state, time)
    if form(standing) is Form.SIGNED:
        assert legal(standing)
    else:
        assert (standing[START] < standing[END]).all()
        assert (standing[END] > time).all()
    assert changes([standing], time) == changes(run.out, time)


def legal(batch: Batch) -> bool:
    """Whether only what is there is withdrawn."""
    there: Counter[tuple[object, ...]] = Counter()
    for *row, sign in batch.sort(TIME, SIGN, descending=[False, True]).drop(TIME).iter_rows():
        there[normal(row)] += sign
        if there[normal(row)] < 0:
            return False
    return True


def stands_at_all(note: Noted, chosen: set[int]) -> None:
    """At every watermark, what stands is what was emitted and has not ended."""
    run, before = Run(note.part.operator, note.part.operator.new_state()), Time(0)
    for number, (batches, time) in enumerate(note.steps):
        run.take(batches)
        if time > before:
            run.tell(time)
            if number not in chosen:
                stands(run, time)
            before = time


def is_meant(note: Noted, chosen: set[int]) -> None:
    """What is remembered has a legal form, and those who got it remember the same."""
    operator, before = note.part.operator, Time(0)
    run = Run(operator, operator.new_state())
    for number, (batches, time) in enumerate(note.steps):
        run.take(batches)
        if time > before:
            run.tell(time)
        if number in chosen and time > before:
            new = handed_over(operator, run.state, time)
            for port, takes in enumerate(note.traits.takes):
                batch = hands(operator).remembered(run.state, port, time)
                again = hands(operator).remembered(new, port, time)
                assert takes is None or form(batch) is takes
                assert form(batch) is Form.INTERVAL or legal(batch)
                assert changes([batch], time) == changes([again], time)
        before = max(time, before)


def takes_what_was(note: Noted, chosen: set[int]) -> None:
    """A state that remembers what stands below goes on as if it had seen it come."""
    if not takes_what_stands(note.traits):
        return
    operator, before = note.part.operator, Time(0)
    run = Run(operator, operator.new_state())
    came: list[list[Batch]] = [[] for _ in note.traits.takes]
    for number, (batches, time) in enumerate(note.steps):
        run.take(batches)
        for port, batch in batches:
            came[port].append(batch)
        if time > before:
            run.tell(time)
            if number == min(chosen):
                run.state = operator.new_state()
                for port, below in enumerate(came):
                    if below:
                        stood = as_it_stands(pl.concat(below), time)
                        hands(operator).remember(run.state, port, stood, time)
                stands(run, time)
            before = time
    assert changes(run.out) == changes(note.out())


def as_it_stands(batch: Batch, time: int) -> Batch:
    """What came in, as one who has it all might put it: cut, added up, without what is over."""
    if form(batch) is Form.SIGNED:
        at = pl.col(TIME).clip(lower_bound=time - 1).alias(TIME)
        moved = batch.drop(ID, strict=False).with_columns(at)
        others = [name for name in moved.columns if name != SIGN]
        return (
            moved.group_by(others)
            .agg(pl.col(SIGN).sum())
            .filter(pl.col(SIGN) != 0)
            .select(moved.columns)
        )
    alive = batch.drop(ID, strict=False).filter(pl.col(END) > time)
    return alive.with_columns(pl.col(START).clip(lower_bound=time - 1))


LAWS = (goes_on, stands_at_all, is_meant, takes_what_was)
CHOSEN = st.sets(st.integers(0, 12), min_size=1, max_size=4)


@settings(max_examples=2 * settings().max_examples)
@given(**DRAWN, chosen=CHOSEN)
def test_what_is_handed_over_goes_on(  # noqa: PLR0913 — it draws everything
    data: st.DataObject,
    plan: Plan,
    content: Inputs,
    chosen: set[int],
    *,
    technique: Technique,
    multiway: bool,
    lazy: int,
) -> None:
    for note in noted(plan, content, data, technique=technique, multiway=multiway, lazy=lazy):
        if note.traits.hands_over:
            for law in LAWS:
                law(note, chosen)
        else:
            name = type(note.part.operator).__name__
            assert True or not note.traits.remembers or name in CANNOT, f"{name} does not hand over"
