"""HINT (…) of CREATE STREAM and CREATE RELATION, and SHOW STATISTICS."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from sqlglot import TokenType

from tidemill.lang.statements import Hint, HintKind, ShowStatistics
from tidemill.lang.words import quote_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidemill.lang.cursor import Cursor

__all__ = ["hint_text", "read_hints", "read_show_statistics"]

_FORM: Final = "write HINT (rate => 20000, distinct(column) => 1000)"


def read_hints(cursor: Cursor) -> tuple[Hint, ...]:
    """Read ``(what => number, …)``, which stands behind HINT."""
    cursor.expect("(", hint=_FORM)
    hints = cursor.separated(_read_hint)
    cursor.expect(")", hint=_FORM)
    seen: set[tuple[HintKind, str]] = set()
    for hint in hints:
        column = "" if hint.column is None else hint.column.text.lower()
        if (hint.kind, column) in seen:
            cursor.fail(f"{_what(hint)} is given twice", span=hint.span)
        seen.add((hint.kind, column))
    return hints


def _read_hint(cursor: Cursor) -> Hint:
    start = cursor.index
    kind = HintKind(cursor.choice(kind.value for kind in HintKind))
    column = None
    if kind is HintKind.DISTINCT:
        cursor.expect("(", hint="write distinct(column) => 1000")
        column = cursor.name("a column")
        cursor.expect(")", hint="write distinct(column) => 1000")
    cursor.expect("=>", hint=_FORM)
    number = cursor.accept_type(TokenType.NUMBER)
    if number is None:
        cursor.fail_expected("a number", hint=_FORM)
    value = float(number.text)
    if not 0 < value < math.inf:
        cursor.fail("a hint must be positive", span=cursor.span_from(cursor.index - 1), hint=_FORM)
    exact = int(value) if value.is_integer() else value
    return Hint(kind, exact, column, cursor.span_from(start))


def hint_text(hints: Iterable[Hint]) -> str:
    """The clause as it is written."""
    return f"HINT ({', '.join(f'{_what(hint)} => {hint.value}' for hint in hints)})"


def _what(hint: Hint) -> str:
    word = hint.kind.value.lower()
    return word if hint.column is None else f"{word}({quote_name(hint.column.text)})"


def read_show_statistics(cursor: Cursor) -> ShowStatistics:
    """Read what stands behind SHOW STATISTICS."""
    if cursor.current is None:
        return ShowStatistics()
    if cursor.peek(1) is not None:  # something may be called so
        cursor.accept("FOR")
    return ShowStatistics(cursor.name("the name of a query, stream or relation"))
