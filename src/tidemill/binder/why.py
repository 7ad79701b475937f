"""WHY: what it is asked of, of which rows of the answer, and where the explanation stops.

The target is a plan, that of a query, table or derived stream, or of a query in parentheses. There
a table is what it asks, as in every query that goes on, so that the plan ends at streams and
relations. The derived stream of DOWN TO is a part of that plan: if there is one,

    share(bound.down_to.plan, known) is one of walk(share(bound.plan, known)), with known = {}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from tidemill.algebra.expr import TRUE, Column
from tidemill.algebra.tree import share, walk
from tidemill.binder.context import Context
from tidemill.binder.definitions import check_ends, plan_query
from tidemill.binder.expressions import ExpressionBinder, aggregate_calls
from tidemill.binder.one_time import Question
from tidemill.binder.scope import Scope, ScopeColumn
from tidemill.catalog.entries import (
    DerivedStreamEntry,
    FunctionEntry,
    QueryEntry,
    StreamEntry,
    kind_of,
    object_use,
    uses_of,
)
from tidemill.errors import BindError, suggestion
from tidemill.lang.one_time import QueryAnswer
from tidemill.lang.spans import span_of
from tidemill.lang.statements import Name
from tidemill.lang.words import quote_name

if TYPE_CHECKING:
    from tidemill.algebra.expr import Expr
    from tidemill.algebra.plan import Plan
    from tidemill.catalog.catalog import Catalog
    from tidemill.catalog.entries import Entry
    from tidemill.errors import Note
    from tidemill.lang.statements import Why

__all__ = ["BoundWhy", "bind_why"]

_MODIFIERS = {"order": "ORDER BY", "limit": "LIMIT", "offset": "OFFSET"}


@dataclass(frozen=True, slots=True)
class BoundWhy:
    """What is asked by WHY, bound.

    Attributes:
        entry: The query, table or derived stream; ``None`` for a query in parentheses.
        question: That query; ``None`` for what has a name.
        plan: What either means.
        condition: Of which rows of its answer, over the columns of the plan.
        down_to: The derived stream at whose rows the explanation stops; ``None`` for streams.
    """

    entry: QueryEntry | DerivedStreamEntry | None
    question: Question | None
    plan: Plan
    condition: Expr
    down_to: DerivedStreamEntry | None


def bind_why(statement: Why, catalog: Catalog, notes: list[Note]) -> BoundWhy:
    """What WHY is asked of.

    Raises:
        BindError: A name, a type or a clause does not fit.
        PlanError: It is too large, or has a window over rows that may never end.
    """
    target = statement.target
    entry, question = None, None
    if isinstance(target, Name):
        entry = _entry(target, catalog)
        plan, uses, called = entry.plan, entry.uses, entry.name
    else:
        plan, uses = _asked(target, catalog, notes)
        called, question = None, Question(plan, plan.schema.names, (), None, 0, {})
    condition: Expr = TRUE
    if statement.condition is not None:
        condition = _condition(statement.condition, plan, called, Context(catalog, notes=notes))
    down_to = None
    if statement.down_to is not None:
        what = "the query in parentheses" if called is None else f'"{called}"'
        down_to = _down_to(statement.down_to, catalog, uses, what)
        _require_part(down_to, plan, statement.down_to, what)
    return BoundWhy(entry, question, plan, condition, down_to)


# The target


def _entry(name: Name, catalog: Catalog) -> QueryEntry | DerivedStreamEntry:
    """The query, table or derived stream with this name."""
    entry = catalog.find(name.text) or catalog.find_function(name.text)
    if isinstance(entry, QueryEntry | DerivedStreamEntry):
        return entry
    what = "query, table or derived stream"
    if entry is None:
        there = catalog.objects.values()
        known = sorted(e.name for e in there if isinstance(e, QueryEntry | DerivedStreamEntry))
        hint = suggestion(name.text, known, what="queries, tables and derived streams")
        raise BindError(f'there is no {what} "{name.text}"', span=name.span, hint=hint)
    if isinstance(entry, StreamEntry):
        hint = "nothing stands behind its rows: they are themselves the answer to WHY"
    elif isinstance(entry, FunctionEntry):
        hint = "ask about a query that calls it"
    else:
        hint = "ask about a query that reads it; one in parentheses needs no name: WHY (SELECT …)"
    raise BindError(f"{_kind(entry)}, not a {what}", span=name.span, hint=hint)


def _kind(entry: Entry) -> str:
    if isinstance(entry, StreamEntry):
        return f'"{entry.name}" is a stream with a source'
    return f'"{entry.name}" is a {kind_of(entry).value.lower()}'


def _asked(query: exp.Expr, catalog: Catalog, notes: list[Note]) -> tuple[Plan, frozenset[str]]:
    """The plan of a query in parentheses, and what it uses; it is not asked to go on for ever."""
    for node in query.find_all(exp.Query):
        for key, words in _MODIFIERS.items():
            if clause := node.args.get(key):
                raise BindError(
                    f"{words} has no meaning below WHY: an answer is a bag of rows",
                    span=span_of(clause) or span_of(node),
                    hint="say behind the parentheses, with WHERE, which rows are asked about",
                )
    for answer in query.find_all(QueryAnswer):
        entry = catalog.find(answer.name)
        if isinstance(entry, QueryEntry):
            raise BindError(
                f"QUERY {entry.name} is an answer alone, and WHY asks what is behind it",
                span=span_of(answer),
                hint=f"write WHY {quote_name(entry.name)} to ask about that answer",
            )
    plan, uses = plan_query(query, catalog, allow_unbounded=True, notes=notes)
    check_ends(plan)
    return plan, uses


# The condition


def _condition(node: exp.Expr, plan: Plan, called: str | None, context: Context) -> Expr:
    """A condition over the columns of an answer."""
    subquery = node.find(exp.Query)
    if subquery is not None:
        raise BindError(
            "the condition of WHY takes no subquery",
            span=span_of(subquery),
            hint="it is about one row of the answer; compare its columns with values",
        )
    aggregate = next(iter(aggregate_calls(node)), None)
    if aggregate is not None:
        raise BindError(
            "the condition of WHY takes no aggregate",
            span=span_of(aggregate),
            hint="it is about one row of the answer; name the column that has the value",
        )
    for column in node.find_all(exp.Column):
        if column.table and column.table.lower() != (called or "").lower():
            raise _stranger(column, plan)
    columns = tuple(ScopeColumn(called, None, f.name, Column(f.name, f.type)) for f in plan.schema)
    return ExpressionBinder(Scope(columns), context).predicate(node, "WHERE")


def _stranger(column: exp.Column, plan: Plan) -> BindError:
    names = plan.schema.names
    is_one = any(name.lower() == column.name.lower() for name in names)
    alone = f"leave {column.table} out: it is about the columns of the answer alone"
    hint = alone if is_one else suggestion(column.name, names)
    return BindError(f'there is no "{column.table}" in the answer', span=span_of(column), hint=hint)


# DOWN TO


def _down_to(name: Name, catalog: Catalog, uses: frozenset[str], what: str) -> DerivedStreamEntry:
    """The derived stream with this name, which is read."""
    entry = catalog.find(name.text) or catalog.find_function(name.text)
    reached = _reached(uses, catalog)
    there = catalog.objects.values()
    derived = sorted(e.name for e in there if isinstance(e, DerivedStreamEntry))
    read = [one for one in derived if object_use(one) in reached]
    none = f"{what} reads no derived stream; leave DOWN TO out"
    hint = suggestion(name.text, read, what=f"derived streams that {what} reads") if read else none
    if entry is None:
        raise BindError(f'there is no derived stream "{name.text}"', span=name.span, hint=hint)
    if isinstance(entry, StreamEntry) and object_use(entry.name) in reached:
        hint = "leave DOWN TO out: without it the explanation goes on to the streams"
    if not isinstance(entry, DerivedStreamEntry):
        raise BindError(f"{_kind(entry)}, not a derived stream", span=name.span, hint=hint)
    if entry.name not in read:
        raise BindError(f'{what} does not read "{entry.name}"', span=name.span, hint=hint)
    return entry


def _reached(uses: frozenset[str], catalog: Catalog) -> frozenset[str]:
    """What is used, and what that uses in turn."""
    entries = {object_use(entry.name): entry for entry in catalog.objects.values()}
    found: set[str] = set()
    ahead = set(uses)
    while ahead:
        use = ahead.pop()
        found.add(use)
        if use in entries:
            ahead |= uses_of(entries[use]) - found
    return frozenset(found)


def _require_part(stream: DerivedStreamEntry, plan: Plan, name: Name, what: str) -> None:
    """Refuse a derived stream whose rows as such are no step on the way to the answer."""
    known: dict[tuple[object, ...], Plan] = {}
    part = share(stream.plan, known)
    if all(node is not part for node in walk(share(plan, known))):
        raise BindError(
            f'{what} reads "{stream.name}" in another form, without what its windows keep',
            span=name.span,
            hint="leave DOWN TO out, or name a derived stream that stands below it",
        )
