"""Arguments of aggregates: what is added up for them.

An ``Argument`` is what some aggregates look at: an expression, of the rows that meet a condition.
All aggregates of one argument share its counters, which are sums of integers over its values. What
counters cannot say comes from the values themselves, as far as they are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.types import BOOLEAN, DataType, Kind
from tidemill.physical.eval import compile_expr, compile_predicate
from tidemill.physical.kernels.exact import carried, is_narrow, not_finite, sum_columns
from tidemill.physical.kernels.variance import NARROW, part_columns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidemill.algebra.expr import AggregateCall, Expr

__all__ = ["FREEDOM", "ROWS", "Argument", "argument_of", "arguments", "carry"]

ROWS = "@rows"
"""The counter of rows: a group is there as long as it has some."""

FREEDOM = {"var_samp": 1, "stddev_samp": 1, "var_pop": 0, "stddev_pop": 0}
"""By variance, what is taken from the number of values."""

_INSENSITIVE = frozenset({"min", "max", "bool_and", "bool_or"})
_SUMS = frozenset({"sum", "avg"})


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
        return not self.functions.isdisjoint(FREEDOM)

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


def carry(totals: pl.DataFrame, known: Iterable[Argument]) -> pl.DataFrame:
    """The totals of groups with the fractions of sums of DOUBLE below one."""
    names = [(argument.counter("whole"), argument.counter("fraction")) for argument in known]
    return totals.with_columns(
        expr for pair in names if pair[0] in totals.columns for expr in carried(*pair)
    )


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
