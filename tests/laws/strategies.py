"""Small random windows, expressions and plans, over the catalogue of ``catalogue.py``.

Inputs and plans can be drawn apart, since all are over one catalogue.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from laws.catalogue import LEAVES, PAIR, VALUES
from streams import call, names_of_both
from tidemill.algebra.expr import TRUE, AggregateCall, Call, Case, Column, Expr, Literal, Named
from tidemill.algebra.plan import (
    Aggregate,
    AntiJoin,
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
    Relation,
    RowWindow,
    Rstream,
    SemiJoin,
    SessionWindow,
    Source,
    StrictDifference,
    TimeWindow,
    Unbounded,
    Union,
    Window,
    WindowSpec,
)
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT, DOUBLE, VARCHAR, DataType

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import DrawFn, SearchStrategy


__all__ = [
    "aggregate",
    "aggregate_calls",
    "conformed",
    "expressions",
    "join",
    "pairs",
    "plans",
    "predicates",
    "row_windows",
    "session_windows",
    "time_windows",
    "windows",
]

# Windows


@cache
def time_windows() -> SearchStrategy[TimeWindow]:
    """Time windows, some of which move by more than their size."""
    return st.builds(TimeWindow, st.integers(1, 6), st.just(1) | st.integers(2, 4))


@cache
def row_windows(schema: Schema) -> SearchStrategy[RowWindow]:
    """Count windows, partitioned or not, some of which move by more than their size."""
    partitions = st.lists(st.sampled_from(schema.names), max_size=2, unique=True).map(tuple)
    return st.builds(
        RowWindow, st.integers(1, 6), st.just(1) | st.integers(2, 4), st.just(()) | partitions
    )


@cache
def session_windows(schema: Schema) -> SearchStrategy[SessionWindow]:
    """Session windows, partitioned or not."""
    partitions = st.lists(st.sampled_from(schema.names), max_size=2, unique=True).map(tuple)
    return st.builds(SessionWindow, st.integers(1, 6), st.just(()) | partitions)


@cache
def windows(schema: Schema) -> SearchStrategy[WindowSpec]:
    """Windows of every kind."""
    return st.one_of(
        time_windows(), row_windows(schema), session_windows(schema), st.just(Unbounded())
    )


# Expressions


def _columns(schema: Schema, type_: DataType) -> list[Expr]:
    return [Column(field.name, field.type) for field in schema if field.type == type_]


@cache
def expressions(schema: Schema, type_: DataType) -> SearchStrategy[Expr]:
    """Expressions of a type over the columns of a schema."""
    constants = [Literal(value, type_) for value in VALUES[type_]]
    atoms = st.sampled_from([*_columns(schema, type_), *constants])
    fallback: SearchStrategy[Expr] = st.builds(
        lambda x, y: Call("coalesce", (x, y), type_), atoms, atoms
    )
    choice: SearchStrategy[Expr] = st.builds(
        lambda p, x, y: Case(((p, x),), y, type_), _comparisons(schema), atoms, atoms
    )
    if type_ != BIGINT:
        return st.one_of(atoms, fallback, choice)
    total: SearchStrategy[Expr] = st.builds(lambda x, y: Call("+", (x, y), BIGINT), atoms, atoms)
    return st.one_of(atoms, fallback, choice, total)


@cache
@st.composite
def _comparisons(draw: DrawFn, schema: Schema) -> Expr:
    field = draw(st.sampled_from(schema.fields))
    left = Column(field.name, field.type)
    if draw(st.integers(0, 4)) == 0:
        return call("is_null", left)
    others = [*_columns(schema, field.type), *(Literal(v, field.type) for v in VALUES[field.type])]
    function = draw(st.sampled_from(["=", "<>", "<", "<=", "is_not_distinct"]))
    return call(function, left, draw(st.sampled_from(others)))


@cache
def predicates(schema: Schema) -> SearchStrategy[Expr]:
    """Conditions in three-valued logic over the columns of a schema."""
    return st.recursive(
        _comparisons(schema),
        lambda inner: st.one_of(
            st.builds(lambda p: call("not", p), inner),
            st.builds(call, st.sampled_from(["and", "or"]), inner, inner),
        ),
        max_leaves=3,
    )


@cache
@st.composite
def aggregate_calls(draw: DrawFn, schema: Schema) -> AggregateCall:
    """Aggregates, some of distinct values, some of rows that meet a condition."""
    condition = draw(st.none() | _comparisons(schema))
    if draw(st.booleans()):
        return AggregateCall("count", None, BIGINT, condition=condition)
    field = draw(st.sampled_from(schema.fields))
    numeric = ["sum", "avg", "median"] if field.type == BIGINT else []
    function = draw(st.sampled_from(["count", "min", "max", *numeric]))
    type_ = {"count": BIGINT, "avg": DOUBLE, "median": DOUBLE}.get(function, field.type)
    argument = Column(field.name, field.type)
    return AggregateCall(function, argument, type_, draw(st.booleans()), condition)


# Plans

_UNARY = st.sampled_from(
    [Window, Window, Filter, Project, Distinct, Aggregate, Istream, Dstream, Rstream]
)
_KINDS = st.sampled_from(JoinKind)
_BINARY = st.sampled_from(
    [Join, SemiJoin, AntiJoin, Union, MaxUnion, Difference, StrictDifference, Intersect]
)


def conformed(plan: Plan, schema: Schema) -> Plan:
    """The plan with the columns of a schema: those of the right type, NULL where there is none."""
    if plan.schema.names == schema.names and plan.schema.types == schema.types:
        return plan
    columns = [
        Named(field.name, next(iter(_columns(plan.schema, field.type)), Literal(None, field.type)))
        for field in schema
    ]
    return Project(plan, tuple(columns))


@st.composite
def plans(draw: DrawFn, depth: int = 3, leaves: tuple[Plan, ...] = LEAVES) -> Plan:
    """Plans of all operators, with parts that are used in several places."""
    known: list[Plan] = []

    def build(left: int) -> Plan:
        if known and draw(st.integers(0, 5)) == 0:
            return draw(st.sampled_from(known))
        if left == 0:
            plan = _leaf(draw, leaves)
        elif draw(st.booleans()):
            plan = _unary(draw, build(left - 1))
        else:
            plan = _binary(draw, build(left - 1), build(left - 1))
        known.append(plan)
        return plan

    return build(draw(st.integers(0, depth)))


def pairs(depth: int = 2, leaves: tuple[Plan, ...] = LEAVES) -> SearchStrategy[Plan]:
    """Plans with the columns (a BIGINT, b VARCHAR)."""
    return plans(depth, leaves).map(lambda plan: conformed(plan, PAIR))


def _leaf(draw: DrawFn, leaves: tuple[Plan, ...]) -> Plan:
    """A leaf; every other stream has a window, so that its elements meet others."""
    leaf = draw(st.sampled_from(leaves))
    if isinstance(leaf, Source) and draw(st.booleans()):
        return Window(leaf, draw(windows(leaf.schema)))
    return conformed(leaf, PAIR) if isinstance(leaf, Relation) else leaf


def _unary(draw: DrawFn, plan: Plan) -> Plan:
    schema = plan.schema
    operator = draw(_UNARY)
    if operator is Window:
        return Window(plan, draw(windows(schema)))
    if operator is Filter:
        return Filter(plan, draw(predicates(schema)))
    if operator is Project:
        return _project(draw, plan)
    if operator is Aggregate:
        return aggregate(draw, plan)
    simple: Callable[[Plan], Plan] = operator
    return simple(plan)


def _project(draw: DrawFn, plan: Plan) -> Plan:
    types = draw(st.lists(st.sampled_from([BIGINT, VARCHAR]), min_size=1, max_size=3))
    exprs = [draw(expressions(plan.schema, type_)) for type_ in types]
    return Project(plan, tuple(Named(f"p{i}", expr) for i, expr in enumerate(exprs)))


def aggregate(draw: DrawFn, plan: Plan) -> Plan:
    """An aggregation of a plan."""
    by = draw(st.lists(st.sampled_from(plan.schema.fields), max_size=2, unique=True))
    calls = draw(st.lists(aggregate_calls(plan.schema), min_size=0 if by else 1, max_size=2))
    return Aggregate(
        plan,
        tuple(Named(f"k{i}", Column(field.name, field.type)) for i, field in enumerate(by)),
        tuple(NamedAggregate(f"f{i}", call_) for i, call_ in enumerate(calls)),
    )


def _binary(draw: DrawFn, left: Plan, right: Plan) -> Plan:
    operator = draw(_BINARY)
    if operator in (Join, SemiJoin, AntiJoin):
        return join(draw, operator, left, right)
    either: Callable[[Plan, Plan], Plan] = operator
    return either(left, conformed(right, left.schema))


def join(
    draw: DrawFn,
    operator: type[Plan],
    left: Plan,
    right: Plan,
    kinds: SearchStrategy[JoinKind] = _KINDS,
) -> Plan:
    """A join of two plans, with any condition."""
    names = names_of_both(left, right)
    fields = (*left.schema, *right.schema)
    schema = Schema(tuple(Field(n, f.type) for n, f in zip(names, fields, strict=True)))
    condition = draw(_conditions(schema))
    if operator is SemiJoin:
        return SemiJoin(left, right, condition, names)
    if operator is AntiJoin:
        return AntiJoin(left, right, condition, names)
    return _shortened(draw, Join(left, right, draw(kinds), condition, names))


@cache
def _conditions(schema: Schema) -> SearchStrategy[Expr]:
    """Conditions of a join: none, equalities of left and right columns or expressions, or any."""
    sides = [Schema(tuple(f for f in schema if f.name[0] == side)) for side in "lr"]
    shared = [type_ for type_ in VALUES if all(_columns(side, type_) for side in sides)]
    if not shared:
        return st.just(TRUE) | predicates(schema)
    signs = st.sampled_from(["=", "=", "is_not_distinct"])
    one: SearchStrategy[Expr] = st.sampled_from(shared).flatmap(
        lambda type_: st.builds(
            call,
            signs,
            st.sampled_from(_columns(sides[0], type_)),
            st.sampled_from(_columns(sides[1], type_)) | expressions(sides[1], type_),
        )
    )
    two = st.builds(lambda p, q: call("and", p, q), one, one)
    return st.one_of(st.just(TRUE), one, two, predicates(schema))


def _shortened(draw: DrawFn, join: Join) -> Plan:
    """The join, or a few of its columns if it has many."""
    if len(join.schema) <= 3:
        return join
    kept = draw(st.lists(st.sampled_from(join.schema.fields), min_size=1, max_size=3, unique=True))
    return Project(join, tuple(Named(f.name, Column(f.name, f.type)) for f in kept))
