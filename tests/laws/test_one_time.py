"""A query that is asked once gives the snapshot of the reference, at every instant that is known.

Drawn are a plan, inputs, batches and watermarks, for how long each stream keeps its rows, and the
boundary at which it is asked. The reference evaluates the plan on the whole streams. Where it is
said that rows are not kept, they are needed, and they are not.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, assume, find, given, reject, settings
from hypothesis import strategies as st

from laws.arrivals import arrivals
from laws.asking import asked, asked_of_all, kept_by_batch
from laws.catalogue import LAST, PAIR, SOURCES, Inputs, inputs
from laws.derived_streams import dense_inputs
from laws.strategies import pairs, plans
from physical.run import normal
from tidemill.algebra.explain import explain
from tidemill.algebra.plan import Relation
from tidemill.algebra.reach import clear, needs
from tidemill.algebra.tree import share, streams_of
from tidemill.catalog.entries import QueryEntry
from tidemill.catalog.records import Instance, Part, Record, Version
from tidemill.control.asked import Asked
from tidemill.errors import PlanError, RunError
from tidemill.model.time import END_OF_TIME, Time
from tidemill.runtime.one_time import NotKnownError

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl
    from hypothesis.strategies import DrawFn

    from laws.arrivals import Arrival
    from laws.asking import Keeping
    from tidemill.algebra.plan import Plan
    from tidemill.algebra.snapshot import Bag, Row


@dataclass(frozen=True)
class Scene:
    """What is drawn for a law."""

    plan: Plan
    content: Inputs
    arrival: Arrival
    keeps: dict[str, int | None]
    boundary: int
    time: int

    def keeping(self) -> Keeping:
        """What is kept at the boundary."""
        return kept_by_batch(self.content, self.arrival, self.keeps, self.boundary)


@st.composite
def scenes(draw: DrawFn) -> Scene:
    """A question, and when it is asked."""
    content = draw(inputs() | dense_inputs())
    arrival = draw(arrivals(content.streams, LAST))
    return Scene(
        share(draw(plans())),
        content,
        arrival,
        {source.name: draw(st.sampled_from([None, None, 0, 3, 8])) for source in SOURCES},
        draw(st.integers(1, len(arrival.steps))),
        draw(st.integers(0, LAST)),
    )


def bag(frame: pl.DataFrame) -> Bag:
    """The rows of a frame, with how often they are there."""
    return Counter(map(normal, frame.iter_rows()))


def wanted(found: Bag) -> Bag:
    """The same rows as a frame has them."""
    total: Counter[Row] = Counter()
    for row, count in found.items():
        total[normal(row)] += count
    return +total


def rows_at(here: Asked, plan: Plan, time: int) -> Bag | None:
    """The rows at an instant; ``None`` if it is not known, or rows are not kept."""
    question = asked_of_all(plan)
    try:
        here.require_known(question, Time(time))
        return bag(here.frame(question, Time(time)))
    except PlanError as error:
        if "stay for ever" not in str(error):
            raise
        reject()  # a window over rows that never end has no finite answer
    except RunError:
        return None


@given(scene=scenes())
def test_what_is_known_and_kept_is_the_snapshot_of_the_reference(scene: Scene) -> None:
    keeping = scene.keeping()
    past, plan = keeping.past(), scene.plan
    found = rows_at(asked(past), plan, scene.time)
    streams = streams_of(plan)
    is_known = all(scene.time < keeping.watermarks[name] for name in streams)
    least = needs(plan, Time(scene.time))
    is_kept = all(least[name] >= past.streams[name].since for name in streams)
    assert (found is not None) == (is_known and is_kept)
    if found is not None:
        reference = scene.content.reference().snapshot(plan, scene.time)
        assert found == wanted(reference), explain(plan)


@given(scene=scenes())
def test_the_same_instant_has_the_same_frame_at_every_boundary(scene: Scene) -> None:
    """Row by row: batches that come later, or go, are not seen, nor how rows were cut."""
    question = asked_of_all(scene.plan)
    frames = []
    for boundary in range(1, len(scene.arrival.steps) + 1):
        here = asked(replace(scene, boundary=boundary).keeping().past())
        if rows_at(here, scene.plan, scene.time) is not None:
            frames.append(here.frame(question, Time(scene.time)))
    assert all(frame.equals(frames[0]) for frame in frames[1:])


@given(scene=scenes())
def test_now_is_the_last_instant_that_is_known(scene: Scene) -> None:
    here, question = asked(scene.keeping().past()), asked_of_all(scene.plan)
    known = here.known(question)
    if known in (0, END_OF_TIME):
        return
    now = here.now(question)
    here.require_known(question, now)
    with pytest.raises(NotKnownError):
        here.require_known(question, Time(now + 1))


@given(scene=scenes())
def test_the_instant_that_can_be_asked_for_is_told(scene: Scene) -> None:
    """From there on nothing is missing; an instant before, something is."""
    past = scene.keeping().past()
    since = {name: past.streams[name].since for name in streams_of(scene.plan)}
    first = clear(scene.plan, since)
    here, known = asked(past), asked(past).known(asked_of_all(scene.plan))
    if not since or known == 0:
        return
    for time in range(min(known, LAST)):
        if rows_at(here, scene.plan, time) is None:
            assert first is None or time < first
        else:
            assert first is not None or not any(since.values())
            assert first is None or time >= first


# Queries that live


@st.composite
def lives(draw: DrawFn) -> tuple[Record, Scene]:
    """A record of some versions, whose parts answer what they will, and when it is asked."""
    scene = draw(scenes())
    versions = [
        Version(n, "", share(draw(pairs(2)))) for n in range(1, draw(st.integers(1, 2)) + 1)
    ]
    assume(len({one.columns for one in versions}) == 1)
    instances = [
        Instance(n, draw(st.integers(1, len(versions))), Time(draw(st.sampled_from([0, 0, 4]))))
        for n in range(1, 4)
    ]
    parts = [
        Part(draw(st.integers(1, 3)), Time(since), Time(until))
        for since, until in draw(
            st.lists(
                st.tuples(st.integers(0, 8), st.integers(4, LAST) | st.just(int(END_OF_TIME))),
                min_size=1,
                max_size=3,
            )
        )
        if since < until
    ]
    assume(parts)
    return Record(tuple(versions), tuple(instances), tuple(parts)), scene


@given(drawn=lives())
def test_the_answer_of_a_query_is_what_its_parts_say(drawn: tuple[Record, Scene]) -> None:
    record, scene = drawn
    entry = QueryEntry("q", record.current.plan, "", frozenset(), record=record)
    keeping = replace(scene, keeps=dict.fromkeys(scene.keeps)).keeping()
    here = asked(keeping.past(), entry)
    question = asked_of_all(Relation("@q", PAIR), ["q"])
    if scene.time >= here.known(question):
        return
    if scene.time < min(part.since for part in record.parts):
        with pytest.raises(RunError, match="answers from"):
            here.frame(question, Time(scene.time))
        return
    try:
        found = bag(here.frame(question, Time(scene.time)))
    except PlanError:
        reject()
    reference, total = scene.content.reference(), Counter[object]()
    for part in record.parts:
        if part.since <= scene.time < part.until:
            instance = record.instance(part.instance)
            plan = instance.begun(record.version_of(part).plan)
            total += Counter(wanted(reference.snapshot(plan, scene.time)))
    assert found == total


# What is wrong is found


class _OneTooShort(Asked):
    """Reads a slice that begins an instant too late."""

    __slots__ = ()

    @staticmethod
    def first(plan: Plan, time: Time) -> dict[str, Time]:
        return {name: Time(least + 1) for name, least in Asked.first(plan, time).items()}


class _OneTooEarly(Asked):
    """Takes the instant of the watermark for known."""

    __slots__ = ()

    def known(self, question: object) -> Time:
        return Time(super().known(question) + 1)  # type: ignore[arg-type]


def _short(here: Asked) -> Asked:
    return _OneTooShort(here.catalog, here.past, here.given, here.memory)


def _early(here: Asked) -> Asked:
    return _OneTooEarly(here.catalog, here.past, here.given, here.memory)


def _without_since(here: Asked) -> Asked:
    streams = {name: replace(one, since=Time(0)) for name, one in here.past.streams.items()}
    return replace(here, past=replace(here.past, streams=streams))


def _without_last_batch(here: Asked) -> Asked:
    """As if the lists were read before the boundary: its last batch is missing."""
    streams = {
        name: replace(one, entries=tuple(e for e in one.entries if e.batch < here.past.done - 1))
        for name, one in here.past.streams.items()
    }
    return replace(here, past=replace(here.past, streams=streams))


@pytest.mark.parametrize("harm", [_short, _early, _without_since, _without_last_batch])
def test_the_law_finds_what_is_wrong(harm: Callable[[Asked], Asked]) -> None:
    def is_wrong(scene: Scene) -> bool:
        found = rows_at(harm(asked(scene.keeping().past())), scene.plan, scene.time)
        reference = scene.content.reference()
        return found is not None and found != wanted(reference.snapshot(scene.plan, scene.time))

    find(
        scenes(),
        is_wrong,
        settings=settings(max_examples=4000, deadline=None, phases=[Phase.generate]),
    )
