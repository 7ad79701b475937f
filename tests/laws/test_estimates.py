"""Whatever is believed of inputs: an estimate is a number and not negative, in all techniques."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from laws.catalogue import SOURCES
from laws.strategies import plans
from laws.strict_plans import SHAPES, strict_plans
from laws.test_any_statistics import beliefs
from laws.test_join_orders import blocks
from plans import physical
from tidemill.algebra.expr import TRUE
from tidemill.algebra.plan import Join, JoinKind, Plan, Relation
from tidemill.algebra.tree import share, walk
from tidemill.model.batch import Form
from tidemill.optimizer.cost import Pace, plan_cost
from tidemill.optimizer.estimates import aggregates, plan
from tidemill.optimizer.estimates import combinations as inner
from tidemill.optimizer.estimates.plan import estimate
from tidemill.optimizer.physical.techniques import Technique
from tidemill.optimizer.planning import Joins, Planning, Spread
from tidemill.optimizer.statistics import Edge, Statistics

if TYPE_CHECKING:
    from tidemill.optimizer.estimates.flow import Flow, Work
    from tidemill.physical import interval

QUERIES = plans() | blocks() | st.sampled_from(SHAPES).flatmap(strict_plans)
PLANNINGS = st.builds(
    Planning,
    technique=st.sampled_from(Technique),
    joins=st.sampled_from(Joins),
    spread=st.sampled_from(Spread),
    lazy=st.sampled_from([0, 1, 3]),
    max_delay=st.sampled_from([None, 0, 3]),
)
PACES = st.builds(
    Pace,
    st.sampled_from([1e-6, 0.001, 1.0, 3600.0]),
    st.integers(1, 8),
    st.sampled_from([1e-6, 60.0, 86_400.0, 1e9]),
)


@dataclass(frozen=True)
class Case:
    """A query, how it is planned and run, and what is believed of its inputs."""

    query: Plan
    planning: Planning
    answer: Form | None
    known: Statistics
    pace: Pace

    def figures(self) -> dict[str, float]:
        """All that is estimated of it."""
        made = physical(self.query, self.planning, answer=self.answer)
        relations = {node.name for node in walk(self.query) if isinstance(node, Relation)}
        found: dict[str, float] = {}
        for name, work in estimate([made], self.known, self.pace, relations).items():
            edge = work.flow.edge
            found |= {
                f"{name} rate": edge.rate,
                f"{name} length": edge.length,
                f"{name} size": edge.size,
                f"{name} bytes": edge.row_bytes,
                f"{name} lag": work.flow.lag,
                f"{name} taken": work.taken,
                f"{name} compared": work.compared,
                f"{name} scanned": work.scanned,
            }
            found |= {f"{name} {table}": rows for table, rows in work.state.items()}
        cost = plan_cost(made, self.known, pace=self.pace, relations=relations)
        found |= {f"{name} cpu": part.cpu for name, part in cost.parts.items()}
        found |= {f"{name} held": part.state_bytes for name, part in cost.parts.items()}
        return found | {"cpu": cost.cpu, "busiest": cost.busiest, "memory": cost.memory}

    def wrong(self) -> list[str]:
        """The estimates that are none."""
        found = self.figures().items()
        return [f"{what}: {value}" for what, value in found if not (0 <= value < inf)]

    def fails(self) -> bool:
        """Whether there is one."""
        try:
            return bool(self.wrong())
        except (ArithmeticError, AssertionError):
            return True


@st.composite
def cases(draw: st.DrawFn) -> Case:
    query: Plan = share(draw(QUERIES))
    answer = draw(st.none() | st.sampled_from(Form))
    return Case(query, draw(PLANNINGS), answer, draw(beliefs(query)), draw(PACES))


@settings(max_examples=2 * settings().max_examples)
@given(cases())
def test_estimates_are_numbers(case: Case) -> None:
    assert not case.wrong()


@pytest.mark.parametrize("joins", Joins)
def test_estimates_of_a_long_product_are_numbers(joins: Joins) -> None:
    assert not long_product(joins).wrong()


def long_product(joins: Joins) -> Case:
    """Forty inputs of a great many rows, of which all match."""
    query: Plan = SOURCES[0]
    for number in range(40):
        names = (*query.schema.names, f"a{number}", f"b{number}")
        query = Join(query, SOURCES[1], JoinKind.INNER, TRUE, names)
    known = Statistics({source.name: Edge(1e-9, 1e9) for source in SOURCES})
    return Case(query, Planning(optimized=False, joins=joins), None, known, Pace())


def test_the_law_finds_what_is_not_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    def unbounded(edge: Edge, pace: Pace) -> Edge:
        del pace
        return edge

    for where in (plan, inner):
        monkeypatch.setattr(where, "bounded", unbounded)
    assert long_product(Joins.BINARY).fails()


def test_the_law_finds_a_share_of_no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    right = aggregates.aggregate

    def by_groups(operator: interval.Aggregate, below: Flow) -> Work:
        found = right(operator, below)
        return replace(found, scanned=found.scanned / found.state["totals"])

    monkeypatch.setattr(aggregates, "aggregate", by_groups)
    find(
        cases(),
        Case.fails,
        settings=settings(max_examples=4000, deadline=None, phases=[Phase.generate]),
    )
