"""What is kept with a query says the same of its rows as what streams have kept.

Drawn are a plan, inputs, batches and watermarks, partitions, when pieces of tables are made anew
and an instant. The hooks of the plan run in batches, and their answers are kept as tables; the
streams keep all. Asked of both is what the rows at the instant are made of.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from laws.arrivals import arrivals
from laws.asking import CALL, asked, kept_by_batch
from laws.catalogue import HORIZON, LAST, SOURCES, Inputs, P, R, inputs
from laws.lineage_plans import by_time
from laws.strategies import plans
from laws.test_tables import LIMITS
from local import element_batch
from tidemill.algebra.explain import explain
from tidemill.algebra.expr import TRUE
from tidemill.algebra.patterns import UpdatePattern, update_pattern
from tidemill.algebra.tree import share
from tidemill.catalog.entries import Kept as Keep
from tidemill.catalog.entries import QueryEntry, RelationEntry
from tidemill.control.instances import record_of
from tidemill.control.recorded import Recorded, Tables
from tidemill.control.recording import Recording, recordings
from tidemill.control.tracing import Kept
from tidemill.engine.engine import Flow
from tidemill.engine.ingest import relation_flow
from tidemill.errors import PlanError
from tidemill.history.table_view import TableView
from tidemill.history.tables import Limits, Table
from tidemill.model.batch import END, START, polars_schema, time_columns
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical.fragments import build_graph
from tidemill.physical.frames import pick
from tidemill.provenance.lines import flattened, stepwise
from tidemill.provenance.trace import trace
from tidemill.runtime.local.runner import LocalRunner
from tidemill.runtime.planning import plan_entry
from tidemill.runtime.shapes import shape_of
from tidemill.runtime.table_files import MemoryTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hypothesis.strategies import DrawFn

    from laws.arrivals import Arrival
    from tidemill.algebra.plan import Plan
    from tidemill.provenance.trace import Trace

ALL = Keep(None)
EVERYTHING = {source.name: None for source in SOURCES}


@dataclass(frozen=True)
class Scene:
    """What is drawn for a law."""

    plan: Plan
    content: Inputs
    arrival: Arrival
    partitions: int
    limits: Limits
    time: Time


@st.composite
def scenes(draw: DrawFn) -> Scene:
    content = draw(inputs())
    return Scene(
        share(draw(plans() | plans().map(by_time))),
        content,
        draw(arrivals(content.streams, LAST)),
        draw(st.sampled_from([1, 3])),
        draw(LIMITS),
        Time(draw(st.sampled_from(HORIZON))),
    )


def query(plan: Plan) -> QueryEntry:
    return QueryEntry("q", plan, "", frozenset(), provenance=ALL)


def view(scene: Scene, one: Recording) -> TableView:
    """The table of a hook when all has come."""
    entry = one.table
    graph = build_graph({entry.name: plan_entry(entry, partitions=scene.partitions).physical})
    runner, form = LocalRunner(graph, partitions=scene.partitions), shape_of(entry).form
    assert entry.keep is not None
    table = Table(
        MemoryTable(), entry.plan.schema, entry.keep, done=0, limits=scene.limits, form=form
    )
    columns = [*entry.plan.schema.names, *time_columns(form)]
    for batch, flows in enumerate(_flows(scene, runner)):
        given_ = runner.step(flows)[entry.name]
        rows = pl.concat([pick(one, columns) for one in given_]) if given_ else None
        table.take(batch, rows, known=runner.known[entry.name])
        table.publish()
    return TableView(entry.name, table.schema, table.keep, table.state, table.store)


def _flows(scene: Scene, runner: LocalRunner) -> Iterator[dict[str, Flow]]:
    names = {input_.name for input_ in runner.graph.inputs}
    schemas = {source.name: source.schema for source in SOURCES}
    relations = {}
    for one in (R, P):
        entry = RelationEntry(one.name, one.schema, CALL, one.validity)
        frame = pl.DataFrame(
            list(scene.content.relations[one.name]),
            schema=polars_schema(one.schema),
            orient="row",
        )
        relations[one.name] = relation_flow(entry, frame, has_ids=True)
    done = {name: Flow([], END_OF_TIME) for name in relations}
    for number, step in enumerate(scene.arrival.steps):
        streams = {
            name: Flow([element_batch(schemas[name], elements)], Time(mark))
            for name, (elements, mark) in step.items()
        }
        flows = streams | (done if number else relations)
        yield {name: flow for name, flow in flows.items() if name in names}
    ends = {name: Flow([], END_OF_TIME) for name in (*schemas, *relations)}
    for _ in range(2):
        yield {name: flow for name, flow in ends.items() if name in names}


def both(scene: Scene) -> tuple[Kept, Recorded]:
    """What rows are found in: what streams have kept, and what is kept with the query."""
    entry = query(scene.plan)
    record = record_of(entry)
    mine = recordings(entry, record, record.instances[0])
    keeping = kept_by_batch(scene.content, scene.arrival, EVERYTHING, len(scene.arrival.steps))
    past = replace(keeping.past(), watermarks=dict.fromkeys(EVERYTHING, END_OF_TIME))
    kept = Kept(asked(past))
    tables = Tables(tuple(mine), tuple(view(scene, one) for one in mine))
    return kept, Recorded(tables, kept)


def lines(found: Trace, kept: Kept | Recorded, *, flat: bool) -> pl.DataFrame:
    make = flattened if flat else stepwise
    return make(found, kept.rows_of, {})


def certain(frame: pl.DataFrame, recorded: Recorded) -> pl.DataFrame:
    """The lines without times that depend on rows which nobody has asked for.

    Of kept streams only the rows are looked at that matter at the instant. From when to when a row
    of a stream counts is known of these if its end is known when it comes. How long what is made of
    several rows stays what it is, or has a partner, may depend on other rows.
    """
    patterns = [update_pattern(one.hook.plan) for one in recorded.tables.recordings]
    if not any(leaf.has_ids for leaf in recorded.tables.recordings[0].hook.leaves):
        del patterns[0]  # the rows of the answer are no lines
    if UpdatePattern.STRICT in patterns:
        return frame.drop("start", "end")
    if "node" not in frame.columns:
        return frame
    is_made = pl.col("operator").is_not_null()
    return frame.with_columns(
        pl.when(is_made).then(None).otherwise(pl.col(name)).alias(name) for name in ("start", "end")
    )


@settings(max_examples=2 * settings().max_examples)
@given(scene=scenes())
def test_why_is_the_same_from_what_is_kept_with_the_query(scene: Scene) -> None:
    try:
        kept, recorded = both(scene)
    except PlanError:
        reject()
    lazy = trace(scene.plan, TRUE, scene.time, kept.elements)
    eager = trace(scene.plan, TRUE, scene.time, recorded.elements)
    assert lazy.answers.drop(START, END).equals(eager.answers.drop(START, END))
    for flat in (False, True):
        expected = certain(lines(lazy, kept, flat=flat), recorded)
        found = certain(lines(eager, recorded, flat=flat), recorded)
        assert found.equals(expected), f"{explain(scene.plan)}\n{expected}\n{found}"
