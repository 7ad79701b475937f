"""Operators on single rows obey their laws for every batching and schedule."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from laws.catalogue import PAIR
from laws.strategies import expressions, predicates
from physical.letters import is_chronon
from physical.run import Schedule, normal, run, schedules
from tidemill.algebra.evaluate import evaluate
from tidemill.algebra.expr import Named
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT, VARCHAR
from tidemill.physical.operators.rows.filter import Filter
from tidemill.physical.operators.rows.number import Number
from tidemill.physical.operators.rows.project import Project
from tidemill.physical.operators.rows.union import Union

if TYPE_CHECKING:
    from tidemill.algebra.expr import Expr
    from tidemill.algebra.snapshot import Row
    from tidemill.model.types import Value

OTHER = Schema((Field("c", BIGINT), Field("d", VARCHAR)))


def value(expr: Expr, row: Row) -> Value:
    return evaluate(expr, dict(zip(PAIR.names, row, strict=True)))


@given(schedule=schedules(PAIR), predicate=predicates(PAIR))
def test_filter_keeps_the_rows_for_which_it_is_true(schedule: Schedule, predicate: Expr) -> None:
    output = run(Filter(PAIR, predicate), schedule)
    for t in schedule.times():
        rows = schedule.snapshot(0, t)
        kept = Counter({row: n for row, n in rows.items() if value(predicate, row) is True})
        assert output.snapshot(t) == kept, t


@given(
    schedule=schedules(PAIR),
    exprs=st.lists(expressions(PAIR, BIGINT) | expressions(PAIR, VARCHAR), min_size=1, max_size=3),
)
def test_project_computes_each_row(schedule: Schedule, exprs: list[Expr]) -> None:
    columns = tuple(Named(f"p{i}", expr) for i, expr in enumerate(exprs))
    schema = Schema(tuple(Field(c.name, c.expr.type) for c in columns))
    output = run(Project(schema, columns), schedule)
    for t in schedule.times():
        rows = schedule.snapshot(0, t).elements()
        computed = Counter(normal([value(expr, row) for expr in exprs]) for row in rows)
        assert output.snapshot(t) == computed, t


@given(schedule=schedules(PAIR, OTHER))
def test_union_has_the_rows_of_both(schedule: Schedule) -> None:
    output = run(Union(PAIR, OTHER.names), schedule)
    for t in schedule.times():
        assert output.snapshot(t) == schedule.snapshot(0, t) + schedule.snapshot(1, t), t


@given(schedule=schedules(PAIR, OTHER, lengths=(1,)))
def test_union_keeps_chronons(schedule: Schedule) -> None:
    assert is_chronon(run(Union(PAIR, OTHER.names), schedule))


@given(schedule=schedules(PAIR), reload=st.booleans())
def test_numbers_are_unique_and_change_nothing_else(schedule: Schedule, *, reload: bool) -> None:
    output = run(Number(PAIR), schedule, reload=reload)
    for t in schedule.times():
        without = Counter(row[:-1] for row in output.snapshot(t).elements())
        assert without == schedule.snapshot(0, t), t
    assert {e.row[-1] for e in output.elements} == set(range(len(schedule.elements())))
