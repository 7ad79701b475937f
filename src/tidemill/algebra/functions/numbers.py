"""The meaning of arithmetic and of the functions of numbers.

Integers and DECIMALs are exact; what does not fit into the type of the result is NULL (see
``algebra/values.py``). ``/``, ``//`` and ``%`` by zero have no value and are NULL, for DOUBLE too.
``//`` cuts towards zero, ``%`` has the sign of the dividend. Other functions of DOUBLE follow
IEEE 754 outside their domain: ``sqrt(-1)`` is NaN, ``ln(0)`` is -inf, ``exp(1000)`` is inf.
``round`` rounds halves away from zero.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from tidemill.algebra.casts import half_away_from_zero
from tidemill.algebra.values import EXACT, NAN
from tidemill.model.types import MAX_PRECISION

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.model.types import Value

__all__ = ["STRICT"]

Number: TypeAlias = int | float | Decimal
N = TypeVar("N", int, float, Decimal)

_DIGITS_OF_A_DOUBLE = 308


def _add(left: N, right: N) -> N:
    if isinstance(left, Decimal):
        return EXACT.add(left, right)
    return left + right


def _subtract(left: N, right: N) -> N:
    if isinstance(left, Decimal):
        return EXACT.subtract(left, right)
    return left - right


def _multiply(left: N, right: N) -> N:
    if isinstance(left, Decimal):
        return EXACT.multiply(left, right)
    return left * right


def _negate(x: N) -> N:
    # The operators would round a Decimal to 28 digits.
    if isinstance(x, Decimal):
        return x.copy_negate()
    return -x


def _absolute(x: N) -> N:
    if isinstance(x, Decimal):
        return x.copy_abs()
    return abs(x)


def _divide(left: float, right: float) -> float | None:
    return left / right if right else None


def _integer_divide(left: int, right: int) -> int | None:
    if right == 0:
        return None
    size = abs(left) // abs(right)
    return size if (left < 0) == (right < 0) else -size


def _modulo(left: Number, right: Number) -> Number | None:
    if right == 0:
        return None
    if isinstance(left, Decimal):
        return EXACT.remainder(left, Decimal(right))
    if isinstance(left, float):
        return NAN if math.isinf(left) else math.fmod(left, right)
    assert isinstance(right, int), "both have one type"
    size = abs(left) % abs(right)
    return -size if left < 0 else size


def _to_whole(rounding: str, of_double: Callable[[float], int]) -> Callable[[Number], Number]:
    def whole(x: Number) -> Number:
        match x:
            case Decimal():
                return x.to_integral_value(rounding)
            case float():
                return float(of_double(x)) if math.isfinite(x) else x
            case _:
                return x

    return whole


def _round(x: Number, digits: int = 0) -> Number:
    match x:
        case Decimal():
            places = max(-MAX_PRECISION - 1, min(digits, MAX_PRECISION))
            shifted = EXACT.scaleb(x, places).to_integral_value(ROUND_HALF_UP)
            return EXACT.scaleb(shifted, -places)
        case float():
            return _round_double(x, digits)
        case _:
            if digits >= 0:
                return x
            unit: int = 10 ** min(-digits, 20)
            size = (abs(x) + unit // 2) // unit * unit
            return -size if x < 0 else size


def _round_double(x: float, digits: int) -> float:
    """Rounded as DOUBLEs are by most systems: scaled, rounded, scaled back."""
    if not math.isfinite(x):
        return x
    if digits < -_DIGITS_OF_A_DOUBLE:
        return 0.0
    power = float(10 ** min(abs(digits), _DIGITS_OF_A_DOUBLE))
    if digits < 0:
        return half_away_from_zero(x / power) * power
    shifted = x * power
    return half_away_from_zero(shifted) / power if math.isfinite(shifted) else x


def _sign(x: Number) -> int:
    return (x > 0) - (x < 0)


def _ieee(function: Callable[..., float]) -> Callable[..., float]:
    """The function, with NaN outside its domain and infinity where the result is too large."""

    def total(*arguments: float) -> float:
        try:
            return function(*arguments)
        except ValueError:
            return NAN
        except OverflowError:
            return math.inf

    return total


def _logarithm(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda x: -math.inf if x == 0 else _ieee(function)(x)


def _power(base: float, exponent: float) -> float:
    if base == 0 and exponent < 0:
        return math.inf
    negative = base < 0 and exponent % 2 == 1
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if negative else math.inf
    except ValueError:
        return NAN


STRICT: dict[str, Callable[..., Value]] = {
    "%": _modulo,
    "*": _multiply,
    "+": _add,
    "-": _subtract,
    "/": _divide,
    "//": _integer_divide,
    "abs": _absolute,
    "acos": _ieee(math.acos),
    "asin": _ieee(math.asin),
    "atan": math.atan,
    "atan2": math.atan2,
    "cbrt": math.cbrt,
    "ceil": _to_whole(ROUND_CEILING, math.ceil),
    "cos": _ieee(math.cos),
    "degrees": math.degrees,
    "exp": _ieee(math.exp),
    "floor": _to_whole(ROUND_FLOOR, math.floor),
    "ln": _logarithm(math.log),
    "log10": _logarithm(math.log10),
    "log2": _logarithm(math.log2),
    "neg": _negate,
    "pi": lambda: math.pi,
    "power": _power,
    "radians": math.radians,
    "round": _round,
    "sign": _sign,
    "sin": _ieee(math.sin),
    "sqrt": _ieee(math.sqrt),
    "tan": _ieee(math.tan),
    "trunc": _to_whole(ROUND_DOWN, math.trunc),
}
