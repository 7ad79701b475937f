"""Arithmetic and the functions of numbers.

Polars wraps around where integers overflow: they are widened, and what does not fit is NULL. The
result of a DOUBLE call still has -0.0, which the caller turns into 0.0.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.expr import Literal
from tidemill.model.types import Kind
from tidemill.physical.eval.binding import constant, int128, let, whole
from tidemill.physical.eval.decimals import (
    divided,
    from_digits,
    product,
    rounded,
    to_digits,
)
from tidemill.physical.eval.doubles import COMPILERS as DOUBLES
from tidemill.physical.eval.doubles import DIGITS_OF_A_DOUBLE, gather, powers_of_ten, remainder

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.algebra.expr import Call
    from tidemill.model.types import DataType
    from tidemill.physical.eval.binding import Compiler

__all__ = ["COMPILERS", "half_away"]

_DIGITS_OF_AN_INTEGER = 20

_WIDER = {Kind.INTEGER: pl.Int64(), Kind.BIGINT: pl.Int128()}


def _wide(x: pl.Expr, type_: DataType) -> pl.Expr:
    """With room for one operation more."""
    match type_.kind:
        case Kind.INTEGER | Kind.BIGINT:
            return x.cast(_WIDER[type_.kind])
        case Kind.DECIMAL:
            return x.to_physical()
        case _:
            return x


def _narrow(x: pl.Expr, type_: DataType) -> pl.Expr:
    match type_.kind:
        case Kind.INTEGER | Kind.BIGINT:
            return whole(x, type_)
        case Kind.DECIMAL:
            return from_digits(x, type_)
        case _:
            return x


def _arithmetic(operation: Callable[..., pl.Expr]) -> Compiler:
    def compile_(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
        types = [argument.type for argument in call.arguments]
        operands = [_wide(x, type_) for x, type_ in zip(arguments, types, strict=True)]
        return _narrow(operation(*operands), call.type)

    return compile_


def _times(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    if call.type.kind is not Kind.DECIMAL:
        return _arithmetic(pl.Expr.mul)(call, arguments)
    types = [argument.type for argument in call.arguments]
    digits = [to_digits(x, type_) for x, type_ in zip(arguments, types, strict=True)]
    precision = sum(type_.precision for type_ in types)
    return from_digits(product(digits[0], digits[1], precision=precision), call.type)


def _divide(_: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    return let(*arguments, body=lambda a, b: pl.when(b != pl.lit(0.0)).then(a / b))


def _rest(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    return a - a.truncdiv(b) * b  # division by zero is NULL


def _modulo(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    if call.type.kind is Kind.DOUBLE:
        return let(*arguments, body=remainder)
    # No wider type: Polars wraps around, and the least integer modulo -1 is 0 for all that.
    digits = [x.to_physical() for x in arguments]
    if isinstance(call.arguments[1], Literal):
        result = let(digits[0], body=lambda a: _rest(a, digits[1]))
    else:
        result = let(*digits, body=_rest)
    return from_digits(result, call.type) if call.type.kind is Kind.DECIMAL else result


@cache
def _units() -> pl.Series:
    return pl.Series([10**n for n in range(_DIGITS_OF_AN_INTEGER + 1)], dtype=pl.Int128)


def _negated(x: pl.Expr) -> pl.Expr:
    return pl.lit(0, dtype=pl.Int8) - x  # Polars does not negate integers of 128 bits


def _to_whole(how: Callable[[pl.Expr], pl.Expr], of_digits: Callable[..., pl.Expr]) -> Compiler:
    def compile_(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
        type_ = call.arguments[0].type
        match type_.kind:
            case Kind.DECIMAL:
                return from_digits(of_digits(arguments[0].to_physical(), type_.scale), call.type)
            case Kind.DOUBLE:
                return how(arguments[0])
            case _:
                return arguments[0]

    return compile_


def _floor_digits(digits: pl.Expr, places: int) -> pl.Expr:
    return divided(digits, places, pl.Expr.floordiv)


def _ceil_digits(digits: pl.Expr, places: int) -> pl.Expr:
    return _negated(divided(_negated(digits), places, pl.Expr.floordiv))


def half_away(x: pl.Expr) -> pl.Expr:
    """The nearest whole DOUBLE; of two, the one further from zero."""
    return x.round(0, mode="half_away_from_zero")


def _round(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    match call.arguments[0].type.kind:
        case Kind.DECIMAL:
            return _round_decimal(call, arguments[0])
        case Kind.DOUBLE:
            return _round_double(arguments)
        case _:
            return _round_integer(call, arguments)


def _round_decimal(call: Call, x: pl.Expr) -> pl.Expr:
    digits = constant(call.arguments[1]) if len(call.arguments) > 1 else 0
    assert isinstance(digits, int), "a number of digits"
    scale = call.arguments[0].type.scale
    if digits >= scale:
        return x
    kept = rounded(x.to_physical(), scale - digits)
    if digits >= 0:
        return from_digits(kept, call.type)
    if digits < -38:  # noqa: PLR2004 — what is rounded to 10**39 is 0
        return from_digits(kept * int128(0), call.type)
    return from_digits(product(kept, int128(10**-digits), precision=77), call.type)


def _round_integer(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    if len(arguments) == 1:
        return arguments[0]

    def to_unit(x: pl.Expr, unit: pl.Expr) -> pl.Expr:
        return (x + x.sign() * (unit // int128(2))).truncdiv(unit) * unit

    unit = gather(_units(), (-arguments[1].clip(-_DIGITS_OF_AN_INTEGER, 0)))
    return whole(let(arguments[0].cast(pl.Int128), unit, body=to_unit), call.type)


def _round_double(arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    if len(arguments) == 1:
        return half_away(arguments[0])
    last = DIGITS_OF_A_DOUBLE

    def to_digits_(x: pl.Expr, digits: pl.Expr, power: pl.Expr) -> pl.Expr:
        shifted = x * power
        up = pl.when(shifted.is_finite()).then(half_away(shifted) / power).otherwise(x)
        down = half_away(x / power) * power
        result = pl.when(digits < 0).then(down).otherwise(up)
        small = pl.when(digits < -last).then(pl.lit(0.0)).otherwise(result)
        return pl.when(x.is_finite()).then(small).otherwise(x) + digits.cast(pl.Float64) * 0.0

    power = gather(powers_of_ten(), arguments[1].clip(-last, last).abs())
    return let(arguments[0], arguments[1], power, body=to_digits_)


def _sign(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    match call.arguments[0].type.kind:
        case Kind.DECIMAL:
            return arguments[0].to_physical().sign().cast(pl.Int32)
        case Kind.DOUBLE:  # NaN is neither less nor greater than 0
            return arguments[0].sign().fill_nan(0.0).cast(pl.Int32)
        case _:
            return arguments[0].sign().cast(pl.Int32)


COMPILERS: dict[str, Compiler] = {
    **DOUBLES,
    "%": _modulo,
    "*": _times,
    "+": _arithmetic(pl.Expr.add),
    "-": _arithmetic(pl.Expr.sub),
    "/": _divide,
    "//": _arithmetic(pl.Expr.truncdiv),
    "abs": _arithmetic(pl.Expr.abs),
    "ceil": _to_whole(pl.Expr.ceil, _ceil_digits),
    "floor": _to_whole(pl.Expr.floor, _floor_digits),
    "neg": _arithmetic(_negated),
    "round": _round,
    "sign": _sign,
    "trunc": _to_whole(pl.Expr.truncate, divided),
}
