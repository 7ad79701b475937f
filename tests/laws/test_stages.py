"""The steps of the pipeline on Spark, without Spark: intake, stages, and the keeper of their state.

Drawn are a plan, inputs, the numbers of partitions and of stages, and whether the state of each
partition is opened anew after a batch, with or without its cache.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import polars as pl
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from laws.catalogue import HORIZON, SOURCES, Inputs, P, R, inputs
from laws.pipeline import PIDS, Pipeline, through_the_wire
from laws.split_plans import split_plans
from laws.strategies import plans
from plans import implement
from tidemill.algebra.explain import explain
from tidemill.algebra.tree import share
from tidemill.catalog.entries import RelationEntry, StreamEntry
from tidemill.errors import PlanError
from tidemill.lang.statements import ConnectorCall, Name
from tidemill.model.batch import polars_schema
from tidemill.model.time import Time
from tidemill.optimizer.physical.fold import folded
from tidemill.physical.fragments import build_graph
from tidemill.runtime.answers import Answer
from tidemill.runtime.spark.driver.control import Word, said
from tidemill.runtime.spark.worker.deployment import Deployment
from tidemill.runtime.spark.worker.intake import Origin, Piece, first_id, take_in
from tidemill.runtime.spark.worker.wire import Kind, Message

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan

SOURCE = ConnectorCall(Name("memory"))


def deployment(plan: Plan, content: Inputs, partitions: int, stages: int | None) -> Deployment:
    physical = implement(plan, max_delay=3)
    graph = build_graph({"q": physical if stages is None else folded(physical, stages)[0]})
    wanted = {input_.name for input_ in graph.inputs}
    relations = {}
    for relation in (R, P):
        entry = RelationEntry(relation.name, relation.schema, SOURCE, relation.validity)
        rows = list(content.relations[relation.name])
        frame = pl.DataFrame(rows, schema=polars_schema(relation.schema), orient="row")
        blob = Message.of_rows(0, Kind.ROWS, relation.name, frame).blob
        relations[relation.name] = entry, blob
    return Deployment(
        graph,
        {s.name: StreamEntry(s.name, s.schema, SOURCE) for s in SOURCES if s.name in wanted},
        {name: found for name, found in relations.items() if name in wanted},
        PIDS[:partitions],
        stages or max(1, len(graph.fragments) - 1),
    )


def arrived(deployed: Deployment, content: Inputs, batch: int, time: int) -> list[Message]:
    """The messages of a batch: all elements of an instant, whose time is that of the batch."""
    messages: list[Message] = []
    for task, (name, stream) in enumerate(deployed.streams.items()):
        rows = [e.row for e in content.streams[name] if e.time == time]
        if rows:
            frame = pl.DataFrame(rows, schema=polars_schema(stream.schema), orient="row")
            origin = Origin(batch, task, Time(time))
            piece = first_id(0, origin=origin), frame
            messages += through_the_wire(take_in(deployed, name, [Piece(*piece)], origin))
    return messages


def ended(deployed: Deployment) -> list[Message]:
    """Word that all streams have ended."""
    return through_the_wire(said([{"number": 0, "word": Word.END}], deployed.pids, 0))


def ticked(deployed: Deployment, time: int) -> list[Message]:
    """Word that time has passed."""
    return through_the_wire(said([{"number": 0, "word": Word.TICK}], deployed.pids, time))


@settings(max_examples=2 * settings().max_examples)
@given(
    plan=plans() | split_plans(),
    content=inputs(),
    partitions=st.integers(1, 4),
    stages=st.sampled_from([None, None, 1, 2, 5]),
    ticks=st.sets(st.sampled_from(HORIZON), max_size=5),
    reopen=st.booleans(),
    lose_cache=st.booleans(),
)
def test_the_stages_give_the_answer_of_the_reference(  # noqa: PLR0913 — it draws everything
    plan: Plan,
    content: Inputs,
    partitions: int,
    stages: int | None,
    *,
    ticks: set[int],
    reopen: bool,
    lose_cache: bool,
) -> None:
    plan = share(plan)
    deployed = deployment(plan, content, partitions, stages)
    answer = Answer(plan.schema)
    instants = sorted({e.time for elements in content.streams.values() for e in elements})
    instants = sorted({*instants, *ticks})
    with TemporaryDirectory() as folder:
        pipeline = Pipeline(deployed, Path(folder) / "cache")
        for number, time in enumerate([*instants, None]):
            if time is None:
                messages = ended(deployed)
            else:
                messages = arrived(deployed, content, number, time)
                # A tick comes alone, or with rows; what came at its instant may follow no more.
                messages += ticked(deployed, time) if time in ticks else []
            if not messages:
                continue
            try:
                out = pipeline.step(number, messages, reopen=reopen)
            except PlanError as error:
                if "stay for ever" not in str(error):
                    raise
                reject()
            answer.add(m.rows() for m in out if m.kind is Kind.ANSWER)
            if lose_cache:
                shutil.rmtree(pipeline.directory, ignore_errors=True)
    for store in pipeline.stores.values():
        assert not store.segments, "after the end nothing is kept"
    reference = content.reference()
    for time in HORIZON:
        actual = Counter(answer.snapshot(time).rows())
        assert actual == reference.snapshot(plan, time), f"at {time}:\n{explain(plan)}"
