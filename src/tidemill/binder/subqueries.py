"""Subqueries in conditions and expressions, as joins (K20).

At every instant the inner query's snapshot is compared with the outer row. Where a subquery is one of
the conditions of WHERE or HAVING that must all hold:

    EXISTS (q), x IN (q), x θ ANY (q)        semi-join
    x θ (scalar q)                            semi-join
    NOT EXISTS (q)                            anti-join
    x NOT IN (q), x θ ALL (q)                 anti-join on "x θ y is not true", NULLs included

Anywhere else (under OR, in the SELECT list, inside a CASE) the answer is computed beside the row: an
aggregate of the inner query with at most one row for each outer row is joined by a left join.
Conditions of the inner WHERE that name outer columns become conditions of the join.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    conjunction,
)
from tidemill.algebra.keys import keys
from tidemill.algebra.nullability import is_nullable
from tidemill.algebra.plan import (
    Aggregate,
    AntiJoin,
    Filter,
    Join,
    JoinKind,
    NamedAggregate,
    Plan,
    SemiJoin,
)
from tidemill.algebra.text import aggregate_text, expr_text
from tidemill.binder.expressions import ExpressionBinder
from tidemill.binder.scope import Scope, correlation, fresh_name, has_outer, resolve_outer
from tidemill.catalog.functions import aggregate_call, scalar_call
from tidemill.errors import BindError
from tidemill.lang.spans import span_of
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tidemill.binder.context import Context
    from tidemill.errors import Span

__all__ = ["Inner", "Subqueries", "has_subquery"]

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
# NULL in, NULL out: a comparison above these is not true when the subquery is empty.
_STRICT = (exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Cast)
_QUANTIFIED = (exp.Any, exp.All)


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


class Subqueries:
    """The rows of a query in the making, and the subqueries joined to them one after another."""

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

    def condition(self, node: exp.Expr, binder: ExpressionBinder, clause: str) -> None:
        """Keep the rows for which a condition that contains subqueries is true."""
        while isinstance(node, exp.Paren):
            node = node.this
        match node:
            case exp.Exists():
                self._keep(SemiJoin, self._inner(node.this), lambda _: TRUE)
            case exp.Not(this=exp.Exists() as exists):
                self._keep(AntiJoin, self._inner(exists.this), lambda _: TRUE)
            case exp.In() if node.args.get("query"):
                self._in(node, binder, SemiJoin)
            case exp.Not(this=exp.In() as in_) if in_.args.get("query"):
                self._in(in_, binder, AntiJoin)
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                if not self._comparison(node, binder):
                    self._filter(node, binder, clause)
            case _:
                self._filter(node, binder, clause)

    def special(self, node: exp.Expr) -> Callable[[ExpressionBinder], Expr] | None:
        """How to compute a subquery beside the row, if the node is one."""
        match node:
            case exp.Subquery():
                return lambda _: self._scalar(node)
            case exp.Exists():
                return lambda _: self._exists(node)
            case exp.In() if node.args.get("query"):
                return lambda binder: self._member(node, binder)
            case _ if type(node) in _COMPARISONS and _quantified(node) is not None:
                return lambda binder: self._quantified(node, binder)
            case _:
                return None

    # Conditions: semi-joins and anti-joins

    def _filter(self, node: exp.Expr, binder: ExpressionBinder, clause: str) -> None:
        predicate = binder.predicate(node, clause)
        _refuse_outer(predicate, node)
        self.plan = Filter(self.plan, predicate)

    def _in(self, node: exp.In, binder: ExpressionBinder, join: type[SemiJoin | AntiJoin]) -> None:
        left = _operands(node.this, binder)
        inner = self._inner(node.args["query"], len(left), node)

        def matches(right: tuple[Expr, ...]) -> Expr:
            pairs = zip(left, right, strict=True)
            return conjunction(*(_compare("=", a, b, node) for a, b in pairs))

        def may_match(right: tuple[Expr, ...]) -> Expr:
            if len(left) == 1:
                return self._unless_known("=", left[0], right[0], inner, node)
            return _not(Call("is_false", (matches(right),), BOOLEAN))

        self._keep(join, inner, matches if join is SemiJoin else may_match, node)

    def _comparison(self, node: exp.Expr, binder: ExpressionBinder) -> bool:
        """Keep by a comparison with ANY, ALL or one scalar subquery; False if it is none of these."""
        operator = _COMPARISONS[type(node)]
        quantified = _quantified(node)
        if quantified is not None:
            left = binder.bind(node.this)
            inner = self._inner(quantified.this, 1, node)
            if isinstance(quantified, exp.Any):
                self._keep(
                    SemiJoin, inner, lambda right: _compare(operator, left, right[0], node), node
                )
                return True
            opposite = _NEGATED[operator]
            self._keep(
                AntiJoin,
                inner,
                lambda right: self._unless_known(opposite, left, right[0], inner, node),
                node,
            )
            return True
        subquery = _only_strict_subquery(node)
        if subquery is None:
            return False
        inner = self._inner(subquery, 1, node)
        self._check_single(inner, subquery)

        def holds(right: tuple[Expr, ...]) -> Expr:
            def special(part: exp.Expr) -> Expr | None:
                return right[0] if part is subquery else binder.special(part)

            within = ExpressionBinder(binder.scope, binder.context, special)
            return within.predicate(node, "WHERE")

        self._keep(SemiJoin, inner, holds, node)
        return True

    def _keep(
        self,
        join: type[SemiJoin | AntiJoin],
        inner: Inner,
        condition: Callable[[tuple[Expr, ...]], Expr],
        node: exp.Expr | None = None,
    ) -> None:
        names = self._names(inner.plan)
        whole = conjunction(
            *(resolve_outer(part, names) for part in inner.correlated),
            condition(tuple(resolve_outer(column, names) for column in inner.columns)),
        )
        if node is not None:
            _refuse_outer(whole, node)
        self.plan = join(self.plan, inner.plan, whole, (*self.plan.schema.names, *names.values()))

    def _unless_known(
        self, operator: str, left: Expr, right: Expr, inner: Inner, node: exp.Expr
    ) -> Expr:
        """``left operator right``, or either side NULL: what keeps NOT IN and ALL from being true."""
        names = self._names(inner.plan)
        fields = [
            *self.plan.schema,
            *(Field(names[f.name], f.type, f.nullable) for f in inner.plan.schema),
        ]
        schema = Schema(tuple(fields))
        result = _compare(operator, left, right, node)
        for side in (left, right):
            if is_nullable(side, schema):
                result = Call("or", (result, Call("is_null", (side,), BOOLEAN)), BOOLEAN)
        return result

    # Values beside the row: left joins

    def _scalar(self, node: exp.Subquery) -> Expr:
        inner = self._inner(node, 1, node)
        self._check_single(inner, node)
        names = self._names(inner.plan)
        self._beside(inner.plan, [resolve_outer(part, names) for part in inner.correlated])
        return resolve_outer(inner.columns[0], names)

    def _exists(self, node: exp.Exists) -> Expr:
        inner = self._inner(node.this)
        found = self._grouped(inner, (), (_count(),), node)
        return _not(Call("is_null", (found[-1],), BOOLEAN))

    def _member(self, node: exp.In, binder: ExpressionBinder) -> Expr:
        """IN as a value: true if found; unknown if a NULL could be it; else false."""
        left = _operands(node.this, binder)
        if len(left) > 1:
            raise BindError(
                "IN with several columns cannot stand here",
                span=span_of(node),
                hint="use it as a condition of its own in WHERE, or write EXISTS",
            )
        inner = self._inner(node.args["query"], 1, node)
        value = inner.columns[0]
        rows, known = _count(), aggregate_call("count", value, distinct=False, condition=None)
        counts = self._grouped(inner, (), (rows, known), node)
        found = self._grouped(inner, ((left[0], value),), (_count(),), node)[-1]
        return _three_valued(_not(_is_null(found)), left[0], counts)

    def _quantified(self, node: exp.Expr, binder: ExpressionBinder) -> Expr:
        """θ ANY as a value by the least and the greatest inner value; θ ALL as its opposite."""
        operator, quantified = _COMPARISONS[type(node)], _quantified(node)
        assert quantified is not None, "the caller has looked"
        is_all = isinstance(quantified, exp.All)
        operator = _NEGATED[operator] if is_all else operator
        left = binder.bind(node.this)
        inner = self._inner(quantified.this, 1, node)
        value = inner.columns[0]
        calls = [_count(), aggregate_call("count", value, distinct=False, condition=None)]
        ends = {"=": (), "<>": ("min", "max"), "<": ("max",), "<=": ("max",)}.get(
            operator, ("min",)
        )
        calls += [aggregate_call(e, value, distinct=False, condition=None) for e in ends]
        found = self._grouped(inner, (), tuple(calls), node)
        if operator == "=":
            partner = self._grouped(inner, ((left, value),), (_count(),), node)[-1]
            holds = _not(_is_null(partner))
        else:
            holds = _compare(operator, left, found[2], node)
            for other in found[3:]:
                holds = Call("or", (holds, _compare(operator, left, other, node)), BOOLEAN)
        answer = _three_valued(Call("is_true", (holds,), BOOLEAN), left, found[:2])
        return _not(answer) if is_all else answer

    def _grouped(
        self,
        inner: Inner,
        matching: tuple[tuple[Expr, Expr], ...],
        calls: tuple[AggregateCall, ...],
        node: exp.Expr,
    ) -> list[Column]:
        """Aggregates of the inner rows that belong to each outer row, as columns beside it.

        Args:
            inner: The subquery.
            matching: Pairs of an outer and an inner expression that must be equal as well.
            calls: The aggregates.
            node: Where an error points to.
        """
        pairs = [(resolve_outer(outer, {}), own) for outer, own in _equalities(inner, node)]
        pairs += list(matching)
        named: list[NamedAggregate] = []
        keyed: list[Named] = []
        taken: list[str] = []
        for _, own in pairs:
            taken.append(fresh_name(expr_text(own), taken))
            keyed.append(Named(taken[-1], own))
        for call in calls:
            taken.append(fresh_name(aggregate_text(call), taken))
            named.append(NamedAggregate(taken[-1], call))
        right = Aggregate(inner.plan, tuple(keyed), tuple(named))
        names = self._names(right)
        columns = [Column(names[f.name], f.type) for f in right.schema]
        conditions = [
            _compare("=", outer, column, node)
            for (outer, _), column in zip(pairs, columns, strict=False)
        ]
        for condition in conditions:
            _refuse_outer(condition, node)
        self._beside(right, conditions)
        return columns[len(pairs) :]

    def _beside(self, right: Plan, conditions: list[Expr]) -> None:
        names = (*self.plan.schema.names, *self._names(right).values())
        self.plan = Join(self.plan, right, JoinKind.LEFT, conjunction(*conditions), names)

    # Both

    def _inner(
        self, node: exp.Expr, width: int | None = None, place: exp.Expr | None = None
    ) -> Inner:
        inner = self._bind_inner(node, self._context.with_outer(self._scope))
        if width is not None and len(inner.columns) != width:
            raise BindError(
                f"the subquery has {len(inner.columns)} columns where {width} "
                f"{'is' if width == 1 else 'are'} needed",
                span=span_of(node) or (span_of(place) if place is not None else None),
                hint="select just what is compared",
            )
        return inner

    def _names(self, right: Plan) -> dict[str, str]:
        """Names for the columns of the right side beside those of the rows so far."""
        taken = list(self.plan.schema.names)
        names: dict[str, str] = {}
        for name in right.schema.names:
            names[name] = fresh_name(name, taken)
            taken.append(names[name])
        return names

    def _check_single(self, inner: Inner, node: exp.Expr) -> None:
        fixed = {
            own.name for _, own in _known_equalities(inner.correlated) if isinstance(own, Column)
        }
        if not any(key <= fixed for key in keys(inner.plan)):
            raise BindError(
                "the subquery can have several rows at one instant",
                span=span_of(node),
                hint="use an aggregate such as MAX, or compare with ANY (…) or ALL (…)",
            )


def has_subquery(node: exp.Expr) -> bool:
    """Whether the expression contains a subquery."""
    return node.find(exp.Query) is not None


def _quantified(node: exp.Expr) -> exp.Any | exp.All | None:
    side = node.expression
    return side if isinstance(side, _QUANTIFIED) else None


def _only_strict_subquery(node: exp.Expr) -> exp.Subquery | None:
    """The one scalar subquery of a comparison that is not true where the subquery is empty."""
    inside = [part for part in node.iter_expressions() if has_subquery(part)]
    if len(inside) != 1:
        return None
    part = inside[0]
    while isinstance(part, _STRICT):
        inside = [child for child in part.iter_expressions() if has_subquery(child)]
        if len(inside) != 1:
            return None
        part = inside[0]
    return part if isinstance(part, exp.Subquery) else None


def _operands(node: exp.Expr, binder: ExpressionBinder) -> tuple[Expr, ...]:
    parts = node.expressions if isinstance(node, exp.Tuple) else [node]
    return tuple(binder.bind(part) for part in parts)


def _compare(operator: str, left: Expr, right: Expr, node: exp.Expr) -> Expr:
    span: Span | None = span_of(node)
    return scalar_call(operator, (left, right), span=span, spans=(span, span))


def _count() -> AggregateCall:
    return aggregate_call("count", None, distinct=False, condition=None)


def _is_null(expr: Expr) -> Expr:
    return Call("is_null", (expr,), BOOLEAN)


def _not(expr: Expr) -> Expr:
    return Call("not", (expr,), BOOLEAN)


def _three_valued(holds: Expr, left: Expr, counts: list[Column]) -> Expr:
    """True if it holds; false over no rows; unknown if a NULL on either side leaves it open."""
    rows, known = counts
    unknown = Call("or", (_is_null(left), Call("<", (known, rows), BOOLEAN)), BOOLEAN)
    return Case(
        ((holds, TRUE), (_is_null(rows), FALSE), (unknown, Literal(None, BOOLEAN))), FALSE, BOOLEAN
    )


def _known_equalities(correlated: tuple[Expr, ...]) -> Iterator[tuple[Expr, Expr]]:
    """The conditions of the form outer = inner, as pairs in this order."""
    for part in correlated:
        sides = correlation(part)
        if sides is not None:
            yield sides


def _equalities(inner: Inner, node: exp.Expr) -> list[tuple[Expr, Expr]]:
    pairs = list(_known_equalities(inner.correlated))
    if len(pairs) != len(inner.correlated) or any(map(has_outer, inner.columns)):
        raise BindError(
            "here a subquery can refer to the outer query by equality only",
            span=span_of(node),
            hint="compare inner and outer columns with =, or make the subquery a condition of its "
            "own in WHERE",
        )
    return pairs


def _refuse_outer(expr: Expr, node: exp.Expr) -> None:
    if has_outer(expr):
        raise BindError(
            "a subquery inside a subquery cannot be compared with the outermost query",
            span=span_of(node),
            hint="join the inner queries first, in FROM",
        )
