"""Wherever adjacent elements may be merged, the answer stays that of the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from laws.arrivals import arrivals, emitted
from laws.catalogue import HORIZON, SOURCES, Inputs, R, inputs
from laws.strict_plans import SHAPES, strict_plans
from laws.test_engine import relation_inputs, snapshot
from laws.test_mutants import fails
from plans import physical
from tidemill.algebra.explain import explain
from tidemill.algebra.tree import share
from tidemill.model.batch import END, Form
from tidemill.model.time import Time
from tidemill.optimizer.physical.merge_adjacent import merged_below, places
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.planning import Planning
from tidemill.physical.interval import Coalesce
from tidemill.physical.plan import Apply, walk_physical

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.algebra.plan import Plan
    from tidemill.model.batch import Batch
    from tidemill.physical.operator import State
    from tidemill.physical.plan import PhysicalPlan

RELATIONS = frozenset({R.name})
rarely = settings(max_examples=max(settings().max_examples // 2, 20))


def merged(plan: PhysicalPlan, most: int) -> PhysicalPlan:
    """The plan with rows merged in every place, the lowest first."""
    while found := places(plan, RELATIONS):
        plan, _ = merged_below(plan, *found[0], most)
    return plan


@rarely
@given(
    data=st.data(),
    content=inputs(),
    shape=st.sampled_from(SHAPES),
    partitions=st.integers(1, 3),
    max_delay=st.sampled_from([None, 0, 3]),
    technique=st.sampled_from([Technique.DIRECT, Technique.DIRECT, *Technique]),
    answer=st.none() | st.sampled_from(Form),
    most=st.sampled_from([1, 2, 4, 1000]),
    reload=st.booleans(),
)
def test_rows_that_are_merged_give_the_answer_of_the_reference(  # noqa: PLR0913 — it draws everything
    data: st.DataObject,
    content: Inputs,
    shape: str,
    *,
    partitions: int,
    max_delay: int | None,
    technique: Technique,
    answer: Form | None,
    most: int,
    reload: bool,
) -> None:
    plan: Plan = share(data.draw(strict_plans(shape)))
    arrival = data.draw(arrivals(content.streams, max(HORIZON)))
    planning = Planning(max_delay=max_delay, technique=technique)
    out = emitted(
        merged(physical(plan, planning, answer=answer), most),
        {source.name: source.schema for source in SOURCES},
        relation_inputs(content),
        arrival,
        partitions,
        reload=reload,
    )
    reference = content.reference()
    for time in HORIZON:
        expected = reference.snapshot(plan, time)
        assert snapshot(out, plan.schema, time) == expected, f"at {time}:\n{explain(plan)}"


@given(st.data(), st.sampled_from(SHAPES))
def test_nothing_is_merged_twice_or_where_single_instants_are(
    data: st.DataObject, shape: str
) -> None:
    plan = share(data.draw(strict_plans(shape)))
    made = merged(physical(plan, Planning(technique=Technique.DIRECT)), 5)
    assert places(made, RELATIONS) == []
    for part in walk_physical([made]):
        if isinstance(part, Apply) and isinstance(part.operator, Coalesce):
            (below,) = part.inputs
            assert not (isinstance(below, Apply) and isinstance(below.operator, Coalesce))


def test_the_law_finds_rows_that_are_merged_over_gaps() -> None:
    right = Coalesce.on_batch

    def wrong(self: Coalesce, state: State, port: int, batch: Batch) -> Iterator[Batch]:
        yield from right(self, state, port, batch.with_columns(batch[END] + 1))

    with patch.object(Coalesce, "on_batch", wrong):
        fails(test_rows_that_are_merged_give_the_answer_of_the_reference)


def test_the_law_finds_rows_that_wait_while_their_reader_goes_on() -> None:
    with patch.object(Coalesce, "held", lambda *_: Time(2**62)):
        fails(test_rows_that_are_merged_give_the_answer_of_the_reference)
