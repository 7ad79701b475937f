"""CREATE RELATION … FROM STREAM: a relation that a stream changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemill.lang.embedded import read_embedded_scalar
from tidemill.lang.statements import CreateChangingRelation
from tidemill.lang.words import quote_name

if TYPE_CHECKING:
    from sqlglot import exp

    from tidemill.lang.cursor import Cursor
    from tidemill.lang.statements import ColumnDefinition, Name

__all__ = ["changing_relation_text", "read_changing_relation"]

_NON: Final = "NON RETROACTIVE"
_WHEN_HINT: Final = "write DELETE WHEN and a condition on rows of the stream"
_KEY_HINT: Final = "name the columns by which a row replaces another, as in KEY (item)"


def read_changing_relation(
    cursor: Cursor, name: Name, columns: tuple[ColumnDefinition, ...]
) -> CreateChangingRelation:
    """Read ``FROM STREAM stream KEY (columns) { NON RETROACTIVE | DELETE WHEN condition }``."""
    cursor.expect("FROM")
    cursor.expect("STREAM", hint="write FROM STREAM and the name of the stream with the changes")
    stream = cursor.name("the name of a stream")
    cursor.expect("KEY", hint=_KEY_HINT)
    cursor.expect("(", hint=_KEY_HINT)
    key = cursor.separated(lambda inner: inner.name("a column"))
    cursor.expect(")")
    deleted: exp.Expr | None = None
    retroactive = True
    while cursor.current is not None:
        start = cursor.index
        if cursor.accept("DELETE"):
            cursor.expect("WHEN", hint=_WHEN_HINT)
            if cursor.peek(0) is None or cursor.at(*_NON.split()):
                cursor.fail_expected("a condition", hint=_WHEN_HINT)
            if deleted is not None:
                cursor.fail("DELETE WHEN is given twice", span=cursor.span_from(start))
            deleted = read_embedded_scalar(cursor, before=(_NON, "DELETE WHEN"))
        elif cursor.accept("NON"):
            cursor.expect("RETROACTIVE")
            if not retroactive:
                cursor.fail(f"{_NON} is given twice", span=cursor.span_from(start))
            retroactive = False
        else:
            cursor.fail_expected(f"DELETE WHEN, {_NON} or the end of the statement")
    return CreateChangingRelation(name, columns, stream, key, deleted, retroactive)


def changing_relation_text(
    statement: CreateChangingRelation, columns: str, condition: str | None
) -> str:
    """The statement as canonical text, given the texts of its columns and its condition."""
    parts = [f"CREATE RELATION {quote_name(statement.name.text)}"]
    if statement.columns:
        parts.append(f"({columns})")
    parts.append(f"FROM STREAM {quote_name(statement.stream.text)}")
    parts.append(f"KEY ({', '.join(quote_name(name.text) for name in statement.key)})")
    if not statement.retroactive:
        parts.append(_NON)
    if condition is not None:
        parts.append(f"DELETE WHEN {condition}")
    return " ".join(parts)
