"""Whole plans on the engine: the answer is that of the reference, however the input is cut.

Drawn are a plan, inputs, the step in which each element arrives, watermarks that keep their
promise, and the number of partitions.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import polars as pl
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from laws.arrivals import arrivals, emitted
from laws.catalogue import HORIZON, SOURCES, Inputs, P, R, inputs
from laws.split_plans import split_plans
from laws.strategies import plans
from physical.run import normal
from plans import implement
from tidemill.algebra.explain import explain
from tidemill.algebra.tree import share
from tidemill.catalog.entries import RelationEntry
from tidemill.engine.ingest import relation_flow
from tidemill.errors import PlanError
from tidemill.lang.statements import ConnectorCall, Name
from tidemill.model.batch import END, SIGN, START, TIME, Form, polars_schema
from tidemill.optimizer.physical.techniques import Technique
from tidemill.physical.fragments import build_graph
from tidemill.physical.plan import Input

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.algebra.snapshot import Bag
    from tidemill.engine.engine import Flow
    from tidemill.model.batch import Batch
    from tidemill.model.schema import Schema


def relation_inputs(content: Inputs) -> dict[str, Flow]:
    flows = {}
    for relation in (R, P):
        entry = RelationEntry(
            relation.name, relation.schema, ConnectorCall(Name("memory")), relation.validity
        )
        rows = list(content.relations[relation.name])
        frame = pl.DataFrame(rows, schema=polars_schema(relation.schema), orient="row")
        flows[relation.name] = relation_flow(entry, frame)
    return flows


def snapshot(batches: list[Batch], schema: Schema, time: int) -> Bag:
    bag: Bag = Counter()
    for part in batches:
        if SIGN in part.columns:
            for *row, at, sign in part.select(*schema.names, TIME, SIGN).iter_rows():
                bag[normal(row)] += sign if at <= time else 0
        else:
            valid = part.filter((pl.col(START) <= time) & (pl.col(END) > time))
            bag.update(map(normal, valid.select(schema.names).iter_rows()))
    assert min(bag.values(), default=0) >= 0, "only what is there is withdrawn"
    return Counter({row: count for row, count in bag.items() if count})


@settings(max_examples=4 * settings().max_examples)
@given(
    data=st.data(),
    plan=plans() | split_plans(),
    content=inputs(),
    partitions=st.integers(1, 4),
    max_delay=st.sampled_from([None, 0, 1, 3]),
    technique=st.sampled_from(Technique),
    answer=st.none() | st.sampled_from(Form),
    reload=st.booleans(),
)
def test_the_engine_gives_the_answer_of_the_reference(  # noqa: PLR0913 — it draws everything
    data: st.DataObject,
    plan: Plan,
    content: Inputs,
    *,
    partitions: int,
    max_delay: int | None,
    technique: Technique,
    answer: Form | None,
    reload: bool,
) -> None:
    plan = share(plan)
    arrival = data.draw(arrivals(content.streams, max(HORIZON)))
    try:
        out = emitted(
            implement(plan, max_delay=max_delay, technique=technique, answer=answer),
            {source.name: source.schema for source in SOURCES},
            relation_inputs(content),
            arrival,
            partitions,
            reload=reload,
        )
    except PlanError as error:
        if "stay for ever" not in str(error):
            raise
        reject()  # a window over rows that never end has no finite answer
    reference = content.reference()
    for time in HORIZON:
        expected = reference.snapshot(plan, time)
        assert snapshot(out, plan.schema, time) == expected, f"at {time}:\n{explain(plan)}"


def test_an_input_is_an_answer() -> None:
    graph = build_graph({"q": Input("S", SOURCES[0].schema)})
    assert graph.answers == {"q": "answer S"}
