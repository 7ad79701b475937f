"""Queries on Spark give the answers of the reference: scenarios, and generated queries."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

import tidemill
from oracle.agreement import assert_answers_agree, contents, registered
from oracle.expressions import Choose
from oracle.queries import FAMILIES, Queries
from oracle.traps import INPUTS, TRAPS
from oracle.world import DEFINITIONS
from scenario import scenarios, snapshot
from spark.on_spark import run_on_spark
from tidemill.algebra.snapshot import Reference
from tidemill.lang.statements import ExplainMode
from tidemill.optimizer.explain.physical import explain_physical
from tidemill.optimizer.explain.planned import explain_planned
from tidemill.physical.codec.plans import plan_version
from tidemill.runtime.spark.state.deployments import Deployments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scenario import Scenario
    from tidemill.runtime.spark.driver.job import SparkJob
    from tidemill.runtime.spark.worker.deployment import Deployment

pytestmark = pytest.mark.spark

PER_FAMILY = 4
"""How many generated queries of each of the 8 families run in one job, beside the traps."""

FILES = sorted((Path(__file__).parents[1] / "scenarios").glob("*.scenario"))
ALSO_IN_ONE = ("counterexamples",)
CASES = [
    pytest.param(path, partitions, id=f"{path.stem}-{partitions}", marks=marks)
    for path in FILES
    for partitions, marks in (
        (4, ()),
        (1, () if path.stem in ALSO_IN_ONE else pytest.mark.soak),  # generated queries run there
    )
]


@contextmanager
def deployed() -> Iterator[list[tuple[Deployments, str]]]:
    """What is written for the workers meanwhile."""
    kept: list[tuple[Deployments, str]] = []
    keep = Deployments.keep

    def noting(deployments: Deployments, deployment: Deployment) -> None:
        keep(deployments, deployment)
        deployments.open(deployment.version)  # as a worker does
        kept.append((deployments, deployment.version))

    with patch.object(Deployments, "keep", noting):
        yield kept


def assert_explained(job: SparkJob, queries: set[str], kept: list[tuple[Deployments, str]]) -> None:
    """What EXPLAIN shows of the queries is what the workers have read and run."""
    assert kept
    for deployments, version in kept:
        read = deployments.open(version).graph.plans
        assert read.keys() == queries
        for name, plan in read.items():
            planned = job.planned(name)
            assert planned is not None
            assert plan_version(plan) == planned.version
            shown = explain_planned(ExplainMode.PHYSICAL, planned)
            decided = [f"decided: {one.text()}" for one in planned.decisions]
            assert shown.splitlines() == [
                *explain_physical(plan, planned.labels).splitlines(),
                *decided,
            ]


@pytest.mark.parametrize(("path", "partitions"), CASES)
def test_scenarios_give_the_answer(path: Path, partitions: int, tmp_path: Path) -> None:
    found = scenarios(path)
    session = found[0].session
    queries: list[tuple[Scenario, tidemill.Query]] = []
    for scenario in found:
        query = session.sql(scenario.query)
        assert isinstance(query, tidemill.Query)
        queries.append((scenario, query))
    with deployed() as sent:
        job = run_on_spark(
            tmp_path,
            session.catalog,
            found[-1].streams,
            found[-1].relations,
            partitions=partitions,
            rows_per_batch=5,
        )
    assert_explained(job, {query.name for _, query in queries}, sent)
    for scenario, query in queries:
        expected = scenario.answer(query.schema.types)
        answer = job.answer(query.name)
        assert answer is not None
        for time in scenario.instants():
            actual = Counter(answer.snapshot(time).rows())
            assert actual == snapshot(expected, time), f"{scenario} at instant {time}"


def generated(seed: int) -> list[str]:
    """Queries of every family."""
    random = Random(seed)  # noqa: S311 — the same queries every time
    choose = Choose(random.randrange)
    return [write(Queries(choose)) for write in FAMILIES.values() for _ in range(PER_FAMILY)]


@pytest.mark.parametrize(
    ("texts", "partitions", "stages"),
    [
        ([*TRAPS.values(), *generated(1)], 4, None),
        pytest.param(generated(2), 1, None, marks=pytest.mark.soak),
        (generated(3), 3, 1),  # fewer stages than the plans need
        pytest.param(generated(4)[:8], 2, 6, marks=pytest.mark.soak),  # more than they need
    ],
    ids=["traps and generated", "one partition", "too few stages", "more stages than needed"],
)
def test_queries_in_one_job_agree_with_the_reference(
    texts: list[str], partitions: int, stages: int | None, tmp_path: Path
) -> None:
    session, queries = registered(DEFINITIONS, texts)
    content = contents(session, INPUTS)
    job = run_on_spark(
        tmp_path,
        session.catalog,
        *content,
        partitions=partitions,
        rows_per_batch=3,
        stages=stages,
    )
    reference = Reference(*content)
    for sql, query in queries.items():
        answer = job.answer(query.name)
        assert answer is not None
        assert_answers_agree(sql, query, answer, INPUTS, reference)
