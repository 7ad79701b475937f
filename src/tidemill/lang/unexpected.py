"""Hints for words that do not fit where they stand."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final

from sqlglot import TokenType

if TYPE_CHECKING:
    from sqlglot import Token

__all__ = ["rest_hint"]

_CLAUSES: Final = (
    "AS",
    "BETWEEN",
    "DISTINCT",
    "EXCEPT",
    "FROM",
    "GROUP BY",
    "HAVING",
    "INTERSECT",
    "JOIN",
    "LIMIT",
    "ORDER BY",
    "SELECT",
    "UNION",
    "USING",
    "WHERE",
    "WINDOW",
)

_NEAR: Final = 0.7


_JOINS = "the joins are INNER, LEFT, RIGHT, FULL and CROSS JOIN"
_FOREIGN: Final = {
    "NATURAL": f"name the columns with USING (…); {_JOINS}",
    "SEMI": f"write EXISTS or IN; {_JOINS}",
    "ANTI": f"write NOT EXISTS or NOT IN; {_JOINS}",
    "ASOF": _JOINS,
    "LATERAL": _JOINS,
    "PIVOT": "write one aggregate with FILTER (WHERE …) for each column",
    "TABLESAMPLE": "an answer is exact; filter by a function of a column",
}


def rest_hint(previous: Token, current: Token) -> str | None:
    """What was probably meant, if one of the two tokens looks like a clause.

    A misspelt clause reads as an alias, so that the token after it is the one that does not fit.
    """
    if previous and previous.text.upper() == "OF":
        return "AS OF stands once, at the end of the whole statement"
    if current and current.text.upper() in _FOREIGN:
        return _FOREIGN[current.text.upper()]
    for token in (current, previous):
        if token and token.token_type is TokenType.VAR:
            word = token.text.upper()
            best = max(_CLAUSES, key=lambda clause: _likeness(word, clause))
            if _likeness(word, best) >= _NEAR:
                return f'did you mean "{best}" instead of "{token.text}"?'
    return None


def _likeness(word: str, clause: str) -> float:
    first = clause.split(" ", maxsplit=1)[0]
    return SequenceMatcher(None, word, first).ratio()
