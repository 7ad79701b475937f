"""The functions of DOUBLE.

Most are those of the mathematical library of Polars, whose last bits may differ from Python's. The
rest of a division is exact, as in C, and logarithms are exact at powers of their base.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

import polars as pl

from tidemill.physical.eval.binding import int128, let

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.algebra.expr import Call
    from tidemill.physical.eval.binding import Compiler

__all__ = ["COMPILERS", "DIGITS_OF_A_DOUBLE", "gather", "powers_of_ten", "remainder"]

DIGITS_OF_A_DOUBLE = 308
"""The exponent of the greatest power of ten."""

_LEAST_EXPONENT = -1074


def remainder(x: pl.Expr, y: pl.Expr) -> pl.Expr:
    """As C's fmod, exact; Polars' % divides and rounds."""
    exact = let(_mantissa(x), _exponent(x), _mantissa(y), _exponent(y), body=_rest_of_scaled)
    size = pl.when(x.abs() < y.abs()).then(x.abs()).otherwise(exact)
    finite = pl.when(x < 0).then(-size).otherwise(size)
    no_number = x.is_nan() | x.is_infinite() | y.is_nan()
    total = pl.when(no_number).then(pl.lit(math.nan)).otherwise(finite)
    return pl.when((y != pl.lit(0.0)) & x.is_not_null()).then(total)


def _rest_of_scaled(m: pl.Expr, e: pl.Expr, n: pl.Expr, f: pl.Expr) -> pl.Expr:
    """``m * 2**e`` modulo ``n * 2**f`` where e is not less than f; the mantissas have 53 bits.

    ``2**(e - f)`` modulo n is made by squaring: all products are less than 2**127.
    """
    bits = 5
    shift = (e - f).clip(0)
    power = gather(_powers_of_two(), shift // 2**bits) % n
    for bit in reversed(range(bits)):
        odd = (shift // 2**bit % 2).cast(pl.Int128)
        power = let(power, odd, n, body=lambda p, o, n: p * p * (o + int128(1)) % n)
    return (m * power % n).cast(pl.Float64) * gather(_doubles_of_two(), f + -_LEAST_EXPONENT)


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
    return pl.Series([math.ldexp(1.0, n) for n in range(_LEAST_EXPONENT, 1024)], dtype=pl.Float64)


@cache
def powers_of_ten() -> pl.Series:
    """From 1.0 to 1e308, each the nearest DOUBLE."""
    return pl.Series([float(10**n) for n in range(DIGITS_OF_A_DOUBLE + 1)], dtype=pl.Float64)


def gather(table: pl.Series, index: pl.Expr) -> pl.Expr:
    """The entries of a small table."""
    return pl.lit(table).gather(index)


def _function(function: Callable[[pl.Expr], pl.Expr]) -> Compiler:
    return lambda _, arguments: function(arguments[0])


def _logarithm(function: Callable[[pl.Expr], pl.Expr], base: int) -> Compiler:
    """Polars gives 2.9999999999999996 for log10(1000): the nearest power of the base is tried."""
    last = DIGITS_OF_A_DOUBLE if base == 10 else 1022  # noqa: PLR2004
    exact_powers = (float(Fraction(base) ** n) for n in range(-last + 1, last + 1))
    powers = pl.Series(exact_powers, dtype=pl.Float64)

    def exact(x: pl.Expr, y: pl.Expr) -> pl.Expr:
        near = y.round(0)
        index = near.clip(-last + 1, last).fill_nan(0.0).cast(pl.Int64) + (last - 1)
        return pl.when(x == gather(powers, index)).then(near).otherwise(y)

    return lambda _, arguments: let(arguments[0], body=lambda x: let(x, function(x), body=exact))


def _power(_: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    # Bound, since Polars takes the square root for a constant 0.5: NaN for -inf.
    return let(*arguments, body=lambda x, y: x.pow(y))


COMPILERS: dict[str, Compiler] = {
    "acos": _function(pl.Expr.arccos),
    "asin": _function(pl.Expr.arcsin),
    "atan": _function(pl.Expr.arctan),
    "atan2": lambda _, arguments: pl.arctan2(*arguments),
    "cbrt": _function(pl.Expr.cbrt),
    "cos": _function(pl.Expr.cos),
    "degrees": _function(pl.Expr.degrees),
    "exp": _function(pl.Expr.exp),
    "ln": _function(pl.Expr.log),
    "log10": _logarithm(pl.Expr.log10, 10),
    "log2": _logarithm(lambda x: x.log(2), 2),
    "power": _power,
    "radians": _function(pl.Expr.radians),
    "sin": _function(pl.Expr.sin),
    "sqrt": _function(pl.Expr.sqrt),
    "tan": _function(pl.Expr.tan),
}
