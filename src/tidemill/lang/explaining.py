"""EXPLAIN: of a query, of one that is asked once, or of what would be done or read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.lang.cursor import is_name
from tidemill.lang.declarations import read_create
from tidemill.lang.embedded import read_asked_query
from tidemill.lang.lifecycle import at_lifecycle, read_lifecycle
from tidemill.lang.statements import CreateQuery, CreateTable, Explain, ExplainMode, Name
from tidemill.lang.tokens import token_span
from tidemill.lang.why import at_why, read_why

if TYPE_CHECKING:
    from tidemill.lang.cursor import Cursor
    from tidemill.lang.statements import Explained

__all__ = ["read_explain"]


def read_explain(cursor: Cursor) -> Explain:
    """Read ``EXPLAIN …``."""
    cursor.expect("EXPLAIN")
    asked = next((mode for mode in ExplainMode if _accepts(cursor, mode)), None)
    mode = asked or ExplainMode.LOGICAL
    as_json = cursor.accept("FORMAT", "JSON")
    start = cursor.index
    target = _read_target(cursor, asked)
    if mode is ExplainMode.ANALYZE and not isinstance(target, Name):
        cursor.fail(
            "only a query that runs, or has run, can be analyzed",
            span=cursor.span_from(start),
            hint="register it, and write EXPLAIN ANALYZE with its name",
        )
    return Explain(mode, target, as_json)


def _read_target(cursor: Cursor, asked: ExplainMode | None) -> Explained:
    start = cursor.index
    if cursor.at("CREATE"):
        created = read_create(cursor)
        if not isinstance(created, CreateQuery | CreateTable):
            cursor.fail("only a query can be explained", span=cursor.span_from(start))
        return created
    if at_lifecycle(cursor):
        words = " ".join(token.text.upper() for token in cursor.tokens[start:][:2])
        _refuse_mode(cursor, asked, words, "gives a verdict")
        return read_lifecycle(cursor)
    if at_why(cursor):
        _refuse_mode(cursor, asked, "WHY", "says what would be read")
        return read_why(cursor)
    if is_name(cursor.current) and cursor.peek(1) is None:
        return cursor.name("the name of a query")
    return read_asked_query(cursor)


def _accepts(cursor: Cursor, mode: ExplainMode) -> bool:
    """Whether the word comes next, and is not itself the name of a query."""
    return cursor.peek(1) is not None and cursor.accept(mode.value)


def _refuse_mode(cursor: Cursor, mode: ExplainMode | None, words: str, does: str) -> None:
    """Refuse a form of a plan of something that is no plan."""
    if mode is None:
        return
    cursor.fail(
        f"{mode.value} is a form of a plan; EXPLAIN {words} {does}",
        span=token_span(cursor.tokens[1]),
        hint=f"write EXPLAIN [FORMAT JSON] {words} …",
    )
