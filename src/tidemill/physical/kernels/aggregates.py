"""Aggregates by counters: what is added up for each, and the result from what has been added up.

An ``Argument`` is what some aggregates look at: an expression, of the rows that meet a condition.
All aggregates of one argument share its counters. What counters cannot say comes from pieces
(``cover.py``): the value in the middle, the least, the greatest, and wide numbers (``exact.py``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.types import BOOLEAN, MAX_PRECISION, DataType, Kind
from tidemill.physical.eval import compile_expr, compile_predicate
from tidemill.physical.kernels.exact import (
    HALF,
    Wide,
    counts_of_not_finite,
    decimal_sum,
    digits,
    integer_sum,
    is_narrow,
    not_finite,
    ratio,
    sum_columns,
)
from tidemill.physical.kernels.variance import NARROW, part_columns, variance

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidemill.algebra.expr import AggregateCall, Expr

__all__ = ["ROWS", "Argument", "argument_of", "arguments", "median_of", "result"]

ROWS = "@rows"
"""The counter of rows: a group is there as long as it has some."""

_I128 = pl.Int128()
_INSENSITIVE = frozenset({"min", "max", "bool_and", "bool_or"})
_SUMS = frozenset({"sum", "avg"})
_FREEDOM = {"var_samp": 1, "stddev_samp": 1, "var_pop": 0, "stddev_pop": 0}
_SHORT_SCALE = 18


@dataclass(frozen=True, slots=True)
class Argument:
    """What some aggregates look at.

    Attributes:
        index: Its number, from which its columns have their names.
        expr: The values; NULLs are left out. Without it, rows are looked at.
        condition: Only rows for which it is true take part.
        distinct: Whether equal values count once.
        functions: The aggregates of it.
    """

    index: int
    expr: Expr | None
    condition: Expr | None
    distinct: bool
    functions: frozenset[str]

    @property
    def type(self) -> DataType:
        """The type of the values."""
        return BOOLEAN if self.expr is None else self.expr.type

    @property
    def column(self) -> str:
        """The name of the column of its values."""
        return f"@{self.index}"

    @property
    def keeps_values(self) -> bool:
        """Whether the values themselves are kept, each with how often it occurs."""
        return self.distinct or "median" in self.functions

    @property
    def keeps_wide(self) -> bool:
        """Whether wide numbers are kept, each with how often it occurs."""
        return self.type.kind is Kind.DOUBLE and bool(self._is_summed or self._is_squared)

    @property
    def _is_summed(self) -> bool:
        return not _SUMS.isdisjoint(self.functions)

    @property
    def _is_squared(self) -> bool:
        return not self.functions.isdisjoint(_FREEDOM)

    def counter(self, name: str) -> str:
        """The name of one of its counters."""
        return f"@{self.index}.{name}"

    def value(self) -> pl.Expr:
        """The values, over the columns of the input."""
        value = pl.repeat(True, pl.len()) if self.expr is None else compile_expr(self.expr)
        if self.condition is not None:
            value = pl.when(compile_predicate(self.condition)).then(value)
        return value.alias(self.column)

    def is_wide(self) -> pl.Expr:
        """Whether a value, in ``column``, is a wide number."""
        value = pl.col(self.column)
        narrow = is_narrow(value, *NARROW) if self._is_squared else is_narrow(value)
        return value.is_finite() & ~narrow

    def counters(self) -> list[str]:
        """The names of its counters."""
        return [expr.meta.output_name() for expr in self.contributions()]

    def contributions(self) -> list[pl.Expr]:
        """What a value, in ``column``, adds to each counter."""
        value, type_ = pl.col(self.column), self.type
        columns = {"n": value.is_not_null().cast(pl.Int64)}
        if not self.functions.isdisjoint({"bool_and", "bool_or"}):
            columns["true"] = value.cast(pl.Int64)
        if type_.kind is Kind.DOUBLE and (self._is_summed or self._is_squared):
            columns["odd"] = not_finite(value)
            finite = value.is_finite() & ~self.is_wide()
            value = pl.when(finite).then(value)
        if self._is_summed:
            columns |= sum_columns(value, type_)
        if self._is_squared:
            columns |= part_columns(value, type_)
        return [expr.fill_null(0).alias(self.counter(name)) for name, expr in columns.items()]


def arguments(calls: Iterable[AggregateCall]) -> tuple[Argument, ...]:
    """The different arguments of some aggregates, in the order of their first use."""
    functions: dict[tuple[Expr | None, Expr | None, bool], set[str]] = {}
    for call in calls:
        if not _counts_rows(call):
            functions.setdefault(_identity(call), set()).add(call.function)
    return tuple(
        Argument(i, *identity, frozenset(names))
        for i, (identity, names) in enumerate(functions.items())
    )


def _counts_rows(call: AggregateCall) -> bool:
    return call.argument is None and call.condition is None


def _identity(call: AggregateCall) -> tuple[Expr | None, Expr | None, bool]:
    distinct = call.distinct and call.function not in _INSENSITIVE
    return (call.argument, call.condition, distinct)


def argument_of(call: AggregateCall, known: Iterable[Argument]) -> Argument | None:
    """The argument of an aggregate; ``None`` if it counts all rows."""
    if _counts_rows(call):
        return None
    wanted = _identity(call)
    return next(a for a in known if (a.expr, a.condition, a.distinct) == wanted)


# Results


def result(call: AggregateCall, argument: Argument, rows: pl.DataFrame, wide: Wide) -> pl.Series:
    """The value of an aggregate by counters, in each row of a timeline.

    Args:
        call: Any but ``min``, ``max`` and ``median``.
        argument: What it looks at.
        rows: The timeline.
        wide: By row, the wide values of the argument.
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
    freedom = _FREEDOM[function]
    n = pl.col(argument.counter("n")).cast(_I128)
    prefix = argument.counter("")
    sums = [
        pl.col(name).alias(name.removeprefix(prefix))
        for name in rows.columns
        if name.startswith((f"{prefix}s", f"{prefix}p")) and name != argument.counter("sum")
    ]
    frame = rows.select(pl.when(n > freedom).then(n).alias("n"), *sums)
    some = {row: values for row, values in wide.items() if frame["n"][row] is not None}
    value = _with_odd(argument, rows, variance(frame, argument.type, some, freedom), only_nan=True)
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
