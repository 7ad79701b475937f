"""The rows of a query in the making, to which its subqueries are joined one after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from tidemill.algebra.expr import Column, Expr, conjunction
from tidemill.algebra.keys import keys
from tidemill.algebra.plan import AntiJoin, Join, JoinKind, Plan, SemiJoin
from tidemill.binder.scope import Scope, correlation, fresh_name, has_outer, resolve_outer
from tidemill.catalog.functions import scalar_call
from tidemill.errors import BindError
from tidemill.lang.spans import span_of
from tidemill.model.schema import Field, Schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.binder.context import Context

__all__ = ["COMPARISONS", "Inner", "Rows", "compare", "has_subquery", "quantified"]

COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}


@dataclass(frozen=True, slots=True)
class Inner:
    """A bound subquery.

    Attributes:
        plan: Its rows.
        columns: Its SELECT list over these rows.
        correlated: Conditions over these rows and the columns of the enclosing query.
    """

    plan: Plan
    columns: tuple[Expr, ...]
    correlated: tuple[Expr, ...]


class Rows:
    """A plan that grows upwards while conditions and subqueries are applied to it.

    Columns keep their names from one step to the next; a join adds further ones.
    """

    def __init__(
        self,
        plan: Plan,
        scope: Scope | None,
        context: Context,
        bind_inner: Callable[[exp.Expr, Context], Inner],
    ) -> None:
        self.plan = plan
        self._scope = scope
        self._context = context
        self._bind_inner = bind_inner

    def inner(self, node: exp.Expr, *, width: int | None = None) -> Inner:
        """The subquery of a node.

        Raises:
            BindError: It does not fit, or has not as many columns as are needed.
        """
        inner = self._bind_inner(node, self._context.with_outer(self._scope))
        if width is not None and len(inner.columns) != width:
            raise BindError(
                f"the subquery has {len(inner.columns)} columns where {width} "
                f"{'is' if width == 1 else 'are'} needed",
                span=span_of(node),
                hint="select just what is compared",
            )
        return inner

    def single(self, node: exp.Expr) -> Inner:
        """A subquery of one column that has at most one row for each outer row.

        Raises:
            BindError: It could have more.
        """
        inner = self.inner(node, width=1)
        equalities = filter(None, map(correlation, inner.correlated))
        fixed = {own.name for _, own in equalities if isinstance(own, Column)}
        if not any(key <= fixed for key in keys(inner.plan)):
            raise BindError(
                "the subquery can have several rows at one instant",
                span=span_of(node),
                hint="use an aggregate such as MAX, or compare with ANY (…) or ALL (…)",
            )
        return inner

    def names(self, right: Plan) -> dict[str, str]:
        """Names for the columns of another plan beside those of these rows."""
        taken = list(self.plan.schema.names)
        names: dict[str, str] = {}
        for name in right.schema.names:
            names[name] = fresh_name(name, taken)
            taken.append(names[name])
        return names

    def schema_with(self, right: Plan) -> Schema:
        """The columns of these rows and of another plan, in the names of a join."""
        names = self.names(right)
        added = (Field(names[f.name], f.type, f.nullable) for f in right.schema)
        return Schema((*self.plan.schema, *added))

    def keep(
        self,
        join: type[SemiJoin | AntiJoin],
        inner: Inner,
        condition: Callable[[tuple[Expr, ...]], Expr],
        node: exp.Expr,
    ) -> None:
        """Keep the rows with (or without) an inner row for which the condition is true.

        Args:
            join: Which of the two.
            inner: The subquery.
            condition: The condition, given the inner columns in the names of the join.
            node: Where an error points to.
        """
        names = self.names(inner.plan)
        whole = conjunction(
            *(resolve_outer(part, names) for part in inner.correlated),
            condition(tuple(resolve_outer(column, names) for column in inner.columns)),
        )
        refuse_outer(whole, node)
        joined = (*self.plan.schema.names, *names.values())
        self.plan = join(self.plan, inner.plan, whole, joined)

    def beside(self, right: Plan, conditions: list[Expr], node: exp.Expr) -> None:
        """Put the columns of a plan with at most one matching row beside each row."""
        condition = conjunction(*conditions)
        refuse_outer(condition, node)
        joined = (*self.plan.schema.names, *self.names(right).values())
        self.plan = Join(self.plan, right, JoinKind.LEFT, condition, joined)


def has_subquery(node: exp.Expr) -> bool:
    """Whether the expression contains a subquery."""
    return node.find(exp.Query) is not None


def quantified(node: exp.Expr) -> exp.Any | exp.All | None:
    """The ANY or ALL on the right side of a comparison."""
    side = node.expression if type(node) in COMPARISONS else None
    return side if isinstance(side, exp.Any | exp.All) else None


def compare(operator: str, left: Expr, right: Expr, node: exp.Expr) -> Expr:
    """A comparison; errors point to the node."""
    span = span_of(node)
    return scalar_call(operator, (left, right), span=span, spans=(span, span))


def refuse_outer(expr: Expr, node: exp.Expr) -> None:
    """Refuse an expression that reaches over more than one query.

    Raises:
        BindError: It does.
    """
    if has_outer(expr):
        raise BindError(
            "a subquery inside a subquery cannot be compared with the outermost query",
            span=span_of(node),
            hint="join the inner queries first, in FROM",
        )
