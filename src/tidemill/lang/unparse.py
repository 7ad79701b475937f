"""Unparsing: a statement as canonical text.

Law:    parse_one(unparse(statement)) == statement, for every statement that was parsed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from sqlglot.errors import ErrorLevel

from tidemill.lang.changing_relations import changing_relation_text
from tidemill.lang.dialect import Tidemill
from tidemill.lang.durations import duration_text
from tidemill.lang.generator import Generator
from tidemill.lang.instants import instant_text
from tidemill.lang.statements import (
    AlterProvenance,
    AlterQuery,
    ColumnDefinition,
    ConnectorCall,
    CreateChangingRelation,
    CreateDerivedStream,
    CreateFunction,
    CreateQuery,
    CreateRelation,
    CreateStream,
    CreateTable,
    Describe,
    DescribeConnector,
    Drop,
    Environment,
    Explain,
    Instant,
    Keep,
    LatePolicy,
    Lifecycle,
    MalformedPolicy,
    Name,
    ObjectKind,
    OneTimeQuery,
    PauseQuery,
    Provenance,
    ReplanQuery,
    ResumeQuery,
    Select,
    SetAdapt,
    Show,
    ShowConnectors,
    ShowDecisions,
    ShowSettings,
    ShowStatistics,
    StartQuery,
    Statement,
    StopQuery,
    Why,
    WhyKind,
)
from tidemill.lang.statistics import hint_text
from tidemill.lang.types import type_text
from tidemill.lang.words import quote_name, quote_string

if TYPE_CHECKING:
    from collections.abc import Iterable
    from enum import Enum

    from sqlglot import exp

    from tidemill.lang.statements import Argument

__all__ = ["unparse"]

_PLURALS = {ObjectKind.QUERY: "QUERIES"}


def unparse(statement: Statement | exp.Expr) -> str:
    """The canonical text of a statement, a query or an expression, on one line.

    >>> from tidemill.lang.parse import parse_one
    >>> unparse(parse_one("select * from bid b window(range 600 seconds)"))
    'SELECT * FROM bid [RANGE 10 MINUTES] AS b'
    """
    match statement:
        case CreateStream():
            return _create_stream(statement)
        case CreateRelation():
            return _create_relation(statement)
        case CreateChangingRelation(_, columns, _, _, deleted):
            condition = None if deleted is None else _tree(deleted)
            return changing_relation_text(statement, _columns(columns), condition)
        case CreateDerivedStream(name, query):
            return f"CREATE STREAM {quote_name(name.text)} AS {_tree(query)}"
        case CreateFunction(name, parameters, body):
            return (
                f"CREATE FUNCTION {quote_name(name.text)}({_columns(parameters)}) AS {_tree(body)}"
            )
        case CreateQuery(name, query, sink, start, provenance):
            into = f" INTO {_connector(sink)}" if sink else ""
            head = f"CREATE QUERY {quote_name(name.text)}{into}{_optional('START ', start)}"
            return f"{head}{_provenance(provenance)} AS {_tree(query)}"
        case CreateTable(name, query, keep, start):
            kept = f" {_keep(keep)}" if keep else ""
            head = f"CREATE TABLE {quote_name(name.text)}{kept}{_optional('START ', start)}"
            return f"{head} AS {_tree(query)}"
        case Select(query):
            return _tree(query)
        case OneTimeQuery(query, at):
            instant = "NOW" if at is None else instant_text(at.microseconds)
            return f"{_tree(query)} AS OF {instant}"
        case Drop(kind, name, if_exists):
            return f"DROP {kind.value} {'IF EXISTS ' * if_exists}{quote_name(name.text)}"
        case Show(kind):
            return f"SHOW {_PLURALS.get(kind, f'{kind.value}S')}"
        case ShowConnectors():
            return "SHOW CONNECTORS"
        case ShowDecisions(name):
            asked = "" if name is None else f" FOR {quote_name(name.text)}"
            return f"SHOW DECISIONS{asked}"
        case ShowSettings():
            return "SHOW SETTINGS"
        case SetAdapt(adapt):
            return f"SET adapt = {adapt.value.lower()}"
        case ShowStatistics(name):
            asked = "" if name is None else f" FOR {quote_name(name.text)}"
            return f"SHOW STATISTICS{asked}"
        case DescribeConnector(name):
            return f"DESCRIBE CONNECTOR {quote_name(name.text)}"
        case Describe(name):
            return f"DESCRIBE {quote_name(name.text)}"
        case Explain():
            return _explain(statement)
        case Why():
            return _why(statement)
        case (
            AlterQuery()
            | ReplanQuery()
            | AlterProvenance()
            | StartQuery()
            | StopQuery()
            | PauseQuery()
            | ResumeQuery()
        ):
            return _lifecycle(statement)
        case _:
            return _tree(statement)


def _tree(node: exp.Expr) -> str:
    generator = Generator(dialect=Tidemill, comments=False, unsupported_level=ErrorLevel.RAISE)
    return generator.generate(node)


def _explain(statement: Explain) -> str:
    format_ = "FORMAT JSON " * statement.as_json
    match statement.target:
        case Name(text):
            return f"EXPLAIN {statement.mode.value} {format_}{quote_name(text)}"
        case Select() | OneTimeQuery() | CreateQuery() | CreateTable() as query:
            return f"EXPLAIN {statement.mode.value} {format_}{unparse(query)}"
        case Why() as why:
            return f"EXPLAIN {format_}{_why(why)}"
        case change:
            return f"EXPLAIN {format_}{_lifecycle(change)}"


def _why(statement: Why) -> str:
    target, kind = statement.target, statement.kind
    if statement.sets and not isinstance(target, Name):
        instant = "NOW" if statement.at is None else instant_text(statement.at.microseconds)
        return f"SELECT PROVENANCE {_tree(target).removeprefix('SELECT ')} AS OF {instant}"
    parts = ["WHY", *["ALL"] * statement.flat]
    if kind is not WhyKind.ROWS:
        parts.append(kind.value)
    parts.append(quote_name(target.text) if isinstance(target, Name) else f"({_tree(target)})")
    if statement.condition is not None:
        parts.append(f"WHERE {_tree(statement.condition)}")
    if statement.down_to is not None:
        parts.append(f"DOWN TO {quote_name(statement.down_to.text)}")
    return " ".join(parts) + _at(statement.at)


def _lifecycle(statement: Lifecycle) -> str:
    name = quote_name(statement.name.text)
    match statement:
        case AlterQuery(_, query, using, at):
            text = f"ALTER QUERY {name} AS {_tree(query)}"
            return f"{text}{_optional('USING ', using)}{_at(at)}"
        case ReplanQuery(_, migration):
            return f"ALTER QUERY {name} REPLAN{_optional('USING ', migration)}"
        case AlterProvenance(_, None):
            return f"ALTER QUERY {name} WITHOUT PROVENANCE"
        case AlterProvenance(_, provenance):
            return f"ALTER QUERY {name}{_provenance(provenance)}"
        case StartQuery(_, start, at):
            return f"START QUERY {name}{_optional('', start)}{_at(at)}"
        case StopQuery(_, stop, at):
            return f"STOP QUERY {name}{_optional('', stop)}{_at(at)}"
        case PauseQuery(_, stop):
            return f"PAUSE QUERY {name}{_optional('', stop)}"
        case ResumeQuery(_, start):
            return f"RESUME QUERY {name}{_optional('', start)}"
        case _:
            assert_never(statement)


def _optional(before: str, word: Enum | None) -> str:
    return "" if word is None else f" {before}{word.value}"


def _at(instant: Instant | None) -> str:
    return "" if instant is None else f" AT {instant_text(instant.microseconds)}"


def _create_stream(statement: CreateStream) -> str:
    parts = [
        f"CREATE STREAM {quote_name(statement.name.text)} ({_columns(statement.columns)})",
        f"SOURCE {_connector(statement.source)}",
    ]
    if statement.ordered_by:
        parts.append(f"ORDERED BY {quote_name(statement.ordered_by.text)}")
    if statement.within:
        parts.append(f"WITHIN {duration_text(statement.within.microseconds)}")
    if statement.late is not LatePolicy.DROP:
        parts.append(f"LATE {statement.late.value}")
    if statement.idle_after:
        parts.append(f"IDLE AFTER {duration_text(statement.idle_after.microseconds)}")
    if statement.malformed is not MalformedPolicy.FAIL:
        parts.append(f"MALFORMED {statement.malformed.value}")
    if statement.keep:
        parts.append(_keep(statement.keep))
    if statement.hints:
        parts.append(hint_text(statement.hints))
    return " ".join(parts)


def _provenance(provenance: Provenance | None) -> str:
    if provenance is None:
        return ""
    return f" WITH PROVENANCE{'' if provenance.keep is None else f' {_keep(provenance.keep)}'}"


def _keep(keep: Keep) -> str:
    length = "ALL" if keep.length is None else duration_text(keep.length.microseconds)
    return f"KEEP {length}{' BY REFERENCE' * keep.by_reference}"


def _create_relation(statement: CreateRelation) -> str:
    parts = [
        f"CREATE RELATION {quote_name(statement.name.text)} ({_columns(statement.columns)})",
        f"SOURCE {_connector(statement.source)}",
    ]
    if statement.validity:
        parts.append(f"VALID FROM {quote_name(statement.validity.start.text)}")
        if statement.validity.end:
            parts.append(f"TO {quote_name(statement.validity.end.text)}")
    if statement.key:
        parts.append(f"KEY ({', '.join(quote_name(name.text) for name in statement.key)})")
    if not statement.retroactive:
        parts.append("NON RETROACTIVE")
    if statement.hints:
        parts.append(hint_text(statement.hints))
    return " ".join(parts)


def _columns(columns: Iterable[ColumnDefinition]) -> str:
    return ", ".join(_column(column) for column in columns)


def _column(column: ColumnDefinition) -> str:
    text = f"{quote_name(column.name.text)} {type_text(column.type)}"
    return text if column.nullable else f"{text} NOT NULL"


def _connector(call: ConnectorCall) -> str:
    positional = [_value(value) for value in call.positional]
    named = [f"{quote_name(name)} => {_value(value)}" for name, value in call.named]
    return f"{quote_name(call.name.text)}({', '.join([*positional, *named])})"


def _value(value: Argument) -> str:
    match value:
        case bool():
            return str(value).upper()
        case str():
            return quote_string(value)
        case Environment(name):
            return f"env({quote_string(name)})"
        case int() | float():
            return repr(value)
        case _:
            assert_never(value)
