"""What a changed query gives is the formula of the variant, of runs that nothing has disturbed.

Drawn are two queries with the same columns, others that run beside them, a variant, the step after
which the change is asked for and perhaps a later instant for it, inputs, batches and watermarks,
the technique and the number of partitions. The formula is written here once more, from the table of
Esmaili, M5 to M8, read on instants; the reference evaluates both queries on the whole streams.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, assume, find, given, reject, settings
from hypothesis import strategies as st

from laws.arrivals import arrivals
from laws.catalogue import LAST, PAIR, Inputs, S, inputs
from laws.derived_streams import dense_inputs
from laws.living import END, LivingQuery, version
from laws.strategies import conformed, pairs, time_windows
from laws.strict_plans import SHAPES, strict_plans
from plans import physical
from tidemill.algebra.bounds import endless_input
from tidemill.algebra.explain import explain
from tidemill.algebra.expr import AggregateCall
from tidemill.algebra.plan import Aggregate, NamedAggregate, Window
from tidemill.algebra.reach import begun_at, clear, forgets, newest
from tidemill.algebra.tree import share, streams_of
from tidemill.catalog.records import Record
from tidemill.control.change import alter
from tidemill.control.strategies import replan
from tidemill.control.verdict import exact_from
from tidemill.errors import PlanError, RunError
from tidemill.lang.statements import Change
from tidemill.model.time import END_OF_TIME, Time
from tidemill.model.types import BIGINT
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.planning import Joins, Planning, Spread

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import DrawFn, SearchStrategy

    from laws.arrivals import Arrival
    from tidemill.algebra.plan import Plan
    from tidemill.algebra.snapshot import Reference, Row
    from tidemill.control.standpoint import Standpoint
    from tidemill.physical.plan import PhysicalPlan

FAR = LAST + 30
"""After it nothing of the streams is in any window that is drawn."""

COUNT = AggregateCall("count", None, BIGINT)

QUERIES = pairs(3) | st.sampled_from(SHAPES).flatmap(strict_plans).map(
    lambda plan: conformed(plan, PAIR)
)


@st.composite
def plannings(draw: DrawFn) -> Planning:
    """Settings that make other plans of the same query."""
    return Planning(
        optimized=draw(st.booleans()),
        max_delay=draw(st.sampled_from([None, 0, 3])),
        technique=draw(st.sampled_from(Technique)),
        joins=draw(st.sampled_from(Joins)),
        spread=draw(st.sampled_from(Spread)),
    )


COUNTS = time_windows().map(
    lambda spec: conformed(Aggregate(Window(S, spec), (), (NamedAggregate("a", COUNT),)), PAIR)
)
"""Queries whose answers differ wherever one row is missing."""


@st.composite
def scenes(draw: DrawFn, versions: int = 2, queries: SearchStrategy[Plan] = QUERIES) -> Scene:
    """Queries and their surroundings."""
    content = draw(inputs() | dense_inputs())
    asked = [share(draw(queries)) for _ in range(versions)]
    assume(all(streams_of(plan) and endless_input(plan) is None for plan in asked))
    planning = draw(plannings())
    try:
        made = [physical(plan, planning) for plan in asked]
    except PlanError as error:
        if "stay for ever" not in str(error):
            raise
        reject()  # a window over rows that never end has no finite answer
    neighbours = {"twin": made[-1]} if draw(st.booleans()) else {}
    return Scene(
        asked,
        content,
        draw(arrivals(content.streams, LAST)),
        planning,
        neighbours,
        draw(st.integers(1, 3)),
        draw(st.sampled_from([None, 0, 3, 8, 1000])),
    )


@dataclass
class Scene:
    """What is drawn for a law, and another plan of the same meaning for the first instance."""

    asked: list[Plan]
    content: Inputs
    arrival: Arrival
    planning: Planning
    neighbours: dict[str, PhysicalPlan]
    partitions: int
    keeps: int | None = None
    reference: Reference | None = None
    shape: Callable[[Plan], Plan] | None = None

    def living(self) -> LivingQuery:
        """The first query, before anything has come."""
        record = Record((version(1, self.asked[0]),))
        return LivingQuery(
            record,
            self.content,
            self.planning,
            self.neighbours,
            self.partitions,
            keeps=self.keeps,
            shapes={} if self.shape is None else {1: self.shape},
        )

    def undisturbed(self, number: int, time: int) -> Counter[Row]:
        """What a query answers if it has always run."""
        if self.reference is None:
            self.reference = self.content.reference()
        return self.reference.snapshot(self.asked[number], time)


def formula(
    using: Change, old: Plan, new: Plan, at: Time, here: Standpoint
) -> tuple[Time, Time] | None:
    """Until when the old version answers, and from when on the new one does (M5 to M8).

    EXACT can be had where streams keep what windows hold.
    """
    drained, full = clear(old, at), clear(new, at)
    match using:
        case Change.EXACT:
            had = {name: min(here.kept.get(name, here.next), here.next) for name in streams_of(new)}
            filled = clear(new, had)
            if filled is None or filled > at:
                return None
            helps = filled <= here.next or filled != clear(new, here.next)
            return (at, at) if helps else None
        case Change.IMMEDIATE:
            return at, at if full is None else full
        case _ if full is None:
            return None
        case Change.GRACEFUL:
            return full, full
        case _ if drained is None:
            return None
        case Change.DRAIN:
            last = newest(old, Time(drained - 1)) if drained else -1
            later = clear(new, next(Time(t) for t in range(at, drained + 1) if t > last))
            return None if later is None else (drained, later)
        case Change.QUERY_ORDER | Change.STREAM_ORDER:
            return drained, full
        case Change.GRACEFUL_DRAIN:
            ends = clear(old, full)
            return None if ends is None else (ends, full)


def changed(
    scene: Scene, using: Change, after: int, later: int, tell: Callable[[LivingQuery], None]
) -> tuple[LivingQuery, Time] | None:
    """The query that is changed after some steps, at the end of the streams; and when it was.

    Args:
        scene: What is drawn.
        using: The variant.
        after: After how many steps the change is asked for.
        later: How much later than at once it is to be.
        tell: Is told of the query before it is changed, so that mutants can harm it.
    """
    living, new = scene.living(), version(2, scene.asked[1])
    at = Time(0)
    for number, step in enumerate([*scene.arrival.steps, END]):
        if number == after:
            here = living.here(new.plan)
            tell(living)
            at = Time(here.next + later)
            try:
                living.record = alter(living.record, new, using, at, here).record
            except RunError:
                assert formula(using, scene.asked[0], scene.asked[1], at, here) is None
                return None
            living.changed_at = here
        living.step(step)
    return living, at


def differing(scene: Scene, living: LivingQuery, using: Change, at: Time) -> list[int]:
    """The instants at which the answer is not that of the formula."""
    assert living.changed_at is not None, "it was changed"
    numbers = formula(using, scene.asked[0], scene.asked[1], at, living.changed_at)
    assert numbers is not None, "it was changed"
    until, since = numbers
    wrong = []
    begun, reference = begun_at(scene.asked[1], at), scene.content.reference()
    given = living.snapshots(FAR)
    for time in range(FAR):
        expected: Counter[Row] = Counter()
        if time < until:
            expected += scene.undisturbed(0, time)
        if time >= since:
            # From windows that do not forget by time the past is missing.
            full = forgets(scene.asked[1]) or using is Change.EXACT
            expected += scene.undisturbed(1, time) if full else reference.snapshot(begun, time)
        if given[time] != expected:
            wrong.append(time)
    return wrong


def _as_it_is(_living: LivingQuery) -> None:
    """Nothing is harmed."""


@settings(max_examples=2 * settings().max_examples)
@given(data=st.data(), scene=scenes(), using=st.sampled_from(Change))
def test_a_change_is_its_formula(data: st.DataObject, scene: Scene, using: Change) -> None:
    after = data.draw(st.integers(0, len(scene.arrival.steps)))
    later = data.draw(st.sampled_from([0, 0, 1, 3]))
    done = changed(scene, using, after, later, _as_it_is)
    if done is not None:
        living, at = done
        wrong = differing(scene, living, using, at)
        assert not wrong, f"{using} at {at}, instants {wrong}:\n{explain(scene.asked[1])}"


@settings()
@given(data=st.data(), scene=scenes())
def test_the_instant_that_is_named_is_exact(data: st.DataObject, scene: Scene) -> None:
    """From ``exact_from`` on the answer is that of the new version as if it had always run."""
    using = data.draw(st.sampled_from(Change))
    after = data.draw(st.integers(0, len(scene.arrival.steps)))
    done = changed(scene, using, after, 0, _as_it_is)
    assume(done is not None)
    assert done is not None, "assumed"
    living, _ = done
    first = exact_from(living.record)
    given = living.snapshots(FAR)
    for time in range(first or FAR, FAR):
        assert given[time] == scene.undisturbed(1, time), f"at {time}"


@settings()
@given(data=st.data(), scene=scenes(versions=1), other=plannings())
def test_another_plan_for_the_same_meaning_changes_nothing(
    data: st.DataObject, scene: Scene, other: Planning
) -> None:
    """GenMig: whatever the two plans are, the answer is that of the query, at every instant."""
    after = data.draw(st.integers(0, len(scene.arrival.steps)))
    living = scene.living()
    try:
        physical(scene.asked[0], other)
    except PlanError:
        reject()
    for number, step in enumerate([*scene.arrival.steps, END]):
        if number == after:
            try:
                living.record = replan(living.record, living.here()).record
            except RunError:
                keeps_all = all(not time for time in living.here().kept.values())
                assert not forgets(scene.asked[0])
                assert not (living.here().kept and keeps_all)
                return
            living.plannings[living.record.instances[-1].number] = other
        living.step(step)
    given = living.snapshots(FAR)
    for time in range(FAR):
        assert given[time] == scene.undisturbed(0, time), f"at {time}"


@settings()
@given(data=st.data(), scene=scenes(versions=3))
def test_a_change_on_top_of_a_change(data: st.DataObject, scene: Scene) -> None:
    """All versions that still answer are the old one (M9); each answers what it does by itself."""
    living = scene.living()
    ways = [one for one in Change if one is not Change.EXACT or scene.keeps is not None]
    when = sorted(data.draw(st.integers(0, len(scene.arrival.steps))) for _ in range(2))
    meant = [0]  # by version, what it asks
    for number, step in enumerate([*scene.arrival.steps, END]):
        for turn, after in enumerate(when):
            if after == number:
                new = version(len(meant) + 1, scene.asked[turn + 1])
                using = data.draw(st.sampled_from(ways))
                with suppress(RunError):  # a change that is refused changes nothing
                    done = alter(living.record, new, using, None, living.here(new.plan))
                    living.record = done.record
                    meant.append(turn + 1)
        living.step(step)
    record, given = living.record, living.snapshots(FAR)
    for time in range(FAR):
        expected: Counter[Row] = Counter()
        for part in record.parts:
            if part.since <= time < part.until:
                one = record.instance(part.instance)
                asked = meant[one.version - 1]
                if forgets(scene.asked[asked]):
                    expected += scene.undisturbed(asked, time)
                else:
                    begun = one.begun(scene.asked[asked])
                    expected += scene.content.reference().snapshot(begun, time)
        assert given[time] == expected, f"at {time}"
    assert record.parts[-1].until == END_OF_TIME


# Mutants: the law must fail for them.


def _one_too_early(living: LivingQuery) -> None:
    living.hurry = 1


def _without_since(living: LivingQuery) -> None:
    living.begins = lambda plan, _time: plan
    living.epochs = False


def _without_clip(living: LivingQuery) -> None:
    living.clips = False


@pytest.mark.parametrize("harm", [_one_too_early, _without_since, _without_clip])
def test_the_law_finds_what_is_wrong(harm: Callable[[LivingQuery], None]) -> None:
    def is_wrong(drawn: tuple[Scene, Change, int]) -> bool:
        scene, using, after = drawn
        done = changed(scene, using, min(after, len(scene.arrival.steps)), 0, harm)
        return done is not None and bool(differing(scene, done[0], using, done[1]))

    find(
        st.tuples(scenes(queries=COUNTS), st.sampled_from(Change), st.integers(0, 4)),
        is_wrong,
        settings=settings(max_examples=4000, deadline=None, phases=[Phase.generate]),
    )
