"""CREATE STREAM, RELATION, FUNCTION, QUERY and TABLE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tidemill.lang.changing_relations import read_changing_relation
from tidemill.lang.connectors import read_connector
from tidemill.lang.durations import read_duration
from tidemill.lang.embedded import read_embedded_query, read_embedded_scalar
from tidemill.lang.keeping import accept_provenance, read_keep
from tidemill.lang.statements import (
    ColumnDefinition,
    CreateDerivedStream,
    CreateFunction,
    CreateQuery,
    CreateRelation,
    CreateStream,
    CreateTable,
    Duration,
    Keep,
    LatePolicy,
    MalformedPolicy,
    Name,
    StartMode,
    Validity,
)
from tidemill.lang.statistics import read_hints
from tidemill.lang.types import read_type
from tidemill.lang.words import NAME_TOKENS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.lang.cursor import Cursor
    from tidemill.lang.statements import CreateChangingRelation, Hint, Statement

__all__ = ["read_create"]

# The words that may follow a duration in CREATE STREAM and CREATE TABLE.
_CLAUSES: Final = (
    "ORDERED",
    "WITHIN",
    "LATE",
    "IDLE",
    "MALFORMED",
    "KEEP",
    "BY",
    "START",
    "AS",
    "HINT",
)


def read_create(cursor: Cursor) -> Statement:
    """Read a CREATE statement."""
    cursor.expect("CREATE")
    for word, read in _KINDS.items():
        if cursor.accept(word):
            return read(cursor)
    if cursor.at("OR", "REPLACE"):
        cursor.fail("CREATE OR REPLACE is not supported", hint="DROP it first")
    kinds = ", ".join(_KINDS)
    if cursor.current is None:
        cursor.fail_expected("what to create", hint=f"it can be {kinds}")
    what = cursor.current.text.upper()
    return cursor.fail(f"CREATE {what} is not supported", hint=f"it can be {kinds}")


def _read_stream(cursor: Cursor) -> CreateStream | CreateDerivedStream:
    following = cursor.peek(1)
    if cursor.at("SCHEMA") and following and following.token_type in NAME_TOKENS:
        cursor.fail(
            "CREATE STREAM SCHEMA is not supported yet", hint="name the columns of the stream"
        )
    name = cursor.name("the name of the stream")
    if cursor.accept("AS"):
        return CreateDerivedStream(name, read_embedded_query(cursor))
    columns = _read_columns(cursor, 'columns in parentheses, or "AS" and a query')
    cursor.expect("SOURCE", hint="a stream reads from a source: SOURCE parquet(path => 'data')")
    source = read_connector(cursor)
    clauses = _read_stream_clauses(cursor)
    return CreateStream(
        name,
        columns,
        source,
        clauses.ordered_by,
        clauses.within,
        clauses.late or LatePolicy.DROP,
        clauses.idle_after,
        clauses.malformed or MalformedPolicy.FAIL,
        clauses.keep,
        clauses.hints or (),
    )


@dataclass(slots=True)
class _StreamClauses:
    ordered_by: Name | None = None
    within: Duration | None = None
    late: LatePolicy | None = None
    idle_after: Duration | None = None
    malformed: MalformedPolicy | None = None
    keep: Keep | None = None
    hints: tuple[Hint, ...] | None = None


def _read_stream_clauses(cursor: Cursor) -> _StreamClauses:
    clauses = _StreamClauses()
    while cursor.current is not None:
        start = cursor.index
        if cursor.accept("ORDERED", "BY"):
            _once(cursor, start, clauses.ordered_by, "ORDERED BY")
            clauses.ordered_by = cursor.name("a column")
            if cursor.accept("WITHIN"):
                clauses.within = read_duration(cursor, stop=_CLAUSES)
        elif cursor.accept("LATE"):
            _once(cursor, start, clauses.late, "LATE")
            clauses.late = LatePolicy(cursor.choice(("DROP", "QUARANTINE")))
        elif cursor.accept("MALFORMED"):
            _once(cursor, start, clauses.malformed, "MALFORMED")
            clauses.malformed = MalformedPolicy(cursor.choice(("FAIL", "QUARANTINE", "DROP")))
        elif cursor.accept("IDLE"):
            _once(cursor, start, clauses.idle_after, "IDLE AFTER")
            cursor.expect("AFTER")
            clauses.idle_after = read_duration(cursor, stop=_CLAUSES)
        elif cursor.accept("KEEP"):
            _once(cursor, start, clauses.keep, "KEEP")
            clauses.keep = read_keep(cursor, _CLAUSES)
        elif cursor.accept("HINT"):
            _once(cursor, start, clauses.hints, "HINT")
            clauses.hints = read_hints(cursor)
        elif cursor.at("WITHIN"):
            cursor.fail(
                "WITHIN stands behind ORDERED BY", hint="ORDERED BY column WITHIN 2 SECONDS"
            )
        else:
            cursor.fail_expected(
                "ORDERED BY, LATE, IDLE AFTER, MALFORMED, KEEP, HINT or the end of the statement"
            )
    return clauses


def _once(cursor: Cursor, start: int, earlier: object, clause: str) -> None:
    if earlier is not None:
        cursor.fail(f"{clause} is given twice", span=cursor.span_from(start))


def _read_relation(cursor: Cursor) -> CreateRelation | CreateChangingRelation:
    name = cursor.name("the name of the relation")
    if cursor.at("FROM"):
        return read_changing_relation(cursor, name, ())
    columns = _read_columns(cursor, "columns in parentheses, or FROM STREAM")
    if cursor.at("FROM"):
        return read_changing_relation(cursor, name, columns)
    cursor.expect(
        "SOURCE",
        hint="a relation reads from a source: SOURCE csv(path => 'data.csv'); or a stream changes "
        "it: FROM STREAM name KEY (column)",
    )
    source = read_connector(cursor)
    clauses = _read_relation_clauses(cursor)
    return CreateRelation(
        name,
        columns,
        source,
        clauses.validity,
        clauses.key or (),
        not clauses.non_retroactive,
        clauses.hints or (),
    )


@dataclass(slots=True)
class _RelationClauses:
    validity: Validity | None = None
    key: tuple[Name, ...] | None = None
    non_retroactive: bool | None = None
    hints: tuple[Hint, ...] | None = None


def _read_relation_clauses(cursor: Cursor) -> _RelationClauses:
    clauses = _RelationClauses()
    while cursor.current is not None:
        start = cursor.index
        if cursor.accept("VALID"):
            _once(cursor, start, clauses.validity, "VALID FROM")
            clauses.validity = _read_validity(cursor)
        elif cursor.accept("KEY"):
            _once(cursor, start, clauses.key, "KEY")
            cursor.expect("(", hint="write KEY (column, …)")
            clauses.key = cursor.separated(lambda inner: inner.name("a column"))
            cursor.expect(")")
        elif cursor.accept("NON"):
            cursor.expect("RETROACTIVE")
            _once(cursor, start, clauses.non_retroactive, "NON RETROACTIVE")
            clauses.non_retroactive = True
        elif cursor.accept("HINT"):
            _once(cursor, start, clauses.hints, "HINT")
            clauses.hints = read_hints(cursor)
        else:
            cursor.fail_expected(
                "VALID FROM, KEY, NON RETROACTIVE, HINT or the end of the statement"
            )
    return clauses


def _read_validity(cursor: Cursor) -> Validity:
    cursor.expect("FROM")
    start = cursor.name("a column")
    end = cursor.name("a column") if cursor.accept("TO") else None
    return Validity(start, end)


def _read_function(cursor: Cursor) -> CreateFunction:
    name = cursor.name("the name of the function")
    cursor.expect("(")
    parameters = () if cursor.at(")") else cursor.separated(_read_parameter)
    cursor.expect(")")
    cursor.expect("AS", hint="write the expression after AS")
    return CreateFunction(name, parameters, read_embedded_scalar(cursor))


def _read_query(cursor: Cursor) -> CreateQuery:
    name = cursor.name("the name of the query")
    sink = read_connector(cursor) if cursor.accept("INTO") else None
    start = _read_start(cursor) if cursor.accept("START") else None
    provenance = accept_provenance(cursor, _CLAUSES)
    cursor.expect("AS", hint="write the query after AS")
    return CreateQuery(name, read_embedded_query(cursor), sink, start, provenance)


def _read_table(cursor: Cursor) -> CreateTable:
    name = cursor.name("the name of the table")
    if cursor.at("("):
        cursor.fail(
            "a table has the columns of its query",
            hint="write CREATE TABLE name AS query; for rows from elsewhere, CREATE RELATION",
        )
    keep = None
    if cursor.accept("KEEP"):
        start = cursor.index
        keep = read_keep(cursor, _CLAUSES)
        if keep.by_reference:
            cursor.fail(
                "KEEP BY REFERENCE is for streams",
                span=cursor.span_from(start),
                hint="leave BY REFERENCE out: a table has files of its own",
            )
    mode = _read_start(cursor) if cursor.accept("START") else None
    cursor.expect("AS", hint="write the query after AS")
    return CreateTable(name, read_embedded_query(cursor), keep, mode)


def _read_start(cursor: Cursor) -> StartMode:
    for mode in (StartMode.FRESH, StartMode.HISTORY):
        if cursor.accept(*mode.value.split()):
            return mode
    return cursor.fail_expected("FRESH or WITH HISTORY")


def _read_columns(cursor: Cursor, what: str) -> tuple[ColumnDefinition, ...]:
    if not cursor.accept("("):
        cursor.fail_expected(what)
    columns = cursor.separated(_read_column)
    cursor.expect(")")
    return columns


def _read_column(cursor: Cursor) -> ColumnDefinition:
    column = _read_parameter(cursor)
    if not cursor.accept("NOT"):
        return column
    cursor.expect("NULL")
    return ColumnDefinition(column.name, column.type, nullable=False)


def _read_parameter(cursor: Cursor) -> ColumnDefinition:
    return ColumnDefinition(cursor.name("a name"), read_type(cursor))


_KINDS: Final[dict[str, Callable[[Cursor], Statement]]] = {
    "STREAM": _read_stream,
    "RELATION": _read_relation,
    "QUERY": _read_query,
    "TABLE": _read_table,
    "FUNCTION": _read_function,
}
