"""Relations that a stream changes (KB35): of each key the last row, unless it deletes.

    CREATE RELATION price (item BIGINT, amount DOUBLE)    Project item, amount
      FROM STREAM change KEY (item)                         Window rows=1 by=item unless op = 'D'
      DELETE WHEN op = 'D'                                    Source change

Law: the snapshot at t has, for each key, the last row of the stream with a time of at most t, in
the order (time, id), if its condition of deletion is not true; and nothing else. Keys are equal as
in GROUP BY: NULL equals NULL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.annotations import is_chronon
from tidemill.algebra.expr import Column, Named
from tidemill.algebra.plan import Changing, Plan, Project, RowWindow, Source, Window
from tidemill.algebra.text import expr_text
from tidemill.binder.context import Context
from tidemill.binder.expressions import ExpressionBinder
from tidemill.binder.scope import Scope, ScopeColumn
from tidemill.binder.types import bind_type
from tidemill.catalog.entries import (
    ChangingRelationEntry,
    DerivedStreamEntry,
    StreamEntry,
    kind_of,
    object_use,
)
from tidemill.errors import BindError, suggestion
from tidemill.lang.statements import ObjectKind

if TYPE_CHECKING:
    from tidemill.algebra.expr import Expr
    from tidemill.catalog.catalog import Catalog
    from tidemill.lang.statements import ColumnDefinition, CreateChangingRelation, Name
    from tidemill.model.schema import Field

__all__ = ["changing_relation"]


def changing_relation(statement: CreateChangingRelation, catalog: Catalog) -> ChangingRelationEntry:
    """The relation that a statement defines.

    Raises:
        BindError: There is no such stream, its rows last, or a column is not what it should be.
    """
    changes = _changes(statement.stream, catalog)
    context = Context(catalog)
    columns = _columns(statement, changes)
    key = tuple(_key_column(name, columns) for name in statement.key)
    deleted = _deleted(statement, changes, context)
    marker = Changing(statement.name.text, statement.retroactive)
    window = RowWindow(1, partition_by=tuple(dict.fromkeys(key)), unless=deleted)
    plan: Plan = Window(changes, window, statement.stream.span, relation=marker)
    if columns != changes.schema.fields:
        plan = Project(plan, tuple(Named(f.name, Column(f.name, f.type)) for f in columns))
    return ChangingRelationEntry(
        statement.name.text,
        plan,
        _entry(statement.stream, catalog).name,
        key,
        None if deleted is None else expr_text(deleted),
        statement.retroactive,
        frozenset({object_use(statement.stream.text), *context.uses}),
    )


def _entry(stream: Name, catalog: Catalog) -> StreamEntry | DerivedStreamEntry:
    entry = catalog.find(stream.text)
    if isinstance(entry, StreamEntry | DerivedStreamEntry):
        return entry
    if entry is not None:
        raise BindError(
            f'"{entry.name}" is a {kind_of(entry).value.lower()}, not a stream',
            span=stream.span,
            hint="a relation is changed by the rows of a stream",
        )
    known = [one.name for one in catalog.entries(ObjectKind.STREAM)]
    raise BindError(
        f'there is no stream "{stream.text}"',
        span=stream.span,
        hint=suggestion(stream.text, known, what="streams"),
    )


def _changes(stream: Name, catalog: Catalog) -> Plan:
    """The changes: rows that are there for one instant."""
    entry = _entry(stream, catalog)
    if isinstance(entry, StreamEntry):
        return Source(entry.name, entry.schema)
    if not is_chronon(entry.plan):
        raise BindError(
            f'the rows of "{entry.name}" last, and a change is made at one instant',
            span=stream.span,
            hint="define it with ISTREAM(…) around its query, for the rows that come",
        )
    return entry.plan


def _columns(statement: CreateChangingRelation, changes: Plan) -> tuple[Field, ...]:
    """The columns of the stream that the relation has."""
    if not statement.columns:
        return changes.schema.fields
    chosen: list[Field] = []
    for column in statement.columns:
        found = _column(statement, column, changes)
        if found in chosen:
            raise BindError(
                f'column "{column.name.text}" is declared twice',
                span=column.name.span,
                hint="names differ by more than upper and lower case",
            )
        chosen.append(found)
    return tuple(chosen)


def _column(statement: CreateChangingRelation, column: ColumnDefinition, changes: Plan) -> Field:
    stream, name = statement.stream.text, column.name
    field = next((f for f in changes.schema if f.name.lower() == name.text.lower()), None)
    if field is None:
        raise BindError(
            f'stream "{stream}" has no column "{name.text}"',
            span=name.span,
            hint=suggestion(name.text, changes.schema.names),
        )
    declared = bind_type(column.type)
    if declared != field.type:
        raise BindError(
            f'column "{name.text}" is {declared} here and {field.type} in stream "{stream}"',
            span=name.span,
            hint=f"write {field.type}; the relation has the rows of the stream as they are",
        )
    if field.nullable and not column.nullable:
        raise BindError(
            f'column "{name.text}" can be NULL in stream "{stream}"',
            span=name.span,
            hint="leave NOT NULL out, or declare it in CREATE STREAM",
        )
    return field


def _key_column(name: Name, columns: tuple[Field, ...]) -> str:
    for field in columns:
        if field.name.lower() == name.text.lower():
            return field.name
    raise BindError(
        f'column "{name.text}" of KEY is not in the relation',
        span=name.span,
        hint=suggestion(name.text, [field.name for field in columns]),
    )


def _deleted(statement: CreateChangingRelation, changes: Plan, context: Context) -> Expr | None:
    if statement.deleted is None:
        return None
    stream = statement.stream.text
    columns = (ScopeColumn(stream, stream, f.name, Column(f.name, f.type)) for f in changes.schema)
    return ExpressionBinder(Scope(tuple(columns)), context).predicate(
        statement.deleted, "DELETE WHEN"
    )
