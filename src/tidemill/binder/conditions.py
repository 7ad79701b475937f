"""Subqueries as conditions of WHERE and HAVING that must all hold: semi-joins and anti-joins (K20).

    EXISTS (q), x IN (q), x θ ANY (q), x θ (scalar q)    semi-join
    NOT EXISTS (q)                                        anti-join
    x NOT IN (q), x θ ALL (q)                             anti-join on "x θ y is not true"

At every instant the inner query's snapshot is compared with the outer row. Conditions of the inner
WHERE that name outer columns become conditions of the join.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tidemill.algebra.expr import TRUE, Call, Expr, conjunction
from tidemill.algebra.nullability import is_nullable
from tidemill.algebra.plan import AntiJoin, Filter, SemiJoin
from tidemill.binder.expressions import ExpressionBinder
from tidemill.binder.rows import COMPARISONS, compare, has_subquery, quantified, refuse_outer
from tidemill.model.types import BOOLEAN

if TYPE_CHECKING:
    from tidemill.binder.rows import Rows
    from tidemill.model.schema import Schema

__all__ = ["NEGATED", "keep_condition"]

NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
# NULL in, NULL out: a comparison above these is not true where the subquery is empty.
_STRICT = (exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Cast)


def keep_condition(rows: Rows, node: exp.Expr, binder: ExpressionBinder, clause: str) -> None:
    """Keep the rows for which a condition that contains subqueries is true."""
    while isinstance(node, exp.Paren):
        node = node.this
    match node:
        case exp.Exists():
            rows.keep(SemiJoin, rows.inner(node.this), lambda _: TRUE, node)
        case exp.Not(this=exp.Exists() as exists):
            rows.keep(AntiJoin, rows.inner(exists.this), lambda _: TRUE, node)
        case exp.In() if node.args.get("query"):
            _keep_members(rows, node, binder, SemiJoin)
        case exp.Not(this=exp.In() as in_) if in_.args.get("query"):
            _keep_members(rows, in_, binder, AntiJoin)
        case _ if quantified(node) is not None:
            _keep_quantified(rows, node, binder)
        case _ if (subquery := _only_strict_subquery(node)) is not None:
            _keep_scalar(rows, node, subquery, binder)
        case _:
            predicate = binder.predicate(node, clause)
            refuse_outer(predicate, node)
            rows.plan = Filter(rows.plan, predicate)


def _keep_members(
    rows: Rows, node: exp.In, binder: ExpressionBinder, join: type[SemiJoin | AntiJoin]
) -> None:
    parts = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
    left = tuple(binder.bind(part) for part in parts)
    inner = rows.inner(node.args["query"], width=len(left))

    def matches(right: tuple[Expr, ...]) -> Expr:
        return conjunction(*(compare("=", a, b, node) for a, b in zip(left, right, strict=True)))

    def may_match(right: tuple[Expr, ...]) -> Expr:
        if len(left) == 1:
            return _unless_known(matches(right), (left[0], right[0]), rows.schema_with(inner.plan))
        return Call("not", (Call("is_false", (matches(right),), BOOLEAN),), BOOLEAN)

    rows.keep(join, inner, matches if join is SemiJoin else may_match, node)


def _keep_quantified(rows: Rows, node: exp.Expr, binder: ExpressionBinder) -> None:
    operator, quantifier = COMPARISONS[type(node)], quantified(node)
    assert quantifier is not None, "the caller has looked"
    left = binder.bind(node.this)
    inner = rows.inner(quantifier.this, width=1)

    def holds(right: tuple[Expr, ...]) -> Expr:
        return compare(operator, left, right[0], node)

    def may_fail(right: tuple[Expr, ...]) -> Expr:
        opposite = compare(NEGATED[operator], left, right[0], node)
        return _unless_known(opposite, (left, right[0]), rows.schema_with(inner.plan))

    if isinstance(quantifier, exp.Any):
        rows.keep(SemiJoin, inner, holds, node)
    else:
        rows.keep(AntiJoin, inner, may_fail, node)


def _keep_scalar(
    rows: Rows, node: exp.Expr, subquery: exp.Subquery, binder: ExpressionBinder
) -> None:
    def holds(right: tuple[Expr, ...]) -> Expr:
        def special(part: exp.Expr) -> Expr | None:
            return right[0] if part is subquery else binder.special(part)

        return ExpressionBinder(binder.scope, binder.context, special).bind(node)

    rows.keep(SemiJoin, rows.single(subquery), holds, node)


def _only_strict_subquery(node: exp.Expr) -> exp.Subquery | None:
    """The one scalar subquery of a comparison that is not true where the subquery is empty."""
    if type(node) not in COMPARISONS:
        return None
    part = node
    while part is node or isinstance(part, _STRICT):
        inside = [child for child in part.iter_expressions() if has_subquery(child)]
        if len(inside) != 1:
            return None
        part = inside[0]
    return part if isinstance(part, exp.Subquery) else None


def _unless_known(comparison: Expr, sides: tuple[Expr, Expr], schema: Schema) -> Expr:
    """The comparison, or a side that is NULL: what keeps NOT IN and ALL from being true."""
    for side in sides:
        if is_nullable(side, schema):
            comparison = Call("or", (comparison, Call("is_null", (side,), BOOLEAN)), BOOLEAN)
    return comparison
