"""Scalar aggregates that are computed in two parts, over the catalogue of ``catalogue.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from laws.catalogue import SOURCES, R
from laws.strategies import aggregate_calls, conformed, expressions, predicates
from streams import equal, names_of_both
from tidemill.algebra.expr import Column, Named
from tidemill.algebra.plan import (
    Aggregate,
    Difference,
    Distinct,
    Dstream,
    Filter,
    Intersect,
    Istream,
    Join,
    JoinKind,
    MaxUnion,
    NamedAggregate,
    Plan,
    Project,
    Rstream,
    StrictDifference,
    TimeWindow,
    Union,
    Window,
)
from tidemill.model.types import BIGINT, VARCHAR
from tidemill.physical.interval import can_combine

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import DrawFn

__all__ = ["split_plans"]


@st.composite
def split_plans(draw: DrawFn) -> Plan:
    """Scalar aggregates, from sums and extremes, of elements that share intervals."""
    plan = _sliding(draw)
    for _ in range(draw(st.integers(0, 2))):
        step = draw(st.sampled_from([_filter, _project, _unary, _group, _set_operation, _join]))
        plan = step(draw, plan)
    combinable = aggregate_calls(plan.schema).filter(lambda call_: can_combine([call_]))
    calls = draw(st.lists(combinable, min_size=1, max_size=3))
    return Aggregate(plan, (), tuple(NamedAggregate(f"f{i}", c) for i, c in enumerate(calls)))


def _sliding(draw: DrawFn) -> Plan:
    window = st.builds(TimeWindow, st.integers(1, 6), st.integers(2, 4))
    return Window(draw(st.sampled_from(SOURCES)), draw(window))


# What keeps elements at the instants where windows move, and leaves them in several partitions


def _filter(draw: DrawFn, plan: Plan) -> Plan:
    return Filter(plan, draw(predicates(plan.schema)))


def _project(draw: DrawFn, plan: Plan) -> Plan:
    types = draw(st.permutations([BIGINT, VARCHAR]))
    exprs = [draw(expressions(plan.schema, type_)) for type_ in types]
    return Project(plan, tuple(Named(f"p{i}", expr) for i, expr in enumerate(exprs)))


def _unary(draw: DrawFn, plan: Plan) -> Plan:
    operators: list[Callable[[Plan], Plan]] = [Distinct, Istream, Dstream, Rstream]
    return draw(st.sampled_from(operators))(plan)


def _group(draw: DrawFn, plan: Plan) -> Plan:
    key = draw(st.sampled_from(plan.schema.fields))
    named = NamedAggregate("f", draw(aggregate_calls(plan.schema)))
    return Aggregate(plan, (Named("k", Column(key.name, key.type)),), (named,))


def _set_operation(draw: DrawFn, plan: Plan) -> Plan:
    operators: list[Callable[[Plan, Plan], Plan]] = [
        Union,
        MaxUnion,
        Difference,
        StrictDifference,
        Intersect,
    ]
    return draw(st.sampled_from(operators))(plan, conformed(_other(draw), plan.schema))


def _join(draw: DrawFn, plan: Plan) -> Plan:
    """A join on equality, or a union if the columns cannot be compared."""
    other = _other(draw)
    names = names_of_both(plan, other)
    pairs = [
        equal(Column(left, f.type), Column(right, g.type))
        for left, f in zip(names, plan.schema, strict=False)
        for right, g in zip(names[len(plan.schema) :], other.schema, strict=True)
        if f.type == g.type
    ]
    if not pairs:
        return Union(plan, conformed(other, plan.schema))
    kind = draw(st.sampled_from([JoinKind.INNER, JoinKind.LEFT]))
    return Join(plan, other, kind, draw(st.sampled_from(pairs)), names)


def _other(draw: DrawFn) -> Plan:
    """Another window that slides, or what never changes."""
    return draw(st.sampled_from([R, _sliding(draw)]))
