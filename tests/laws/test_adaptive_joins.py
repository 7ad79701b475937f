"""Joins whose trees can change while they run answer as the reference does, whole plans of them."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import tidemill
from laws.arrivals import arrivals, emitted
from laws.catalogue import HORIZON, SOURCES, Inputs, inputs
from laws.test_engine import relation_inputs, snapshot
from laws.test_join_trees import known, stars
from plans import implement
from tidemill.algebra.explain import explain
from tidemill.algebra.tree import share
from tidemill.model.batch import Form
from tidemill.optimizer.estimates.plan import estimate
from tidemill.optimizer.planned import Context, Target
from tidemill.optimizer.planner import plan
from tidemill.optimizer.planning import Joins, Planning
from tidemill.optimizer.search.extensions import all_trees
from tidemill.physical.joining.tree import Stage
from tidemill.physical.operators.join.join_tree import JoinTree
from tidemill.physical.plan import Apply, walk_physical

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.model.schema import Schema
    from tidemill.optimizer.statistics import Statistics
    from tidemill.physical.plan import PhysicalPlan
    from tidemill.runtime.local.runner import LocalRunner


def planned(query: Plan, answer: Form | None = None, *, multiway: bool = False) -> PhysicalPlan:
    joins = Joins.MULTIWAY if multiway else Joins.BINARY
    planning = Planning(joins=joins, adaptive=True)
    return plan(query, Target(answer=answer), Context(planning)).physical


def trees_in(made: PhysicalPlan) -> list[JoinTree]:
    parts = (part for part in walk_physical([made]) if isinstance(part, Apply))
    return [part.operator for part in parts if isinstance(part.operator, JoinTree)]


def inputs_of(made: PhysicalPlan) -> tuple[Schema, ...]:
    """The inputs of the widest of them."""
    return max((tree.inputs for tree in trees_in(made)), key=len, default=())


class Changing:
    """Changes the trees of all joins that can, each partition by itself."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self.changed = 0

    def __call__(self, runner: LocalRunner) -> None:
        for engine in (engine for engines in runner.engines for engine in engines):
            for node in engine.fragment.nodes:
                operator = node.apply.operator
                if isinstance(operator, JoinTree):
                    trees = [t for t in all_trees(len(operator.inputs)) if isinstance(t, Stage)]
                    time, state = engine.watermarks[node.name], engine.states[node.name]
                    operator.adapt(state, self._chance.choice(trees), time)
                    self.changed += 1


@given(
    query=stars(),
    content=inputs(),
    answer=st.none() | st.sampled_from(Form),
    multiway=st.booleans(),
    data=st.data(),
    partitions=st.integers(1, 3),
    reload=st.booleans(),
    chance=st.integers(0, 2**32).map(Random),
)
def test_trees_that_change_in_each_partition_give_the_answer_of_the_reference(  # noqa: PLR0913
    *,
    query: Plan,
    content: Inputs,
    answer: Form | None,
    multiway: bool,
    data: st.DataObject,
    partitions: int,
    reload: bool,
    chance: Random,
) -> None:
    query = share(query)
    out = emitted(
        planned(query, answer, multiway=multiway),
        {source.name: source.schema for source in SOURCES},
        relation_inputs(content),
        data.draw(arrivals(content.streams, max(HORIZON))),
        partitions,
        reload=reload,
        between=Changing(chance),
    )
    reference = content.reference()
    for time in HORIZON:
        expected = reference.snapshot(query, time)
        assert snapshot(out, query.schema, time) == expected, f"at {time}:\n{explain(query)}"


@pytest.mark.parametrize("multiway", [False, True])
def test_most_joins_of_three_become_one(*, multiway: bool) -> None:
    found = find(
        stars(),
        lambda query: any(
            len(tree.inputs) > 3 for tree in trees_in(planned(query, multiway=multiway))
        ),
        settings=settings(max_examples=500, deadline=None, phases=[Phase.generate]),
    )
    (tree,) = trees_in(planned(found, multiway=multiway))
    assert (len(tree.tree.children) > 2) == multiway
    assert not trees_in(plan(found, Target(), Context(Planning())).physical)


