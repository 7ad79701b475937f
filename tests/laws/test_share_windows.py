"""Queries that are alike but for the sizes of windows share a join; each gives its own answer.

Drawn are a plan, and what the windows of other queries differ by: all by the same, or each by
something else; the steps in which queries are there, inputs, how they arrive, partitions, whether
state is saved and loaded in between, and which queries share although it may not pay.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from laws.arrivals import arrivals
from laws.catalogue import HORIZON, PAIR, SOURCES, Inputs, P, R, S, T, inputs
from laws.strategies import aggregate, conformed, join, predicates, time_windows, windows
from laws.test_engine import relation_inputs, snapshot
from laws.test_mutants import fails
from laws.test_stacks import taken_over
from laws.test_traits import LAWS, Noted
from local import element_batch
from plans import implement
from streams import names_of_both
from tidemill.algebra.explain import explain
from tidemill.algebra.expr import TRUE
from tidemill.algebra.plan import (
    Distinct,
    Filter,
    Istream,
    Join,
    JoinKind,
    TimeWindow,
    Unbounded,
    Union,
    Window,
)
from tidemill.algebra.snapshot import Reference
from tidemill.algebra.tree import share, transform_up
from tidemill.engine.engine import Flow
from tidemill.errors import PlanError
from tidemill.model.batch import END, START, TIME_TYPE, polars_schema
from tidemill.model.time import END_OF_TIME, Time
from tidemill.optimizer.cost import PlanCost
from tidemill.optimizer.physical import share_windows as search
from tidemill.optimizer.physical.share_windows import share_windows
from tidemill.physical import interval
from tidemill.physical.fragments import build_graph
from tidemill.physical.operators.rows.shorten import Shorten
from tidemill.physical.plan import Apply, Input, begun_in, rebuilt, walk_physical
from tidemill.physical.skip_the_past import skip_the_past
from tidemill.physical.smaller_windows import (
    Sizes,
    shortened,
    sizes_of,
    unshared,
    with_smaller,
)
from tidemill.runtime.local.runner import LocalRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from hypothesis.strategies import DrawFn

    from laws.arrivals import Arrival, Step
    from tidemill.algebra.plan import Plan
    from tidemill.model.batch import Batch
    from tidemill.physical.plan import PhysicalPlan
    from tidemill.physical.traits import Traits

STEPS = 4
RELATIONS = (R.name, P.name)
LASTING = (R.name,)


# Plans


@st.composite
def joined_windows(draw: DrawFn) -> Plan:
    """Joins of windows, of relations, and of what else there is, and what stands on them."""

    def leaf(*, is_window: bool) -> Plan:
        source = draw(st.sampled_from((S, T)))
        others: tuple[Plan, ...] = (
            R,
            R,
            P,
            source,
            Window(source, Unbounded()),
            Window(source, draw(windows(PAIR))),
        )
        window = Window(source, TimeWindow(draw(st.integers(1, 5))))
        sliding = Window(source, draw(time_windows()))
        usual = st.sampled_from((window, window, sliding))
        plan: Plan = draw(usual if is_window else usual | st.sampled_from(others))
        plan = conformed(plan, PAIR)
        return Filter(plan, draw(predicates(PAIR))) if draw(st.integers(0, 3)) == 0 else plan

    def joined(left: Plan, right: Plan) -> Plan:
        kinds = st.sampled_from([JoinKind.INNER] * 5 + [JoinKind.LEFT])
        return conformed(join(draw, Join, left, right, kinds), PAIR)

    plan = joined(leaf(is_window=True), leaf(is_window=False))
    for _ in range(draw(st.integers(0, 2))):
        other = leaf(is_window=False)
        plan = Union(plan, other) if draw(st.integers(0, 2)) == 0 else joined(plan, other)
    above: list[Callable[[Plan], Plan]] = [
        *[lambda p: p] * 3,
        lambda p: Filter(p, draw(predicates(PAIR))),
        Distinct,
        lambda p: aggregate(draw, p),
        lambda p: Window(Istream(p), TimeWindow(2)),
    ]
    return draw(st.sampled_from(above))(plan)


def resized(plan: Plan, more: Iterator[int]) -> Plan:
    """The plan with larger windows, each by the next number."""

    def larger(node: Plan) -> Plan | None:
        match node:
            case Window(_, TimeWindow(size, slide)):
                return replace(node, spec=TimeWindow(size + next(more), slide))
            case _:
                return None

    return transform_up(share(plan), larger)


@dataclass(frozen=True)
class Query:
    """A query, and the steps in which it is there."""

    plan: Plan
    first: int
    after: int


@st.composite
def families(draw: DrawFn) -> list[Query]:
    """Queries that are alike; most are there from the beginning to the end."""
    plan, found = draw(joined_windows()), []
    for _ in range(draw(st.integers(2, 4))):
        by = draw(st.integers(0, 4))
        each = [by] * 16
        if draw(st.integers(0, 3)) == 0:
            each = draw(st.lists(st.integers(0, 2), min_size=16, max_size=16))
        first = draw(st.sampled_from([0, 0, 0, 1]))
        after = draw(st.sampled_from([STEPS + 1, STEPS + 1, first + 1]))
        found.append(Query(resized(plan, iter(each)), first, after))
    return found


def sometimes(share_of_sixteen: int) -> Callable[[Mapping[str, PhysicalPlan]], PlanCost]:
    """What sharing costs: for so many parts of sixteen less than windows of their own."""

    def cost(plans: Mapping[str, PhysicalPlan]) -> PlanCost:
        own = plans.get("own")
        if own is None:
            return PlanCost({}, 0.0)
        is_shared = isinstance(own, Apply) and isinstance(own.operator, Shorten)
        pays = int(own.fingerprint[0], 16) < share_of_sixteen
        return PlanCost({}, (1.0 if pays else 3.0) if is_shared else 2.0)

    return cost


# The laws


@settings(max_examples=4 * settings().max_examples)
@given(
    data=st.data(),
    drawn=families(),
    content=inputs(),
    partitions=st.sampled_from([1, 2, 3]),
    multiway=st.booleans(),
    lazy=st.sampled_from([0, 3]),
    sharing=st.sampled_from([16, 16, 8]),
    reload=st.booleans(),
)
def test_each_query_gives_its_own_answer(  # noqa: PLR0913 — it draws everything
    data: st.DataObject,
    drawn: list[Query],
    content: Inputs,
    *,
    partitions: int,
    multiway: bool,
    lazy: int,
    sharing: int,
    reload: bool,
) -> None:
    how = How(partitions, multiway, lazy, sharing, reload)
    assert_own_answers(data, drawn, content, how)


@dataclass(frozen=True)
class How:
    """How queries are run."""

    partitions: int = 1
    multiway: bool = False
    lazy: int = 0
    sharing: int = 16
    reload: bool = False


def assert_own_answers(data: st.DataObject, drawn: list[Query], content: Inputs, how: How) -> None:
    """Each query gives what the reference says, of what comes from its first step on."""
    arrival = data.draw(arrivals(content.streams, max(HORIZON)))
    plans = [implement(query.plan, multiway=how.multiway, lazy=how.lazy) for query in drawn]
    try:
        out = together(drawn, plans, content, arrival, how)
    except PlanError as error:
        if "stay for ever" not in str(error):
            raise
        reject()  # a window over rows that never end has no finite answer
    for i, query in enumerate(drawn):
        if query.first <= len(arrival.steps) < query.after:
            seen = {
                name: tuple(e for step in arrival.steps[query.first :] for e in step[name][0])
                for name in content.streams
            }
            reference = Reference(seen, content.relations)
            for time in HORIZON:
                expected = reference.snapshot(query.plan, time)
                actual = snapshot(out[f"q{i}"], query.plan.schema, time)
                assert actual == expected, f"at {time}:\n{explain(query.plan)}"


def together(
    drawn: list[Query],
    plans: list[PhysicalPlan],
    content: Inputs,
    arrival: Arrival,
    how: How,
) -> dict[str, list[Batch]]:
    """What queries give that come and go; those that come together share what they can."""
    end: Step = dict.fromkeys((source.name for source in SOURCES), ((), END_OF_TIME))
    relations = relation_inputs(content)
    out: dict[str, list[Batch]] = {f"q{i}": [] for i in range(len(drawn))}
    running: dict[str, PhysicalPlan] = {}
    runner, fed = LocalRunner(build_graph({}), partitions=how.partitions), set()
    for number, step in enumerate([*arrival.steps, end]):
        there = [i for i, query in enumerate(drawn) if query.first <= number < query.after]
        new = {
            f"q{i}": begun_in(plans[i], number, RELATIONS)[0] if number else plans[i]
            for i in there
            if drawn[i].first == number
        }
        stay = {name: running[name] for name in running if int(name[1:]) in there}
        done = share_windows({**stay, **new}, new, LASTING, sometimes(how.sharing))
        if how.reload or new or stay.keys() != running.keys():
            runner = taken_over(runner, build_graph({**stay, **done.plans}))
        running = {**stay, **done.plans}
        flows: dict[str, Flow] = {}
        for input_ in runner.graph.inputs:
            if input_.name in RELATIONS:
                is_over = input_.rows in fed
                fed.add(input_.rows)
                flows[input_.rows] = Flow([], END_OF_TIME) if is_over else relations[input_.name]
            else:
                elements, watermark = step[input_.name]
                batch = element_batch(input_.schema, elements)
                flows[input_.rows] = Flow([batch], Time(watermark))
        for name, batches in runner.step(flows).items():
            out[name] += batches
    for engine in (engine for engines in runner.engines for engine in engines):
        for name, state in engine.states.items():
            assert state.rows() == 0, f"{name} remembers {state.rows()} rows after the end"
    return out


@settings(max_examples=2 * settings().max_examples)
@given(
    data=st.data(),
    plan=joined_windows(),
    more=st.integers(1, 4),
    content=inputs(),
    partitions=st.sampled_from([1, 2]),
    multiway=st.booleans(),
)
def test_a_part_with_smaller_windows_is_the_larger_one_shortened(  # noqa: PLR0913 — see above
    data: st.DataObject,
    plan: Plan,
    more: int,
    content: Inputs,
    *,
    partitions: int,
    multiway: bool,
) -> None:
    """Element by element, and step by step: so it is whatever stands above."""
    larger = implement(resized(plan, iter([more] * 16)), multiway=multiway)
    sides: dict[str, PhysicalPlan] = {}
    for part in walk_physical([larger]):
        sizes = sizes_of(larger, LASTING).get(part.fingerprint)
        for by in range(1, more + 1):
            wanted = None if sizes is None or sizes.least is None else sizes.least - by
            if sizes is not None and wanted and sizes.joined and by % sizes.slide == 0:
                name = f"{len(sides)}"
                sides[f"{name} shared"] = shortened(part, by, sizes.least or 1)
                sides[f"{name} alone"] = with_smaller(part, by)
    if not sides:
        reject()
    arrival = data.draw(arrivals(content.streams, max(HORIZON)))
    runner = LocalRunner(build_graph(sides), partitions=partitions)
    relations = relation_inputs(content)
    end: Step = dict.fromkeys((source.name for source in SOURCES), ((), END_OF_TIME))
    for number, step in enumerate([*arrival.steps, end]):
        flows = {
            n: Flow([element_batch(s.schema, step[n][0])], Time(step[n][1]))
            for n, s in ((source.name, source) for source in SOURCES)
        }
        for name, flow in relations.items():
            flows[name] = Flow([], END_OF_TIME) if number else flow
        read = {input_.name for input_ in runner.graph.inputs}
        given_ = runner.step({n: flow for n, flow in flows.items() if n in read})
        for name in (n for n in sides if n.endswith("alone")):
            other = name.replace("alone", "shared")
            assert bag(given_[other], sides[name]) == bag(given_[name], sides[name])


def bag(batches: list[Batch], plan: PhysicalPlan) -> Counter[tuple[object, ...]]:
    """The elements, with their times."""
    columns = [*plan.schema.names, START, END]
    return Counter(row for batch in batches for row in batch.select(columns).iter_rows())


@given(drawn=families(), multiway=st.booleans(), sharing=st.sampled_from([16, 8]))
def test_a_plan_says_what_it_was_before(
    drawn: list[Query], *, multiway: bool, sharing: int
) -> None:
    plans = {f"q{i}": implement(query.plan, multiway=multiway) for i, query in enumerate(drawn)}
    done = share_windows(plans, plans, LASTING, sometimes(sharing))
    for name, plan in plans.items():
        made = done.plans[name]
        again, before = unshared(made)
        assert again == plan
        assert before.keys() == {part.fingerprint for part in walk_physical([made])}


@given(
    drawn=st.lists(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12), st.integers(1, 6)), max_size=4),
        min_size=1,
        max_size=3,
    ),
    by=st.integers(1, 6),
)
def test_its_traits_are_true(drawn: list[list[tuple[int, int, int]]], by: int) -> None:
    types = {**polars_schema(PAIR), START: TIME_TYPE, END: TIME_TYPE}
    note = Noted(Apply(Shorten(PAIR, by, 7), (Input("S", PAIR),)))
    for elements in drawn:
        rows = [(a, "x", start, start + length) for a, start, length in elements]
        note.steps.append(([(0, pl.DataFrame(rows, schema=types, orient="row"))], Time(0)))
    for law in LAWS:
        law(note)


# What is shared, and what is not


def plan_of(size: int, other: int | None = None, slide: int = 1) -> Plan:
    left = Window(S, TimeWindow(size, slide))
    right = Window(T, TimeWindow(size if other is None else other, slide))
    return Join(left, right, JoinKind.INNER, TRUE, ("la", "lb", "ra", "rb"))


def sharers(*plans: Plan, running: int = 0) -> list[bool]:
    """Which of some queries stand on the join of another one."""
    made = {f"q{i}": implement(plan) for i, plan in enumerate(plans)}
    done = share_windows(made, list(made)[running:], LASTING, sometimes(16))
    every = {**made, **done.plans}
    return [isinstance(getattr(every[n], "operator", None), Shorten) for n in made]


def test_the_largest_windows_are_those_of_all() -> None:
    assert sharers(plan_of(3), plan_of(9), plan_of(5)) == [True, False, True]


def test_windows_differ_by_the_same() -> None:
    assert sharers(plan_of(3, 4), plan_of(5, 6)) == [True, False]
    assert sharers(plan_of(3, 4), plan_of(5, 7)) == [False, False]
    assert sharers(plan_of(3, 5), plan_of(5, 3)) == [False, False]


def test_slides_are_equal_and_divide_the_difference() -> None:
    assert sharers(plan_of(3, slide=2), plan_of(5, slide=2)) == [True, False]
    assert sharers(plan_of(3, slide=2), plan_of(6, slide=2)) == [False, False]
    assert sharers(plan_of(3, slide=2), plan_of(6, slide=3)) == [False, False]


def test_a_query_that_runs_keeps_its_plan() -> None:
    assert sharers(plan_of(3), plan_of(9), running=1) == [False, False]
    assert sharers(plan_of(9), plan_of(3), running=1) == [False, True]


def test_windows_that_skip_what_nobody_asks_for_are_not_shared() -> None:
    plan = implement(plan_of(9))
    assert sizes_of(plan, LASTING)[plan.fingerprint].joined
    assert sizes_of(skip_the_past(plan, Time(5))[0], LASTING) == {}


def test_times_next_to_the_end_of_time_are_refused() -> None:
    rows = pl.DataFrame({"a": [1], START: [END_OF_TIME - 3], END: [END_OF_TIME]})
    operator = Shorten(PAIR, 2, 5)
    with pytest.raises(PlanError, match="near the end of time"):
        list(operator.on_batch(operator.new_state(), 0, rows))


# The laws find what is wrong


def _patched(where: object, name: str, wrong: object) -> ExitStack:
    stack = ExitStack()
    stack.enter_context(patch.object(where, name, wrong))
    return stack


def _by(more: int) -> Callable[[], ExitStack]:
    """Elements that end too early, or too late."""

    def on_batch(self: Shorten, state: object, port: int, batch: Batch) -> Iterator[Batch]:  # noqa: ARG001
        left = batch.with_columns(pl.col(END) - self.by - more).filter(pl.col(END) > pl.col(START))
        if left.height:
            yield left

    return lambda: _patched(Shorten, "on_batch", on_batch)


def _empty_ones_stay() -> ExitStack:
    def on_batch(self: Shorten, state: object, port: int, batch: Batch) -> Iterator[Batch]:  # noqa: ARG001
        end = pl.max_horizontal(pl.col(END) - self.by, pl.col(START) + 1)
        yield batch.with_columns(end.alias(END))

    return _patched(Shorten, "on_batch", on_batch)


def _sizes_need_not_differ_by_the_same() -> ExitStack:
    """Parts are alike whatever the sizes of their windows are."""

    def with_smaller(part: PhysicalPlan, _: int) -> PhysicalPlan:
        def smallest(one: PhysicalPlan) -> PhysicalPlan:
            match one:
                case Apply(interval.TimeWindow() as window, below) if window.size:
                    return Apply(replace(window, size=1), below)
                case _:
                    return one

        return rebuilt(part, smallest)[0]

    return _patched(search, "with_smaller", with_smaller)


def _any_slide() -> ExitStack:
    def differ_by(self: Sizes, other: Sizes) -> int | None:
        by = (other.least or 0) - (self.least or 0)
        return by if by > 0 else None

    return _patched(Sizes, "differ_by", differ_by)


def _what_changes_is_taken_for_constant() -> ExitStack:
    return _patched(search, "sizes_of", lambda plan, _: sizes_of(plan, RELATIONS))


def _streams_are_taken_for_constant() -> ExitStack:
    names = [source.name for source in SOURCES]
    return _patched(search, "sizes_of", lambda plan, _: sizes_of(plan, [*names, *LASTING]))


def _whatever_stands_between() -> ExitStack:
    """All operators are believed to pass on what is shortened."""

    def traits(part: Apply) -> Traits:
        return replace(part.operator.traits, shortens=True)

    return _patched(Apply, "traits", property(traits))


def law_of(*plans: Plan) -> Callable[..., None]:
    """The law for some queries that are there from the beginning to the end."""

    @given(data=st.data(), content=inputs())
    def law(data: st.DataObject, content: Inputs) -> None:
        drawn = [Query(plan, 0, STEPS + 1) for plan in plans]
        assert_own_answers(data, drawn, content, How())

    return law


def _with(other: Plan, size: int) -> Plan:
    names = names_of_both(S, other)
    return Join(Window(S, TimeWindow(size)), other, JoinKind.INNER, TRUE, names)


@pytest.mark.parametrize(
    ("mistake", "plans"),
    [
        (_by(1), (plan_of(3), plan_of(6))),
        (_by(-1), (plan_of(3), plan_of(6))),
        (_empty_ones_stay, (plan_of(3), plan_of(6))),
        (_any_slide, (plan_of(3, slide=2), plan_of(6, slide=2))),
        (_sizes_need_not_differ_by_the_same, (plan_of(3), plan_of(5, 7))),
        (_what_changes_is_taken_for_constant, (_with(P, 3), _with(P, 6))),
        (_streams_are_taken_for_constant, (_with(T, 3), _with(T, 6))),
        (_whatever_stands_between, (Distinct(plan_of(3)), Distinct(plan_of(6)))),
    ],
)
def test_the_law_finds_what_is_wrong(
    mistake: Callable[[], ExitStack], plans: tuple[Plan, ...]
) -> None:
    law_of(*plans)()
    with mistake():
        fails(law_of(*plans))
