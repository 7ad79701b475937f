"""Each trait of an operator is true of what the operator does.

Drawn are a plan, how it is planned, inputs and how they arrive. While the plan runs, it is noted
what comes to each operator; then each operator is held to its traits by what it makes of that.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import Phase, given, reject, settings
from hypothesis import strategies as st
from polars.exceptions import PolarsError

from laws.arrivals import arrivals, emitted
from laws.catalogue import HORIZON, SOURCES, Inputs, S, inputs
from laws.split_plans import split_plans
from laws.strategies import plans
from laws.strict_plans import SHAPES, strict_plans
from laws.test_engine import relation_inputs, snapshot
from laws.test_join_trees import stars
from laws.test_stretch import spans
from physical.run import normal
from plans import implement
from tidemill.algebra.expr import AggregateCall, Column, Named
from tidemill.algebra.patterns import UpdatePattern
from tidemill.algebra.plan import Aggregate, NamedAggregate, Unbounded, Window
from tidemill.algebra.tree import share
from tidemill.engine.engine import Engine
from tidemill.engine.routing import route
from tidemill.errors import PlanError
from tidemill.model.batch import END, ID, SIGN, START, Form, time_columns
from tidemill.model.spans import Cut
from tidemill.model.time import END_OF_TIME, Time
from tidemill.model.types import BIGINT
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.search.extensions import all_trees
from tidemill.physical.cut_answer import cut_answer
from tidemill.physical.eval import compile_expr
from tidemill.physical.joining.tree import Stage
from tidemill.physical.operator import with_delay
from tidemill.physical.operators.join.join_tree import JoinTree
from tidemill.physical.plan import Apply
from tidemill.physical.traits import Emission, Expiry, Instants, Traits, state_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tidemill.algebra.expr import Expr
    from tidemill.algebra.plan import Plan
    from tidemill.engine.engine import Flow
    from tidemill.model.batch import Batch
    from tidemill.physical.fragments import Node
    from tidemill.physical.operator import Operator, State

PARTS = 3


@dataclass
class Noted:
    """What came to one operator in one partition: step by step, batches and then a watermark."""

    part: Apply
    steps: list[tuple[list[tuple[int, Batch]], Time]] = field(default_factory=list)
    _out: list[Batch] | None = None

    @property
    def traits(self) -> Traits:
        return self.part.traits

    def given(self, port: int) -> list[Batch]:
        return [batch for given, _ in self.steps for p, batch in given if p == port]

    def replayed(
        self,
        operator: Operator | None = None,
        change: Callable[[int, Batch], Batch] = lambda _, batch: batch,
    ) -> Iterator[tuple[State, Time | None, list[Batch]]]:
        """What leaves at each event, after it the state; ``None`` is the time of a batch."""
        run = self.part.operator if operator is None else operator
        state, before = run.new_state(), Time(0)
        for batches, time in self.steps:
            for port, batch in batches:
                yield state, None, list(run.on_batch(state, port, change(port, batch)))
            if time > before:
                yield state, time, list(run.on_watermark(state, time))
            before = time

    def out(self) -> list[Batch]:
        """All that leaves."""
        if self._out is None:
            self._out = self.changed(lambda _, batch: batch)
        return self._out

    def changed(self, change: Callable[[int, Batch], Batch]) -> list[Batch]:
        """All that leaves if what comes is changed."""
        replay = self.replayed(change=change)
        return [batch for _, _, made in replay for batch in made if batch.height]


def noted(  # noqa: PLR0913 — it is told everything
    plan: Plan,
    content: Inputs,
    data: st.DataObject,
    *,
    technique: Technique,
    multiway: bool,
    lazy: int,
    adaptive: bool = False,
) -> list[Noted]:
    """What comes to the operators of a plan in a run in one partition."""
    arrival = data.draw(arrivals(content.streams, max(HORIZON)))
    found: dict[str, Noted] = {}
    run = Engine._run  # noqa: SLF001 — every operator passes there

    def watched(engine: Engine, node: Node, ports: list[Flow]) -> Flow:
        note = found.setdefault(node.name, Noted(node.apply))
        given = [(p, b) for p, flow in enumerate(ports) for b in flow.batches if b.height]
        note.steps.append((given, Time(min(flow.watermark for flow in ports))))
        return run(engine, node, ports)

    physical = implement(
        share(plan), technique=technique, multiway=multiway, lazy=lazy, adaptive=adaptive
    )
    cut = data.draw(
        st.none() | st.lists(spans(), max_size=3).map(lambda s: Cut("q", tuple(s), True))
    )
    physical = cut_answer(physical, cut)
    with patch.object(Engine, "_run", watched):
        try:
            emitted(
                physical,
                {source.name: source.schema for source in SOURCES},
                relation_inputs(content),
                arrival,
                1,
                reload=False,
            )
        except PlanError as error:
            if "stay for ever" not in str(error):
                raise
            reject()
    return list(found.values())


def form(batch: Batch) -> Form:
    return Form.SIGNED if SIGN in batch.columns else Form.INTERVAL


def bag(batches: list[Batch]) -> Counter[tuple[object, ...]]:
    """The rows with their times, without ids."""
    found: Counter[tuple[object, ...]] = Counter()
    for batch in batches:
        kept = batch.drop(ID, strict=False)
        found.update(map(normal, kept.select(sorted(kept.columns)).iter_rows()))
    return found


# A law for each trait


def takes_and_gives(note: Noted) -> None:
    for port, takes in enumerate(note.traits.takes):
        assert takes is None or {form(b) for b in note.given(port)} <= {takes}
    came = {form(b) for port in range(len(note.traits.takes)) for b in note.given(port)}
    gives = came if note.traits.gives is None else {note.traits.gives}
    assert {form(batch) for batch in note.out()} <= gives


def emits(note: Noted) -> None:
    for state, time, made in note.replayed():
        starts = [batch[time_columns(form(batch))[0]] for batch in made if batch.height]
        held = note.part.operator.held(state)
        match note.traits.emits:
            case Emission.AT_ONCE:
                assert time is None or not starts
                assert held == END_OF_TIME
            case Emission.ON_WATERMARK if time is not None:
                assert held >= time
                assert all((start < time).all() for start in starts)
            case Emission.ON_WATERMARK:
                assert not starts
            case Emission.WHEN_ENDED:
                pass


def meets(note: Noted) -> None:
    """Partitions by the keys, or any where there are none, give together what one gives."""
    operator = note.part.operator
    states = [operator.new_state() for _ in range(PARTS)]
    made: list[Batch] = []
    before = Time(0)
    for batches, time in note.steps:
        for port, batch in batches:
            keys = note.traits.meets[port]
            if keys is None and form(batch) is Form.SIGNED:
                # Wherever a row is, all its changes are there.
                row = note.part.inputs[port].schema
                parts = route(batch, tuple(Column(f.name, f.type) for f in row), PARTS)
            elif keys is None:
                parts = [batch.gather_every(PARTS, n) for n in range(PARTS)]
            else:
                parts = route(batch, keys, PARTS)
            for state, part in zip(states, parts, strict=True):
                made += operator.on_batch(state, port, part) if part.height else ()
        if time > before:
            for state in states:
                made += operator.on_watermark(state, time)
        before = time
    schema = operator.schema
    # Numbers of rows, and partial results, are of one partition each (``test_split_aggregates``).
    numbers_rows = note.traits.counts and not note.traits.tables
    is_partial = getattr(operator, "partial", False)
    if len(schema) and not (numbers_rows or is_partial):
        for at in HORIZON:
            assert snapshot(made, schema, at) == snapshot(note.out(), schema, at)


def row_by_row(note: Noted) -> None:
    if note.traits.row_by_row:
        (batches,) = (note.given(port) for port in range(len(note.traits.takes)))
        rows = [batch[n : n + 1] for batch in batches for n in range(batch.height)]
        one_by_one = (list(note.part.operator.on_batch(_none(note), 0, row)) for row in rows)
        assert bag([batch for made in one_by_one for batch in made]) == bag(note.out())


def keeps_time(note: Noted) -> None:
    if note.traits.keeps_time:
        ports = range(len(note.traits.takes))
        came, left = (
            Counter(t for b in batches for t in b.select(time_columns(form(b))).iter_rows())
            for batches in ([b for p in ports for b in note.given(p)], note.out())
        )
        assert left <= came


def keeps_rows(note: Noted) -> None:
    if note.traits.keeps_rows:
        ports = range(len(note.traits.takes))
        came = sum(b.height for p in ports for b in note.given(p))
        assert sum(b.height for b in note.out()) == came


def needs_ids(note: Noted) -> None:
    if not note.traits.needs_ids:
        without = note.changed(lambda _, batch: batch.drop(ID, strict=False))
        assert bag(without) == bag(note.out())


def waits(note: Noted) -> None:
    """What is told the same watermark again gives nothing again."""
    if note.traits.waits:
        operator = note.part.operator
        for state, time, _ in note.replayed():
            assert time is None or not list(operator.on_watermark(state, time))


def delays(note: Noted) -> None:
    if note.traits.delays:
        operator = with_delay(note.part.operator, 0)
        for state, time, _ in note.replayed(operator):
            assert time is None or operator.held(state) >= time


def passes(note: Noted) -> None:
    for port, passed in enumerate(note.traits.passes):
        for expr, names in passed.items():
            for name in names:
                left = {normal((v,)) for batch in note.out() for v in batch.get_column(name)}
                came = _values(note, port, expr)
                # A column of a union or of a set operation has the values of both inputs.
                for other, theirs in enumerate(note.traits.passes):
                    for their, shared in theirs.items() if other != port else ():
                        came |= _values(note, other, their) if name in shared else set()
                assert left <= came


def _values(note: Noted, port: int, expr: Expr) -> set[object]:
    """The values of an expression over what came in at a port."""
    return {
        normal(row)
        for batch in note.given(port)
        for row in batch.select(compile_expr(expr).alias("value")).iter_rows()
    }


def expiry(note: Noted) -> None:
    """What is made of rows that never go never goes."""
    ports = range(len(note.traits.takes))
    if all(_never_ends(b) for p in ports for b in note.given(p)):
        pattern = note.traits.expiry.of([UpdatePattern.MONOTONIC for _ in ports])
        if pattern is UpdatePattern.MONOTONIC and note.traits.instants is not Instants.MADE:
            is_window = note.traits.row_by_row and not note.traits.keeps_time
            assert is_window or all(_never_ends(b) for b in note.out())


def _never_ends(batch: Batch) -> bool:
    if form(batch) is Form.SIGNED:
        return bool((batch[SIGN] > 0).all())
    return bool((batch[END] == END_OF_TIME).all())


def instants(note: Noted) -> None:
    ports = range(len(note.traits.takes))
    given = [all(_are_instants(b) for b in note.given(p)) for p in ports]
    if note.traits.instants.of(given):
        assert all(_are_instants(b) for b in note.out() if form(b) is Form.INTERVAL)


def _are_instants(batch: Batch) -> bool:
    return form(batch) is Form.INTERVAL and bool((batch[END] - batch[START] == 1).all())


def gains(note: Noted) -> None:
    """However elements are cut, what is there at each instant stays the same."""
    if note.traits.gains and len(note.part.schema):
        cut = note.changed(lambda _, batch: _in_two(batch))
        for at in HORIZON:
            schema = note.part.operator.schema
            assert snapshot(cut, schema, at) == snapshot(note.out(), schema, at)


def shortens(note: Noted) -> None:
    """Elements that end earlier make elements that end earlier."""
    ports = range(len(note.traits.takes))
    is_interval = all(form(b) is Form.INTERVAL for p in ports for b in note.given(p))
    if note.traits.shortens and is_interval:
        for by in (1, 3):
            earlier = note.changed(partial(_shorter_at, by))
            assert bag(earlier) == bag([_shorter(batch, by) for batch in note.out()])


def _shorter_at(by: int, _: int, batch: Batch) -> Batch:
    return _shorter(batch, by)


def _shorter(batch: Batch, by: int) -> Batch:
    """What is left of elements that end earlier, unless they never end."""
    ends = pl.when(pl.col(END) == END_OF_TIME).then(END).otherwise(pl.col(END) - by)
    return batch.with_columns(ends.alias(END)).filter(pl.col(START) < pl.col(END))


def merges(note: Noted) -> None:
    if note.traits.merges:
        assert sum(map(len, note.out())) <= sum(map(len, note.given(0)))


def _in_two(batch: Batch) -> Batch:
    """Each element of some instants as two that lie side by side."""
    if form(batch) is not Form.INTERVAL:
        return batch
    ends = pl.min_horizontal(pl.col(START) + 2, pl.col(END))
    rest = batch.with_columns(ends.alias(START)).filter(pl.col(START) < pl.col(END))
    return pl.concat([batch.with_columns(ends.alias(END)), rest])


def tables(note: Noted) -> None:
    operator = note.part.operator
    assert note.traits.tables == state_tables(operator.new_state())
    for state, _, _ in note.replayed():
        assert note.traits.remembers or not (state.rows() or state.numbers)
        assert note.traits.counts or not state.numbers
        assert {t.name for t in note.traits.tables} == state.tables.keys()
        for table in note.traits.tables:
            assert set(table.key) <= state.tables[table.name].schema.keys()


def adapts(note: Noted) -> None:
    """In any tree, and while it changes after each event, the same rows leave."""
    operator = note.part.operator
    assert note.traits.adapts == isinstance(operator, JoinTree)
    if not isinstance(operator, JoinTree) or not len(note.part.schema):
        return
    trees = [t for t in all_trees(len(operator.inputs)) if isinstance(t, Stage)]
    left: list[Batch] = []
    last = Time(0)
    for number, (state, time, out) in enumerate(note.replayed()):
        last = last if time is None else time
        left += out
        operator.adapt(state, trees[(7 * number) % len(trees)], last)
    for at in HORIZON:
        assert snapshot(left, operator.schema, at) == snapshot(note.out(), operator.schema, at)


def _none(note: Noted) -> State:
    return note.part.operator.new_state()


LAWS = (
    takes_and_gives,
    emits,
    meets,
    row_by_row,
    keeps_time,
    keeps_rows,
    needs_ids,
    waits,
    delays,
    passes,
    expiry,
    instants,
    shortens,
    gains,
    merges,
    tables,
    adapts,
)

DRAWN = {
    "data": st.data(),
    "plan": plans() | split_plans() | st.sampled_from(SHAPES).flatmap(strict_plans),
    "content": inputs(),
    "technique": st.sampled_from(Technique),
    "multiway": st.booleans(),
    "lazy": st.sampled_from([0, 3]),
}


@settings(max_examples=2 * settings().max_examples)
@given(**DRAWN)
def test_traits_are_true(  # noqa: PLR0913 — it draws everything
    data: st.DataObject,
    plan: Plan,
    content: Inputs,
    *,
    technique: Technique,
    multiway: bool,
    lazy: int,
) -> None:
    for note in noted(plan, content, data, technique=technique, multiway=multiway, lazy=lazy):
        for law in LAWS:
            law(note)


@given(
    data=st.data(),
    plan=stars(),
    content=inputs(),
    multiway=st.booleans(),
    technique=st.sampled_from([Technique.PATTERN, Technique.DIRECT]),
)
def test_traits_of_joins_that_adapt_are_true(
    data: st.DataObject, plan: Plan, content: Inputs, *, multiway: bool, technique: Technique
) -> None:
    notes = noted(
        plan, content, data, technique=technique, multiway=multiway, lazy=0, adaptive=True
    )
    for note in notes:
        for law in LAWS:
            law(note)


def test_every_trait_has_a_law() -> None:
    named = {law.__name__ for law in LAWS} | {"takes", "gives"}
    # With ``tables``; in ``test_stacks``; in ``test_handover``.
    others = {"counts", "alike", "hands_over"}
    assert {f.name for f in Traits.__dataclass_fields__.values()} == (
        named - {"takes_and_gives"} | others
    )


def wrong(name: str, lies: dict[str, Any]) -> Callable[[Apply], Traits]:
    """The traits of all operators but one, which has other ones."""

    def traits(part: Apply) -> Traits:
        known = part.operator.traits
        return replace(known, **lies) if type(part.operator).__name__ == name else known

    return traits


COUNTS = NamedAggregate("n", AggregateCall("count", None, BIGINT))
FOR_EVER = Aggregate(Window(S, Unbounded()), (Named("a", Column("a", BIGINT)),), (COUNTS,))
"""Rows that never go, and what is made of them that does."""


@pytest.mark.parametrize(
    ("name", "lies"),
    [
        ("TimeWindow", {"keeps_time": True}),
        ("TimeWindow", {"shortens": True}),
        ("Distinct", {"shortens": True}),
        ("Filter", {"keeps_rows": True}),
        ("Aggregate", {"emits": Emission.AT_ONCE}),
        ("Aggregate", {"emits": Emission.ON_WATERMARK, "gives": Form.INTERVAL}),
        ("Aggregate", {"meets": (None,), "tables": ()}),
        ("Aggregate", {"expiry": Expiry.SAME}),
        ("TimeWindow", {"instants": Instants.KEPT}),
        ("Join", {"gives": None, "takes": (Form.SIGNED, Form.SIGNED)}),
        ("RowWindow", {"needs_ids": False}),
        ("Distinct", {"row_by_row": True}),
        ("Distinct", {"tables": ()}),
        ("Counting", {"meets": (None, None), "tables": ()}),
        ("Split", {"delays": True}),
        ("Stretch", {"emits": Emission.AT_ONCE}),
        ("Stretch", {"keeps_rows": True}),
        ("Stretch", {"expiry": Expiry.SAME}),
        ("Number", {"gains": True}),
        pytest.param("Split", {"merges": True}, marks=pytest.mark.soak),  # it takes long to be seen
    ],
)
def test_a_trait_that_is_not_true_is_found(name: str, lies: dict[str, object]) -> None:
    drawn = {**DRAWN, "plan": st.just(FOR_EVER)} if "expiry" in lies else DRAWN

    @settings(max_examples=2000, phases=[Phase.generate], database=None, deadline=None)
    @given(**drawn)
    def law(  # noqa: PLR0913 — it draws everything
        data: st.DataObject,
        plan: Plan,
        content: Inputs,
        *,
        technique: Technique,
        multiway: bool,
        lazy: int,
    ) -> None:
        notes = noted(plan, content, data, technique=technique, multiway=multiway, lazy=lazy)
        with patch.object(Apply, "traits", property(wrong(name, lies))):
            for note in notes:
                if type(note.part.operator).__name__ == name:
                    for check in LAWS:
                        check(note)

    with pytest.raises((AssertionError, ExceptionGroup, ValueError, TypeError, PolarsError)):
        law()
