"""Every scenario gives the answer that is written beside it, on every runner and setting."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import tidemill
from local import run_locally
from scenario import Scenario, scenarios, snapshot
from tidemill.algebra.snapshot import Reference
from tidemill.catalog.entries import RelationEntry
from tidemill.optimizer.logical.rewrite import optimize

FILES = sorted((Path(__file__).parent / "scenarios").glob("*.scenario"))
SCENARIOS = [scenario for path in FILES for scenario in scenarios(path)]


def registered(scenario: Scenario) -> tidemill.Query:
    query = scenario.session.sql(scenario.query)
    assert isinstance(query, tidemill.Query)
    return query


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_reference_gives_the_answer(scenario: Scenario) -> None:
    query = registered(scenario)
    reference = Reference(scenario.streams, scenario.relations)
    expected = scenario.answer(query.schema.types)
    for time in scenario.instants():
        actual = reference.snapshot(query.plan, time)
        assert actual == snapshot(expected, time), f"at instant {time}:\n{query.explain()}"


# Each setting once, against the others; the engine's law mixes them at random.
@pytest.mark.parametrize(
    ("partitions", "rows", "optimized"),
    [(1, 100, True), (3, 1, False)],
    ids=["all at once", "in three partitions, row by row, not optimized"],
)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_local_engine_gives_the_answer(
    scenario: Scenario, partitions: int, rows: int, *, optimized: bool
) -> None:
    query = registered(scenario)
    plan = optimize(query.plan) if optimized else query.plan
    entries = scenario.session.catalog.objects.values()
    relations = {e.name: e for e in entries if isinstance(e, RelationEntry)}
    answer = run_locally(
        plan,
        scenario.streams,
        scenario.relations,
        relations,
        partitions=partitions,
        rows_per_step=rows,
    )
    expected = scenario.answer(query.schema.types)
    for time in scenario.instants():
        actual = Counter(answer.snapshot(time).rows())
        assert actual == snapshot(expected, time), f"at instant {time}:\n{query.explain()}"
