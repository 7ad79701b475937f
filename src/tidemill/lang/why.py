"""WHY: where the rows of an answer come from, why they changed, and why rows are not there.

CHANGE, DOWN and AT are no reserved words. CHANGE is the name of a query, unless something follows
that can be asked about. AT is one, unless NOW or an instant follows, and DOWN, unless TO and a name
do. A condition goes on as far as it can; then one of these clauses begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidemill.lang.cursor import is_name, reads_as
from tidemill.lang.embedded import read_embedded_scalar, read_query_in_parentheses
from tidemill.lang.instants import INSTANT_HINT, begins_instant, read_instant
from tidemill.lang.statements import Instant, Name, Why, WhyKind
from tidemill.lang.words import STREAM_OPERATORS

if TYPE_CHECKING:
    from sqlglot import exp

    from tidemill.lang.cursor import Cursor

__all__ = ["WHY_FORM", "at_why", "read_why"]

WHY_FORM: Final = (
    "write WHY [ALL | CHANGE] name [WHERE condition] [DOWN TO stream] [AT instant],"
    " or WHY NOT name WHERE condition [AT instant]"
)
"""How the statement is written."""

_KINDS: Final = ("ALL", "CHANGE", "NOT")
_TARGET: Final = "the name of a query, table or derived stream"
_CLAUSES: Final = ("DOWN", "AT", "AS OF")
"""What may stand behind a condition, or is meant to."""


def at_why(cursor: Cursor) -> bool:
    """Whether WHY comes next, and not a name alone."""
    return cursor.at("WHY") and cursor.peek(1) is not None


def read_why(cursor: Cursor) -> Why:
    """Read ``WHY …``."""
    cursor.expect("WHY")
    word = _read_kind(cursor)
    kind = WhyKind.ROWS if word in (None, "ALL") else WhyKind(word)
    target = _read_target(cursor)
    condition = _read_condition(cursor, kind)
    down_to = _read_down_to(cursor, kind)
    at = _read_at(cursor)
    _refuse_order(cursor)
    return Why(target, kind, condition, down_to, at, flat=word == "ALL")


def _read_kind(cursor: Cursor) -> str | None:
    word = _kind(cursor)
    if word is not None:
        cursor.expect(word)
        second = _kind(cursor)
        if second is not None:
            hint = "write one of WHY ALL, WHY CHANGE and WHY NOT"
            cursor.fail(f"{word} and {second} do not go together", hint=hint)
    return word


def _kind(cursor: Cursor) -> str | None:
    """The word that comes next and says what is asked, and is not the name of a query."""
    word = next((word for word in _KINDS if cursor.at(word)), None)
    following = cursor.peek(1)
    is_one = any(reads_as(following, sign) for sign in ("(", "ALL", "NOT"))
    is_one = is_one or (is_name(following) and not _at_clause(cursor, 1))
    return word if is_one or word != "CHANGE" else None


def _at_clause(cursor: Cursor, ahead: int = 0) -> bool:
    """Whether DOWN TO or AT, and what it needs, stands so many places ahead."""
    word, following = cursor.peek(ahead), cursor.peek(ahead + 1)
    if reads_as(word, "AT"):
        return reads_as(following, "NOW") or begins_instant(cursor, ahead + 1)
    is_down_to = reads_as(word, "DOWN") and reads_as(following, "TO")
    return is_down_to and is_name(cursor.peek(ahead + 2))


def _read_target(cursor: Cursor) -> Name | exp.Expr:
    if cursor.at("("):
        query = read_query_in_parentheses(cursor)
        if cursor.at_any(("UNION", "EXCEPT", "INTERSECT")):
            hint = "put another pair of parentheses around the whole query"
            cursor.fail(f"unexpected {cursor.found()}", hint=hint)
        return query
    operators = ((word, sign) for word in STREAM_OPERATORS for sign in ("(", "["))
    if cursor.at_any(("SELECT", "WITH")) or any(cursor.at(*words) for words in operators):
        cursor.fail(
            "the query that is asked about stands in parentheses",
            hint="write WHY (SELECT …) WHERE … AT …",
        )
    return _name(cursor, f"{_TARGET}, or a query in parentheses")


def _name(cursor: Cursor, what: str) -> Name:
    if _at_clause(cursor):
        cursor.fail_expected(what)
    return cursor.name(what)


def _read_condition(cursor: Cursor, kind: WhyKind) -> exp.Expr | None:
    if not cursor.accept("WHERE"):
        if kind is WhyKind.NOT:
            hint = "say which rows are not there, as in WHY NOT top WHERE item = 'pen' AT …"
            cursor.fail(f"WHY NOT needs WHERE, found {cursor.found()}", hint=hint)
        return None
    # A condition can begin with a column that is called so, less something.
    if _at_clause(cursor) and not reads_as(cursor.peek(1), "-"):
        cursor.fail_expected("a condition")
    return read_embedded_scalar(cursor, before=_CLAUSES)


def _read_down_to(cursor: Cursor, kind: WhyKind) -> Name | None:
    if not cursor.at("DOWN"):
        return None
    if kind is WhyKind.NOT:
        cursor.fail(
            "WHY NOT takes no DOWN TO",
            hint="leave it out: where rows were lost is looked for down to the streams",
        )
    cursor.expect("DOWN", "TO")
    return _name(cursor, "the name of a derived stream")


def _read_at(cursor: Cursor) -> Instant | None:
    if not cursor.accept("AT") or cursor.accept("NOW"):
        return None
    if not begins_instant(cursor):
        cursor.fail_expected("an instant or NOW", hint=INSTANT_HINT)
    return read_instant(cursor)


def _refuse_order(cursor: Cursor) -> None:
    """Refuse what would have been read if it stood elsewhere."""
    if cursor.at("AS", "OF"):
        cursor.fail("WHY takes no AS OF", hint="write AT instead of it")
    if cursor.at("WHERE"):
        cursor.fail("WHERE stands before DOWN TO and AT", hint=WHY_FORM)
    if cursor.at("DOWN", "TO"):
        cursor.fail("DOWN TO stands before AT", hint=WHY_FORM)
