"""Subqueries as values: under OR, in the SELECT list, inside a CASE.

The answer is computed beside the row: an aggregate of the inner query with at most one row for each
outer row is joined by a left join, and an expression over its columns gives the value. An inner
query may refer to the outer one by equality; the inner sides become group keys.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from sqlglot import exp

from tidemill.algebra.expr import (
    FALSE,
    TRUE,
    AggregateCall,
    Call,
    Case,
    Column,
    Expr,
    Literal,
    Named,
)
from tidemill.algebra.plan import Aggregate, NamedAggregate
from tidemill.algebra.text import aggregate_text, expr_text
from tidemill.binder.conditions import NEGATED
from tidemill.binder.rows import COMPARISONS, Inner, compare, quantified
from tidemill.binder.scope import correlation, fresh_name, has_outer, resolve_outer
from tidemill.catalog.functions import aggregate_call
from tidemill.errors import BindError
from tidemill.lang.spans import span_of
from tidemill.model.types import BOOLEAN

if TYPE_CHECKING:
    from tidemill.binder.expressions import ExpressionBinder
    from tidemill.binder.rows import Rows

__all__ = ["subquery_value"]

# x θ ANY (q) holds if it holds for one of the ends of the inner values.
_ENDS = {
    "<>": ("min", "max"),
    "<": ("max",),
    "<=": ("max",),
    ">": ("min",),
    ">=": ("min",),
}


def subquery_value(rows: Rows, node: exp.Expr, binder: ExpressionBinder) -> Expr | None:
    """The value of a subquery, computed beside the rows; ``None`` if the node is not one."""
    match node:
        case exp.Subquery():
            return _scalar(rows, node)
        case exp.Exists():
            counted = _grouped(rows, rows.inner(node.this), (), (_count(),), node)
            return _is_there(counted[0])
        case exp.In() if node.args.get("query"):
            return _member(rows, node, binder)
        case _ if quantified(node) is not None:
            return _quantified(rows, node, binder)
        case _:
            return None


def _scalar(rows: Rows, node: exp.Subquery) -> Expr:
    inner = rows.single(node)
    names = rows.names(inner.plan)
    conditions = [resolve_outer(part, names) for part in inner.correlated]
    rows.beside(inner.plan, conditions, node)
    return resolve_outer(inner.columns[0], names)


def _member(rows: Rows, node: exp.In, binder: ExpressionBinder) -> Expr:
    if isinstance(node.this, exp.Tuple):
        raise BindError(
            "IN with several columns cannot stand here",
            span=span_of(node),
            hint="make it a condition of its own in WHERE, or write EXISTS",
        )
    left = binder.bind(node.this)
    return _any(rows, rows.inner(node.args["query"], width=1), "=", left, node)


def _quantified(rows: Rows, node: exp.Expr, binder: ExpressionBinder) -> Expr:
    operator, quantifier = COMPARISONS[type(node)], quantified(node)
    assert quantifier is not None, "the caller has looked"
    left = binder.bind(node.this)
    inner = rows.inner(quantifier.this, width=1)
    if isinstance(quantifier, exp.Any):
        return _any(rows, inner, operator, left, node)
    return _not(_any(rows, inner, NEGATED[operator], left, node))


def _any(rows: Rows, inner: Inner, operator: str, left: Expr, node: exp.Expr) -> Expr:
    """θ ANY: true if it holds for one; false over no rows; unknown if a NULL leaves it open."""
    value = inner.columns[0]
    known = aggregate_call("count", value, distinct=False, condition=None)
    ends = [
        aggregate_call(end, value, distinct=False, condition=None)
        for end in _ENDS.get(operator, ())
    ]
    count, known_count, *found = _grouped(rows, inner, (), (_count(), known, *ends), node)
    if operator == "=":
        partner = _grouped(rows, inner, ((left, value),), (_count(),), node)
        holds = _is_there(partner[0])
    else:
        one, *others = (compare(operator, left, end, node) for end in found)
        holds = reduce(lambda a, b: Call("or", (a, b), BOOLEAN), others, one)
    unknown = Call("or", (_is_null(left), Call("<", (known_count, count), BOOLEAN)), BOOLEAN)
    return Case(
        ((holds, TRUE), (_is_null(count), FALSE), (unknown, Literal(None, BOOLEAN))),
        FALSE,
        BOOLEAN,
    )


def _grouped(
    rows: Rows,
    inner: Inner,
    matching: tuple[tuple[Expr, Expr], ...],
    calls: tuple[AggregateCall, ...],
    node: exp.Expr,
) -> list[Column]:
    """Aggregates of the inner rows that belong to each outer row, as columns beside it.

    Args:
        rows: The outer rows.
        inner: The subquery.
        matching: Pairs of an outer and an inner expression that must be equal as well.
        calls: The aggregates.
        node: Where an error points to.
    """
    pairs = (*_equalities(inner, node), *matching)
    taken: list[str] = []

    def named(text: str) -> str:
        taken.append(fresh_name(text, taken))
        return taken[-1]

    keys = tuple(Named(named(expr_text(own)), own) for _, own in pairs)
    aggregates = tuple(NamedAggregate(named(aggregate_text(call)), call) for call in calls)
    right = Aggregate(inner.plan, keys, aggregates)
    names = rows.names(right)
    columns = [Column(names[field.name], field.type) for field in right.schema]
    conditions = [
        compare("=", outer, column, node)
        for (outer, _), column in zip(pairs, columns[: len(pairs)], strict=True)
    ]
    rows.beside(right, conditions, node)
    return columns[len(pairs) :]


def _equalities(inner: Inner, node: exp.Expr) -> list[tuple[Expr, Expr]]:
    """The conditions outer = inner, as pairs; the outer side in the names of the rows."""
    pairs = [correlation(part) for part in inner.correlated]
    if None in pairs or any(map(has_outer, inner.columns)):
        raise BindError(
            "here a subquery can refer to the outer query by equality only",
            span=span_of(node),
            hint="compare inner and outer columns with =, or make the subquery a condition of its "
            "own in WHERE",
        )
    return [(resolve_outer(pair[0], {}), pair[1]) for pair in pairs if pair is not None]


def _count() -> AggregateCall:
    return aggregate_call("count", None, distinct=False, condition=None)


def _is_null(expr: Expr) -> Expr:
    return Call("is_null", (expr,), BOOLEAN)


def _is_there(column: Column) -> Expr:
    return _not(_is_null(column))


def _not(expr: Expr) -> Expr:
    return Call("not", (expr,), BOOLEAN)
