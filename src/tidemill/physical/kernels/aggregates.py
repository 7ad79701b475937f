"""Results of aggregates, from what has been added up for their arguments (``arguments.py``)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.types import MAX_PRECISION, DataType, Kind
from tidemill.physical.kernels.arguments import FREEDOM
from tidemill.physical.kernels.exact import (
    HALF,
    counts_of_not_finite,
    decimal_sum,
    digits,
    integer_sum,
    ratio,
)
from tidemill.physical.kernels.variance import variance

if TYPE_CHECKING:
    from tidemill.algebra.expr import AggregateCall
    from tidemill.physical.kernels.arguments import Argument
    from tidemill.physical.kernels.wide import Wide

__all__ = ["median_of", "result"]

_I128 = pl.Int128()
_SHORT_SCALE = 18


def result(call: AggregateCall, argument: Argument, rows: pl.DataFrame, wide: Wide) -> pl.Series:
    """The value of an aggregate by counters, in each row of a timeline.

    Args:
        call: Any but ``min``, ``max`` and ``median``.
        argument: What it looks at.
        rows: The timeline.
        wide: The sums of wide values of the argument.
    """
    n = pl.col(argument.counter("n"))
    match call.function:
        case "count":
            return rows.select(n).to_series()
        case "bool_and":
            true = pl.col(argument.counter("true"))
            return rows.select(pl.when(n > 0).then(true == n)).to_series()
        case "bool_or":
            true = pl.col(argument.counter("true"))
            return rows.select(pl.when(n > 0).then(true > 0)).to_series()
        case "sum":
            return _sum(argument, call.type, rows, wide)
        case "avg":
            divisor = n.cast(_I128) * 10**argument.type.scale
            return _ratio(argument, rows, wide, divisor)
        case _:
            return _variance(argument, call.function, rows, wide)


def _sum(argument: Argument, type_: DataType, rows: pl.DataFrame, wide: Wide) -> pl.Series:
    some = pl.col(argument.counter("n")) > 0
    match type_.kind:
        case Kind.DOUBLE:
            return _ratio(argument, rows, wide, pl.lit(1, _I128))
        case Kind.DECIMAL:
            names = ("sum",) if argument.counter("sum") in rows.columns else ("high", "low")
            total = decimal_sum([pl.col(argument.counter(name)) for name in names], type_)
        case _:
            total = integer_sum(pl.col(argument.counter("sum")))
    return rows.select(pl.when(some).then(total)).to_series()


def _ratio(argument: Argument, rows: pl.DataFrame, wide: Wide, divisor: pl.Expr) -> pl.Series:
    """The exact sum through the divisor."""
    type_ = argument.type
    if type_.kind is Kind.DECIMAL and not _is_short(argument, rows):
        return _mean_of_many_digits(argument, rows)
    fraction: pl.Expr = pl.lit(0, _I128)
    if type_.kind is Kind.DOUBLE:
        whole = pl.col(argument.counter("whole"))
        fraction = pl.col(argument.counter("fraction"))
    else:
        whole = _whole(argument, rows)
    frame = rows.select(
        pl.when(pl.col(argument.counter("n")) > 0).then(whole).alias("whole"),
        fraction.alias("fraction"),
        divisor.alias("divisor"),
    )
    return _with_odd(argument, rows, ratio(frame, wide))


def _whole(argument: Argument, rows: pl.DataFrame) -> pl.Expr:
    if argument.counter("sum") in rows.columns:
        return pl.col(argument.counter("sum"))
    return pl.col(argument.counter("high")) * HALF + pl.col(argument.counter("low"))


def _is_short(argument: Argument, rows: pl.DataFrame) -> bool:
    """Whether the sum and the power of ten it is divided by are certain to fit 128 bits."""
    if argument.type.scale > _SHORT_SCALE:
        return False
    high = argument.counter("high")
    return high not in rows.columns or bool((rows[high].abs() < HALF // 100).all())


def _mean_of_many_digits(argument: Argument, rows: pl.DataFrame) -> pl.Series:
    names = [argument.counter(name) for name in ("n", "sum", "high", "low")]
    columns = rows.select(name for name in names if name in rows.columns).iter_rows()
    scale = 10**argument.type.scale
    # A loop over rows: there is no integer wide enough.
    means = [
        float(Fraction(sums[0] if len(sums) == 1 else sums[0] * HALF + sums[1], n * scale))
        if n
        else None
        for n, *sums in columns
    ]
    return pl.Series(means, dtype=pl.Float64)


def _variance(argument: Argument, function: str, rows: pl.DataFrame, wide: Wide) -> pl.Series:
    freedom = FREEDOM[function]
    n = pl.col(argument.counter("n")).cast(_I128)
    prefix = argument.counter("")
    sums = [
        pl.col(name).alias(name.removeprefix(prefix))
        for name in rows.columns
        if name.startswith((f"{prefix}s", f"{prefix}p")) and name != argument.counter("sum")
    ]
    frame = rows.select(pl.when(n > freedom).then(n).alias("n"), *sums)
    value = _with_odd(argument, rows, variance(frame, argument.type, wide, freedom), only_nan=True)
    if function.startswith("stddev"):
        value = value.sqrt()
    return pl.select(pl.when(frame["n"].is_not_null()).then(value)).to_series()


def _with_odd(
    argument: Argument, rows: pl.DataFrame, value: pl.Series, *, only_nan: bool = False
) -> pl.Series:
    """The values, where something is not finite as IEEE 754 adds it up."""
    name = argument.counter("odd")
    if name not in rows.columns or not (rows[name] != 0).any():
        return value
    nan, plus, minus = counts_of_not_finite(pl.col(name))
    unclear = (pl.col(name) != 0) if only_nan else (nan > 0) | ((plus > 0) & (minus > 0))
    return rows.select(
        pl.when(unclear)
        .then(math.nan)
        .when(plus > 0)
        .then(math.inf)
        .when(minus > 0)
        .then(-math.inf)
        .otherwise(pl.lit(value))
    ).to_series()


def median_of(middle: pl.DataFrame, type_: DataType) -> pl.Series:
    """Half the sum of two values in the middle, ``low`` and ``high``, rounded once."""
    low, high = pl.col("low"), pl.col("high")
    match type_.kind:
        case Kind.DOUBLE:
            total = low + high
            # The sum may be too large where its half is not.
            half = pl.when(total.is_finite()).then(total / 2).otherwise(low / 2 + high / 2)
            return middle.select(half).to_series()
        case Kind.DECIMAL if type_.scale > _SHORT_SCALE or type_.precision == MAX_PRECISION:
            # A loop over rows: there is no integer wide enough.
            means = [
                None if a is None else float(Fraction(a) + Fraction(b)) / 2
                for a, b in middle.iter_rows()
            ]
            return pl.Series(means, dtype=pl.Float64)
        case _:
            frame = middle.select(
                (digits(low, type_) + digits(high, type_)).alias("whole"),
                pl.lit(0, _I128).alias("fraction"),
                pl.lit(2 * 10**type_.scale, _I128).alias("divisor"),
            )
            return ratio(frame, {})
