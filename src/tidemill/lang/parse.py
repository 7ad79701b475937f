"""Parsing: a script into statements.

>>> parse_one("DROP STREAM IF EXISTS bid")
Drop(kind=<ObjectKind.STREAM: 'STREAM'>, name=Name(text='bid'), if_exists=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from sqlglot import Token, TokenType

from tidemill.errors import ParseError, Span, closest
from tidemill.lang.cursor import Cursor
from tidemill.lang.declarations import read_create
from tidemill.lang.embedded import read_asked_query
from tidemill.lang.explaining import read_explain
from tidemill.lang.lifecycle import LIFECYCLE_FORMS, read_lifecycle
from tidemill.lang.settings import SET_FORM, read_set
from tidemill.lang.statements import (
    CreateQuery,
    Describe,
    DescribeConnector,
    Drop,
    ObjectKind,
    Select,
    Show,
    ShowConnectors,
    ShowDecisions,
    ShowSettings,
    ShowStatistics,
    Statement,
)
from tidemill.lang.statistics import read_for, read_show_statistics
from tidemill.lang.tokens import check_brackets, tokenize
from tidemill.lang.why import WHY_FORM, read_why
from tidemill.lang.words import STREAM_OPERATORS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlglot import exp

__all__ = ["Script", "parse", "parse_one", "parse_query", "parse_script", "require_one_query"]

Script: TypeAlias = tuple[tuple[Statement, Span], ...]
"""Statements, each with its place in the text."""

_PLURALS: Final = {
    "STREAMS": ObjectKind.STREAM,
    "RELATIONS": ObjectKind.RELATION,
    "QUERIES": ObjectKind.QUERY,
    "TABLES": ObjectKind.TABLE,
    "FUNCTIONS": ObjectKind.FUNCTION,
}

_QUERY_STARTS: Final = (
    ("SELECT",),
    ("WITH",),
    ("(",),
    *((operator, "(") for operator in sorted(STREAM_OPERATORS)),
    ("WSTREAM", "["),
)

_FOREIGN: Final = frozenset(
    {
        *("ANALYZE", "ATTACH", "BEGIN", "CALL", "COMMIT", "COPY", "DELETE", "EXECUTE"),
        *("FROM", "GRANT", "INSERT", "MERGE", "PRAGMA", "REVOKE", "ROLLBACK", "TABLE"),
        *("TRUNCATE", "UPDATE", "USE", "VALUES"),
    }
)


def parse(text: str) -> tuple[Statement, ...]:
    """The statements of a script, which are separated by semicolons.

    Raises:
        ParseError: The text is not a script of the language.
    """
    return tuple(statement for statement, _ in parse_script(text))


def parse_script(text: str) -> Script:
    """The statements of a script, each with its place in the text."""
    try:
        chunks = list(_statements(tokenize(text)))
    except ParseError as error:
        raise error.located(text) from None
    script: list[tuple[Statement, Span]] = []
    for tokens in chunks:
        try:
            check_brackets(tokens)
            script.append((_read_statement(tokens), Span(tokens[0].start, tokens[-1].end + 1)))
        except ParseError as error:
            error.hint = error.hint or _form(Cursor(tokens))
            number = f"{len(script) + 1} of {len(chunks)}"
            which = f"{number}; nothing has been carried out" if len(chunks) > 1 else None
            raise error.located(text, statement=which) from None
    return tuple(script)


def parse_one(text: str) -> Statement:
    """The only statement of a text."""
    statements = parse_script(text)
    if not statements:
        raise ParseError("there is no statement", span=Span(0, 0)).located(text)
    if len(statements) > 1:
        raise ParseError("expected one statement, found another", span=statements[1][1]).located(
            text
        )
    return statements[0][0]


def parse_query(text: str) -> exp.Expr:
    """The only query of a text."""
    match parse_one(text):
        case Select(query):
            return query
        case _:
            raise ParseError("expected a query", span=Span(0, len(text))).located(text)


def require_one_query(script: Script) -> None:
    """Refuse what is not one SELECT or CREATE QUERY.

    Raises:
        ParseError: It is another statement, none, or more than one.
    """
    hint = "write one SELECT or CREATE QUERY; session.sql() carries out statements of every kind"
    if not script:
        raise ParseError("there is no query", span=Span(0, 0), hint=hint)
    for statement, span in script:
        if not isinstance(statement, Select | CreateQuery):
            raise ParseError("this statement is not a query", span=span, hint=hint)
    if len(script) > 1:
        raise ParseError("expected one query, found another", span=script[1][1], hint=hint)


def _statements(tokens: list[Token]) -> Iterator[list[Token]]:
    statement: list[Token] = []
    for token in [*tokens, Token(TokenType.SEMICOLON, ";")]:
        if token.token_type is not TokenType.SEMICOLON:
            statement.append(token)
        elif statement:
            yield statement
            statement = []


def _read_statement(tokens: list[Token]) -> Statement:
    cursor = Cursor(tokens)
    if any(cursor.at(*words) for words in _QUERY_STARTS):
        return read_asked_query(cursor)
    for word, read in _STATEMENTS.items():
        if cursor.at(word):
            statement = read(cursor)
            if cursor.current is not None:
                cursor.fail(f"unexpected {cursor.found()}")
            return statement
    return _refuse(cursor)


def _form(cursor: Cursor) -> str:
    """How the statement that was probably meant is written."""
    return next(form for words, form in _FORMS if cursor.at(*words))


def _read_drop(cursor: Cursor) -> Drop:
    cursor.expect("DROP")
    kind = ObjectKind(cursor.choice(kind.value for kind in ObjectKind))
    if_exists = cursor.accept("IF", "EXISTS")
    return Drop(kind, cursor.name(f"the name of the {kind.value.lower()}"), if_exists)


def _read_show(
    cursor: Cursor,
) -> Show | ShowConnectors | ShowDecisions | ShowSettings | ShowStatistics:
    cursor.expect("SHOW")
    found = cursor.choice((*_PLURALS, "CONNECTORS", "STATISTICS", "DECISIONS", "SETTINGS"))
    if found == "STATISTICS":
        return read_show_statistics(cursor)
    if found == "DECISIONS":
        return ShowDecisions(read_for(cursor, "the name of a query"))
    if found == "SETTINGS":
        return ShowSettings()
    return ShowConnectors() if found == "CONNECTORS" else Show(_PLURALS[found])


def _read_describe(cursor: Cursor) -> Describe | DescribeConnector:
    if not cursor.accept("DESC"):
        cursor.expect("DESCRIBE")
    # A stream may be called so, too.
    if cursor.peek(1) is not None and cursor.accept("CONNECTOR"):
        return DescribeConnector(cursor.name("the name of a connector"))
    return Describe(cursor.name("a name"))


def _refuse(cursor: Cursor) -> Statement:
    word = cursor.tokens[0].text.upper()
    known = ("SELECT", "WITH", *_STATEMENTS)
    if word in _FOREIGN:
        cursor.fail(f"{word} is not supported", hint=f"the statements are {', '.join(known)}")
    near = closest(word, known) or f"the statements are {', '.join(known)}"
    return cursor.fail(f"unknown statement {cursor.found()}", hint=near)


_FORMS: Final[tuple[tuple[tuple[str, ...], str], ...]] = (
    *(
        ((*before, word), form)
        for before in ((), ("EXPLAIN",), ("EXPLAIN", "FORMAT", "JSON"))
        for word, form in {**LIFECYCLE_FORMS, "WHY": WHY_FORM}.items()
    ),
    (("CREATE", "STREAM"), "write CREATE STREAM name (column TYPE, …) SOURCE connector(…) …"),
    (
        ("CREATE", "RELATION"),
        "write CREATE RELATION name (column TYPE, …) SOURCE connector(…), or … FROM STREAM …",
    ),
    (
        ("CREATE", "QUERY"),
        "write CREATE QUERY name [INTO sink(…)] [START FRESH | START WITH HISTORY] AS query",
    ),
    (
        ("CREATE", "TABLE"),
        "write CREATE TABLE name [KEEP 1 HOUR | KEEP ALL] [START FRESH | START WITH …] AS query",
    ),
    (("CREATE", "FUNCTION"), "write CREATE FUNCTION name(parameter TYPE, …) AS expression"),
    (("CREATE",), "CREATE makes a STREAM, RELATION, QUERY, TABLE or FUNCTION"),
    (("DROP",), "write DROP STREAM | RELATION | QUERY | TABLE | FUNCTION [IF EXISTS] name"),
    (("SHOW", "DECISIONS"), "write SHOW DECISIONS, or SHOW DECISIONS FOR query"),
    (("SHOW", "STATISTICS"), "write SHOW STATISTICS, or SHOW STATISTICS FOR name"),
    (
        ("SHOW",),
        (
            "write SHOW STREAMS | RELATIONS | QUERIES | TABLES | FUNCTIONS | CONNECTORS "
            "| STATISTICS | DECISIONS | SETTINGS"
        ),
    ),
    (
        ("EXPLAIN",),
        (
            "write EXPLAIN [LOGICAL | PHYSICAL | STAGES | TRACE] [FORMAT JSON] query or name,"
            " EXPLAIN ANALYZE name, EXPLAIN ALTER QUERY … or EXPLAIN WHY …"
        ),
    ),
    (("SET",), SET_FORM),
    (("DESCRIBE",), "write DESCRIBE name, or DESCRIBE CONNECTOR name"),
    (("DESC",), "write DESCRIBE name, or DESCRIBE CONNECTOR name"),
    ((), "write SELECT … FROM stream [RANGE …] [JOIN … ON …] [WHERE …] [GROUP BY …] [HAVING …]"),
)

_STATEMENTS: Final[dict[str, Callable[[Cursor], Statement]]] = {
    "CREATE": read_create,
    "DROP": _read_drop,
    "SHOW": _read_show,
    "DESCRIBE": _read_describe,
    "DESC": _read_describe,
    "EXPLAIN": read_explain,
    "SET": read_set,
    "WHY": read_why,
    **dict.fromkeys(LIFECYCLE_FORMS, read_lifecycle),
}
