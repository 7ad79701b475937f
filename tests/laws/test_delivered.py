"""What a sink is given, in each form and in the order it comes, is the formula of what was asked.

Drawn are queries with the same columns, what is asked of them and when, inputs, batches and
watermarks, settings and partitions. The formula is that of ``test_changes.py``, of runs that
nothing has disturbed; a reader applies what it is given, by value or by key.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, assume, find, given, settings
from hypothesis import strategies as st

from laws.catalogue import PAIR, S
from laws.delivering import Reader, SinkQuery
from laws.living import END, version
from laws.strategies import conformed, time_windows
from laws.test_changes import COUNTS, FAR, Scene, formula, scenes
from tidemill.algebra.expr import AggregateCall, Column, Named
from tidemill.algebra.plan import Aggregate, NamedAggregate, Window
from tidemill.algebra.reach import begun_at, forgets, is_silent
from tidemill.catalog.records import Record
from tidemill.connectors.forms import Delivered
from tidemill.control.change import alter
from tidemill.control.lifecycle import MOVES, Move, pause, resume, start, stop
from tidemill.control.standpoint import status
from tidemill.control.strategies import replan
from tidemill.errors import RunError
from tidemill.lang.statements import Change, Migration, StartMode, StopMode
from tidemill.model.spans import Leaves
from tidemill.model.time import END_OF_TIME, Time
from tidemill.model.types import BIGINT, VARCHAR
from tidemill.runtime.shapes import Shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.algebra.snapshot import Row
    from tidemill.control.change import Changed
    from tidemill.control.standpoint import Standpoint
    from tidemill.model.spans import Span

MOST = AggregateCall("max", Column("b", VARCHAR), VARCHAR)
GROUPS = time_windows().map(
    lambda spec: conformed(
        Aggregate(
            Window(S, spec), (Named("a", Column("a", BIGINT)),), (NamedAggregate("b", MOST),)
        ),
        PAIR,
    )
)
"""Queries with a row for each value of a column, by which rows replace each other."""

APART = (Change.IMMEDIATE, Change.DRAIN, Change.GRACEFUL)
"""Those in which the old version ends before the new one begins, if windows do not slide."""

FORMS = (Delivered.RESULTS, Delivered.CHANGES)


def living(scene: Scene, delivered: Delivered, harm: Callable[[Span], Span]) -> SinkQuery:
    """The first query of a scene, with a sink, before anything has come."""
    shape = Shape(delivered, ("a",) if delivered is Delivered.UPSERTS else ())
    return SinkQuery(
        Record((version(1, scene.asked[0]),)),
        scene.content,
        scene.planning,
        scene.neighbours,
        scene.partitions,
        form=shape.form,
        keeps=scene.keeps,
        shape=shape,
        harm=harm,
    )


def read(query: SinkQuery) -> Reader:
    """What a reader has that was given everything."""
    reader = Reader(query.shape.delivered, key=(0,) if query.shape.key else ())
    for frame, _ in query.given:
        reader.take(frame)
    return reader


def changed(
    scene: Scene,
    delivered: Delivered,
    using: Change,
    after: int,
    harm: Callable[[Span], Span] = replace,
) -> tuple[SinkQuery, Time] | None:
    """The query that is changed after some steps, at the end of the streams; and when it was."""
    query, new = living(scene, delivered, harm), version(2, scene.asked[1])
    at = Time(0)
    for number, step in enumerate([*scene.arrival.steps, END]):
        if number == after:
            here = query.here(new.plan)
            try:
                done = alter(query.record, new, using, None, here)
            except RunError:
                old = scene.asked[0]
                assert (
                    formula(using, old, scene.asked[1], here.next, here) is None
                    or not (forgets(old) and forgets(scene.asked[1]))
                    or not is_silent(old)
                )
                return None
            assert done.at is not None, "it runs"
            query.record, at = done.record, done.at
            query.changed_at = here
        query.step(step)
    query.step(END)  # what waited for the last step
    return query, at


def expected(scene: Scene, using: Change, at: Time, here: Standpoint) -> list[Counter[Row]]:
    """The rows that are there at every instant."""
    numbers = formula(using, scene.asked[0], scene.asked[1], at, here)
    assert numbers is not None, "it was changed"
    until, since = numbers
    begun, reference = begun_at(scene.asked[1], at), scene.content.reference()
    found: list[Counter[Row]] = []
    for time in range(FAR):
        there: Counter[Row] = Counter()
        if time < until:
            there += scene.undisturbed(0, time)
        if time >= since:
            full = forgets(scene.asked[1]) or using is Change.EXACT
            there += scene.undisturbed(1, time) if full else reference.snapshot(begun, time)
        found.append(there)
    return found


def is_apart(scene: Scene, using: Change, at: Time, here: Standpoint) -> bool:
    """Whether the old version ends before the new one begins."""
    numbers = formula(using, scene.asked[0], scene.asked[1], at, here)
    return numbers is not None and numbers[0] <= numbers[1]


def is_wrong(scene: Scene, using: Change, done: tuple[SinkQuery, Time]) -> bool:
    """Whether something else was given, or in another order than is promised."""
    (query, at), here = done, done[0].changed_at
    assert here is not None, "it was changed"
    reader = read(query)
    if reader.snapshots(FAR) != expected(scene, using, at, here):
        return True
    if is_apart(scene, using, at, here) and reader.disorder:
        return True
    if using is not Change.QUERY_ORDER:
        return False
    new = query.record.instances[-1].number
    first = next((n for n, (_, whose) in enumerate(query.given) if new in whose), len(query.given))
    return any(whose != {new} for _, whose in query.given[first + 1 :])


@settings(max_examples=2 * settings().max_examples)
@given(
    data=st.data(),
    scene=scenes(),
    using=st.sampled_from(Change),
    delivered=st.sampled_from(FORMS),
)
def test_the_sink_of_a_changed_query_gets_the_formula(
    data: st.DataObject, scene: Scene, using: Change, delivered: Delivered
) -> None:
    after = data.draw(st.integers(0, len(scene.arrival.steps)))
    done = changed(scene, delivered, using, after)
    assert done is None or not is_wrong(scene, using, done)


@settings()
@given(data=st.data(), scene=scenes(queries=GROUPS), using=st.sampled_from(APART))
def test_by_key_as_well(data: st.DataObject, scene: Scene, using: Change) -> None:
    after = data.draw(st.integers(0, len(scene.arrival.steps)))
    done = changed(scene, Delivered.UPSERTS, using, after)
    assert done is not None
    here = done[0].changed_at
    assert here is not None, "it was changed"
    assume(is_apart(scene, using, done[1], here))  # others are refused
    assert not is_wrong(scene, using, done)


# Whatever is asked


def asked(data: st.DataObject, query: SinkQuery, scene: Scene) -> Changed:
    """One of all that can be asked now.

    Raises:
        RunError: It is refused.
    """
    record, here = query.record, query.here(*scene.asked)
    moves = [move for move in Move if status(record, here.known) in MOVES[move]]
    kinds: list[Move | str] = [*moves]
    if record.paused is None:
        kinds += ["ALTER", "REPLAN"]
    kind = data.draw(st.sampled_from(kinds))
    if kind == "ALTER":
        number = len(record.versions)
        new = version(number + 1, scene.asked[number % len(scene.asked)])
        return alter(record, new, data.draw(st.sampled_from(Change)), None, here)
    if kind == "REPLAN":
        return replan(record, here, data.draw(st.sampled_from(Migration)))
    assert isinstance(kind, Move), "the others were taken"
    what, mode = kind.name.split("_")
    match what:
        case "START":
            return start(record, StartMode[mode], None, here)
        case "STOP":
            return stop(record, StopMode[mode], None, here)
        case "PAUSE":
            return pause(record, StopMode[mode], here)
        case _:
            return resume(record, StartMode[mode], here)


@settings(max_examples=4 * settings().max_examples)
@given(data=st.data(), scene=scenes(versions=2), delivered=st.sampled_from(FORMS))
def test_whatever_is_asked_the_sink_gets_what_the_parts_answer(
    data: st.DataObject, scene: Scene, delivered: Delivered
) -> None:
    query = living(scene, delivered, replace)
    for step in [*scene.arrival.steps, END]:
        if step is not END:
            for _ in range(data.draw(st.integers(0, 2))):
                try:
                    query.record = asked(data, query, scene).record
                except RunError:
                    continue
        query.step(step)
    query.step(END)
    record, given, reference = query.record, read(query).snapshots(FAR), scene.content.reference()
    for time in range(FAR):
        there: Counter[Row] = Counter()
        for part in record.parts:
            if part.since <= time < part.until:
                one = record.instance(part.instance)
                plan = record.version(one.version).plan
                there += reference.snapshot(one.begun(plan), time)
        assert given[time] == there, f"at {time}: {record.parts}"


# Mutants: the law must fail for them.


def _without_withdrawal(span: Span) -> Span:
    return replace(span, hands_on=span.until < END_OF_TIME)


def _announced_late(span: Span) -> Span:
    late = Time(min(span.since + 1, span.until - 1))
    return replace(span, since=late) if span.since and not span.joins else span


def _without_hold(span: Span) -> Span:
    return replace(span, leaves=Leaves.AT_ONCE)


@pytest.mark.parametrize(
    "harm",
    [
        _without_withdrawal,
        _announced_late,
        pytest.param(_without_hold, marks=pytest.mark.soak),
    ],
)
def test_the_law_finds_what_is_wrong(harm: Callable[[Span], Span]) -> None:
    def is_found(drawn: tuple[Scene, Change, int]) -> bool:
        scene, using, after = drawn
        done = changed(scene, Delivered.CHANGES, using, min(after, len(scene.arrival.steps)), harm)
        return done is not None and is_wrong(scene, using, done)

    # There it shows soonest: rows of the new version come before those of the old one.
    ways = st.just(Change.QUERY_ORDER) if harm is _without_hold else st.sampled_from(Change)
    find(
        st.tuples(scenes(queries=COUNTS), ways, st.integers(0, 4)),
        is_found,
        settings=settings(max_examples=4000, deadline=None, phases=[Phase.generate]),
    )
