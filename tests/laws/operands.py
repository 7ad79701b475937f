"""What laws are about: any streams, any predicates, and a few ways to build plans of them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from laws.catalogue import HORIZON, PAIR, inputs
from laws.strategies import pairs, predicates
from streams import assert_same, both, call, equal, number, project, text
from tidemill.algebra.expr import (
    FALSE,
    AggregateCall,
    Call,
    Column,
    Expr,
    Literal,
    Named,
    replace_columns,
)
from tidemill.algebra.plan import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    NamedAggregate,
    Plan,
    Project,
    Union,
)
from tidemill.model.types import BIGINT, VARCHAR

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hypothesis.strategies import DataObject

__all__ = [
    "COUNT",
    "COUNT_B",
    "GROUPS",
    "IDENTICAL",
    "INJECTIVE",
    "MAX_B",
    "NAMES",
    "NULLS",
    "SAME_A",
    "A",
    "B",
    "C",
    "D",
    "F",
    "G",
    "Law",
    "Operands",
    "applied",
    "assert_law",
    "empty",
    "grouped",
    "joined",
    "mapped",
    "picked",
    "renamed",
    "union_of",
]

A, B = Column("a", BIGINT), Column("b", VARCHAR)
C, D = Column("c", BIGINT), Column("d", VARCHAR)
NAMES = ("a", "b", "c", "d")
SAME_A = equal(A, C)
IDENTICAL = both(call("is_not_distinct", A, C), call("is_not_distinct", B, D))
NULLS = (Literal(None, BIGINT), Literal(None, VARCHAR))

GROUPS = (call("is_null", B), equal(B, text("x")), equal(B, text("y")))
"""Every text that is drawn is in one of these groups."""

COUNT = AggregateCall("count", None, BIGINT)
COUNT_B = AggregateCall("count", B, BIGINT)
MAX_B = AggregateCall("max", B, VARCHAR)

F: Mapping[str, Expr] = {"a": Call("coalesce", (A, number(1)), BIGINT), "b": B}
G: Mapping[str, Expr] = {
    "a": Call("+", (A, A), BIGINT),
    "b": Call("coalesce", (B, text("x")), VARCHAR),
}
INJECTIVE: Mapping[str, Expr] = {"b": B, "a": Call("+", (A, number(1)), BIGINT)}


class Operands:
    """Any streams x, y and z with the columns (a, b), and any predicates p and q over them.

    Only what a law looks at is drawn.
    """

    def __init__(self, data: DataObject) -> None:
        self._data = data

    @cached_property
    def x(self) -> Plan:
        return self._data.draw(pairs(1), label="x")

    @cached_property
    def y(self) -> Plan:
        return self._data.draw(pairs(1), label="y")

    @cached_property
    def z(self) -> Plan:
        return self._data.draw(pairs(1), label="z")

    @cached_property
    def p(self) -> Expr:
        return self._data.draw(predicates(PAIR), label="p")

    @cached_property
    def q(self) -> Expr:
        return self._data.draw(predicates(PAIR), label="q")


Law: TypeAlias = "Callable[[Operands], tuple[Plan, Plan]]"
"""Two plans that have the same answer at every instant."""


def assert_law(law: Law, data: DataObject) -> None:
    """Fail unless the plans of a law have the same answers for some operands and inputs."""
    left, right = law(Operands(data))
    found = data.draw(inputs(), label="inputs").reference()
    assert_same(found, left, right, HORIZON)


def applied(function: Mapping[str, Expr], expr: Expr) -> Expr:
    """The expression with each column replaced by what the function makes of it."""
    return replace_columns(expr, lambda column: function[column.name])


def renamed(predicate: Expr, **names: str) -> Expr:
    return replace_columns(predicate, lambda column: Column(names[column.name], column.type))


def mapped(plan: Plan, function: Mapping[str, Expr]) -> Project:
    return project(plan, **function)


def picked(plan: Plan, *names: str) -> Project:
    """Some columns of the plan, in this order."""
    return project(plan, **{name: Column(name, plan.schema[name].type) for name in names})


def joined(left: Plan, right: Plan, condition: Expr, kind: JoinKind = JoinKind.INNER) -> Join:
    return Join(left, right, kind, condition, NAMES)


def grouped(plan: Plan, keys: Mapping[str, Expr], **calls: AggregateCall) -> Aggregate:
    return Aggregate(
        plan,
        tuple(Named(name, expr) for name, expr in keys.items()),
        tuple(NamedAggregate(name, call_) for name, call_ in calls.items()),
    )


def empty(plan: Plan) -> Plan:
    return Filter(plan, FALSE)


def union_of(*plans: Plan) -> Plan:
    first, *others = plans
    for other in others:
        first = Union(first, other)
    return first
