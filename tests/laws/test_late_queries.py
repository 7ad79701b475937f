"""The answer of a query that begins later does not depend on which other queries run.

Drawn are a query, other queries that have parts in common with it, the step in which it begins,
inputs, the technique and the number of partitions. What it gives is the answer of the reference to
the rows that come from that step on, and to all rows of relations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, reject, settings
from hypothesis import strategies as st

from laws.arrivals import arrivals
from laws.catalogue import HORIZON, LEAVES, SOURCES, Inputs, P, R, inputs
from laws.derived_streams import dense_inputs
from laws.strategies import plans
from laws.strict_plans import SHAPES, strict_plans
from laws.test_engine import relation_inputs, snapshot
from laws.test_stacks import taken_over
from local import element_batch
from plans import physical
from tidemill.algebra.explain import explain
from tidemill.algebra.snapshot import Reference
from tidemill.algebra.tree import share, walk
from tidemill.engine.engine import Flow
from tidemill.errors import PlanError
from tidemill.model.time import END_OF_TIME, Time
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.planning import Joins, Planning
from tidemill.physical.fragments import build_graph
from tidemill.physical.plan import begun_in
from tidemill.runtime.local.runner import LocalRunner

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hypothesis.strategies import DrawFn

    from laws.arrivals import Arrival, Step
    from tidemill.algebra.plan import Plan
    from tidemill.model.batch import Batch
    from tidemill.physical.plan import PhysicalPlan

RELATIONS = (R.name, P.name)


@st.composite
def late_and_others(draw: DrawFn) -> tuple[Plan, dict[str, Plan]]:
    """A query, and others: some are parts of it, and some stand above such parts."""
    late: Plan = share(draw(plans() | st.sampled_from(SHAPES).flatmap(strict_plans)))
    parts = [node for node in walk(late) if node not in LEAVES]
    chosen = draw(st.lists(st.sampled_from(parts), min_size=1, max_size=3)) if parts else []
    others = {f"part {i}": part for i, part in enumerate(chosen)}
    return late, {**others, "twin": late} if draw(st.booleans()) else others


@settings(max_examples=8 * settings().max_examples)
@given(
    data=st.data(),
    queries=late_and_others(),
    content=inputs() | dense_inputs(),
    partitions=st.integers(1, 3),
    max_delay=st.sampled_from([None, 0, 3]),
    technique=st.sampled_from(Technique),
    multiway=st.booleans(),
)
def test_a_late_query_does_not_depend_on_its_neighbours(  # noqa: PLR0913 — it draws everything
    data: st.DataObject,
    queries: tuple[Plan, dict[str, Plan]],
    content: Inputs,
    *,
    partitions: int,
    max_delay: int | None,
    technique: Technique,
    multiway: bool,
) -> None:
    late, others = queries
    arrival = data.draw(arrivals(content.streams, max(HORIZON)))
    begins = data.draw(st.integers(1, len(arrival.steps)))
    joins = Joins.MULTIWAY if multiway else Joins.BINARY
    planning = Planning(optimized=False, max_delay=max_delay, technique=technique, joins=joins)
    running = {name: physical(plan, planning) for name, plan in others.items()}
    try:
        query = begun_in(physical(late, planning), 1, RELATIONS)[0]
        out = joined_later(running, query, content, arrival, begins, partitions)
    except PlanError as error:
        if "stay for ever" not in str(error):
            raise
        reject()  # a window over rows that never end has no finite answer
    seen = {
        name: tuple(e for step in arrival.steps[begins:] for e in step[name][0])
        for name in content.streams
    }
    reference = Reference(seen, content.relations)
    for time in HORIZON:
        expected = reference.snapshot(late, time)
        assert snapshot(out, late.schema, time) == expected, f"at {time}:\n{explain(late)}"


def joined_later(  # noqa: PLR0913, PLR0917 — see above
    running: Mapping[str, PhysicalPlan],
    query: PhysicalPlan,
    content: Inputs,
    arrival: Arrival,
    begins: int,
    partitions: int,
) -> list[Batch]:
    """What a query gives that joins others which are running already."""
    end: Step = dict.fromkeys((source.name for source in SOURCES), ((), END_OF_TIME))
    relations = relation_inputs(content)
    runner = LocalRunner(build_graph(running), partitions=partitions)
    out: list[Batch] = []
    fed: set[str] = set()
    for number, step in enumerate([*arrival.steps, end]):
        if number == begins:
            runner = taken_over(runner, build_graph({**running, "late": query}))
        flows: dict[str, Flow] = {}
        for input_ in runner.graph.inputs:
            if input_.name in RELATIONS:
                has_it = input_.rows in fed
                fed.add(input_.rows)
                flow = relations[input_.name]
                flows[input_.rows] = Flow([], END_OF_TIME) if has_it else flow
            else:
                elements, watermark = step[input_.name]
                batch = element_batch(input_.schema, elements)
                flows[input_.rows] = Flow([batch], Time(watermark))
        out += runner.step(flows).get("late", [])
    return out
