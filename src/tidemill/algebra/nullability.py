"""Whether an expression can be NULL, as far as its form tells; ``True`` is always a safe answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from tidemill.algebra.expr import Call, Case, Cast, Column, Expr, Literal
from tidemill.model.types import DOUBLE, DataType, Kind, as_decimal

if TYPE_CHECKING:
    from tidemill.model.schema import Schema

__all__ = ["is_nullable"]

_NEVER = frozenset({"concat", "is_distinct", "is_false", "is_not_distinct", "is_null", "is_true"})
_WHEN_ALL_ARE = frozenset({"coalesce", "greatest", "least"})
_WHEN_THE_FIRST_IS = frozenset({"concat_ws"})
_ARITHMETIC = frozenset({"+", "-", "*", "neg", "abs", "round"})  # overflows unless DOUBLE
_PARTIAL = frozenset(
    {
        "%",
        "/",
        "//",
        "add_days",
        "add_microseconds",
        "add_months",
        "chr",
        "ilike",
        "like",
        "lpad",
        "make_date",
        "make_timestamp",
        "repeat",
        "rpad",
    }
)


def is_nullable(expr: Expr, schema: Schema) -> bool:
    """Whether ``expr`` can be NULL in a row of ``schema``."""
    match expr:
        case Column(name):
            return schema[name].nullable
        case Literal():
            return expr.is_null
        case Cast(input_, type_):
            return not _always_fits(input_.type, type_) or is_nullable(input_, schema)
        case Case(branches, otherwise):
            values = (*(value for _, value in branches), otherwise)
            return any(is_nullable(value, schema) for value in values)
        case Call(function, arguments, type_):
            return _call_is_nullable(
                function, type_, tuple(is_nullable(part, schema) for part in arguments)
            )
        case _:
            assert_never(expr)


def _call_is_nullable(function: str, type_: DataType, arguments: tuple[bool, ...]) -> bool:
    if function in _NEVER:
        return False
    if function in _WHEN_ALL_ARE:
        return all(arguments)
    if function in _WHEN_THE_FIRST_IS:
        return arguments[0]
    if function in _PARTIAL or (function in _ARITHMETIC and type_ != DOUBLE):
        return True
    return any(arguments)


def _always_fits(source: DataType, target: DataType) -> bool:
    """Whether every value of ``source`` has a value of ``target``."""
    match target.kind:
        case Kind.VARCHAR | Kind.NULL:
            return True
        case Kind.BOOLEAN | Kind.DOUBLE:
            return source.kind is not Kind.VARCHAR
        case Kind.INTEGER | Kind.BIGINT:
            return source.kind in (Kind.BOOLEAN, Kind.INTEGER) or source == target
        case Kind.DECIMAL:
            return (source.is_integer or source.kind is Kind.DECIMAL) and _digits_fit(
                as_decimal(source), target
            )
        case Kind.DATE | Kind.TIMESTAMP:
            return source.is_temporal


def _digits_fit(source: DataType, target: DataType) -> bool:
    return source.scale <= target.scale and (
        source.precision - source.scale <= target.precision - target.scale
    )
