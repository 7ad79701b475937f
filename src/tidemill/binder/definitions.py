"""CREATE: from statements to catalog entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from tidemill.algebra.bounds import endless_input, unbounded_state
from tidemill.algebra.expr import Column
from tidemill.algebra.plan import (
    Aggregate,
    AntiJoin,
    Difference,
    Distinct,
    Intersect,
    Join,
    MaxUnion,
    Plan,
    Relation,
    Rstream,
    SemiJoin,
    StrictDifference,
    Validity,
    Window,
)
from tidemill.binder.changing_relations import changing_relation
from tidemill.binder.context import Context
from tidemill.binder.expressions import ExpressionBinder
from tidemill.binder.hints import bind_hints
from tidemill.binder.limits import check_plan
from tidemill.binder.queries import bind_query
from tidemill.binder.scope import Scope, ScopeColumn
from tidemill.binder.sinks import check_sink
from tidemill.binder.times import time_type
from tidemill.binder.types import bind_type
from tidemill.catalog.entries import (
    DerivedStreamEntry,
    Entry,
    FunctionEntry,
    Kept,
    QueryEntry,
    RelationEntry,
    StreamEntry,
)
from tidemill.catalog.functions import is_aggregate, is_scalar
from tidemill.connectors.check import check, reads_files
from tidemill.connectors.connector import Use
from tidemill.connectors.table import TABLE_SINK
from tidemill.errors import BindError, PlanError, suggestion
from tidemill.lang.statements import (
    ColumnDefinition,
    CreateChangingRelation,
    CreateDerivedStream,
    CreateFunction,
    CreateQuery,
    CreateRelation,
    CreateStream,
    CreateTable,
    LatePolicy,
    Name,
    Provenance,
    Select,
)
from tidemill.lang.unparse import unparse
from tidemill.model.schema import Field, Schema
from tidemill.model.time import END_OF_TIME
from tidemill.model.types import BIGINT, INTEGER, TIMESTAMP, Kind

if TYPE_CHECKING:
    from sqlglot import exp

    from tidemill.catalog.catalog import Catalog
    from tidemill.connectors.connector import Engine
    from tidemill.errors import Note
    from tidemill.lang.statements import Duration

__all__ = ["Definition", "check_bounded", "check_ends", "define", "kept_with", "plan_query"]

Definition = (
    CreateStream
    | CreateRelation
    | CreateChangingRelation
    | CreateDerivedStream
    | CreateFunction
    | CreateQuery
    | CreateTable
    | Select
)


def define(  # noqa: PLR0913 — what a definition depends on
    statement: Definition,
    catalog: Catalog,
    *,
    allow_unbounded: bool = False,
    notes: list[Note] | None = None,
    engine: Engine | None = None,
    looks_up: bool = True,
) -> Entry:
    """The entry a statement would add to the catalog.

    Args:
        statement: What to define.
        catalog: What is registered already.
        allow_unbounded: Accept queries whose state can grow without bound.
        notes: Collects what people should be warned of.
        engine: Where it is to run, for the connectors it names; ``None`` for anywhere.
        looks_up: Whether what is in the environment must be there now.

    Raises:
        BindError: Something in the statement does not exist or does not fit.
        PlanError: The query could not run in bounded memory.
    """
    match statement:
        case CreateStream():
            stream = _stream(statement)
            check(statement.source, Use.STREAM, engine=engine, looks_up=looks_up)
            return stream
        case CreateRelation():
            relation = _relation(statement)
            check(statement.source, Use.RELATION, engine=engine, looks_up=looks_up)
            return relation
        case CreateChangingRelation():
            return changing_relation(statement, catalog)
        case CreateFunction():
            return _function(statement, catalog)
        case CreateDerivedStream(name, query):
            plan, uses = plan_query(query, catalog, allow_unbounded=allow_unbounded, notes=notes)
            return DerivedStreamEntry(name.text, plan, unparse(statement), uses)
        case CreateQuery(name, query, sink, start, provenance):
            plan, uses = plan_query(query, catalog, allow_unbounded=allow_unbounded, notes=notes)
            if sink is not None:
                check_sink(sink, name.text, plan, engine, looks_up=looks_up)
            time = time_type(plan, catalog)
            text, keep = unparse(statement), None if provenance is None else kept_with(provenance)
            return QueryEntry(name.text, plan, text, uses, sink, time, start, provenance=keep)
        case CreateTable(name, query, _, start):
            plan, uses = plan_query(query, catalog, allow_unbounded=allow_unbounded, notes=notes)
            time, text = time_type(plan, catalog), unparse(statement)
            check_sink(TABLE_SINK, name.text, plan, engine)
            keep = kept_with(statement)
            return QueryEntry(name.text, plan, text, uses, TABLE_SINK, time, start, keep=keep)
        case Select(query):
            plan, uses = plan_query(query, catalog, allow_unbounded=allow_unbounded, notes=notes)
            name_, time = catalog.unused_query_name(), time_type(plan, catalog)
            return QueryEntry(name_, plan, unparse(statement), uses, time=time)
        case _:
            assert_never(statement)


def plan_query(
    query: exp.Expr,
    catalog: Catalog,
    *,
    allow_unbounded: bool = False,
    notes: list[Note] | None = None,
) -> tuple[Plan, frozenset[str]]:
    """The plan of a query, and what it uses of the catalog."""
    context = Context(catalog, notes=[] if notes is None else notes)
    plan = bind_query(query, context)
    check_plan(plan, query)
    if not allow_unbounded:
        check_bounded(plan)
    return plan, frozenset(context.uses)


_WORDS: dict[type[Plan], str] = {
    Join: "a join",
    SemiJoin: "IN, ANY or EXISTS",
    AntiJoin: "NOT IN, ALL or NOT EXISTS",
    Distinct: "DISTINCT",
    Aggregate: "an aggregate that needs all values",
    Window: "another window",
    Rstream: "RSTREAM",
    Difference: "EXCEPT ALL",
    StrictDifference: "EXCEPT",
    Intersect: "INTERSECT",
    MaxUnion: "a union",
}


def check_bounded(plan: Plan) -> None:
    """Refuse a plan that would have to remember every row for ever (K50).

    Raises:
        PlanError: It would.
    """
    found = unbounded_state(plan)
    if found is not None:
        way = "leave INTERNAL out" if found.window.internal else "give the window a size"
        raise PlanError(
            f"{_WORDS[type(found.operator)]} above this window would keep every row for ever",
            span=found.window.span,
            hint=f"{way}, or allow it with connect(unbounded_state=True)",
        )
    check_ends(plan)


def check_ends(plan: Plan) -> None:
    """Refuse a plan with a window over rows that may never end.

    Raises:
        PlanError: It has one.
    """
    endless = endless_input(plan)
    if endless is not None:
        window, cause = endless
        is_of_relation = isinstance(cause, Relation) or (
            isinstance(cause, Window) and cause.relation is not None
        )
        word = "a relation" if is_of_relation else "a window of ROWS"
        raise PlanError(
            f"this window is over rows that may never end, since {word} is below it",
            span=window.span,
            hint="put ISTREAM(…) around what is below, to count each row once, when it comes",
        )


def _stream(statement: CreateStream) -> StreamEntry:
    schema = _schema(statement.columns)
    time_column = None
    if statement.ordered_by is not None:
        time_column = _time_column(schema, statement.ordered_by, "ORDERED BY")
        fields = (Field(f.name, f.type, f.nullable and f.name != time_column) for f in schema)
        schema = Schema(tuple(fields))
    elif statement.within is not None:
        raise BindError(
            "WITHIN needs ORDERED BY",
            span=statement.within.span,
            hint="rows ordered by their arrival are never out of order",
        )
    elif statement.late is LatePolicy.QUARANTINE:
        raise BindError(
            "LATE needs ORDERED BY",
            span=statement.name.span,
            hint="rows ordered by their arrival are never late",
        )
    within, idle = statement.within, statement.idle_after
    return StreamEntry(
        statement.name.text,
        schema,
        statement.source,
        time_column,
        0 if within is None else _duration(within, "WITHIN", least=0),
        statement.late,
        None if idle is None else _duration(idle, "IDLE AFTER", least=1),
        statement.malformed,
        _kept(statement),
        bind_hints(statement.hints, schema, is_relation=False),
    )


def _kept(statement: CreateStream) -> Kept | None:
    keep = statement.keep
    if keep is None:
        return None
    if keep.by_reference and not reads_files(statement.source):
        raise BindError(
            f'KEEP BY REFERENCE needs files, and "{statement.source.name.text}" reads none',
            span=statement.source.name.span,
            hint="leave BY REFERENCE out: rows are copied",
        )
    length = None if keep.length is None else _duration(keep.length, "KEEP", least=1)
    return Kept(length, keep.by_reference)


def kept_with(statement: CreateTable | Provenance) -> Kept:
    """For how long what is kept beside an answer can be asked for after its instant has passed."""
    keep = statement.keep
    if keep is None:
        return Kept(0)
    return Kept(None if keep.length is None else _duration(keep.length, "KEEP", least=1))


def _relation(statement: CreateRelation) -> RelationEntry:
    schema = _schema(statement.columns)
    validity = None
    if statement.validity is not None:
        start, end = statement.validity.start, statement.validity.end
        validity = Validity(
            _time_column(schema, start, "VALID FROM"),
            None if end is None else _time_column(schema, end, "TO"),
        )
    if not statement.retroactive and validity is None:
        raise BindError(
            "NON RETROACTIVE needs VALID FROM",
            span=statement.name.span,
            hint="rows that are always valid never change",
        )
    if statement.key and statement.retroactive:
        raise BindError(
            "KEY needs NON RETROACTIVE",
            span=statement.key[0].span,
            hint="leave KEY out: it keeps results of old rows from being taken for those of new "
            "ones",
        )
    key = tuple(_declared(schema, name, "KEY").name for name in statement.key)
    name, source = statement.name.text, statement.source
    hints = bind_hints(statement.hints, schema, is_relation=True)
    return RelationEntry(name, schema, source, validity, key, statement.retroactive, hints)


def _function(statement: CreateFunction, catalog: Catalog) -> FunctionEntry:
    name = statement.name
    if is_scalar(name.text) or is_aggregate(name.text):
        raise BindError(
            f'"{name.text}" is a function of the language',
            span=name.span,
            hint="choose another name",
        )
    parameters = _schema(statement.parameters, what="parameter")
    columns = tuple(
        ScopeColumn(None, None, field.name, Column(field.name, field.type)) for field in parameters
    )
    context = Context(catalog)
    body = ExpressionBinder(Scope(columns), context).bind(statement.body)
    type_ = INTEGER if body.type.kind is Kind.NULL else body.type
    return FunctionEntry(
        name.text,
        parameters.fields,
        statement.body,
        Field(name.text, type_),
        unparse(statement),
        frozenset(context.uses),
    )


def _schema(columns: tuple[ColumnDefinition, ...], *, what: str = "column") -> Schema:
    seen: set[str] = set()
    fields = []
    for column in columns:
        if column.name.text.lower() in seen:
            raise BindError(
                f'{what} "{column.name.text}" is declared twice',
                span=column.name.span,
                hint="names differ by more than upper and lower case",
            )
        seen.add(column.name.text.lower())
        fields.append(Field(column.name.text, bind_type(column.type), column.nullable))
    return Schema(tuple(fields))


def _declared(schema: Schema, name: Name, clause: str) -> Field:
    for field in schema:
        if field.name.lower() == name.text.lower():
            return field
    raise BindError(
        f'column "{name.text}" of {clause} is not declared',
        span=name.span,
        hint=suggestion(name.text, schema.names),
    )


def _time_column(schema: Schema, name: Name, clause: str) -> str:
    field = _declared(schema, name, clause)
    if field.type not in (TIMESTAMP, BIGINT):
        raise BindError(
            f'column "{field.name}" of {clause} is {field.type}',
            span=name.span,
            hint="time is a TIMESTAMP, or a BIGINT of microseconds since 1970",
        )
    return field.name


def _duration(duration: Duration, clause: str, *, least: int) -> int:
    if not least <= duration.microseconds < END_OF_TIME:
        wanted = "positive" if least else "not be negative"
        raise BindError(
            f"{clause} must be {wanted}" if least else f"{clause} must {wanted}",
            span=duration.span,
            hint="write a duration such as 2 SECONDS",
        )
    return duration.microseconds
