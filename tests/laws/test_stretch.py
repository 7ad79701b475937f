"""An answer cut to spans has, at every instant, each row as often as spans have that instant.

Drawn are inputs with their batches and watermarks, spans, and what becomes of the spans between two
steps: spans are released, in part or as a whole, given up, ended earlier or later, paused, joined
and added, wherever nothing that was given would have to be taken back. After each step what was
given is compared with the input, counted instant by instant.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from laws.test_sweep_operators import NUMBER, PAIR
from physical.run import (
    Advance,
    Arrive,
    Change,
    Element,
    Item,
    Schedule,
    batch,
    elements_of,
    saved_and_loaded,
    schedules,
    snapshot,
)
from tidemill.model.batch import SIGN, TIME, Form
from tidemill.model.spans import Leaves, Span
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical import interval, signed

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import DrawFn

    from tidemill.algebra.snapshot import Bag
    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema
    from tidemill.physical.operator import State

FAR = 24
TIMES = range(FAR + 3)


@dataclass
class Run:
    """A stretch in progress: what came, what has left, and how far time has come."""

    schema: Schema
    form: Form
    spans: list[Span]
    state: State
    counts: bool = True
    watermark: int = 0
    harm: Callable[[Span], Span] = replace

    def __post_init__(self) -> None:
        self.came: list[Item] = []
        self.given: list[Item] = []

    @property
    def operator(self) -> interval.Stretch | signed.Stretch:
        spans = tuple(map(self.harm, self.spans))
        if self.form is Form.INTERVAL:
            return interval.Stretch(self.schema, "q", spans)
        return signed.Stretch(self.schema, "q", self.counts, spans)

    @property
    def limit(self) -> int:
        """From here on spans can change: nothing was given that goes on after it."""
        ends = (e.end for e in self.came if isinstance(e, Element))
        return max([self.watermark, *ends]) if self.form is Form.INTERVAL else self.watermark

    def take(self, event: Arrive | Advance, *, reload: bool) -> None:
        operator = self.operator
        promised = min(self.watermark, operator.held(self.state))
        if isinstance(event, Arrive):
            rows = batch(self.schema, event.elements, self.form)
            self._emitted(list(operator.on_batch(self.state, 0, rows)), promised)
            self.came += event.elements
        else:
            self.watermark = max(event.time, self.watermark)
        self._emitted(list(operator.on_watermark(self.state, Time(self.watermark))), promised)
        again = list(operator.on_watermark(self.state, Time(self.watermark)))
        assert not again, "what is told twice is told once"
        if reload:
            self.state = saved_and_loaded(operator, self.state)

    def _emitted(self, batches: list[Batch], promised: int) -> None:
        for part in batches:
            assert part.height, "nothing is no batch"
            if self.form is Form.INTERVAL:
                self.given += elements_of(self.schema, part)
                continue
            columns = [part.get_column(name) for name in (*self.schema.names, TIME, SIGN)]
            for *row, time, sign in zip(*columns, strict=True):
                assert sign, "a change changes something"
                assert time < self.watermark, "nothing leaves ahead of its time"
                assert time >= promised, "nothing leaves that was not to be expected"
                self.given.append(Change(tuple(row), time, sign))

    def expected(self, time: int) -> Bag:
        """What must have been given at an instant by now, by definition."""
        has_ended = self.watermark == END_OF_TIME
        waits = (Leaves.KEPT,) if has_ended else (Leaves.HELD, Leaves.KEPT)
        spans = [s for s in self.spans if s.since <= time < s.until and s.leaves not in waits]
        there = snapshot(self.came, time)
        return Counter({row: n * len(spans) for row, n in there.items() if spans})

    def wrong(self) -> list[int]:
        """The instants at which something else was given."""
        past = self.watermark if self.form is Form.SIGNED else FAR
        return [t for t in TIMES if t < past and snapshot(self.given, t) != self.expected(t)]


@st.composite
def spans(draw: DrawFn, least: int = 0) -> Span:
    """A span that begins at or after an instant."""
    since = draw(st.integers(least, max(least, FAR)))
    until = draw(st.integers(since, max(since, FAR)) | st.just(END_OF_TIME))
    return Span(Time(since), Time(until), draw(st.sampled_from(Leaves)))


def changed(draw: DrawFn, run: Run) -> list[Span]:
    """The spans after one of the changes that take nothing back."""
    old, limit = list(run.spans), run.limit
    kind = draw(st.sampled_from(["add", "release", "give up", "end", "go on", "pause", "join"]))
    if kind == "add" or not old:
        return [*old, draw(spans(limit))] if limit < END_OF_TIME else old
    place = draw(st.integers(0, len(old) - 1))
    one = old.pop(place)
    waits = one.leaves is not Leaves.AT_ONCE
    match kind:
        case "release" if waits:
            since = draw(st.integers(one.since, min(one.until, one.since + FAR)))
            until = draw(st.integers(since, min(one.until, since + FAR)) | st.just(one.until))
            return [*old, Span(Time(since), Time(until))]
        case "give up" if waits:
            return old
        case "end" if one.until > limit:
            first = max(limit, one.since)
            until = draw(st.integers(first, min(one.until, first + FAR)))
            return [*old, replace(one, until=Time(until))]
        case "go on" if one.until >= limit:
            until = draw(st.integers(one.until, one.until + 5)) if one.until < FAR else END_OF_TIME
            return [*old, replace(one, until=Time(until))]
        case "pause" if not waits and one.until > limit:
            first = max(limit, one.since)
            at = Time(draw(st.integers(first, min(one.until, first + FAR))))
            how = draw(st.sampled_from([Leaves.KEPT, Leaves.HELD]))
            return [*old, replace(one, until=at), Span(at, one.until, how)]
        case "join":
            after = [s for s in old if s.since == one.until and s.leaves is not Leaves.AT_ONCE]
            if after and not waits:
                old.remove(after[0])
                return [*old, replace(one, until=after[0].until)]
    return [*old, one]


@st.composite
def runs(draw: DrawFn, form: Form, harm: Callable[[Span], Span] = replace) -> Run:
    """A stretch at the end of the streams, all of whose steps were looked at."""
    schema = draw(st.sampled_from([PAIR, NUMBER]))
    schedule = draw(schedules(schema, forms=(form,)))
    first = draw(st.lists(spans(), max_size=3))
    kind = interval.Stretch if form is Form.INTERVAL else signed.Stretch
    run = Run(schema, form, first, kind(schema, "q").new_state(), harm=harm)
    reload = draw(st.booleans())
    for event in (*schedule.events, Advance(END_OF_TIME)):
        for _ in range(draw(st.integers(0, 2))):
            run.spans = changed(draw, run)
        run.take(event, reload=reload)
        if run.wrong():
            return run
    assert not run.state.rows(), "in the end nothing is left"
    return run


@settings(max_examples=4 * settings().max_examples)
@given(data=st.data(), form=st.sampled_from(Form))
def test_rows_are_given_as_often_as_spans_have_their_instants(
    data: st.DataObject, form: Form
) -> None:
    run = data.draw(runs(form))
    assert not run.wrong()
    for time in TIMES:
        assert snapshot(run.given, time) == run.expected(time), time


@settings(max_examples=2 * settings().max_examples)
@given(
    schedule=schedules(PAIR, forms=(Form.SIGNED,)),
    seam=st.integers(0, FAR),
    more=st.integers(1, FAR),
    held=st.integers(0, 6),
    reload=st.booleans(),
)
def test_at_a_seam_nothing_is_withdrawn_or_announced(
    schedule: Schedule, seam: int, more: int, held: int, *, reload: bool
) -> None:
    """Of two that see the same, one goes on where the other ends; the second withdraws at last."""
    until = Time(seam + more)
    first = _made(counts=False, spans=[Span(until=Time(seam), hands_on=True)])
    second = _made(counts=True, spans=[Span(Time(seam), until, Leaves.HELD, joins=True)])
    for number, event in enumerate((*schedule.events, Advance(END_OF_TIME))):
        if number == held:
            second.spans = [replace(second.spans[0], leaves=Leaves.AT_ONCE)]
        for run in (first, second):
            run.take(event, reload=reload)
    both = [*first.given, *second.given]
    for time in TIMES:
        wanted = schedule.snapshot(0, time) if time < until else Counter()
        assert snapshot(both, time) == wanted, time
    times = [e.start for e in both if isinstance(e, Change)]
    edges = {e.start for e in schedule.items(0)}
    assert set(times) <= edges | {until}, "nothing happens at the seam"


def _made(*, counts: bool, spans: list[Span]) -> Run:
    state = signed.Stretch(PAIR, "q", counts).new_state()
    return Run(PAIR, Form.SIGNED, spans, state, counts)


def test_a_row_that_stands_at_a_seam_is_not_announced_later_either() -> None:
    """What has waited since the seam is one row that stands: nothing is to be told of it."""
    run = _made(counts=True, spans=[Span(Time(1), leaves=Leaves.HELD, joins=True)])
    run.take(Arrive(0, (Change((None, None), 0, 1),)), reload=False)
    run.take(Advance(5), reload=False)
    run.spans = [replace(run.spans[0], leaves=Leaves.AT_ONCE)]
    run.take(Advance(6), reload=False)
    assert run.given == []


def test_what_is_not_counted_cannot_be_withdrawn() -> None:
    with pytest.raises(AssertionError, match="cannot be withdrawn"):
        signed.Stretch(PAIR, "q", counts=False, spans=(Span(until=Time(5)),))


# Mutants: the law must fail for them.


def _without_hold(span: Span) -> Span:
    return replace(span, leaves=Leaves.AT_ONCE)


def _one_late(span: Span) -> Span:
    return replace(span, since=Time(min(span.since + 1, span.until)))


def _without_end(span: Span) -> Span:
    return replace(span, until=END_OF_TIME)


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("harm", [_without_hold, _one_late, _without_end])
def test_the_law_finds_what_is_wrong(form: Form, harm: Callable[[Span], Span]) -> None:
    find(
        runs(form, harm),
        lambda run: bool(run.wrong()),
        settings=settings(max_examples=4000, deadline=None, phases=[Phase.generate]),
    )
