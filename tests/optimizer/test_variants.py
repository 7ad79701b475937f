"""What is left open is chosen by cost: never later, clearly cheaper, and within the limits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidemill
from tidemill.model.batch import Form
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.planned import Context, Target
from tidemill.optimizer.planner import plan
from tidemill.optimizer.planning import PLANNING, Planning
from tidemill.optimizer.variants import CLEARLY, Variant, choose_variant

STREAMS = "".join(
    f"CREATE STREAM {name} (k BIGINT, v BIGINT, at BIGINT) SOURCE memory('{name}') ORDERED BY at;"
    for name in ("s", "r", "u")
)
PLAIN = "SELECT k, SUM(v) AS x FROM s [RANGE 10 SECONDS] GROUP BY k"
ABOVE = f"SELECT a.k, a.x, u.v FROM ({PLAIN}) a JOIN u [RANGE 10 SECONDS] u ON a.k = u.k"
NEGATED = """
    SELECT s.k, u.v FROM s [RANGE {0} SECONDS] s JOIN u [RANGE {0} SECONDS] u ON s.k = u.k
    WHERE NOT EXISTS (SELECT * FROM r [RANGE {0} SECONDS] r WHERE r.k = s.k)
"""


def forms(sql: str, answer: Form | None) -> list[str]:
    with tidemill.connect() as session:
        session.sql(STREAMS)
        bound = session.planned(session.query(sql).name).bound
    made = plan(bound, Target(answer=answer), Context(PLANNING))
    return [one.chosen for one in made.decisions if one.subject == "form"]


def test_an_answer_with_ends_is_computed_with_ends_where_that_is_cheaper() -> None:
    assert forms(ABOVE, Form.INTERVAL) == ["direct, negation written"]


@pytest.mark.parametrize("answer", [None, Form.SIGNED])
def test_an_answer_that_is_to_come_at_once_is_not_held_back_for_its_cost(
    answer: Form | None,
) -> None:
    assert forms(ABOVE, answer) == []


def test_anti_joins_go_below_joins_where_that_is_cheaper() -> None:
    assert forms(NEGATED.format(100), None) == ["pattern, negation pushed"]


def test_few_rows_cost_calls_so_anti_joins_stay_where_they_are_called_less() -> None:
    assert forms(NEGATED.format(1), None) == ["pattern, negation written"]


def test_nothing_is_planned_twice_that_has_one_way_only() -> None:
    assert forms(PLAIN, Form.INTERVAL) == []


def test_what_is_set_is_not_open() -> None:
    with tidemill.connect(negation="written", technique="pattern") as session:
        session.sql(STREAMS)
        query = session.query(NEGATED.format(10))
        assert session.planned(query.name).decisions == ()


figures = st.floats(0, 1e9)
found = st.lists(st.tuples(figures, figures, figures), min_size=1, max_size=6)
limits = st.none() | st.floats(1, 1e9)


def made(some: list[tuple[float, float, float]], planning: Planning) -> list[Variant]:
    names = list(Technique)
    return [
        Variant(replace(planning, technique=names[i % len(names)], lazy=i), *one)
        for i, one in enumerate(some)
    ]


@given(found, limits, limits)
def test_the_choice_is_never_later_dearer_or_further_from_the_limits(
    some: list[tuple[float, float, float]], cpu: float | None, memory: float | None
) -> None:
    planning = Planning(cpu_limit=cpu, memory_limit=memory)
    options = made(some, planning)
    best, decision = choose_variant(options)
    usual = options[0]
    assert best.lacks(planning) == min(one.lacks(planning) for one in options)
    if best is not usual and best.lacks(planning) == usual.lacks(planning):
        assert best.cpu <= CLEARLY * usual.cpu
        assert best.delay <= usual.delay * 1.05
    assert decision.cpu == best.cpu
    assert len(decision.alternatives) == len(options) - 1


@given(found)
def test_without_limits_nothing_is_lacking(some: list[tuple[float, float, float]]) -> None:
    assert all(one.lacks(Planning()) == 1 for one in made(some, Planning()))
