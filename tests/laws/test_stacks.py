"""Aggregations that run as one: each gives its own answer, and keeps its state among others.

Drawn are queries that are alike but for their filters, windows and what stands above them, the
steps in which each of them is there, inputs, the number of partitions, and whether state is saved
and loaded between steps. A query that comes later begins with what arrives from then on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from unittest.mock import patch

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

import tidemill
from laws.arrivals import Step, arrivals
from laws.catalogue import HORIZON, PAIR, Inputs, S, T, inputs
from laws.pipeline import PIDS, Pipeline
from laws.strategies import aggregate_calls, predicates
from laws.test_engine import snapshot
from laws.test_stages import arrived, ended
from local import element_batch
from plans import implement
from stores import at_rest, reopen
from streams import call, equal, names_of_both
from tidemill.algebra.explain import explain
from tidemill.algebra.expr import AggregateCall, Column, Literal, Named
from tidemill.algebra.plan import (
    Aggregate,
    Distinct,
    Filter,
    Istream,
    Join,
    JoinKind,
    NamedAggregate,
    Plan,
    Source,
    TimeWindow,
    Unbounded,
    Window,
)
from tidemill.algebra.snapshot import Element, Reference
from tidemill.catalog.entries import StreamEntry
from tidemill.engine import engine
from tidemill.engine.engine import Flow
from tidemill.engine.stacks import stacks_of
from tidemill.lang.statements import ConnectorCall, Name
from tidemill.model.time import END_OF_TIME, Time
from tidemill.model.types import BIGINT
from tidemill.optimizer.physical.fold import folded
from tidemill.optimizer.physical.techniques import Technique
from tidemill.physical.fragments import build_graph
from tidemill.runtime.answers import Answer
from tidemill.runtime.local.runner import LocalRunner
from tidemill.runtime.spark.worker.deployment import Deployment
from tidemill.runtime.spark.worker.wire import Kind as WireKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import DrawFn

    from tidemill.model.batch import Batch
    from tidemill.physical.fragments import Graph
    from tidemill.physical.plan import PhysicalPlan
    from tidemill.physical.state.at_rest import SavedState

STEPS = 4


@dataclass(frozen=True)
class Query:
    """A query, and the steps in which it is there."""

    plan: Plan
    first: int
    after: int


@dataclass(frozen=True)
class Kind:
    """What the queries of an example have in common."""

    keys: tuple[Named, ...]
    calls: tuple[AggregateCall, ...]

    def of(self, below: Plan, name: str) -> Aggregate:
        """The aggregation of a plan, whose columns have a name of their own."""
        keys = tuple(Named(f"{name}{i}", key.expr) for i, key in enumerate(self.keys))
        values = (NamedAggregate(f"{name}_{i}", call) for i, call in enumerate(self.calls))
        return Aggregate(below, keys, tuple(values))


KEYS = tuple(Named(field.name, Column(field.name, field.type)) for field in PAIR)


@st.composite
def kinds(draw: DrawFn) -> Kind:
    keys = draw(st.sampled_from([KEYS, KEYS[:1], KEYS[1:], ()]))
    return Kind(keys, tuple(draw(st.lists(aggregate_calls(PAIR), min_size=1, max_size=3))))


@st.composite
def queries(draw: DrawFn, kind: Kind, name: str) -> Query:
    size = st.integers(1, 6)
    spec = draw(
        st.builds(TimeWindow, size) | st.builds(TimeWindow, size, size) | st.just(Unbounded())
    )
    below = draw(
        st.sampled_from([Window(S, spec), Window(Filter(S, draw(predicates(PAIR))), spec)])
    )
    plan: Plan = kind.of(below, name)
    above: list[Callable[[Plan], Plan]] = [lambda p: p, Distinct, Istream, _count, _having]
    plan = draw(st.sampled_from([*above, lambda p: _joined(p, below, kind, f"{name}r")]))(plan)
    first = draw(st.sampled_from([0, 0, 1, 2]))
    return Query(plan, first, draw(st.sampled_from([STEPS + 1, STEPS + 1, first + 1])))


def _having(plan: Plan) -> Plan:
    """Some of the groups."""
    last = plan.schema.fields[-1]
    column = Column(last.name, last.type)
    return Filter(plan, equal(column, column))


def _count(plan: Plan) -> Plan:
    """An aggregation of an aggregation."""
    key = plan.schema.fields[0]
    number = NamedAggregate("n", AggregateCall("count", None, BIGINT))
    return Aggregate(plan, (Named("k", Column(key.name, key.type)),), (number,))


def _joined(plan: Plan, below: Plan, kind: Kind, name: str) -> Plan:
    """Two members of a stack, joined by their first columns."""
    other = kind.of(Filter(below, equal(KEYS[0].expr, KEYS[0].expr)), name)
    names = names_of_both(plan, other)
    pair = (plan.schema.fields[0], names[0]), (other.schema.fields[0], names[len(plan.schema)])
    on = equal(*(Column(name, field.type) for field, name in pair))
    return Join(plan, other, JoinKind.INNER, on, names)


@st.composite
def lives(draw: DrawFn) -> list[Query]:
    """Some queries; most are there from the beginning to the end.

    No two of them are equal: then they would share their state, and the later one its past.
    """
    kind = draw(kinds())
    return [draw(queries(kind, f"q{i}")) for i in range(draw(st.integers(2, 5)))]


def there(drawn: list[Query], step: int, max_delay: int | None) -> dict[str, PhysicalPlan]:
    """The queries that are there in a step."""
    return {
        f"q{i}": implement(query.plan, max_delay=max_delay)
        for i, query in enumerate(drawn)
        if query.first <= step < query.after
    }


def taken_over(old: LocalRunner, graph: Graph) -> LocalRunner:
    """A runner that goes on with the state of another one, which may have had other queries."""
    fresh = LocalRunner(graph, partitions=old.partitions)
    for before, now in zip(old.engines, fresh.engines, strict=False):
        for source, target in zip(before, now, strict=True):
            reopen(source, target)
    return fresh


@settings(max_examples=4 * settings().max_examples)
@given(
    data=st.data(),
    drawn=lives(),
    content=inputs(),
    partitions=st.sampled_from([1, 2, 3]),
    max_delay=st.sampled_from([None, 0, 1, 3]),
    much=st.sampled_from([20_000, 20_000, 2]),
    reload=st.booleans(),
)
def test_queries_that_are_alike_come_and_go(  # noqa: PLR0913, PLR0917 — it draws everything
    data: st.DataObject,
    drawn: list[Query],
    content: Inputs,
    partitions: int,
    max_delay: int | None,
    much: int,
    *,
    reload: bool,
) -> None:
    with patch.object(engine, "STACK_LIMIT_ROWS", much):
        come_and_go(data, drawn, content, partitions, max_delay, reload=reload)


def come_and_go(  # noqa: PLR0913 — see above
    data: st.DataObject,
    drawn: list[Query],
    content: Inputs,
    partitions: int,
    max_delay: int | None,
    *,
    reload: bool,
) -> None:
    steps = data.draw(arrivals({S.name: content.streams[S.name]}, max(HORIZON))).steps
    end: Step = {S.name: ((), END_OF_TIME)}
    out: dict[str, list[Batch]] = {f"q{i}": [] for i in range(len(drawn))}
    runner: LocalRunner | None = None
    for number, step in enumerate([*steps, end]):
        plans = there(drawn, number, max_delay)
        graph = build_graph(plans)
        if runner is None:
            runner = LocalRunner(graph, partitions=partitions)
        elif reload or plans.keys() != there(drawn, number - 1, max_delay).keys():
            runner = taken_over(runner, graph)
        elements, watermark = step[S.name]
        flow = Flow([element_batch(S.schema, elements)], Time(watermark))
        given_ = runner.step({S.name: flow} if graph.inputs else {})
        for name in graph.answers:
            out[name] += given_[name]
    for i, query in enumerate(drawn):
        if query.first <= len(steps) < query.after:
            seen = tuple(e for step in steps[query.first :] for e in step[S.name][0])
            reference = Reference({**content.streams, S.name: seen}, content.relations)
            for time in HORIZON:
                expected = reference.snapshot(query.plan, time)
                actual = snapshot(out[f"q{i}"], query.plan.schema, time)
                assert actual == expected, f"at {time}:\n{explain(query.plan)}"
    assert runner is not None, "there is always a last step"
    for name, state in (s for engines in runner.engines for e in engines for s in e.states.items()):
        assert state.rows() == 0, f"{name} remembers {state.rows()} rows after the end"


@given(
    drawn=lives(),
    content=inputs(),
    partitions=st.sampled_from([1, 2]),
    much=st.sampled_from([20_000, 20_000, 1]),
    reopen=st.booleans(),
)
def test_queries_that_are_alike_come_and_go_in_a_pipeline(
    drawn: list[Query], content: Inputs, partitions: int, much: int, *, reopen: bool
) -> None:
    """The same with the stages of the pipeline on Spark, and state that is kept in stores."""
    with patch.object(engine, "STACK_LIMIT_ROWS", much):
        come_and_go_in_a_pipeline(drawn, content, partitions, reopen=reopen)


def come_and_go_in_a_pipeline(
    drawn: list[Query], content: Inputs, partitions: int, *, reopen: bool
) -> None:
    elements = content.streams[S.name]
    instants = sorted({e.time for e in elements})[: STEPS - 1]
    answers = {f"q{i}": Answer(query.plan.schema) for i, query in enumerate(drawn)}
    with TemporaryDirectory() as folder:
        pipeline: Pipeline | None = None
        for number, time in enumerate([*instants, None]):
            plans = there(drawn, number, 3)
            graph = build_graph({name: folded(plan, 2)[0] for name, plan in plans.items()})
            entry = StreamEntry(S.name, S.schema, ConnectorCall(Name("memory")))
            streams = {input_.name: entry for input_ in graph.inputs}
            deployed = Deployment(graph, streams, {}, PIDS[:partitions], 2)
            if pipeline is None:
                pipeline = Pipeline(deployed, Path(folder) / "cache")
            is_changed = pipeline.deployed.version != deployed.version
            pipeline.deployed = deployed
            messages = ended(deployed) if time is None else arrived(deployed, content, number, time)
            out = pipeline.step(number, messages, reopen=reopen or is_changed)
            for name, channel in graph.answers.items():
                found = (m for m in out if m.kind is WireKind.ANSWER and m.channel == channel)
                answers[name].add(m.rows() for m in found)
    for i, query in enumerate(drawn):
        if query.first <= len(instants) < query.after:
            seen = tuple(e for e in elements if e.time in instants[query.first :])
            reference = Reference({**content.streams, S.name: seen}, content.relations)
            for time in HORIZON:
                actual = Counter(answers[f"q{i}"].snapshot(time).rows())
                expected = reference.snapshot(query.plan, time)
                assert actual == expected, f"at {time}:\n{explain(query.plan)}"


def _stacks(*plans: Plan) -> list[int]:
    """How many members the stacks of some queries have."""
    graph = build_graph({f"q{i}": implement(plan) for i, plan in enumerate(plans)})
    found = (stack for fragment in graph.fragments for stack in stacks_of(fragment.nodes))
    return [len(stack.nodes) for stack in found]


COUNT = AggregateCall("count", None, BIGINT)
BY_A = Kind(KEYS[:1], (COUNT,))
SUM_OF_A = Kind(KEYS[:1], (AggregateCall("sum", KEYS[0].expr, BIGINT),))


def _over(source: Source, least: int, size: int = 5, slide: int = 1) -> Plan:
    limit = call(">=", Column("a", BIGINT), Literal(least, BIGINT))
    return Window(Filter(source, limit), TimeWindow(size, slide))


def test_other_constants_make_no_other_kind() -> None:
    assert _stacks(*(BY_A.of(_over(S, n, 5 + n), f"c{n}") for n in range(3))) == [3]


def test_queries_without_groups_are_alike_too() -> None:
    total = Kind((), (COUNT,))
    assert _stacks(total.of(_over(S, 1), "p"), total.of(_over(S, 2), "q")) == [2]
    sliding = total.of(_over(S, 1, 6, 3), "p"), total.of(_over(S, 2, 6, 3), "q")
    assert _stacks(*sliding) == [2], "their second parts"


def test_what_differs_runs_by_itself() -> None:
    one = BY_A.of(_over(S, 1), "p")
    assert _stacks(one, one) == [], "the same query twice is one"
    assert _stacks(one, SUM_OF_A.of(_over(S, 2), "p")) == [], "another aggregate"
    assert _stacks(one, Kind(KEYS[1:], (COUNT,)).of(_over(S, 2), "p")) == [], "another key"
    assert _stacks(one, BY_A.of(_over(T, 1), "p")) == [], "another stream"
    held_back = BY_A.of(Window(Istream(Distinct(_over(S, 1))), TimeWindow(2)), "p")
    assert _stacks(one, held_back) == [], "what is read comes later"


def test_what_one_member_holds_back_does_not_hold_back_another() -> None:
    """One has an open segment from the beginning; who reads the other one must not wait for it."""
    short = Distinct(BY_A.of(_over(S, 1, 1), "p"))
    long = BY_A.of(Window(S, Unbounded()), "q")
    saved: dict[str, SavedState] = {}
    first = Flow([element_batch(S.schema, (Element(0, 0, (1, "x")),))], Time(5))
    for plan in (short, long):
        alone = LocalRunner(build_graph({"q": _in_intervals(plan)}))
        alone.step({S.name: first})
        saved |= at_rest(alone.engines[1][0])
    graph = build_graph({n: _in_intervals(p) for n, p in (("s", short), ("l", long))})
    together = LocalRunner(graph)
    together.engines[1][0].restore(saved)
    later = Flow([element_batch(S.schema, (Element(7, 1, (1, "x")),))], Time(9))
    given_ = together.step({S.name: later})
    assert snapshot(given_["s"], short.schema, 7) == Counter({(1, 1): 1}), "it is over"
    given_["l"] += together.step({S.name: Flow([], END_OF_TIME)})["l"]
    assert snapshot(given_["l"], long.schema, 0) == Counter({(1, 1): 1})
    assert snapshot(given_["l"], long.schema, 7) == Counter({(1, 2): 1})


def _in_intervals(plan: Plan) -> PhysicalPlan:
    """In signed form nothing is held back."""
    return implement(plan, max_delay=None, technique=Technique.DIRECT)


def test_numbers_that_need_more_bits_for_one_member_only() -> None:
    """What was combined has its columns in another order then."""
    texts = [
        f"SELECT SUM(x) AS total, AVG(x) AS mean FROM s [RANGE 10 SLIDE 5] WHERE t <> {n}"
        for n in (3, 4)
    ]
    rows = pl.DataFrame({"x": [1.0, 1e-40, 2.5, 1e300], "t": [1, 3, 4, 12]})

    def answers(*wanted: str) -> list[pl.DataFrame]:
        with tidemill.connect(partitions=2) as session:
            session.put("s", rows)
            session.sql("CREATE STREAM s (x DOUBLE, t BIGINT) SOURCE memory('s') ORDERED BY t")
            found = [session.sql(text) for text in wanted]
            session.run()
            return [query.results() for query in found if isinstance(query, tidemill.Query)]

    together, alone = answers(*texts), [answers(text)[0] for text in texts]
    assert all(one.equals(other) for one, other in zip(together, alone, strict=True))


def test_a_stack_does_not_group_what_has_nothing_in_common() -> None:
    """Members that have the same starts do not make panes."""
    plans = [BY_A.of(_over(S, n), f"c{n}") for n in range(8)]
    runner = LocalRunner(build_graph({f"q{i}": implement(p) for i, p in enumerate(plans)}))
    elements = tuple(Element(t, t, (8 + t, "x")) for t in range(20))
    runner.step({S.name: Flow([element_batch(S.schema, elements)], Time(0))})
    (state,) = (s for s in runner.engines[1][0].states.values() if s.tables)
    (stack,) = stacks_of(runner.engines[1][0].fragment.nodes)
    assert stack.operator.members == 8
    assert state.rows() == 8 * 20


def test_a_stack_with_very_much_to_do_is_split_and_stays_so() -> None:
    plans = {f"q{n}": implement(BY_A.of(_over(S, n), f"c{n}")) for n in range(3)}
    runner = LocalRunner(build_graph({n: plans[n] for n in ("q0", "q1")}))
    elements = tuple(Element(t, t, (5, "x")) for t in range(4))
    flow = Flow([element_batch(S.schema, elements)], Time(2))
    stacked = [name for name in runner.engines[1][0].states if name.startswith("stack-")]
    assert len(stacked) == 1
    with patch.object(engine, "STACK_LIMIT_ROWS", 3):
        runner.step({S.name: flow})
    later = taken_over(runner, build_graph(plans))
    for split in (runner, later):
        remembered = {n: s.rows() for n, s in split.engines[1][0].states.items() if s.tables}
        assert not any(name.startswith("stack-") for name in remembered)
    # Two elements that have not begun, two ends, and the group; the third query begins empty.
    assert sorted(remembered.values()) == [0, 5, 5]
