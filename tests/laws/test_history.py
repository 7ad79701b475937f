"""A query that is created late with history answers as one that has always run.

Drawn are the query, another one that runs before, what streams keep, when it is created, inputs,
batches, watermarks, techniques and partitions. Kept rows are replayed two at a time, while others
come. From the instant on that the query is said to answer, its answer is that of the reference.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from laws.living import END, LivingQuery, version
from laws.test_changes import COUNTS, FAR, Scene, scenes
from tidemill.algebra.explain import explain
from tidemill.algebra.reach import clear
from tidemill.algebra.tree import streams_of
from tidemill.catalog.entries import QueryEntry
from tidemill.catalog.records import Instance, Part
from tidemill.control.living import begun_late
from tidemill.engine.engine import Flow
from tidemill.errors import RunError
from tidemill.lang.statements import StartMode
from tidemill.model.time import Time
from tidemill.runtime.runs import Moment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidemill.algebra.plan import Plan


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


def _begin(living: LivingQuery, late: Plan) -> Time | None:
    """Create the late query, beside the one that runs."""
    new = version(2, late)
    moment = moment_of(living)
    entry = QueryEntry("late", new.plan, new.text, new.uses, start=StartMode.HISTORY)
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
    given: list[dict[tuple[object, ...], int]] = [{} for _ in range(FAR)]
    for *row, start, end in living.answers[2].elements().rows():
        for time in range(start, min(end, FAR)):
            given[time][tuple(row)] = given[time].get(tuple(row), 0) + 1
    return [t for t in range(since, FAR) if given[t] != scene.undisturbed(1, t)]


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


# Mutants: the law must fail for them.


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
