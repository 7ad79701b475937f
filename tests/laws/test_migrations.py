"""Another plan takes over in any way and at any moment, and the answer is that of the query.

Drawn are queries of the condition of each way, how both plans are made, the step after which the
statement comes, inputs, batches and watermarks, partitions, and whether state is saved and loaded
in between. What is right is what the reference says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, assume, find, given, reject, settings
from hypothesis import strategies as st

from laws.catalogue import PAIR, R, S, T, U
from laws.living import END, version
from laws.strategies import conformed, join, predicates, time_windows
from laws.test_changes import COUNT, FAR, QUERIES, Scene, plannings, scenes
from plans import physical
from streams import call
from tidemill.algebra.expr import AggregateCall, Column, Named
from tidemill.algebra.plan import (
    Aggregate,
    Difference,
    Distinct,
    Filter,
    Istream,
    Join,
    JoinKind,
    NamedAggregate,
    RowWindow,
    SessionWindow,
    TimeWindow,
    Unbounded,
    Union,
    Window,
)
from tidemill.algebra.reach import forgets
from tidemill.algebra.starts import merging
from tidemill.catalog.records import Record
from tidemill.control.standpoint import Standpoint
from tidemill.control.strategies import candidates, replan
from tidemill.control.taking_over import Refusal, Strategy
from tidemill.control.verdict import exact_from
from tidemill.errors import PlanError, RunError
from tidemill.lang.statements import Migration
from tidemill.model.time import Time
from tidemill.model.types import BIGINT
from tidemill.optimizer.logical.context import CONTEXT
from tidemill.optimizer.logical.rules.push_aggregate_below_join import push_aggregate_below_join

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import DrawFn

    from laws.living import LivingQuery
    from tidemill.algebra.plan import Plan
    from tidemill.control.change import Changed
    from tidemill.optimizer.planning import Planning

WAYS = (Migration.GENMIG, Migration.PARALLEL_TRACK, Migration.REPLAY, Migration.AUTO)


READ: tuple[Plan, ...] = (S, T, U, S, T, R)
"""What is read; streams more often than the relation."""


@st.composite
def combinations(draw: DrawFn) -> Plan:
    """Filters, unions and inner joins of time windows: what Parallel Track is for."""

    def build(depth: int) -> Plan:
        if depth == 0:
            leaf = draw(st.sampled_from(READ))
            plan: Plan = leaf if leaf == R else Window(leaf, draw(time_windows()))
            return conformed(plan, PAIR)
        match draw(st.integers(0, 3)):
            case 0:
                return Filter(build(depth - 1), draw(predicates(PAIR)))
            case 1:
                return Union(build(depth - 1), build(0))
            case _:
                left, right = build(depth - 1), build(draw(st.integers(0, 1)))
                return conformed(join(draw, Join, left, right, st.just(JoinKind.INNER)), PAIR)

    return build(draw(st.integers(0, 3)))


def join_of(left: Plan, right: Plan, kind: JoinKind = JoinKind.INNER) -> Join:
    """A join of two pairs of columns, by the first."""
    condition = call("=", Column("l.a", BIGINT), Column("r.a", BIGINT))
    return Join(left, right, kind, condition, ("l.a", "l.b", "r.a", "r.b"))


def _as_it_is(_living: LivingQuery) -> None:
    """Nothing is harmed."""


def migrated(
    scene: Scene,
    using: Migration,
    after: int,
    prepare: Callable[[LivingQuery], None] = _as_it_is,
) -> tuple[LivingQuery, Changed, Standpoint] | None:
    """The query at the end of the streams, if another plan has taken over after some steps.

    Args:
        scene: What is drawn.
        using: How it takes over.
        after: After how many steps.
        prepare: Says what the new plan is, or harms something.
    """
    living, done, here = scene.living(), None, None
    for number, step in enumerate([*scene.arrival.steps, END]):
        if number == after:
            here = living.here()
            try:
                done = replan(living.record, here, using)
            except RunError:
                return None
            living.record = done.record
            prepare(living)
        living.step(step)
    assert done is not None, "it was migrated"
    assert here is not None, "it was migrated"
    return living, done, here


def wrong_instants(scene: Scene, living: LivingQuery) -> list[int]:
    """The instants at which the answer is not that of the query."""
    given_ = living.snapshots(FAR)
    return [time for time in range(FAR) if given_[time] != scene.undisturbed(0, time)]


def _planned_so(scene: Scene, other: Planning) -> Callable[[LivingQuery], None]:
    """Let the newest instance have a plan of other settings."""

    def prepare(living: LivingQuery) -> None:
        living.plannings[living.record.instances[-1].number] = other

    try:
        physical(scene.asked[0], other)
    except PlanError:
        reject()
    return prepare


@settings()
@given(data=st.data(), scene=scenes(versions=1, queries=combinations()), other=plannings())
def test_parallel_track_changes_nothing(data: st.DataObject, scene: Scene, other: Planning) -> None:
    """And it is as long as the verdict says, and no longer than GenMig."""
    after = data.draw(st.integers(0, len(scene.arrival.steps)))
    prepare, saves = _planned_so(scene, other), data.draw(st.booleans())

    def prepared(living: LivingQuery) -> None:
        prepare(living)
        living.saves = saves

    done = migrated(scene, Migration.PARALLEL_TRACK, after, prepared)
    assert done is not None, "the query is of its condition"
    living, changed, here = done
    assert not wrong_instants(scene, living)
    way = changed.strategies[0]
    assert isinstance(way, Strategy)
    since = changed.record.parts[-1].since
    assert exact_from(changed.record) == since == way.since == here.next + way.length
    others = {one.using: one for one in changed.strategies[1:]}
    genmig = others[Migration.GENMIG]
    assert isinstance(genmig, Strategy)
    assert way.length <= genmig.length


@settings()
@given(data=st.data(), scene=scenes(versions=1), other=plannings())
def test_whatever_takes_over_changes_nothing(
    data: st.DataObject, scene: Scene, other: Planning
) -> None:
    using = data.draw(st.sampled_from(WAYS))
    after = data.draw(st.integers(0, len(scene.arrival.steps)))
    done = migrated(scene, using, after, _planned_so(scene, other))
    if done is None:
        refused = using is not Migration.GENMIG or not forgets(scene.asked[0])
        assert refused, "windows that forget can always be waited for"
        return
    assert not wrong_instants(scene, done[0])
    if using is Migration.PARALLEL_TRACK:
        assert merging(scene.asked[0]) is None


@settings()
@given(data=st.data(), scene=scenes(versions=1, queries=combinations() | QUERIES))
def test_plans_take_over_again_before_the_last_has(data: st.DataObject, scene: Scene) -> None:
    """Each statement is on top of those before, of whatever way."""
    living = scene.living()
    for step in [*scene.arrival.steps, END]:
        for _ in range(data.draw(st.integers(0, 2)) if step is not END else 0):
            try:
                living.record = replan(
                    living.record, living.here(), data.draw(st.sampled_from(WAYS))
                ).record
            except RunError:
                continue
        living.step(step)
    assert not wrong_instants(scene, living)


# Parallel Track: what it refuses, and where it is shorter


def test_it_is_shorter_where_the_stream_with_the_long_window_lies_behind() -> None:
    """The last row of S came at 3 and ends at 103; a row that came at 50 would end at 150."""
    plan = join_of(Window(S, TimeWindow(100)), Window(T, TimeWindow(5)))
    record = Record((version(1, plan),))
    here = Standpoint("q", Time(51), came={S.name: Time(4), T.name: Time(51)})
    ways = {one.using: one for one in candidates(record, here)}
    lengths = {using: one.length for using, one in ways.items() if isinstance(one, Strategy)}
    # From the instant on at which nothing from before is there, and the one after it.
    assert lengths == {Migration.GENMIG: 100, Migration.PARALLEL_TRACK: 103 + 1 - 51}
    changed = replan(record, here)
    assert changed.record.instances[-1].took is not None
    assert changed.record.instances[-1].took.using == "PARALLEL TRACK"
    assert changed.record.instances[-1].firsts(plan) == here.came


SLIDING = Window(S, TimeWindow(5))
"""A window over S."""


@pytest.mark.parametrize(
    ("plan", "what"),
    [
        (Distinct(SLIDING), "DISTINCT"),
        (Aggregate(SLIDING, (), (NamedAggregate("n", COUNT),)), "an aggregate"),
        (Difference(SLIDING, SLIDING), "a set operation"),
        (Window(S, RowWindow(3)), "a window of ROWS"),
        (Window(S, SessionWindow(3)), "a SESSION window"),
        (Window(S, Unbounded()), "a window that keeps everything"),
        (Istream(SLIDING), "a stream of changes"),
        (join_of(SLIDING, Window(T, TimeWindow(5)), JoinKind.LEFT), "an outer join"),
    ],
)
def test_what_merges_rows_is_refused(plan: Plan, what: str) -> None:
    here = Standpoint("q", Time(51), came={S.name: Time(51), T.name: Time(51)})
    record = Record((version(1, plan),))
    ways = {one.using: one for one in candidates(record, here)}
    refused = ways[Migration.PARALLEL_TRACK]
    assert isinstance(refused, Refusal)
    assert f"the query has {what}, whose rows" in refused.why
    with pytest.raises(RunError, match="REPLAN USING PARALLEL TRACK is not possible") as raised:
        replan(record, here, Migration.PARALLEL_TRACK)
    assert raised.value.hint is not None
    assert (isinstance(ways[Migration.GENMIG], Strategy)) is forgets(plan)


# Mutants: the law must fail for them.


def _too_early(living: LivingQuery) -> None:
    # The plans agree at the instant before the switch as well, so that one less is still right.
    living.hurry = 2


def _without_clip(living: LivingQuery) -> None:
    living.clips = False


@pytest.mark.parametrize("harm", [_too_early, _without_clip])
def test_the_law_finds_what_is_wrong(harm: Callable[[LivingQuery], None]) -> None:
    def is_wrong(drawn: tuple[Scene, int]) -> bool:
        scene, after = drawn
        at = min(after, len(scene.arrival.steps))
        done = migrated(scene, Migration.PARALLEL_TRACK, at, harm)
        return done is not None and bool(wrong_instants(scene, done[0]))

    find(
        st.tuples(scenes(versions=1, queries=combinations()), st.integers(0, 4)),
        is_wrong,
        settings=settings(max_examples=4000, deadline=None, phases=[Phase.generate]),
    )


# Aggregates above a join, and below and above it (R9 to R11)


@st.composite
def aggregates_of_joins(draw: DrawFn) -> Plan:
    """Aggregates that can be taken before the join: counts and extremes, with keys of any side."""
    left, right = (Window(one, draw(time_windows())) for one in (S, T))
    by = draw(st.sampled_from(["l.a", "r.b", "r.a", "l.b"]))
    function, of = draw(
        st.sampled_from([("count", None), ("count", "b"), ("max", "b"), ("min", "b"), ("max", "a")])
    )
    side = draw(st.sampled_from("lr"))
    value = None if of is None else Column(f"{side}.{of}", PAIR[of].type)
    type_ = BIGINT if function == "count" or value is None else value.type
    key = Named("k", Column(by, PAIR[by[-1]].type))
    return Aggregate(
        join_of(left, right), (key,), (NamedAggregate("v", AggregateCall(function, value, type_)),)
    )


def pushed(plan: Plan) -> Plan:
    """The plan with an aggregate below the join."""
    return next(push_aggregate_below_join(plan, CONTEXT), plan)


@settings()
@given(
    data=st.data(),
    scene=scenes(versions=1, queries=aggregates_of_joins()),
    using=st.sampled_from([Migration.GENMIG, Migration.REPLAY]),
    was_pushed=st.booleans(),
)
def test_an_aggregate_goes_below_a_join_and_back(
    data: st.DataObject, scene: Scene, using: Migration, *, was_pushed: bool
) -> None:
    """From one form to the other at any moment: no row is counted twice, and none is missing."""
    plan = scene.asked[0]
    assume(pushed(plan) != plan)
    after = data.draw(st.integers(0, len(scene.arrival.steps)))

    def switched(living: LivingQuery) -> None:
        living.shapes[living.record.instances[-1].number] = _kept if was_pushed else pushed

    scene.shape = pushed if was_pushed else _kept
    done = migrated(scene, using, after, switched)
    assume(done is not None)
    assert done is not None, "assumed"
    assert not wrong_instants(scene, done[0])


def _kept(plan: Plan) -> Plan:
    """The plan as it was written."""
    return plan
