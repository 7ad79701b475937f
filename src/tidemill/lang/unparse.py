"""Unparsing: a statement as canonical text.

Law:    parse_one(unparse(statement)) == statement, for every statement that was parsed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from sqlglot.errors import ErrorLevel

from tidemill.lang.dialect import Tidemill
from tidemill.lang.durations import duration_text
from tidemill.lang.generator import Generator
from tidemill.lang.statements import (
    ColumnDefinition,
    ConnectorCall,
    CreateDerivedStream,
    CreateFunction,
    CreateQuery,
    CreateRelation,
    CreateStream,
    Describe,
    DescribeConnector,
    Drop,
    Environment,
    Explain,
    LatePolicy,
    MalformedPolicy,
    Name,
    ObjectKind,
    Select,
    Show,
    ShowConnectors,
    Statement,
)
from tidemill.lang.types import type_text
from tidemill.lang.words import quote_name, quote_string

if TYPE_CHECKING:
    from collections.abc import Iterable

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
        case CreateDerivedStream(name, query):
            return f"CREATE STREAM {quote_name(name.text)} AS {_tree(query)}"
        case CreateFunction(name, parameters, body):
            return (
                f"CREATE FUNCTION {quote_name(name.text)}({_columns(parameters)}) AS {_tree(body)}"
            )
        case CreateQuery(name, query, sink):
            into = f" INTO {_connector(sink)}" if sink else ""
            return f"CREATE QUERY {quote_name(name.text)}{into} AS {_tree(query)}"
        case Select(query):
            return _tree(query)
        case Drop(kind, name, if_exists):
            return f"DROP {kind.value} {'IF EXISTS ' * if_exists}{quote_name(name.text)}"
        case Show(kind):
            return f"SHOW {_PLURALS.get(kind, f'{kind.value}S')}"
        case ShowConnectors():
            return "SHOW CONNECTORS"
        case DescribeConnector(name):
            return f"DESCRIBE CONNECTOR {quote_name(name.text)}"
        case Describe(name):
            return f"DESCRIBE {quote_name(name.text)}"
        case Explain(mode, target, as_json):
            what = quote_name(target.text) if isinstance(target, Name) else unparse(target)
            return f"EXPLAIN {mode.value} {'FORMAT JSON ' * as_json}{what}"
        case _:
            return _tree(statement)


def _tree(node: exp.Expr) -> str:
    generator = Generator(dialect=Tidemill, comments=False, unsupported_level=ErrorLevel.RAISE)
    return generator.generate(node)


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
    return " ".join(parts)


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
