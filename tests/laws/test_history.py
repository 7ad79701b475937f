"""A query that is created late with history answers as one that has always run.

Drawn are the query, another one that runs before, what streams keep, when it is created, inputs,
batches, watermarks, techniques and partitions. Kept rows are replayed two at a time, while others
come. From the instant on that the query is said to answer, its answer is that of the reference.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from laws.catalogue import PAIR, S, T
from laws.living import END, LivingQuery, version
from laws.strategies import conformed, time_windows
from laws.test_changes import COUNT, COUNTS, FAR, Scene, scenes
from tidemill.algebra.explain import explain
from tidemill.algebra.expr import TRUE
from tidemill.algebra.plan import (
    Aggregate,
    Join,
    JoinKind,
    NamedAggregate,
    Unbounded,
    Window,
)
from tidemill.algebra.reach import begun_at, clear
from tidemill.algebra.tree import streams_of
from tidemill.catalog.entries import QueryEntry
from tidemill.catalog.records import Instance, Part
from tidemill.control.living import begun_late
from tidemill.engine.engine import Flow
from tidemill.errors import RunError
from tidemill.lang.statements import StartMode
from tidemill.model.time import Time
from tidemill.physical.operators.windows import time_window
from tidemill.runtime.runs import Moment

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from hypothesis.strategies import DrawFn

    from tidemill.algebra.plan import Plan
    from tidemill.algebra.snapshot import Row


def moment_of(living: LivingQuery) -> Moment:
    kept = {name: archive.since for name, archive in living.archives.by_stream.items()}
    return Moment(dict(living.latest), dict(living.watermarks), kept=kept)


def created(
    scene: Scene, after: int, harm: Callable[[LivingQuery], None]
) -> tuple[LivingQuery, Time] | None:
    """The end of the streams, for a query that is created after some steps.

    Returns:
        All queries, and from when on the late one answers; ``None`` if it cannot have history.
    """
    with patch.object(time_window, "_GRAINS", 1):  # windows are small here
        return _created(scene, after, harm)


def _created(
    scene: Scene, after: int, harm: Callable[[LivingQuery], None]
) -> tuple[LivingQuery, Time] | None:
    living, late = scene.living(), scene.asked[1]
    since: Time | None = None
    for number, step in enumerate([*scene.arrival.steps, END]):
        if number == after:
            harm(living)
            since = _begin(living, late)
            if since is None:
                return None
        living.step(step)
    assert since is not None, "it was created"
    return living, since


def _begin(
    living: LivingQuery, late: Plan, start: StartMode | None = StartMode.HISTORY
) -> Time | None:
    """Create the late query, beside the one that runs."""
    new = version(2, late)
    moment = moment_of(living)
    entry = QueryEntry("late", new.plan, new.text, new.uses, start=start)
    try:
        record = begun_late(entry, moment).record
    except RunError:
        first = _next(entry, moment)
        had = {name: min(moment.kept.get(name, first), first) for name in streams_of(entry.plan)}
        full = clear(new.plan, had)
        assert full is None or full > first, "what is refused cannot be had"
        return None
    begun = Instance(2, 2)
    part = Part(2, Time(0))
    if record is not None:
        begun = replace(record.instances[0], number=2, version=2, epoch=living.steps)
        part = replace(record.parts[0], instance=2)
    there = living.record
    living.record = replace(
        there,
        versions=(*there.versions, new),
        instances=(*there.instances, begun),
        parts=(*there.parts, part),
    )
    return part.since


def _next(entry: QueryEntry, moment: Moment) -> Time:
    """The first instant of which nothing has come on any stream of the query."""
    names = streams_of(entry.plan)
    came = [time + 1 for name, time in moment.latest.items() if name in names]
    passed = [time for name, time in moment.watermarks.items() if name in names]
    return Time(max((0, *came, *passed)))


def differing(scene: Scene, living: LivingQuery, since: Time) -> list[int]:
    """The instants at which the late query does not answer as one that has always run."""
    given = _given(living)
    return [t for t in range(since, FAR) if given[t] != scene.undisturbed(1, t)]


def _given(living: LivingQuery) -> list[Counter[Row]]:
    """What the late query answers at every instant."""
    given: list[Counter[Row]] = [Counter() for _ in range(FAR)]
    for *row, start, end in living.answers[2].elements().rows():
        for time in range(start, min(end, FAR)):
            given[time][tuple(row)] += 1
    return given


def _as_it_is(_living: LivingQuery) -> None:
    """Nothing is harmed."""


@settings(max_examples=3 * settings().max_examples)
@given(data=st.data(), scene=scenes())
def test_a_late_query_with_history_is_as_one_that_has_always_run(
    data: st.DataObject, scene: Scene
) -> None:
    after = data.draw(st.integers(0, len(scene.arrival.steps)))
    done = created(scene, after, _as_it_is)
    if done is not None:
        wrong = differing(scene, *done)
        assert not wrong, f"from {done[1]} on, instants {wrong}:\n{explain(scene.asked[1])}"
        assert done[0].archives.replays == {}, "they come to an end"


@settings(max_examples=2 * settings().max_examples)
@given(
    data=st.data(),
    scene=scenes(),
    keepers=st.sets(st.sampled_from(["S", "T", "U"])),
)
def test_a_late_query_has_the_past_of_the_streams_that_keep_it(
    data: st.DataObject, scene: Scene, keepers: set[str]
) -> None:
    """Of a stream that keeps what its windows hold it has all rows, of others those from now on."""
    after = data.draw(st.integers(0, len(scene.arrival.steps)))
    late = scene.asked[1]
    wrong = _differing_in_part(scene, late, after, keepers)
    assert not wrong, f"instants {wrong}:\n{explain(late)}"


def _differing_in_part(
    scene: Scene,
    late: Plan,
    after: int,
    keepers: Collection[str],
    harm: Callable[[LivingQuery], None] = _as_it_is,
) -> list[int]:
    """The instants at which a query that begins late is not what its streams say."""
    living = scene.living()
    living.keepers = keepers
    since, begins = Time(0), dict.fromkeys(streams_of(late), Time(0))
    with patch.object(time_window, "_GRAINS", 1):
        for number, step in enumerate([*scene.arrival.steps, END]):
            if number == after:
                harm(living)
                begins = _begins(late, moment_of(living))
                begun = _begin(living, late, None)
                assert begun is not None, "it is not refused"
                since = begun
            living.step(step)
    plan, reference = begun_at(late, begins), scene.content.reference()
    given = _given(living)
    return [time for time in range(since, FAR) if given[time] != reference.snapshot(plan, time)]


def _begins(plan: Plan, moment: Moment) -> dict[str, Time]:
    """From when on the rows of each stream are for a query that is created now: the promise."""
    first = _next(QueryEntry("late", plan, "", frozenset()), moment)
    had = {name: min(moment.kept.get(name, first), first) for name in streams_of(plan)}
    everything = dict.fromkeys(had, Time(0))
    full = clear(plan, had)
    if full is not None and full <= first:
        return everything

    def is_enough(name: str) -> bool:
        alone = clear(plan, {**everything, name: had[name]})
        return alone is not None and alone <= first

    return {name: Time(0) if is_enough(name) else first for name in had}


# Mutants: the law must fail for them.


def _fills_nothing(living: LivingQuery) -> None:
    living.archives.fill = lambda inputs, until: None  # type: ignore[method-assign] # noqa: ARG005


def _all_begin_at_once(living: LivingQuery) -> None:
    def begun(plan: Plan, firsts: Mapping[str, Time]) -> Plan:
        return begun_at(plan, Time(min(firsts.values())))

    living.begins = begun


def _all_begin_now(living: LivingQuery) -> None:
    def begun(plan: Plan, firsts: Mapping[str, Time]) -> Plan:
        return begun_at(plan, Time(max(firsts.values())))

    living.begins = begun


@pytest.mark.parametrize(
    "harm",
    [
        _fills_nothing,
        *(
            pytest.param(one, marks=pytest.mark.soak)
            for one in (_all_begin_at_once, _all_begin_now)
        ),
    ],
)
def test_the_law_of_the_past_finds_what_is_wrong(harm: Callable[[LivingQuery], None]) -> None:
    joins = _both().map(lambda plan: conformed(plan, PAIR))

    def is_wrong(drawn: tuple[Scene, int]) -> bool:
        scene, after = drawn
        number = min(after, len(scene.arrival.steps))
        return bool(_differing_in_part(scene, scene.asked[1], number, ["S"], harm))

    find(
        st.tuples(scenes(queries=joins), st.integers(0, 4)),
        is_wrong,
        settings=settings(max_examples=4000, deadline=None, phases=[Phase.generate]),
    )


@st.composite
def _both(draw: DrawFn) -> Plan:
    """All that a stream has ever had beside a window of another one."""
    kept = Aggregate(Window(S, Unbounded()), (), (NamedAggregate("n", COUNT),))
    window = Window(T, draw(time_windows()))
    return Join(kept, window, JoinKind.INNER, TRUE, ("n", "a", "b"))


def _skips_a_batch(living: LivingQuery) -> None:
    fill = living.archives.fill

    def filled(inputs: Mapping[str, tuple[str, Time]], until: int) -> None:
        fill(inputs, until)
        living.archives.replays = {
            rows: replace(one, next=one.next + 1) for rows, one in living.archives.replays.items()
        }

    living.archives.fill = filled  # type: ignore[method-assign]


def _loses_what_comes(living: LivingQuery) -> None:
    replayed = living.archives.replayed

    def without(inputs: Mapping[str, str], streams: Mapping[str, Flow]) -> dict[str, Flow]:
        gone = set(living.archives.replays)
        flows = replayed(inputs, streams)
        nothing = {n: Flow([b.clear() for b in f.batches], f.watermark) for n, f in streams.items()}
        return {**flows, **{r: f for r, f in replayed(inputs, nothing).items() if r in gone}}

    living.archives.replayed = without  # type: ignore[method-assign]


def _forgets_too_early(living: LivingQuery) -> None:
    for archive in living.archives.by_stream.values():
        archive.entries = archive.entries[1:]


def _replays_twice(living: LivingQuery) -> None:
    for archive in living.archives.by_stream.values():
        archive.entries = [
            replace(entry, pieces=(*entry.pieces, *entry.pieces)) for entry in archive.entries
        ]


def _answers_too_early(living: LivingQuery) -> None:
    for archive in living.archives.by_stream.values():
        archive.since = Time(max(archive.since - 1, 0))


@pytest.mark.parametrize(
    "harm",
    [
        _skips_a_batch,
        _loses_what_comes,
        _forgets_too_early,
        _replays_twice,
        _answers_too_early,
    ],
)
def test_the_law_finds_what_is_wrong(harm: Callable[[LivingQuery], None]) -> None:
    def is_wrong(drawn: tuple[Scene, int]) -> bool:
        scene, after = drawn
        done = created(scene, min(after, len(scene.arrival.steps)), harm)
        return done is not None and bool(differing(scene, *done))

    find(
        st.tuples(scenes(queries=COUNTS), st.integers(0, 4)),
        is_wrong,
        settings=settings(max_examples=4000, deadline=None, phases=[Phase.generate]),
    )
