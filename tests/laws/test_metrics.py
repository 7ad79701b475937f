"""Metrics of the stages on Spark, without Spark: what the driver adds up is what was done.

Drawn are a plan, inputs, the numbers of partitions and of stages, the batches before which every
partition is opened anew, and those that are delivered twice. Known without the stages are how many
rows each input has, and what a run gives that has one partition and is never interrupted.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import polars as pl
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from laws.catalogue import SOURCES, Inputs, inputs
from laws.pipeline import Pipeline
from laws.split_plans import split_plans
from laws.strategies import plans
from laws.test_engine import relation_inputs
from laws.test_stages import arrived, deployment, ended
from local import element_batch
from tidemill.algebra.explain import explain
from tidemill.algebra.tree import share
from tidemill.engine.engine import Flow
from tidemill.errors import PlanError
from tidemill.model.time import END_OF_TIME, Time
from tidemill.physical import interval
from tidemill.physical.plan import Exchange, Input
from tidemill.runtime.local.runner import LocalRunner
from tidemill.runtime.spark.driver.run_report import RunReport

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.algebra.plan import Plan
    from tidemill.engine.engine import Metrics
    from tidemill.physical.fragments import Graph, Node
    from tidemill.physical.plan import PhysicalPlan
    from tidemill.runtime.metrics import OperatorMetrics
    from tidemill.runtime.spark.worker.deployment import Deployment

ROW_BY_ROW = interval.Filter | interval.Project | interval.TimeWindow | interval.Union
"""What gives as many rows however they are cut into batches and partitions."""


@dataclass
class Run:
    """What has become of a pipeline."""

    pipeline: Pipeline
    report: RunReport

    def metrics(self) -> dict[str, OperatorMetrics]:
        return self.report.metrics()


def nodes(graph: Graph) -> dict[str, Node]:
    return {node.name: node for fragment in graph.fragments for node in fragment.nodes}


def instants(content: Inputs) -> list[int]:
    return sorted({e.time for elements in content.streams.values() for e in elements})


def on_spark(  # noqa: PLR0913 — it draws everything
    deployed: Deployment,
    content: Inputs,
    folder: Path,
    *,
    reopened: set[int],
    twice: set[int],
    end: bool,
) -> Run:
    """The stages, batch by batch, with what the driver makes of their reports."""
    report = RunReport()
    report.add_streams(deployed.streams)
    report.begin((), ())
    report.add_operators(deployed.graph)
    pipeline = Pipeline(deployed, folder)
    batches = [arrived(deployed, content, n, time) for n, time in enumerate(instants(content))]
    for number, messages in enumerate([*batches, *([ended(deployed)] if end else [])]):
        if messages:
            out = pipeline.step(number, messages, reopen=number in reopened)
            for _ in range(2 if number in twice else 1):
                report.take(number, out, {}, {})
    return Run(pipeline, report)


def undisturbed(graph: Graph, content: Inputs, *, end: bool) -> dict[str, Metrics]:
    """What one partition that is never opened again has done."""
    runner = LocalRunner(graph)
    wanted = {input_.name for input_ in graph.inputs}
    relations = relation_inputs(content)
    for number, time in enumerate([*instants(content), *([END_OF_TIME] if end else [])]):
        flows = {
            s.name: Flow(
                [element_batch(s.schema, [e for e in content.streams[s.name] if e.time == time])],
                Time(time),
            )
            for s in SOURCES
        }
        for name, flow in relations.items():
            flows[name] = flow if number == 0 else Flow([], END_OF_TIME)
        runner.step({name: flows[name] for name in wanted})
    return {n: m for (engine,) in runner.engines for n, m in engine.measure().items()}


def rows_of(content: Inputs, name: str) -> int:
    """How many rows an input has."""
    if name in content.streams:
        return len(content.streams[name])
    return sum(batch.height for batch in relation_inputs(content)[name].batches)


def source(part: PhysicalPlan) -> PhysicalPlan:
    """Where rows come from that may have been exchanged on the way."""
    return source(part.input) if isinstance(part, Exchange) else part


def assert_rows_are_counted(
    graph: Graph, content: Inputs, found: Mapping[str, OperatorMetrics]
) -> None:
    """What goes into an operator is what comes out of those below it."""
    for name, node in nodes(graph).items():
        below = [source(part) for part in node.apply.inputs]
        given_ = [
            rows_of(content, part.name)
            if isinstance(part, Input)
            else found[part.fingerprint].rows_out
            for part in below
        ]
        assert found[name].rows_in == sum(given_), found[name]


def assert_row_by_row_operators_agree(
    graph: Graph, found: Mapping[str, OperatorMetrics], alone: Mapping[str, Metrics]
) -> None:
    """What only looks at one row gives as many in every run, behind inputs or others like it."""
    fixed: set[str] = {input_.fingerprint for input_ in graph.inputs}
    for name, node in nodes(graph).items():
        below = {source(part).fingerprint for part in node.apply.inputs}
        if isinstance(node.apply.operator, ROW_BY_ROW) and below <= fixed:
            fixed.add(node.apply.fingerprint)
            assert found[name].rows_in == alone[name].rows_in
            assert found[name].rows_out == alone[name].rows_out


def assert_state_is_what_is_held(run: Run, found: Mapping[str, OperatorMetrics]) -> None:
    """The rows remembered, of each operator that runs by itself, and of all."""
    engines = [e for kept in run.pipeline.open.values() for e in kept.stage.engines]
    held: dict[str, int] = {}
    for name, state in ((n, s) for engine in engines for n, s in engine.states.items()):
        rows = sum(table.all().height for table in state.tables.values())
        held[name] = held.get(name, 0) + rows
    for name in held.keys() & found.keys():
        if not any(name not in engine.states and name in engine.metrics for engine in engines):
            assert found[name].state_rows == held[name]
    assert sum(m.state_rows or 0 for m in found.values()) == sum(held.values())
    progress = run.report.progress({}, None)
    assert progress.state_rows == sum(held.values())


@settings(max_examples=2 * settings().max_examples)
@given(
    plan=plans() | split_plans(),
    content=inputs(),
    partitions=st.integers(1, 4),
    stages=st.sampled_from([None, None, 1, 2, 5]),
    reopened=st.sets(st.integers(0, 12)),
    twice=st.sets(st.integers(0, 12)),
    end=st.booleans(),
)
def test_metrics_tell_what_was_done_and_what_is_held(  # noqa: PLR0913 — it draws everything
    plan: Plan,
    content: Inputs,
    partitions: int,
    stages: int | None,
    *,
    reopened: set[int],
    twice: set[int],
    end: bool,
) -> None:
    plan = share(plan)
    deployed = deployment(plan, content, partitions, stages)
    graph = deployed.graph
    with TemporaryDirectory() as folder:
        try:
            run = on_spark(
                deployed, content, Path(folder) / "c", reopened=reopened, twice=twice, end=end
            )
            alone = undisturbed(graph, content, end=end)
        except PlanError as error:
            if "stay for ever" not in str(error):
                raise
            reject()
    found = run.metrics()
    assert found.keys() == nodes(graph).keys(), explain(plan)
    if run.pipeline.stepped is None:  # nothing came on what it reads
        assert all(m.state_rows is None and m.watermark is None for m in found.values())
        return
    assert_rows_are_counted(graph, content, found)
    assert_row_by_row_operators_agree(graph, found, alone)
    assert_state_is_what_is_held(run, found)
    if end:
        assert {m.watermark for m in found.values()} <= {END_OF_TIME}
        assert {m.state_rows for m in found.values()} <= {0}
    assert all(m.seconds >= 0 for m in found.values())
    assert pl.Series([m.stage for m in found.values()]).is_sorted()