# What it is expected to do


@given(query=stars(), statistics=known(), multiway=st.booleans())
def test_it_is_expected_to_do_what_the_joins_it_is_made_of_do(
    query: Plan, statistics: Statistics, *, multiway: bool
) -> None:
    """Rows that are remembered and gone through, and pairs that are compared.

    Joins of two compare with the rows that are valid, others with those that are remembered.
    """
    usual, adaptive = (
        implement(share(query), multiway=multiway, adaptive=adaptive) for adaptive in (False, True)
    )
    compared, *others = figures(adaptive, statistics)
    expected, *known_others = figures(usual, statistics)
    assert others == pytest.approx(known_others, rel=1e-6)
    assert compared == pytest.approx(expected, rel=1e-6 if multiway else 0.5)


def figures(made: PhysicalPlan, statistics: Statistics) -> list[float]:
    works = estimate([made], statistics).values()
    return [
        sum(work.compared for work in works),
        sum(work.scanned for work in works if work.compared),
        sum(sum(work.state.values()) for work in works),
    ]


# A session

QUERIES = (
    (
        "SELECT a.k, a.v, b.v AS bv, c.v AS cv FROM a [RANGE 9], b [RANGE 5], c [RANGE 20] "
        "WHERE a.k = b.k AND b.k = c.k AND a.v <= c.v"
    ),
    (
        "SELECT a.k, COUNT(*) AS n, SUM(d.v) AS total FROM a [RANGE 9], b [RANGE 5], c [RANGE 20], "
        "d [NOW] WHERE a.k = b.k AND b.k = c.k AND d.k = a.k GROUP BY a.k"
    ),
    (
        "SELECT x.k, r.name FROM (SELECT a.k FROM a [RANGE 9], b [RANGE 9] WHERE a.k = b.k) AS x, "
        "c [RANGE 3], r WHERE x.k = c.k AND r.k = c.k AND r.name IS NOT NULL"
    ),
)


def results(query: str, *, adaptive: bool, partitions: int) -> tuple[pl.DataFrame, str]:
    """The changes of an answer, and the plan."""
    usual = tidemill.Planning.for_optimizer

    def chosen(planning: tidemill.Planning) -> Planning:
        return replace(usual(planning), adaptive=adaptive)

    with patch.object(tidemill.Planning, "for_optimizer", chosen):
        session = tidemill.connect(engine="local", partitions=partitions)
    for name, number in zip("abcd", range(4), strict=True):
        session.sql(
            f"CREATE STREAM {name} (t BIGINT, k BIGINT, v BIGINT) SOURCE memory('{name}') "
            "ORDERED BY t"
        )
        session.put(name, rows_of(number))
    session.sql("CREATE RELATION r (k BIGINT, name VARCHAR) SOURCE memory('r')")
    session.put("r", pl.DataFrame({"k": [0, 1, 2, 3], "name": ["x", "y", None, "z"]}))
    made = session.sql(query)
    assert isinstance(made, tidemill.Query)
    session.run()
    answer = made.results()
    return answer.sort(answer.columns), made.explain("physical")


def rows_of(number: int) -> pl.DataFrame:
    """Some rows of few keys."""
    return pl.DataFrame(
        {
            "t": sorted((7 * i * (number + 3)) % 60 for i in range(40)),
            "k": [(i * (number + 1)) % 5 for i in range(40)],
            "v": [i % 3 for i in range(40)],
        }
    )


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("query", QUERIES)
def test_a_session_answers_alike_with_it(query: str, partitions: int) -> None:
    expected, usual = results(query, adaptive=False, partitions=partitions)
    answer, adaptive = results(query, adaptive=True, partitions=partitions)
    assert ("JoinTree" in usual, "JoinTree" in adaptive) == (False, True)
    assert answer.height > 10
    assert answer.equals(expected)
