"""The aggregate functions: which types they take and give.

``sum`` of integers is a BIGINT and of DECIMAL(p, s) a DECIMAL(38, s). ``avg``, ``median`` and the
family of the variance are DOUBLE over any number; ``min`` and ``max`` take any type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.algebra.expr import AggregateCall, Expr
from tidemill.catalog.functions.conversion import convert, converts_without_asking
from tidemill.catalog.functions.signature import Family
from tidemill.errors import BindError
from tidemill.model.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    MAX_PRECISION,
    NULL,
    DataType,
    Kind,
    decimal,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.catalog.functions.signature import Wanted
    from tidemill.errors import Span

__all__ = ["AGGREGATES", "Aggregate", "build_aggregate"]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate function: what it takes, what it gives, in one line what it means."""

    name: str
    wanted: Wanted
    result: Callable[[DataType], DataType]
    description: str
    aliases: tuple[str, ...] = ()
    form: str = ""

    @property
    def signature(self) -> str:
        """How a call is written, with the type."""
        return self.form or f"{self.name}([DISTINCT] x {self.wanted}) [FILTER (WHERE condition)]"


def build_aggregate(
    function: Aggregate,
    argument: Expr | None,
    *,
    distinct: bool,
    condition: Expr | None,
    span: Span | None,
) -> AggregateCall:
    """The typed call of an aggregate."""
    if argument is None and (function.name != "count" or distinct):
        raise BindError(f'"{function.name}" needs an argument', span=span, hint=function.signature)
    if condition is not None and not converts_without_asking(condition, BOOLEAN):
        raise BindError(
            f"the condition of FILTER is {condition.type}, not BOOLEAN",
            span=span,
            hint="compare it with something, as in … > 0",
        )
    if argument is not None:
        argument = _argument(function, argument, span)
    return AggregateCall(
        function.name,
        argument,
        function.result(BIGINT if argument is None else argument.type),
        distinct=distinct,
        condition=None if condition is None else convert(condition, BOOLEAN),
    )


def _argument(function: Aggregate, argument: Expr, span: Span | None) -> Expr:
    if argument.type == NULL:
        return convert(
            argument, INTEGER if isinstance(function.wanted, Family) else function.wanted
        )
    fits = (
        function.wanted.holds(argument.type)
        if isinstance(function.wanted, Family)
        else function.wanted == argument.type
    )
    if not fits:
        raise BindError(
            f'the argument of "{function.name}" is {argument.type}, not {function.wanted}',
            span=span,
            hint=function.signature,
        )
    return argument


def _sum_type(type_: DataType) -> DataType:
    if type_.kind is Kind.DECIMAL:
        return decimal(MAX_PRECISION, type_.scale)
    return BIGINT if type_.is_integer else type_


def _same(type_: DataType) -> DataType:
    return type_


def _bigint(_: DataType) -> DataType:
    return BIGINT


def _double(_: DataType) -> DataType:
    return DOUBLE


AGGREGATES = (
    Aggregate(
        "count",
        Family.ANY,
        _bigint,
        "the number of rows, or of values that are not NULL",
        form="count(* | [DISTINCT] x ANY) [FILTER (WHERE condition)]",
    ),
    Aggregate("sum", Family.NUMBER, _sum_type, "the sum"),
    Aggregate("avg", Family.NUMBER, _double, "the mean", ("mean",)),
    Aggregate("min", Family.ANY, _same, "the least value"),
    Aggregate("max", Family.ANY, _same, "the greatest value"),
    Aggregate("median", Family.NUMBER, _double, "the value in the middle, or half the sum of two"),
    Aggregate(
        "stddev_samp", Family.NUMBER, _double, "the standard deviation of a sample", ("stddev",)
    ),
    Aggregate("stddev_pop", Family.NUMBER, _double, "the standard deviation"),
    Aggregate("var_samp", Family.NUMBER, _double, "the variance of a sample", ("variance",)),
    Aggregate("var_pop", Family.NUMBER, _double, "the variance"),
    Aggregate("bool_and", BOOLEAN, _same, "whether all are true"),
    Aggregate("bool_or", BOOLEAN, _same, "whether one is true"),
)
