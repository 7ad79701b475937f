"""Every scenario gives the answer that is written beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

import tidemill
from scenario import Scenario, scenarios, snapshot
from tidemill.algebra.snapshot import Reference

FILES = sorted((Path(__file__).parent / "scenarios").glob("*.scenario"))


@pytest.mark.parametrize("scenario", [s for path in FILES for s in scenarios(path)], ids=str)
def test_reference_gives_the_answer(scenario: Scenario) -> None:
    query = scenario.session.sql(scenario.query)
    assert isinstance(query, tidemill.Query)
    reference = Reference(scenario.streams, scenario.relations)
    expected = scenario.answer(query.schema.types)
    for time in scenario.instants():
        actual = reference.snapshot(query.plan, time)
        assert actual == snapshot(expected, time), f"at instant {time}:\n{query.explain()}"
