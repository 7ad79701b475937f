"""Queries: SELECT blocks, set operations, stream operators and WITH, put together.

``bind_query`` gives the logical plan as a graph: equal parts are one object (K40, step 4).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from tidemill.algebra.expr import Column, Named
from tidemill.algebra.plan import (
    Difference,
    Distinct,
    Intersect,
    Plan,
    Project,
    StrictDifference,
    Union,
)
from tidemill.algebra.tree import children, share, with_children
from tidemill.binder.insertions import internal_window, keep_insertions, refuse_internal
from tidemill.binder.non_retroactive import check_non_retroactive
from tidemill.binder.rows import Inner
from tidemill.binder.scope import has_outer
from tidemill.binder.select import AT_EVERY_INSTANT, IN_THE_MIDDLE, Selected, bind_select
from tidemill.binder.sources import apply_stream_operator, below
from tidemill.catalog.functions import cast
from tidemill.errors import BindError
from tidemill.lang.spans import span_of
from tidemill.lang.windows import StreamOperator
from tidemill.model.types import INTEGER, Kind, common_type

if TYPE_CHECKING:
    from tidemill.binder.context import Context
    from tidemill.model.types import DataType

__all__ = ["bind_query"]


def bind_query(node: exp.Expr, context: Context) -> Plan:
    """The plan of a query.

    Raises:
        BindError: A name, a type or a clause does not fit.
    """
    plan = share(_bind_typed(node, context))
    check_non_retroactive(plan)
    return plan


def _bind_typed(node: exp.Expr, context: Context) -> Plan:
    """The plan of a query; a column that is NULL in every row, and nothing else, is INTEGER."""
    return _without_untyped(_bind(node, context))


def _without_untyped(plan: Plan) -> Plan:
    return _converted(plan, [INTEGER if t.kind is Kind.NULL else t for t in plan.schema.types])


def _bind(node: exp.Expr, context: Context) -> Plan:
    context = _with_tables(node, context)
    match node:
        case exp.Select():
            if internal_window(node) is not None:
                context = context.below_time()
            return _kept(node, _finished(_select(node, context)))
        case exp.SetOperation():
            return _set_operation(node, context)
        case exp.Subquery() | exp.Paren():
            _refuse_modifiers(node, context)
            return _bind(node.this, context)
        case StreamOperator():
            return apply_stream_operator(node, _bind(node.this, below(node, context)))
        case _:
            raise AssertionError(f"{type(node).__name__} is not a query of the grammar")


def _select(node: exp.Select, context: Context) -> Selected:
    return bind_select(node, context, _bind_typed, _bind_inner)


def _finished(selected: Selected) -> Plan:
    plan = selected.projected()
    return Distinct(plan) if selected.distinct else plan


def _kept(node: exp.Select, plan: Plan) -> Plan:
    window = internal_window(node)
    return plan if window is None else keep_insertions(plan, window)


def _bind_inner(node: exp.Expr, context: Context) -> Inner:
    """A subquery in an expression, which may refer to the enclosing query."""
    context = _with_tables(node, context)
    while isinstance(node, exp.Subquery | exp.Paren):
        _refuse_modifiers(node, context)
        node = node.this
        context = _with_tables(node, context)
    if isinstance(node, exp.Select):
        refuse_internal(node)
        selected = _select(node, context)
        columns = tuple(column.expr for column in selected.columns)
        if selected.correlated or any(map(has_outer, columns)):
            return Inner(selected.plan, columns, selected.correlated)
        plan = _without_untyped(_finished(selected))
    else:
        plan = _bind_typed(node, context.without_outer())
    return Inner(plan, tuple(Column(f.name, f.type) for f in plan.schema), ())


def _with_tables(node: exp.Expr, context: Context) -> Context:
    """The context with the names a WITH clause defines; each sees those before it."""
    with_ = node.args.get("with_")
    if with_ is None:
        return context
    seen: set[str] = set()
    for table in with_.expressions:
        if table.alias.lower() in seen:
            raise BindError(
                f'WITH defines "{table.alias}" twice',
                span=span_of(table.args["alias"]),
                hint="choose another name",
            )
        seen.add(table.alias.lower())
        context = context.with_table(table.alias, partial(_bind_named, table.this))
    return context


def _bind_named(node: exp.Expr, context: Context) -> Plan:
    """A query of WITH, which does not see the query that it stands before."""
    return _bind_typed(node, context.without_outer())


def _set_operation(node: exp.SetOperation, context: Context) -> Plan:
    _refuse_modifiers(node, context)
    left, right = _aligned(node, _bind(node.this, context), _bind(node.expression, context))
    distinct = bool(node.args.get("distinct"))
    match node:
        case exp.Union():
            plan: Plan = Union(left, right)
            return Distinct(plan) if distinct else plan
        case exp.Except():
            # EXCEPT keeps each row once if the right side does not have it at all (erratum E5).
            return StrictDifference(Distinct(left), right) if distinct else Difference(left, right)
        case exp.Intersect():
            return (
                Intersect(Distinct(left), Distinct(right)) if distinct else Intersect(left, right)
            )
        case _:
            raise AssertionError(f"{type(node).__name__} is not a set operation of the grammar")


def _aligned(node: exp.SetOperation, left: Plan, right: Plan) -> tuple[Plan, Plan]:
    """Both sides with the same types; the names are those of the left side."""
    word = type(node).__name__.upper()
    if len(left.schema) != len(right.schema):
        raise BindError(
            f"{word} of {len(left.schema)} and {len(right.schema)} columns",
            span=span_of(node.expression),
            hint="both queries must have the same number of columns",
        )
    types: list[DataType] = []
    for number, (a, b) in enumerate(zip(left.schema, right.schema, strict=True), start=1):
        common = common_type(a.type, b.type)
        if common is None:
            raise BindError(
                f"column {number} of {word} is {a.type} on the left and {b.type} on the right",
                span=span_of(node.expression),
                hint="convert one of them with CAST",
            )
        types.append(common)
    return _converted(left, types), _converted(right, types)


def _converted(plan: Plan, types: list[DataType]) -> Plan:
    if list(plan.schema.types) == types:
        return plan
    if isinstance(plan, Project):
        columns = zip(plan.columns, types, strict=True)
        return Project(plan.input, tuple(Named(c.name, cast(c.expr, t)) for c, t in columns))
    if _only_types_nulls(plan, types):
        # A column that is always NULL can get its type below; rows stay equal or different.
        return with_children(plan, tuple(_converted(c, types) for c in children(plan)))
    return Project(
        plan,
        tuple(
            Named(field.name, cast(Column(field.name, field.type), type_))
            for field, type_ in zip(plan.schema, types, strict=True)
        ),
    )


def _only_types_nulls(plan: Plan, types: list[DataType]) -> bool:
    pairs = zip(plan.schema.types, types, strict=True)
    return isinstance(plan, Union | Distinct | Difference | StrictDifference | Intersect) and all(
        old == new or old.kind is Kind.NULL for old, new in pairs
    )


def _refuse_modifiers(node: exp.Expr, context: Context) -> None:
    for key in ("order", "limit", "offset"):
        if node.args.get(key):
            raise BindError(
                f"{'ORDER BY' if key == 'order' else key.upper()} is not supported",
                span=span_of(node.args[key]) or span_of(node),
                hint=IN_THE_MIDDLE if context.at_once else AT_EVERY_INSTANT,
            )
