"""Queries that are asked once: a plan, and how the rows of an instant are put in order and cut.

At one instant an answer is a bag of rows like any other, so that ORDER BY, LIMIT and OFFSET have
the meaning that they have in SQL. A key of ORDER BY is a position, the name of a column of the
answer, or an expression: over what FROM and GROUP BY give, where the query is one SELECT without
DISTINCT, or else over the columns of the answer. Rows that the keys leave level are in the order of
their values, column by column, NULL first: equal questions have equal answers, row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from tidemill.algebra.expr import Column, Named
from tidemill.algebra.plan import Dstream, Istream, Plan, Project, Relation, Window
from tidemill.algebra.tree import share, walk
from tidemill.binder.context import Context
from tidemill.binder.definitions import check_ends
from tidemill.binder.expressions import ExpressionBinder
from tidemill.binder.insertions import internal_window
from tidemill.binder.limits import check_plan
from tidemill.binder.queries import bind_query
from tidemill.binder.scope import Scope, ScopeColumn
from tidemill.binder.sources import answer_relation
from tidemill.catalog.entries import QueryEntry
from tidemill.errors import BindError
from tidemill.lang.spans import span_of
from tidemill.lang.statements import ObjectKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.catalog.catalog import Catalog
    from tidemill.errors import Note

__all__ = ["Question", "SortKey", "bind_question"]

_KEY = "@order {}"
"""What a key of ORDER BY is called that is no column of the answer; no user's column is."""

_MODIFIERS = ("order", "limit", "offset")


@dataclass(frozen=True, slots=True)
class SortKey:
    """A key of ORDER BY.

    Attributes:
        column: The column of the plan that it is.
        descending: Whether the greatest value comes first.
        nulls_first: Whether NULL comes before all values.
    """

    column: str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Question:
    """A query that is asked once, bound.

    Attributes:
        plan: What it means; after the columns of the answer come keys of ORDER BY.
        columns: The columns of the answer.
        keys: The keys of ORDER BY.
        limit: How many rows there are at most; ``None`` for all.
        offset: How many of the first rows are left out.
        answers: The queries, and tables, whose answers it reads, by the names of the relations in
            their place.
    """

    plan: Plan
    columns: tuple[str, ...]
    keys: tuple[SortKey, ...]
    limit: int | None
    offset: int
    answers: Mapping[str, str]


def bind_question(query: exp.Expr, catalog: Catalog, notes: list[Note]) -> Question:
    """The plan and the order of a query that is asked once.

    Raises:
        BindError: A name, a type or a clause does not fit.
        PlanError: It is too large, or has a window over rows that may never end.
    """
    node = _unwrapped(query.copy())
    order, limit, offset = (node.args.pop(key, None) for key in _MODIFIERS)
    context = Context(catalog, notes=notes, at_once=True)
    plan = bind_query(node, context)
    columns = plan.schema.names
    nodes = [] if order is None else list(order.expressions)
    places = [_place(one.this, columns) for one in nodes]
    added = {number: one.this for number, one in enumerate(nodes) if places[number] is None}
    if added:
        silent = Context(catalog, at_once=True)  # what there is to be warned of was told
        plan = _with_keys(node, plan, added, silent)
    keys = tuple(
        SortKey(place or _KEY.format(number), bool(one.args.get("desc")), one.args["nulls_first"])
        for number, (one, place) in enumerate(zip(nodes, places, strict=True))
    )
    plan = share(plan)
    check_plan(plan, node)
    entries = catalog.entries(ObjectKind.QUERY)
    found = {answer_relation(e.name): e.name for e in entries if isinstance(e, QueryEntry)}
    there = {one.name for one in walk(plan) if isinstance(one, Relation)}
    answers = {relation: name for relation, name in found.items() if relation in there}
    _refuse_time(plan, answers, catalog)
    check_ends(plan)
    return Question(
        plan, columns, keys, _count(limit, "LIMIT"), _count(offset, "OFFSET") or 0, answers
    )


def _unwrapped(node: exp.Expr) -> exp.Expr:
    """The query in the parentheses, if nothing stands beside them."""
    while isinstance(node, exp.Subquery) and not any(
        value for key, value in node.args.items() if key != "this"
    ):
        node = node.this
    return node


def _place(key: exp.Expr, columns: tuple[str, ...]) -> str | None:
    """The column of the answer that a key names, by its position or its name."""
    if isinstance(key, exp.Literal) and not key.is_string:
        if not key.is_int or not 1 <= int(key.name) <= len(columns):
            raise BindError(
                f"ORDER BY {key.name}: there is no such position in SELECT",
                span=span_of(key),
                hint=f"positions go from 1 to {len(columns)}",
            )
        return columns[int(key.name) - 1]
    if not isinstance(key, exp.Column) or key.table:
        return None
    return next((name for name in columns if name.lower() == key.name.lower()), None)


def _with_keys(node: exp.Expr, plan: Plan, keys: Mapping[int, exp.Expr], context: Context) -> Plan:
    """The plan with columns more: the keys of ORDER BY that are none of its columns."""
    takes_more = (
        isinstance(node, exp.Select)
        and node.args.get("distinct") is None
        and internal_window(node) is None
    )
    if not takes_more:
        return _above(plan, keys, context)
    selected = node.copy()
    for number, key in keys.items():
        name = exp.Identifier(this=_KEY.format(number), quoted=True)
        selected.append("expressions", exp.Alias(this=key.copy(), alias=name))
    try:
        return bind_query(selected, context)
    except BindError:
        try:
            return _above(plan, keys, context)  # an expression over names that SELECT gives
        except BindError:
            pass
        raise


def _above(plan: Plan, keys: Mapping[int, exp.Expr], context: Context) -> Plan:
    """Keys over the columns of the answer."""
    columns = tuple(Named(one.name, Column(one.name, one.type)) for one in plan.schema)
    seen = tuple(ScopeColumn(None, None, one.name, one.expr) for one in columns)
    binder = ExpressionBinder(Scope(seen), context)
    more = (Named(_KEY.format(number), binder.bind(key)) for number, key in keys.items())
    return Project(plan, (*columns, *more))


def _count(clause: exp.Expr | None, word: str) -> int | None:
    """How many rows a clause says."""
    if clause is None:
        return None
    value = clause.expression
    if isinstance(value, exp.Literal) and not value.is_string and value.is_int:
        return int(value.name)
    raise BindError(
        f"{word} takes a whole number",
        span=span_of(value) or span_of(clause),
        hint=f"write {word} 10",
    )


def _refuse_time(plan: Plan, answers: Mapping[str, str], catalog: Catalog) -> None:
    """Refuse what looks at other instants of an answer, of which one is there."""
    for node in walk(plan):
        if not isinstance(node, Window | Istream | Dstream):
            continue
        below = (one for one in walk(node) if isinstance(one, Relation))
        place = next((one for one in below if one.name in answers), None)
        if place is None:
            continue
        found = answers[place.name]
        entry = catalog.find(found)
        is_table = isinstance(entry, QueryEntry) and entry.is_table
        what = "a window" if isinstance(node, Window) else "ISTREAM or DSTREAM"
        raise BindError(
            f"QUERY {found} is the answer at one instant, and {what} looks at others",
            span=place.span,
            hint=f"leave QUERY out: then what table {found} asks is read, at all instants"
            if is_table
            else f"define what {found} asks with CREATE STREAM … AS, and read from that",
        )
