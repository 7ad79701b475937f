"""Arithmetic and the functions of numbers.

Polars wraps around where integers overflow: they are widened, and what does not fit is NULL. The
result of a DOUBLE call still has -0.0, which the caller turns into 0.0.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.expr import Literal
from tidemill.model.types import BIGINT, INTEGER, Kind
from tidemill.physical.eval.binding import constant, int128, let, whole
from tidemill.physical.eval.decimals import (
    divided,
    from_digits,
    product,
    rounded,
    to_digits,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.algebra.expr import Call
    from tidemill.model.types import DataType
    from tidemill.physical.eval.binding import Compiler

__all__ = ["COMPILERS", "half_away"]

_WIDER = {Kind.INTEGER: pl.Int64(), Kind.BIGINT: pl.Int128()}
_DIGITS_OF_A_DOUBLE = 308
_DIGITS_OF_AN_INTEGER = 20


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
        return let(*arguments, body=_rest_of_doubles)
    return _arithmetic(lambda a, b: let(a, b, body=_rest))(call, arguments)


def _rest_of_doubles(x: pl.Expr, y: pl.Expr) -> pl.Expr:
    """As C's fmod, exact; Polars' % divides and rounds."""
    exact = let(_mantissa(x), _exponent(x), _mantissa(y), _exponent(y), body=_rest_of_scaled)
    size = pl.when(x.abs() < y.abs()).then(x.abs()).otherwise(exact)
    finite = pl.when(x < 0).then(-size).otherwise(size)
    no_number = x.is_nan() | x.is_infinite() | y.is_nan()
    rest = pl.when(no_number).then(pl.lit(math.nan)).otherwise(finite)
    return pl.when(y != pl.lit(0.0)).then(rest)


def _rest_of_scaled(m: pl.Expr, e: pl.Expr, n: pl.Expr, f: pl.Expr) -> pl.Expr:
    """``m * 2**e`` modulo ``n * 2**f`` where e is not less than f; the mantissas have 53 bits.

    ``2**(e - f)`` modulo n is made by squaring: all products are less than 2**127.
    """
    bits = 5
    shift = (e - f).clip(0)
    power = _gather(_powers_of_two, shift // 2**bits) % n
    for bit in reversed(range(bits)):
        odd = (shift // 2**bit % 2).cast(pl.Int128)
        power = let(power, odd, n, body=lambda p, o, n: p * p * (o + int128(1)) % n)
    return (m * power % n).cast(pl.Float64) * _gather(_doubles_of_two, f + pl.lit(1074))


def _biased(x: pl.Expr) -> pl.Expr:
    return x.abs().reinterpret(dtype=pl.Int64) // 2**52


def _mantissa(x: pl.Expr) -> pl.Expr:
    hidden = pl.when(_biased(x) > 0).then(pl.lit(2**52)).otherwise(pl.lit(0, dtype=pl.Int64))
    return (x.abs().reinterpret(dtype=pl.Int64) % 2**52 + hidden).cast(pl.Int128)


def _exponent(x: pl.Expr) -> pl.Expr:
    return _biased(x).clip(1, 2046) - 1075


@cache
def _powers_of_two() -> pl.Series:
    return pl.Series([2**n for n in range(66)], dtype=pl.Int128)


@cache
def _doubles_of_two() -> pl.Series:
    return pl.Series([math.ldexp(1.0, n) for n in range(-1074, 1024)], dtype=pl.Float64)


@cache
def _powers_of_ten() -> pl.Series:
    return pl.Series([float(10**n) for n in range(_DIGITS_OF_A_DOUBLE + 1)], dtype=pl.Float64)


@cache
def _units() -> pl.Series:
    return pl.Series([10**n for n in range(_DIGITS_OF_AN_INTEGER + 1)], dtype=pl.Int128)


def _gather(table: Callable[[], pl.Series], index: pl.Expr) -> pl.Expr:
    return pl.lit(table()).gather(index)


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


def _ceil_digits(digits: pl.Expr, places: int) -> pl.Expr:
    return -divided(-digits, places, pl.Expr.floordiv)


def half_away(x: pl.Expr) -> pl.Expr:
    """The nearest whole DOUBLE; of two, the one further from zero."""
    return x.round(0, mode="half_away_from_zero")


def _round(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    match call.arguments[0].type.kind:
        case Kind.DECIMAL:
            return _round_decimal(call, arguments[0])
        case Kind.DOUBLE:
            return _round_double(call, arguments)
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

    unit = _gather(_units, (-arguments[1].clip(-_DIGITS_OF_AN_INTEGER, 0)))
    return whole(let(arguments[0].cast(pl.Int128), unit, body=to_unit), call.type)


def _round_double(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    if len(arguments) == 1:
        return half_away(arguments[0])
    last = _DIGITS_OF_A_DOUBLE

    def to_digits_(x: pl.Expr, digits: pl.Expr, power: pl.Expr) -> pl.Expr:
        shifted = x * power
        up = pl.when(shifted.is_finite()).then(half_away(shifted) / power).otherwise(x)
        down = half_away(x / power) * power
        result = pl.when(digits < 0).then(down).otherwise(up)
        small = pl.when(digits < -last).then(pl.lit(0.0)).otherwise(result)
        return pl.when(x.is_finite()).then(small).otherwise(x) + digits.cast(pl.Float64) * 0.0

    power = _gather(_powers_of_ten, arguments[1].clip(-last, last).abs())
    return let(arguments[0], arguments[1], power, body=to_digits_)


def _sign(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    match call.arguments[0].type.kind:
        case Kind.DECIMAL:
            return arguments[0].to_physical().sign().cast(pl.Int32)
        case Kind.DOUBLE:  # NaN is neither less nor greater than 0
            return arguments[0].sign().fill_nan(0.0).cast(pl.Int32)
        case _:
            return arguments[0].sign().cast(pl.Int32)
