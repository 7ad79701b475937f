"""All techniques give the answer of the reference, in either form, however the input is cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws.arrivals import arrivals, emitted
from laws.catalogue import HORIZON, SOURCES, Inputs, inputs
from laws.strict_plans import SHAPES, strict_plans
from laws.test_engine import relation_inputs, snapshot
from plans import physical
from tidemill.algebra.explain import explain
from tidemill.algebra.tree import share
from tidemill.model.batch import Form
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.planning import Joins, Planning, Spread

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.optimizer.logical.rules import Negation


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=settings().max_examples // 2)  # of each of the shapes
@given(
    data=st.data(),
    content=inputs(),
    partitions=st.integers(1, 3),
    max_delay=st.sampled_from([None, 0, 3]),
    technique=st.sampled_from(Technique),
    answer=st.none() | st.sampled_from(Form),
    multiway=st.booleans(),
    lazy=st.sampled_from([0, 1, 3]),
    negation=st.none() | st.sampled_from(["written", "pulled", "pushed"]),
    spread=st.sampled_from(Spread),
    reload=st.booleans(),
)
def test_all_techniques_give_the_answer_of_the_reference(  # noqa: PLR0913 — it draws everything
    shape: str,
    data: st.DataObject,
    content: Inputs,
    *,
    partitions: int,
    max_delay: int | None,
    technique: Technique,
    answer: Form | None,
    multiway: bool,
    lazy: int,
    negation: Negation | None,
    spread: Spread,
    reload: bool,
) -> None:
    plan: Plan = share(data.draw(strict_plans(shape)))
    arrival = data.draw(arrivals(content.streams, max(HORIZON)))
    planning = Planning(
        optimized=negation is not None,
        max_delay=max_delay,
        technique=technique,
        joins=Joins.MULTIWAY if multiway else Joins.BINARY,
        negation=negation or "written",
        spread=spread,
        lazy=lazy,
    )
    out = emitted(
        physical(plan, planning, answer=answer),
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
