"""FROM: from stream references, subqueries and joins to one plan and the names of its columns.

Columns whose name occurs in one item only keep it; others are called ``alias.name`` above the join.
A join written with JOIN binds tighter than a comma.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from sqlglot import exp

from tidemill.algebra.expr import TRUE, Expr, conjunction, conjuncts
from tidemill.algebra.plan import (
    Dstream,
    Istream,
    JoinKind,
    Plan,
    Relation,
    Rstream,
    Source,
    Window,
)
from tidemill.algebra.tree import transform_up
from tidemill.binder.expressions import ExpressionBinder
from tidemill.binder.insertions import insertions, output_of
from tidemill.binder.joins import Item, Joined, Tree, build
from tidemill.binder.limits import check_columns
from tidemill.binder.non_retroactive import attach, is_relation
from tidemill.binder.notes import note_bare_number
from tidemill.binder.scope import Scope, ScopeColumn, fresh_name
from tidemill.binder.windows import bind_window
from tidemill.catalog.entries import (
    ChangingRelationEntry,
    DerivedStreamEntry,
    Entry,
    FunctionEntry,
    QueryEntry,
    RelationEntry,
    StreamEntry,
    object_use,
)
from tidemill.catalog.functions import scalar_call
from tidemill.errors import BindError, closest, suggestion
from tidemill.lang.one_time import QueryAnswer
from tidemill.lang.spans import span_of, value_span
from tidemill.lang.windows import StreamOperator, Windowed
from tidemill.model.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tidemill.binder.context import Context

__all__ = ["From", "answer_relation", "apply_stream_operator", "below", "bind_from"]

BindQuery: TypeAlias = "Callable[[exp.Expr, Context], Plan]"

_OPERATORS: dict[str, type[Istream | Dstream | Rstream]] = {
    "ISTREAM": Istream,
    "DSTREAM": Dstream,
    "RSTREAM": Rstream,
}
_SIDES = {
    "": JoinKind.INNER,
    "LEFT": JoinKind.LEFT,
    "RIGHT": JoinKind.RIGHT,
    "FULL": JoinKind.FULL,
}


@dataclass(frozen=True, slots=True)
class From:
    """A bound FROM clause: the columns in sight, and a plan once the conditions are known."""

    tree: Tree
    scope: Scope

    def plan(self, conditions: Sequence[Expr]) -> tuple[Plan, list[Expr]]:
        """The joins with the conditions that belong to them, and the conditions that are left."""
        pool = [part for condition in conditions for part in conjuncts(condition)]
        tree = attach(self.tree, pool)
        return build(tree, pool), pool


def bind_from(select: exp.Select, context: Context, bind_query: BindQuery) -> From:
    """The FROM clause of a SELECT.

    Raises:
        BindError: There is none, or a name in it is unknown or used twice.
        PlanError: It has too many columns.
    """
    clause = select.args.get("from_")
    if clause is None:
        raise BindError(
            "a query reads at least one stream or relation",
            span=span_of(select),
            hint="add FROM with the name of a stream; SHOW STREAMS lists them",
        )
    joins: list[exp.Join] = select.args.get("joins") or []
    nodes = [clause.this, *(join.this for join in joins)]
    bound = [_bind_item(node, context, bind_query) for node in nodes]
    check_columns(sum(len(item.plan.schema) for item in bound), clause)
    items = _named(bound)
    whole: tuple[Tree, tuple[ScopeColumn, ...]] | None = None
    group: tuple[Tree, tuple[ScopeColumn, ...]] = (items[0], items[0].columns())
    for join, item in zip(joins, items[1:], strict=True):
        if _is_comma(join):
            whole = group if whole is None else _comma(whole, group)
            group = (item, item.columns())
        else:
            group = _join(group, item, join, context)
    tree, columns = group if whole is None else _comma(whole, group)
    return From(tree, Scope(columns, context.outer, context.unseen))


def _bind_item(node: exp.Expr, context: Context, bind_query: BindQuery) -> Item:
    plan = _item_plan(node, context, bind_query)
    table = node.name or None
    alias_node = node.args.get("alias")
    alias = (alias_node.name if alias_node else None) or table
    return Item(plan, alias, table, node)


def _item_plan(node: exp.Expr, context: Context, bind_query: BindQuery) -> Plan:
    match node:
        case Windowed():
            plan = _item_plan(node.this, context.below_time(), bind_query)
            if is_relation(plan):
                raise BindError(
                    "a relation takes no window",
                    span=span_of(node.window),
                    hint="leave the window out: the rows are those of one instant"
                    if isinstance(node.this, QueryAnswer)
                    else "leave the window out: the rows of a relation are there while they are "
                    "valid; ISTREAM(…) makes a stream of it",
                )
            note_bare_number(node.window, plan, context)
            names = tuple(name for name in (node.alias, node.name) if name)
            return bind_window(insertions(plan) or plan, node.window, names)
        case StreamOperator():
            plan = _item_plan(node.this, below(node, context), bind_query)
            return apply_stream_operator(node, plan)
        case exp.Table():
            return _table(node, context)
        case QueryAnswer():
            return _answer(node, context)
        case _:
            # A FROM item does not see the other items of its clause.
            return bind_query(node, context.without_outer())


def below(node: StreamOperator, context: Context) -> Context:
    """The context of what a stream operator is of; RSTREAM looks at the same instant alone."""
    return context if node.kind == "RSTREAM" else context.below_time()


def apply_stream_operator(node: StreamOperator, plan: Plan) -> Plan:
    """ISTREAM, DSTREAM, RSTREAM or WSTREAM of a plan."""
    if node.window is None:
        return _OPERATORS[node.kind](plan)
    return bind_window(output_of(plan, value_span(node, "kind")), node.window, ())


def _table(node: exp.Table, context: Context) -> Plan:
    name = node.name
    known = context.table(name)
    if known is not None:
        return known
    entry = context.catalog.find(name)
    if entry is None:
        names = [*context.tables, *(e.name for e in context.catalog.objects.values())]
        raise BindError(
            f'there is no stream or relation "{name}"',
            span=span_of(node.this),
            hint=closest(name, names) or "register it with CREATE STREAM or CREATE RELATION",
        )
    context.uses.add(object_use(entry.name))
    return _entry_plan(entry, node, context)


def answer_relation(query: str) -> str:
    """What the relation is called that stands for the answer of a query; no user's is."""
    return f"@{query.lower()}"


