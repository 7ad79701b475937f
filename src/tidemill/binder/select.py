"""SELECT: from one query block to a plan.

The order is that of SQL: FROM, WHERE, GROUP BY, HAVING, SELECT, DISTINCT. The plan is built as if
windows were not there; they are already part of what FROM gave (K40).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from tidemill.algebra.expr import Column, Expr, Named, conjunction
from tidemill.algebra.plan import Filter, Plan, Project
from tidemill.binder.conditions import keep_condition
from tidemill.binder.expressions import ExpressionBinder, aggregate_calls
from tidemill.binder.grouping import Groups
from tidemill.binder.limits import check_columns
from tidemill.binder.notes import note_missing_window
from tidemill.binder.rows import Inner, Rows, has_subquery
from tidemill.binder.scope import Scope, fresh_name, has_outer
from tidemill.binder.sources import bind_from
from tidemill.binder.values import subquery_value
from tidemill.catalog.functions import is_aggregate, is_scalar
from tidemill.errors import BindError, suggestion
from tidemill.lang.spans import span_of
from tidemill.lang.unparse import unparse

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.binder.context import Context
    from tidemill.binder.sources import BindQuery

__all__ = ["AT_EVERY_INSTANT", "IN_THE_MIDDLE", "Selected", "bind_select"]

_SUPPORTED = frozenset(
    {"kind", "expressions", "from_", "joins", "where", "group", "having", "distinct", "with_"}
)
AT_EVERY_INSTANT = (
    "an answer is a bag of rows at every instant; with AS OF at the end it is asked of one, and its"
    " rows have an order"
)
IN_THE_MIDDLE = "it stands at the end of the whole query, before AS OF"
_REFUSED = {
    "order": ("ORDER BY", AT_EVERY_INSTANT),
    "limit": ("LIMIT", f"{AT_EVERY_INSTANT}; or use a window, or MIN and MAX"),
    "offset": ("OFFSET", AT_EVERY_INSTANT),
    "qualify": ("QUALIFY", "put a window behind the stream in FROM, aggregate, and use HAVING"),
}


@dataclass(frozen=True, slots=True)
class Selected:
    """A bound query block, before its SELECT list is applied.

    Attributes:
        plan: The rows the SELECT list looks at.
        columns: The SELECT list.
        correlated: Conditions over these rows and the enclosing query.
        distinct: Whether equal rows count once.
    """

    plan: Plan
    columns: tuple[Named, ...]
    correlated: tuple[Expr, ...]
    distinct: bool

    def projected(self) -> Plan:
        """The rows with the SELECT list applied."""
        assert not self.correlated, "only the enclosing query can finish a correlated block"
        if _is_identity(self.plan, self.columns):
            return self.plan
        return Project(self.plan, self.columns)


def bind_select(
    select: exp.Select,
    context: Context,
    bind_query: BindQuery,
    bind_inner: Callable[[exp.Expr, Context], Inner],
) -> Selected:
    """One query block.

    Raises:
        BindError: A clause is not supported, or something in it does not fit.
    """
    _refuse_clauses(select, context)
    block = _Block(select, context, bind_inner)
    block.read(bind_query)
    if select.args.get("group") or block.aggregate_nodes():
        return block.grouped()
    if (having := select.args.get("having")) is not None:
        raise BindError(
            "HAVING needs GROUP BY or an aggregate",
            span=span_of(having.this),
            hint="a condition on single rows goes into WHERE",
        )
    return block.plain()


class _Block:
    """The parts of one query block while it is bound."""

    def __init__(
        self,
        select: exp.Select,
        context: Context,
        bind_inner: Callable[[exp.Expr, Context], Inner],
    ) -> None:
        self.select = select
        self.context = context
        self.bind_inner = bind_inner
        self.items: list[exp.Expr] = select.expressions
        self.distinct = select.args.get("distinct") is not None

    def read(self, bind_query: BindQuery) -> None:
        """FROM and WHERE."""
        source = bind_from(self.select, self.context, bind_query)
        self.scope = source.scope
        binder = ExpressionBinder(self.scope, self.context)
        where = self.select.args.get("where")
        nodes = _conditions(where.this) if where is not None else []
        bound = [binder.predicate(node, "WHERE") for node in nodes if not has_subquery(node)]
        self.correlated = tuple(part for part in bound if has_outer(part))
        plan, rest = source.plan([part for part in bound if not has_outer(part)])
        plan = Filter(plan, conjunction(*rest)) if rest else plan
        self.rows = self._rows(plan, self.scope)
        beside = self._binder(self.scope, self.rows)
        for node in nodes:
            if has_subquery(node):
                keep_condition(self.rows, node, beside, "WHERE")

    def plain(self) -> Selected:
        """A block without aggregation."""
        binder = self._binder(self.scope, self.rows)
        columns = self._columns(binder)
        return Selected(self.rows.plan, columns, self.correlated, self.distinct)

    def grouped(self) -> Selected:
        """A block with aggregation: GROUP BY, the aggregates, HAVING, SELECT."""
        note_missing_window(self.select, self.context)
        inner = Scope(self.scope.columns, unseen=self.context.outer)
        rows = ExpressionBinder(inner, self.context)
        groups = Groups(rows)
        for node in self._group_nodes():
            groups.add_key(node)
        correlated = tuple(groups.correlate(part, self.select) for part in self.correlated)
        for call in self.aggregate_nodes():
            groups.add_aggregate(call)
        above = self._rows(groups.plan(self.rows.plan), groups.scope(self.scope))
        binder = self._binder(inner, above, groups)
        having = self.select.args.get("having")
        for node in _conditions(having.this) if having is not None else []:
            if has_subquery(node):
                keep_condition(above, node, binder, "HAVING")
            else:
                above.plan = Filter(above.plan, binder.predicate(node, "HAVING"))
        columns = self._columns(binder, groups)
        return Selected(above.plan, columns, correlated, self.distinct)

    def aggregate_nodes(self) -> list[exp.Expr]:
        """The aggregate calls of SELECT and HAVING."""
        having = self.select.args.get("having")
        nodes = [*self.items, *([having.this] if having is not None else [])]
        return [call for node in nodes for call in aggregate_calls(node)]

    def _rows(self, plan: Plan, scope: Scope | None) -> Rows:
        return Rows(plan, scope, self.context, self.bind_inner)

    def _binder(self, scope: Scope, rows: Rows, groups: Groups | None = None) -> ExpressionBinder:
        """Binds expressions that may contain subqueries and, above groups, aggregates."""

        def special(node: exp.Expr) -> Expr | None:
            value = subquery_value(rows, node, binder)
            return groups.answer(node) if value is None and groups is not None else value

        binder = ExpressionBinder(scope, self.context, special)
        return binder

    def _group_nodes(self) -> list[exp.Expr]:
        """The expressions of GROUP BY, positions and aliases replaced by what they stand for."""
        group = self.select.args.get("group")
        if group is None:
            return []
        return [self._group_node(node) for node in group.expressions]

    def _group_node(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Literal) and not node.is_string:
            if not node.is_int or not 1 <= int(node.name) <= len(self.items):
                raise BindError(
                    f"GROUP BY {node.name}: there is no such position in SELECT",
                    span=span_of(node),
                    hint=f"positions go from 1 to {len(self.items)}",
                )
            item: exp.Expr = self.items[int(node.name) - 1].unalias()
            return item
        if isinstance(node, exp.Column) and not node.table:
            known = any(c.name.lower() == node.name.lower() for c in self.scope.columns)
            for item in self.items if not known else []:
                if isinstance(item, exp.Alias) and item.alias.lower() == node.name.lower():
                    aliased: exp.Expr = item.this
                    return aliased
        return node

    def _columns(self, binder: ExpressionBinder, groups: Groups | None = None) -> tuple[Named, ...]:
        columns: list[Named] = []
        for item in self.items:
            for name, expr in self._item(item, binder, groups):
                taken = [c.name for c in columns]
                if isinstance(item, exp.Alias) and name.lower() in map(str.lower, taken):
                    raise BindError(
                        f'two columns are called "{name}"',
                        span=span_of(item.args["alias"]),
                        hint="give each a name of its own",
                    )
                columns.append(Named(fresh_name(name, taken), expr))
                check_columns(len(columns), item)
        return tuple(columns)

    def _item(
        self, item: exp.Expr, binder: ExpressionBinder, groups: Groups | None
    ) -> list[tuple[str, Expr]]:
        star = item.this if isinstance(item, exp.Column) else item
        if not isinstance(star, exp.Star):
            expr = binder.bind(item.unalias())
            return [(self._name(item), expr)]
        qualifier = item.text("table") or None
        found = self.scope.star(qualifier)
        if not found:
            raise BindError(
                f'there is no "{qualifier}" in FROM',
                span=span_of(item),
                hint=suggestion(qualifier or "", self.scope.qualifiers(), what="items of FROM"),
            )
        if groups is None:
            return [(column.name, column.expr) for column in found]
        return [(c.name, groups.key_of(c.expr, c.name, item)) for c in found]

    def _name(self, item: exp.Expr) -> str:
        """The alias, the column, or else the expression as written, its functions in lower case."""
        if isinstance(item, exp.Alias):
            return item.alias
        if isinstance(item, exp.Column):
            return self.scope.lookup(item).name  # as it was declared, not as it is written here
        written = item.copy()
        for call in written.find_all(exp.Anonymous):
            if is_scalar(call.name) or is_aggregate(call.name):
                call.set("this", call.name.lower())
        return unparse(written)


def _conditions(node: exp.Expr) -> list[exp.Expr]:
    """The conditions that must all hold."""
    conditions: list[exp.Expr] = []
    pending = [node]
    while pending:
        node = pending.pop()
        if isinstance(node, exp.And):
            pending += [node.expression, node.this]
        elif isinstance(node, exp.Paren) and isinstance(node.this, exp.And | exp.Paren):
            pending.append(node.this)
        else:
            conditions.append(node)
    return conditions


def _is_identity(plan: Plan, columns: tuple[Named, ...]) -> bool:
    return tuple(c.name for c in columns) == plan.schema.names and all(
        isinstance(c.expr, Column) and c.expr.name == c.name for c in columns
    )


def _refuse_clauses(select: exp.Select, context: Context) -> None:
    for key, value in select.args.items():
        if not value or key in _SUPPORTED:
            continue
        word, hint = _REFUSED[key]
        if context.at_once and key in ("order", "limit", "offset"):
            hint = IN_THE_MIDDLE
        raise BindError(f"{word} is not supported", span=span_of(value), hint=hint)
