"""Queries on Spark give the answers of the reference: scenarios, and generated queries."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tidemill
from scenario import scenarios, snapshot
from spark.on_spark import run_on_spark

if TYPE_CHECKING:
    from scenario import Scenario

pytestmark = pytest.mark.spark

FILES = sorted((Path(__file__).parents[1] / "scenarios").glob("*.scenario"))


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scenarios_give_the_answer(path: Path, partitions: int, tmp_path: Path) -> None:
    found = scenarios(path)
    session = found[0].session
    queries: list[tuple[Scenario, tidemill.Query]] = []
    for scenario in found:
        query = session.sql(scenario.query)
        assert isinstance(query, tidemill.Query)
        queries.append((scenario, query))
    job = run_on_spark(
        tmp_path,
        session.catalog,
        found[-1].streams,
        found[-1].relations,
        partitions=partitions,
        rows_per_batch=5,
    )
    for scenario, query in queries:
        expected = scenario.answer(query.schema.types)
        answer = job.answer(query.name)
        assert answer is not None
        for time in scenario.instants():
            actual = Counter(answer.snapshot(time).rows())
            assert actual == snapshot(expected, time), f"{scenario} at instant {time}"
