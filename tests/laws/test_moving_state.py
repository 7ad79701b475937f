"""Whichever plan goes over to which, whenever, by moving state: the answer is the reference's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, target
from hypothesis import strategies as st

from laws.arrivals import arrivals
from laws.catalogue import HORIZON, SOURCES, Inputs, inputs
from laws.moving import Moving, Star, emitted_while_moving, plans_of, stars
from laws.test_engine import relation_inputs, snapshot
from tidemill.optimizer.physical.techniques import Technique

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.physical.plan import PhysicalPlan

SCHEMAS = {source.name: source.schema for source in SOURCES}


@given(
    star=stars(),
    content=inputs(),
    data=st.data(),
    partitions=st.sampled_from([1, 3]),
    reload=st.booleans(),
)
def test_any_plan_of_a_join_goes_over_to_any_other(
    *, star: Star, content: Inputs, data: st.DataObject, partitions: int, reload: bool
) -> None:
    of_star = plans_of(star, techniques=[Technique.PATTERN])
    arrival = data.draw(arrivals(content.streams, max(HORIZON)))
    first = data.draw(of_star)
    last = len(arrival.steps) - 1
    others = {
        data.draw(st.integers(0, last)): data.draw(st.lists(of_star, min_size=1, max_size=2))
        for _ in range(data.draw(st.integers(1, 2)))
    }
    moving = Moving(first, partitions, reload=reload)
    out = emitted_while_moving(moving, others, SCHEMAS, relation_inputs(content), arrival)
    target(float(moving.moved))
    print(moving.moved, moving.refused)
    reference = content.reference()
    query = star.tree(range(len(star.leaves)), [0] * (len(star.leaves) - 1), ())
    for time in HORIZON:
        assert snapshot(out, query.schema, time) == reference.snapshot(query, time), f"at {time}"
