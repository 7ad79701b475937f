"""The value of an aggregate over a bag of rows: the reference.

Laws:
- The result is a function of the bag alone: neither the order of the rows nor how they are grouped
  into parts changes it, to the last bit. Sums of DOUBLE are therefore exact sums, rounded once.
- NULLs are left out. Over no value at all ``count`` is 0 and everything else is NULL.
- DISTINCT leaves each value once.
- ``sum`` of integers is a BIGINT, of DECIMAL a DECIMAL(38, s); a sum that does not fit is NULL.
  Infinities and NaN add up as in IEEE 754.
- ``avg``, ``median``, ``variance`` and ``stddev`` are DOUBLE, from the exact value, rounded once,
  and once more for the root in ``stddev``. A bag with NaN or an infinity has the variance NaN; its
  median is the value in the middle of the order, or half the sum of two.
- ``var_samp`` and ``stddev_samp`` of one value are NULL.
- ``min`` and ``max`` follow the order of ``algebra/values.py``: NaN is the greatest number.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

from tidemill.algebra.evaluate import evaluate
from tidemill.algebra.values import EXACT, NAN, conform, order_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tidemill.algebra.expr import AggregateCall
    from tidemill.model.types import Value

__all__ = ["AGGREGATES", "aggregate"]

Number: TypeAlias = int | float | Decimal


def aggregate(call: AggregateCall, rows: Iterable[tuple[Mapping[str, Value], int]]) -> Value:
    """The aggregate over rows, each with how often it occurs.

    >>> from tidemill.algebra.expr import AggregateCall, Column
    >>> from tidemill.model.types import BIGINT
    >>> total = AggregateCall("sum", Column("x", BIGINT), BIGINT)
    >>> aggregate(total, [({"x": 2}, 3), ({"x": None}, 1)])
    6
    """
    values: list[Value] = []
    for row, multiplicity in rows:
        if call.condition is not None and evaluate(call.condition, row) is not True:
            continue
        value = True if call.argument is None else evaluate(call.argument, row)
        if value is not None:
            values += [value] * multiplicity
    if call.distinct:
        values = list(dict.fromkeys(values))
    if not values:
        return 0 if call.function == "count" else None
    return conform(AGGREGATES[call.function](values), call.type)


def _sum(values: list[Number]) -> Number:
    match values[0]:
        case float():
            return _sum_doubles([float(value) for value in values])
        case Decimal():
            return reduce(EXACT.add, [Decimal(value) for value in values])
        case _:
            return sum(int(value) for value in values)


def _sum_doubles(values: list[float]) -> float:
    if not all(math.isfinite(value) for value in values):
        return sum(value for value in values if not math.isfinite(value))
    return _rounded(sum(Fraction(value) for value in values))


def _avg(values: list[Number]) -> float:
    if not _finite(values):
        return _sum_doubles([float(value) for value in values])
    return _rounded(_mean(values))


def _variance(values: list[Number], freedom: int) -> float | None:
    if len(values) <= freedom:
        return None
    if not _finite(values):
        return NAN
    mean = _mean(values)
    squares = sum((Fraction(value) - mean) ** 2 for value in values)
    return _rounded(Fraction(squares) / (len(values) - freedom))


def _deviation(values: list[Number], freedom: int) -> float | None:
    variance = _variance(values, freedom)
    return None if variance is None else math.sqrt(variance)


def _median(values: list[Number]) -> float:
    ordered = sorted(values, key=order_key)
    middle = [ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]]
    if not _finite(middle):
        return float(middle[0]) / 2 + float(middle[1]) / 2
    return _rounded(_mean(middle))


def _finite(values: list[Number]) -> bool:
    return all(math.isfinite(value) for value in values)


def _mean(values: list[Number]) -> Fraction:
    return Fraction(sum(Fraction(value) for value in values)) / len(values)


def _rounded(exact: Fraction | int) -> float:
    """The DOUBLE nearest to an exact number; infinity if it is too large."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


AGGREGATES: dict[str, Callable[..., Value]] = {
    "avg": _avg,
    "bool_and": all,
    "bool_or": any,
    "count": len,
    "max": lambda values: max(values, key=order_key),
    "median": _median,
    "min": lambda values: min(values, key=order_key),
    "stddev_pop": lambda values: _deviation(values, 0),
    "stddev_samp": lambda values: _deviation(values, 1),
    "sum": _sum,
    "var_pop": lambda values: _variance(values, 0),
    "var_samp": lambda values: _variance(values, 1),
}
"""By canonical name: what an aggregate makes of at least one value."""
