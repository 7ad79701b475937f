"""Words: which of them the language keeps for itself.

A reserved word is a name only in double quotes. Every other word, also one that some clause uses
(``STREAM``, ``SOURCE``, ``SLIDE``), is a name wherever a name can stand.
"""

from __future__ import annotations

import re
from typing import Final

from sqlglot import TokenType

__all__ = [
    "BARE_FUNCTIONS",
    "NAME_TOKENS",
    "OVER_HINT",
    "OVER_MESSAGE",
    "RESERVED",
    "STREAM_OPERATORS",
    "TOKEN_TYPES",
    "TRIM_SIDES",
    "quote_function",
    "quote_name",
    "quote_string",
]

STREAM_OPERATORS: Final = frozenset({"ISTREAM", "DSTREAM", "RSTREAM", "WSTREAM"})

# The token types are those that sqlglot's productions ask for.
_KEYWORDS: Final = {
    "ALL": TokenType.ALL,
    "AND": TokenType.AND,
    "ANY": TokenType.ANY,
    "AS": TokenType.ALIAS,
    "ASC": TokenType.ASC,
    "BETWEEN": TokenType.BETWEEN,
    "CASE": TokenType.CASE,
    "CROSS": TokenType.CROSS,
    "DESC": TokenType.DESC,
    "DISTINCT": TokenType.DISTINCT,
    "DIV": TokenType.DIV,
    "ELSE": TokenType.ELSE,
    "END": TokenType.END,
    "ESCAPE": TokenType.ESCAPE,
    "EXCEPT": TokenType.EXCEPT,
    "EXISTS": TokenType.EXISTS,
    "FALSE": TokenType.FALSE,
    "FROM": TokenType.FROM,
    "FULL": TokenType.FULL,
    "GROUP BY": TokenType.GROUP_BY,
    "HAVING": TokenType.HAVING,
    "ILIKE": TokenType.ILIKE,
    "IN": TokenType.IN,
    "INNER": TokenType.INNER,
    "INTERSECT": TokenType.INTERSECT,
    "INTERVAL": TokenType.INTERVAL,
    "IS": TokenType.IS,
    "JOIN": TokenType.JOIN,
    "LEFT": TokenType.LEFT,
    "LIKE": TokenType.LIKE,
    "LIMIT": TokenType.LIMIT,
    "NOT": TokenType.NOT,
    "NULL": TokenType.NULL,
    "ON": TokenType.ON,
    "OR": TokenType.OR,
    "ORDER BY": TokenType.ORDER_BY,
    "OUTER": TokenType.OUTER,
    "OVER": TokenType.OVER,
    "PARTITION BY": TokenType.PARTITION_BY,
    "QUALIFY": TokenType.QUALIFY,
    "RIGHT": TokenType.RIGHT,
    "SELECT": TokenType.SELECT,
    "SOME": TokenType.SOME,
    "THEN": TokenType.THEN,
    "TRUE": TokenType.TRUE,
    "UNION": TokenType.UNION,
    "USING": TokenType.USING,
    "WHEN": TokenType.WHEN,
    "WHERE": TokenType.WHERE,
    "WINDOW": TokenType.WINDOW,
    "WITH": TokenType.WITH,
}

_OPERATORS: Final = {
    "!=": TokenType.NEQ,
    "//": TokenType.DIV,
    "::": TokenType.DCOLON,
    "<=": TokenType.LTE,
    "<>": TokenType.NEQ,
    "=>": TokenType.FARROW,
    ">=": TokenType.GTE,
    "||": TokenType.DPIPE,
}

TOKEN_TYPES: Final = {**_KEYWORDS, **_OPERATORS}

# Words of SQL clauses that we do not have. As names they would make an alias of a foreign clause.
_FOREIGN: Final = frozenset(
    {
        *("ANTI", "ASOF", "BY", "FETCH", "FOR", "GROUP", "INTO", "LATERAL", "NATURAL", "ORDER"),
        *("PIVOT", "RECURSIVE", "RETURNING", "SEMI", "SET", "TABLESAMPLE", "UNPIVOT", "VALUES"),
    }
)

# Functions that SQL writes without parentheses; the binder refuses them by name.
BARE_FUNCTIONS: Final = frozenset(
    {"CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP"}
)

TRIM_SIDES: Final = {"LEADING": "LTRIM", "TRAILING": "RTRIM", "BOTH": "TRIM"}

RESERVED: Final = (
    frozenset(word for word in _KEYWORDS if " " not in word)
    | _FOREIGN
    | BARE_FUNCTIONS
    | frozenset(TRIM_SIDES)
)

# Calls of these names have a form of their own, so that a function of such a name must be quoted.
_SPECIAL_CALLS: Final = frozenset({"CAST", "TRY_CAST", "EXTRACT"}) | STREAM_OPERATORS
_RESERVED_CALLS: Final = frozenset({"LEFT", "RIGHT"}) | BARE_FUNCTIONS

NAME_TOKENS: Final = frozenset({TokenType.VAR, TokenType.IDENTIFIER})

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quote_name(name: str) -> str:
    """The name as it stands in text, in double quotes if it needs them.

    >>> quote_name("price"), quote_name("select"), quote_name("unit price")
    ('price', '"select"', '"unit price"')
    """
    plain = _PLAIN.fullmatch(name) is not None and name.upper() not in RESERVED
    return name if plain else '"' + name.replace('"', '""') + '"'


def quote_function(name: str) -> str:
    """The name of a function as it stands in a call.

    >>> quote_function("left"), quote_function("cast"), quote_function("avg")
    ('left', '"cast"', 'avg')
    """
    if name.upper() in _RESERVED_CALLS:
        return name
    return f'"{name}"' if name.upper() in _SPECIAL_CALLS else quote_name(name)


def quote_string(value: str) -> str:
    """The string as a literal."""
    return "'" + value.replace("'", "''") + "'"


OVER_MESSAGE: Final = "a function with OVER cannot stand here"
OVER_HINT: Final = (
    "functions OVER a window have no counterpart here; put a window behind the stream in FROM and "
    "aggregate"
)
