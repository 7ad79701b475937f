"""Few rows go to one partition, where that is cheaper and no partition has more to do for it."""

from __future__ import annotations

from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidemill
from laws.strict_plans import SHAPES
from laws.test_mutants import fails
from laws.test_techniques import test_all_techniques_give_the_answer_of_the_reference as law
from tidemill.engine.engine import Engine
from tidemill.model.batch import Form
from tidemill.optimizer.cost import PlanCost
from tidemill.optimizer.planned import Context, Planned, Target
from tidemill.optimizer.planner import plan
from tidemill.optimizer.planning import PLANNING, Planning, Spread
from tidemill.optimizer.spreading import choose_spread
from tidemill.optimizer.statistics import Edge, Statistics
from tidemill.optimizer.variants import CLEARLY
from tidemill.physical import fragments
from tidemill.physical.fragments import Fragment, build_graph
from tidemill.physical.plan import Exchange, Input, PhysicalPlan, walk_physical
from tidemill.runtime.local.runner import LocalRunner

GROUPS = "SELECT k, COUNT(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY k"
TWICE = f"""
    SELECT n, COUNT(*) AS often FROM ({GROUPS}) g GROUP BY n
"""
PLAIN = "SELECT k FROM s [RANGE 10 SECONDS] WHERE v > 1"


def planned(sql: str, rate: float | None, planning: Planning = PLANNING) -> Planned:
    with tidemill.connect() as session:
        session.sql(
            "CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) SOURCE memory('s') ORDERED BY t"
        )
        bound = session.planned(session.query(sql).name).bound
    inputs = {} if rate is None else {"s": Edge(1_000_000 / rate)}
    return plan(bound, Target(partitions=4), Context(planning, Statistics(inputs)))


def exchanges(of: PhysicalPlan) -> list[Exchange]:
    return [part for part in walk_physical([of]) if isinstance(part, Exchange)]


def spread_of(made: Planned) -> list[str]:
    return [one.chosen for one in made.decisions if one.subject == "spread"]


@pytest.mark.parametrize("sql", [GROUPS, TWICE])
def test_few_rows_are_in_one_partition(sql: str) -> None:
    made = planned(sql, 10)
    assert spread_of(made) == ["one"]
    (one,) = exchanges(made.physical)
    assert one.keys == ()


@pytest.mark.parametrize("sql", [GROUPS, TWICE])
def test_many_rows_are_in_all_partitions(sql: str) -> None:
    made = planned(sql, 100_000)
    assert spread_of(made) == ["keys"]
    assert all(one.keys for one in exchanges(made.physical))


def test_what_is_not_known_changes_nothing() -> None:
    assert spread_of(planned(GROUPS, None)) == []
    assert spread_of(planned(PLAIN, 10)) == [], "nothing is exchanged"
    set_ = Planning(spread=Spread.KEYS)
    assert spread_of(planned(GROUPS, 10, set_)) == []


def test_a_setting_decides() -> None:
    made = planned(GROUPS, 100_000, Planning(spread=Spread.ONE))
    assert [one.keys for one in exchanges(made.physical)] == [()]
    with tidemill.connect(spread="one", partitions=3) as session:
        session.put("s", pl.DataFrame({"k": [1, 2, 3] * 3, "t": range(9)}))
        session.sql("CREATE STREAM s (k BIGINT, t BIGINT) SOURCE memory('s') ORDERED BY t")
        query = session.query("SELECT k, COUNT(*) AS n FROM s [RANGE 100] GROUP BY k")
        session.run()
        assert sorted(query.snapshot(50).rows()) == [(1, 3), (2, 3), (3, 3)]


figures = st.floats(0, 1e9)


@given(figures, figures, figures, figures, st.integers(2, 16))
def test_one_partition_is_clearly_cheaper_and_none_has_more_to_do(
    spread: float, alone: float, gathered: float, rest: float, partitions: int
) -> None:
    usual = PlanCost({}, spread, min(alone, spread), partitions)
    one = PlanCost({}, gathered, min(rest, gathered), partitions)
    chosen, decision = choose_spread(usual, one)
    is_better = one.cpu < CLEARLY * usual.cpu and one.busiest <= 1.05 * usual.busiest
    assert (chosen is Spread.ONE) == is_better
    assert decision.cpu == (one.cpu if is_better else usual.cpu)


def test_operators_rest_where_no_rows_come() -> None:
    made = planned(GROUPS, 10, Planning(spread=Spread.ONE)).physical
    graph = build_graph({"q": made})
    runner = LocalRunner(graph, partitions=3)
    assert [len(one.states) > 0 for one in runner.engines[-1]] == [True, False, False]
    assert all(
        fragment.alone == {n.name for n in fragment.nodes} for fragment in graph.fragments[1:]
    )
    (input_,) = (part for part in walk_physical([made]) if isinstance(part, Input))
    assert input_.name not in fragments.alone_in(walk_physical([made]))


def test_the_law_finds_operators_that_rest_where_rows_come() -> None:
    right = Engine.__init__

    def wrong(self: Engine, fragment: Fragment, *rest: object, **settings: object) -> None:
        alone = frozenset(n.name for n in fragment.nodes) if fragment.stage else fragment.alone
        object.__setattr__(fragment, "alone", alone)
        right(self, fragment, *rest, **settings)  # type: ignore[arg-type]

    with patch.object(Engine, "__init__", wrong):
        fails(law, shape=SHAPES[0])


def test_an_answer_has_the_form_that_is_wanted() -> None:
    with tidemill.connect(spread="one") as session:
        session.sql(
            "CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) SOURCE memory('s') ORDERED BY t"
        )
        bound = session.planned(session.query(GROUPS).name).bound
    for form in Form:
        target = Target(partitions=4, answer=form)
        made = plan(bound, target, Context(Planning(spread=Spread.ONE)))
        assert [one.keys for one in exchanges(made.physical)] == [()]
