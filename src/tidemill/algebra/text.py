"""The text of expressions, as a reader of SQL expects it: one text for one expression."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import TYPE_CHECKING, assert_never

from tidemill.algebra.expr import AggregateCall, Call, Case, Cast, Column, Expr, Literal

if TYPE_CHECKING:
    from tidemill.model.types import Value

__all__ = ["aggregate_text", "expr_text", "name_text"]

_BINARY = {
    "or": 1,
    "and": 2,
    "=": 4,
    "<>": 4,
    "<": 4,
    "<=": 4,
    ">": 4,
    ">=": 4,
    "is_distinct": 4,
    "is_not_distinct": 4,
    "like": 4,
    "ilike": 4,
    "||": 5,
    "+": 6,
    "-": 6,
    "*": 7,
    "/": 7,
    "//": 7,
    "%": 7,
}
_SPELLED = {
    "and": "AND",
    "or": "OR",
    "is_distinct": "IS DISTINCT FROM",
    "is_not_distinct": "IS NOT DISTINCT FROM",
    "like": "LIKE",
    "ilike": "ILIKE",
}
_NOT, _SUFFIX, _NEGATION, _ATOM = 3, 4, 8, 9
_SUFFIXES = {"is_null": "IS NULL", "is_true": "IS TRUE", "is_false": "IS FALSE"}
# A chain of these needs no parentheses on the left; on the right they show that it is another tree.
_CHAINS = frozenset({"and", "or"})


# The column an aggregate makes is called like the aggregate, as count(*), and reads best so.
_PLAIN = re.compile(
    r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?"
    r"|[a-z_]+\([^()]*\)( FILTER\(WHERE [^()]*\))?(_\d+)?"
)
_CONSTANTS = frozenset({"NULL", "TRUE", "FALSE"})


def name_text(name: str) -> str:
    """A column or stream name, quoted only where it could not be read otherwise."""
    if name.upper() not in _CONSTANTS and _PLAIN.fullmatch(name):
        return name
    return '"' + name.replace('"', '""') + '"'


def expr_text(expr: Expr) -> str:
    """The expression as text.

    >>> from tidemill.model.types import BIGINT, BOOLEAN
    >>> price = Column("price", BIGINT)
    >>> total = Call("*", (Call("+", (price, price), BIGINT), price), BIGINT)
    >>> expr_text(Call(">", (total, Literal(5, BIGINT)), BOOLEAN))
    '(price + price) * price > 5'
    """
    return _text(expr)[0]


def aggregate_text(call: AggregateCall) -> str:
    """The aggregate as text, as ``count(DISTINCT x) FILTER(WHERE y > 1)``."""
    argument = "*" if call.argument is None else expr_text(call.argument)
    distinct = "DISTINCT " if call.distinct else ""
    condition = f" FILTER(WHERE {expr_text(call.condition)})" if call.condition else ""
    return f"{call.function}({distinct}{argument}){condition}"


def _text(expr: Expr) -> tuple[str, int]:
    match expr:
        case Column(name):
            return name_text(name), _ATOM
        case Literal(value):
            text = _literal(value)
            return text, _NEGATION if text.startswith("-") else _ATOM
        case Cast(input_, type_):
            return f"CAST({expr_text(input_)} AS {type_})", _ATOM
        case Case(branches, otherwise):
            whens = "".join(f" WHEN {expr_text(c)} THEN {expr_text(v)}" for c, v in branches)
            return f"CASE{whens} ELSE {expr_text(otherwise)} END", _ATOM
        case Call("not", (Call("is_null", (input_,)),)):
            return f"{_within(input_, _SUFFIX + 1)} IS NOT NULL", _SUFFIX
        case Call("not", (input_,)):
            return f"NOT {_within(input_, _NOT)}", _NOT
        case Call("neg", (input_,)):
            return f"-{_within(input_, _ATOM)}", _NEGATION
        case Call(function, (input_,)) if function in _SUFFIXES:
            return f"{_within(input_, _SUFFIX + 1)} {_SUFFIXES[function]}", _SUFFIX
        case Call("in", (input_, *items)):
            listed = ", ".join(map(expr_text, items))
            return f"{_within(input_, _SUFFIX + 1)} IN ({listed})", _SUFFIX
        case Call(function, (left, right)) if function in _BINARY:
            own = _BINARY[function]
            first = own if function in _CHAINS or own > _SUFFIX else own + 1
            spelled = _SPELLED.get(function, function)
            return f"{_within(left, first)} {spelled} {_within(right, own + 1)}", own
        case Call(function, arguments):
            return f"{function}({', '.join(map(expr_text, arguments))})", _ATOM
        case _:
            assert_never(expr)


def _within(expr: Expr, strength: int) -> str:
    text, own = _text(expr)
    return text if own >= strength else f"({text})"


def _literal(value: Value) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case _:
            return str(value)