def _answer(node: QueryAnswer, context: Context) -> Plan:
    """The answer of a query at the instant that is asked for, as a relation."""
    entry = context.catalog.find(node.name)
    if not isinstance(entry, QueryEntry):
        names = [e.name for e in context.catalog.objects.values() if isinstance(e, QueryEntry)]
        raise BindError(
            f'there is no query "{node.name}"',
            span=span_of(node),
            hint=suggestion(node.name, names, what="queries"),
        )
    if not context.at_once:
        raise BindError(
            f"QUERY {entry.name} is an answer at one instant, and this query has one at each",
            span=span_of(node),
            hint="write AS OF behind the query to ask it once; to read what another query reads, "
            "define that with CREATE STREAM … AS",
        )
    context.uses.add(object_use(entry.name))
    return _answer_at_once(entry, node)


def _answer_at_once(entry: QueryEntry, node: exp.Expr) -> Plan:
    # Versions that say the same of types may differ in what can be NULL.
    fields = tuple(replace(one, nullable=True) for one in entry.plan.schema)
    return Relation(answer_relation(entry.name), Schema(fields), span=span_of(node))


def _entry_plan(entry: Entry, node: exp.Table, context: Context) -> Plan:
    match entry:
        case StreamEntry(name, schema):
            return Source(name, schema)
        case RelationEntry(name, schema, _, validity):
            span = span_of(node)
            return Relation(name, schema, validity, retroactive=entry.retroactive, span=span)
        case DerivedStreamEntry(_, plan) | ChangingRelationEntry(_, plan):
            return _viewed(plan, node)
        case QueryEntry() if entry.is_table and context.at_once and not context.over_time:
            return _answer_at_once(entry, node)
        case QueryEntry(name, plan) if entry.is_table:
            if entry.was_changed:
                raise BindError(
                    f'table "{name}" was changed or stopped: its rows are not those of one query',
                    span=span_of(node.this),
                    hint=f"DROP TABLE {name} and create it as it is to be read",
                )
            return _viewed(plan, node)
        case QueryEntry(name):
            raise BindError(
                f'"{name}" is a query; its answer is not a stream others can read',
                span=span_of(node.this),
                hint=f"write QUERY {name} to read its answer at this instant"
                if context.at_once
                else "define it with CREATE STREAM … AS, or CREATE TABLE … AS, to read from it",
            )
        case FunctionEntry():
            raise AssertionError("functions have names of their own")


