"""GROUP BY: the keys and aggregates of a query block, and what expressions above them may say."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from tidemill.algebra.expr import AggregateCall, Column, Expr, Named
from tidemill.algebra.plan import Aggregate, NamedAggregate
from tidemill.algebra.text import aggregate_text, expr_text
from tidemill.binder.expressions import aggregate_calls
from tidemill.binder.rows import has_subquery
from tidemill.binder.scope import Scope, correlation, fresh_name
from tidemill.catalog.functions import aggregate_call, cast, scalar_call
from tidemill.errors import BindError
from tidemill.lang.spans import span_of
from tidemill.model.types import INTEGER, Kind

if TYPE_CHECKING:
    from tidemill.algebra.plan import Plan
    from tidemill.binder.expressions import ExpressionBinder

__all__ = ["Groups"]


class Groups:
    """Collects keys and aggregates while a block is bound.

    Equal expressions are one key, equal calls one aggregate. Each is named by its text, so that
    blocks that group alike have equal plans and share them.
    """

    def __init__(self, binder: ExpressionBinder) -> None:
        self._binder = binder
        self._keys: dict[Expr, Named] = {}
        self._aggregates: dict[AggregateCall, NamedAggregate] = {}

    def add_key(self, node: exp.Expr) -> None:
        """Group by one more expression."""
        calls = aggregate_calls(node)
        if calls:
            raise BindError(
                "an aggregate cannot be grouped by",
                span=span_of(calls[0]),
                hint="aggregate in a subquery in FROM and group its result",
            )
        self._key(self._binder.bind(node))

    def correlate(self, part: Expr, select: exp.Select) -> Expr:
        """Group by the inner side of outer = inner as well; the condition over the groups."""
        sides = correlation(part)
        if sides is None:
            raise BindError(
                "a subquery with aggregates can refer to the outer query by equality only",
                span=span_of(select),
                hint="compare an inner with an outer column by =",
            )
        outer, own = sides
        return scalar_call("=", (outer, Column(self._key(own).name, own.type)))

    def add_aggregate(self, node: exp.Expr) -> None:
        """Compute one more aggregate."""
        call = self._call(node)
        if call not in self._aggregates:
            name = fresh_name(aggregate_text(call), self._taken())
            self._aggregates[call] = NamedAggregate(name, call)

    def plan(self, rows: Plan) -> Plan:
        """The aggregation of the rows."""
        return Aggregate(rows, tuple(self._keys.values()), tuple(self._aggregates.values()))

    def scope(self, rows: Scope) -> Scope:
        """What a subquery above the aggregation can see of the rows below: the grouped columns."""
        return Scope(
            tuple(
                replace(column, expr=Column(key.name, key.expr.type))
                for column in rows.columns
                if (key := self._keys.get(column.expr)) is not None
            ),
            unseen=rows,
        )

    def answer(self, node: exp.Expr) -> Expr | None:
        """What an aggregate or a grouped expression is above the aggregation.

        Raises:
            BindError: It is a column that is neither.
        """
        if aggregate_calls(node) == [node]:
            found = self._aggregates[self._call(node)]
            return Column(found.name, found.call.type)
        if aggregate_calls(node) or has_subquery(node) or isinstance(node, exp.Literal | exp.Null):
            return None
        bound = self._binder.bind(node)
        if isinstance(node, exp.Column):
            return self.key_of(bound, node.name, node)
        key = self._keys.get(bound)
        return None if key is None else Column(key.name, key.expr.type)

    def key_of(self, expr: Expr, name: str, node: exp.Expr) -> Expr:
        """The key that is this column.

        Raises:
            BindError: There is none.
        """
        key = self._keys.get(expr)
        if key is None:
            raise BindError(
                f'column "{name}" is neither grouped nor aggregated',
                span=span_of(node),
                hint=f"add it to GROUP BY, or use an aggregate such as MAX({name})",
            )
        return Column(key.name, key.expr.type)

    def _key(self, expr: Expr) -> Named:
        if expr not in self._keys:
            typed = cast(expr, INTEGER) if expr.type.kind is Kind.NULL else expr
            text = expr.name if isinstance(expr, Column) else expr_text(expr)
            self._keys[expr] = Named(fresh_name(text, self._taken()), typed)
        return self._keys[expr]

    def _call(self, node: exp.Expr) -> AggregateCall:
        if not isinstance(node, exp.Filter):
            return self._bound_call(node, None)
        inner = node.expression.this
        _refuse_nested(inner)
        return self._bound_call(node.this, self._binder.predicate(inner, "FILTER"))

    def _bound_call(self, call: exp.Expr, condition: Expr | None) -> AggregateCall:
        if aggregate_calls(call) != [call]:
            raise BindError(
                "FILTER stands behind an aggregate",
                span=span_of(call),
                hint="as in COUNT(*) FILTER (WHERE …)",
            )
        arguments = call.expressions
        distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
        if distinct:
            arguments = arguments[0].expressions
        if len(arguments) > 1:
            raise BindError(
                f"{call.name.upper()} takes one argument, not {len(arguments)}",
                span=span_of(call),
                hint="aggregate one expression at a time",
            )
        for argument in arguments:
            _refuse_nested(argument)
        star = bool(arguments) and isinstance(arguments[0], exp.Star)
        argument = None if star or not arguments else self._binder.bind(arguments[0])
        return aggregate_call(
            call.name, argument, distinct=distinct, condition=condition, span=span_of(call)
        )

    def _taken(self) -> list[str]:
        return [
            *(key.name for key in self._keys.values()),
            *(aggregate.name for aggregate in self._aggregates.values()),
        ]


def _refuse_nested(node: exp.Expr) -> None:
    calls = aggregate_calls(node)
    if calls:
        raise BindError(
            "an aggregate cannot contain another",
            span=span_of(calls[0]),
            hint="aggregate in a subquery in FROM first",
        )
