"""Comparisons, three-valued logic, and the functions that look at NULL.

Polars compares as we do: NaN equals itself and is greater than every number, texts are in the order
of their code points, ``&`` and ``|`` are Kleene's. Only DECIMALs of different scales need more.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.expr import Call, Literal
from tidemill.algebra.values import conform
from tidemill.physical.eval.binding import column_type, let
from tidemill.physical.eval.decimals import three_way, to_digits

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.model.types import DataType
    from tidemill.physical.eval.binding import Compiler

__all__ = ["COMPILERS"]


def _compare(
    comparison: Callable[[pl.Expr, pl.Expr], pl.Expr],
    mirrored: Callable[[pl.Expr, pl.Expr], pl.Expr],
) -> Compiler:
    """A comparison, given with the one that is the same from right to left."""

    def compile_(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
        left, right = arguments
        types = (call.arguments[0].type, call.arguments[1].type)
        if isinstance(call.arguments[0], Literal):
            # With a constant on the left, Polars gives one row for a column of one value.
            return _compared(mirrored, right, left, (types[1], types[0]))
        return _compared(comparison, left, right, types)

    return compile_


def _compared(
    comparison: Callable[[pl.Expr, pl.Expr], pl.Expr],
    left: pl.Expr,
    right: pl.Expr,
    types: tuple[DataType, DataType],
) -> pl.Expr:
    if types[0] == types[1]:
        return comparison(left, right)
    # Only two DECIMALs are compared without a common type.
    a, b = to_digits(left, types[0]), to_digits(right, types[1])
    if types[0].scale == types[1].scale:
        return comparison(a, b)
    return comparison(three_way(a, b, (types[0].scale, types[1].scale)), pl.lit(0, dtype=pl.Int8))


def _missing(*, same: bool) -> Compiler:
    """``IS [NOT] DISTINCT FROM``: whether both are NULL, or both are not and they are equal."""

    def compile_(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
        left, right = arguments
        types = (call.arguments[0].type, call.arguments[1].type)
        if types[0] == types[1]:
            if isinstance(call.arguments[0], Literal):  # as in _compare
                left, right = right, left
            return left.eq_missing(right) if same else left.ne_missing(right)

        def compared(a: pl.Expr, b: pl.Expr) -> pl.Expr:
            equal = _compared(pl.Expr.eq, a, b, types)
            equal = equal.fill_null(a.is_null() & b.is_null())
            return equal if same else ~equal

        return let(left, right, body=compared)

    return compile_


def _in(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    type_ = call.arguments[0].type
    members = call.arguments[1:]
    if all(isinstance(member, Literal) and member.type == type_ for member in members):
        return _in_constants(arguments[0], [m for m in members if isinstance(m, Literal)], type_)

    def one_of(x: pl.Expr, *others: pl.Expr) -> pl.Expr:
        pairs = zip(others, members, strict=True)
        equal = [_compared(pl.Expr.eq, x, other, (type_, m.type)) for other, m in pairs]
        return reduce(or_, equal)

    return let(*arguments, body=one_of)


def _in_constants(x: pl.Expr, members: list[Literal], type_: DataType) -> pl.Expr:
    values = [conform(member.value, type_) for member in members]
    present = pl.Series([v for v in values if v is not None], dtype=column_type(type_))
    found = x.is_in(pl.lit(present).implode())
    # With a NULL among them, what is not found is unknown.
    return found | pl.lit(None, dtype=pl.Boolean) if None in values else found


def _extreme(better: Callable[[pl.Expr, pl.Expr], pl.Expr]) -> Compiler:
    """The greatest or least; unlike ``max_horizontal`` with NaN in its place in the order."""

    def best(a: pl.Expr, b: pl.Expr) -> pl.Expr:
        return pl.when(a.is_null() | better(b, a)).then(b).otherwise(a)

    def compile_(_: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
        return reduce(lambda a, b: let(a, b, body=best), arguments)

    return compile_


COMPILERS: dict[str, Compiler] = {
    "<": _compare(pl.Expr.lt, pl.Expr.gt),
    "<=": _compare(pl.Expr.le, pl.Expr.ge),
    "<>": _compare(pl.Expr.ne, pl.Expr.ne),
    "=": _compare(pl.Expr.eq, pl.Expr.eq),
    ">": _compare(pl.Expr.gt, pl.Expr.lt),
    ">=": _compare(pl.Expr.ge, pl.Expr.le),
    "and": lambda _, arguments: arguments[0] & arguments[1],
    "coalesce": lambda _, arguments: pl.coalesce(*arguments),
    "greatest": _extreme(pl.Expr.gt),
    "in": _in,
    "is_distinct": _missing(same=False),
    "is_false": lambda _, arguments: ~arguments[0].fill_null(value=True),
    "is_not_distinct": _missing(same=True),
    "is_null": lambda _, arguments: arguments[0].is_null(),
    "is_true": lambda _, arguments: arguments[0].fill_null(value=False),
    "least": _extreme(pl.Expr.lt),
    "not": lambda _, arguments: ~arguments[0],
    "or": lambda _, arguments: arguments[0] | arguments[1],
}