def _viewed(plan: Plan, node: exp.Table) -> Plan:
    """The plan of a view; errors about its windows point to the place where it is used."""
    span = span_of(node)
    return transform_up(
        plan, lambda n: replace(n, span=span) if isinstance(n, Window | Relation) else None
    )


def _named(items: list[Item]) -> list[Item]:
    """The items with unique aliases checked and unique column names chosen."""
    seen: dict[str, Item] = {}
    for item in items:
        if item.alias is None:
            continue
        if item.alias.lower() in seen:
            raise BindError(
                f'"{item.alias}" stands in FROM twice',
                span=span_of(item.node),
                hint=f"give each its own alias, as in {item.table or item.alias} AS other",
            )
        seen[item.alias.lower()] = item
    if len(items) == 1:
        return [replace(items[0], names=items[0].plan.schema.names)]
    often = Counter(name.lower() for item in items for name in item.plan.schema.names)
    taken: list[str] = [name for name, count in often.items() if count > 1]
    named = []
    for item in items:
        names: list[str] = []
        for name in item.plan.schema.names:
            names.append(fresh_name(name, taken, alias=item.alias))
            taken.append(names[-1])
        named.append(replace(item, names=tuple(names)))
    return named


def _is_comma(join: exp.Join) -> bool:
    return not any(join.args.get(key) for key in ("side", "kind", "on", "using"))


def _comma(
    left: tuple[Tree, tuple[ScopeColumn, ...]], right: tuple[Tree, tuple[ScopeColumn, ...]]
) -> tuple[Tree, tuple[ScopeColumn, ...]]:
    return Joined(left[0], right[0], JoinKind.INNER, TRUE), left[1] + right[1]


def _join(
    left: tuple[Tree, tuple[ScopeColumn, ...]], item: Item, join: exp.Join, context: Context
) -> tuple[Tree, tuple[ScopeColumn, ...]]:
    kind = _SIDES[join.side]
    columns = left[1] + item.columns()
    if join.args.get("using"):
        condition, columns = _using(left[1], item, join, kind)
        return Joined(left[0], item, kind, condition), columns
    on = join.args.get("on")
    here = context.without_outer()
    binder = ExpressionBinder(Scope(columns, unseen=here.unseen), here)
    condition = TRUE if on is None else binder.predicate(on, "ON")
    return Joined(left[0], item, kind, condition), columns


def _using(
    left: tuple[ScopeColumn, ...], item: Item, join: exp.Join, kind: JoinKind
) -> tuple[Expr, tuple[ScopeColumn, ...]]:
    """The condition of USING, and the columns with each pair merged into one."""
    right = item.columns()
    equalities: list[Expr] = []
    merged: dict[str, ScopeColumn] = {}
    for identifier in join.args["using"]:
        node = exp.Column(this=identifier.copy())
        a, b = Scope(left).resolve(node), Scope(right).resolve(node)
        span = span_of(identifier)
        equalities.append(scalar_call("=", (a, b), span=span, spans=(span, span)))
        match kind:
            case JoinKind.INNER | JoinKind.LEFT:
                value = a
            case JoinKind.RIGHT:
                value = b
            case JoinKind.FULL:
                value = scalar_call("coalesce", (a, b), span=span)
        name = next(c.name for c in left if c.name.lower() == identifier.name.lower())
        merged[name.lower()] = ScopeColumn(None, None, name, value)
    return conjunction(*equalities), tuple(_merged(left, right, merged))


def _merged(
    left: tuple[ScopeColumn, ...], right: tuple[ScopeColumn, ...], merged: dict[str, ScopeColumn]
) -> Iterator[ScopeColumn]:
    """The columns of both sides; a merged one stands where it stood on the left."""
    for column in (*left, *right):
        replacement = merged.get(column.name.lower())
        if replacement is None:
            yield column
            continue
        if not column.merged and column in left:
            yield replacement
        # What an earlier USING merged under the same name has been merged once more.
        if column.qualifier is not None:
            yield replace(column, merged=True)
