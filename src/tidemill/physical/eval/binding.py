"""What the parts of the compiler share: a value used twice, and constants of a type.

A Polars expression is a tree: an operand that is written twice is computed twice, and nested calls
would grow exponentially. ``let`` computes it once, as the field of a struct.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from tidemill.algebra.expr import Literal
from tidemill.algebra.values import conform
from tidemill.model.batch import polars_type
from tidemill.model.types import DataType, Kind

if TYPE_CHECKING:
    from tidemill.algebra.expr import Call, Expr
    from tidemill.model.types import Value

__all__ = [
    "Compiler",
    "column_type",
    "constant",
    "int128",
    "let",
    "one_zero",
    "quotient",
    "typed",
    "whole",
]

Compiler: TypeAlias = Callable[["Call", tuple[pl.Expr, ...]], pl.Expr]
"""Of a call and its compiled arguments makes the compiled call. A constant argument is not NULL."""

_RESULT = "@result"


def let(*values: pl.Expr, body: Callable[..., pl.Expr]) -> pl.Expr:
    """``body`` of the values, each computed once; constants have the height of the others.

    The body may use only its parameters: within it there are no columns of the frame.
    """
    names = [f"@{index}" for index in range(len(values))]
    struct = pl.struct([value.alias(name) for value, name in zip(values, names, strict=True)])
    result = body(*(pl.field(name) for name in names))
    return struct.struct.with_fields(result.alias(_RESULT)).struct.field(_RESULT)


def quotient(dividend: pl.Expr, divisor: pl.Expr) -> pl.Expr:
    """The nearest DOUBLE to the quotient.

    Polars multiplies by the reciprocal where the divisor is one value for all rows, and rounds
    twice; a field of a struct is not seen as one.
    """
    return let(dividend, divisor, body=lambda a, b: a / b)


def one_zero(x: pl.Expr) -> pl.Expr:
    """A DOUBLE with 0.0 for -0.0; Polars leaves out the addition of a constant 0.0."""
    return pl.when(x == pl.lit(0.0)).then(pl.lit(0.0)).otherwise(x)


def column_type(type_: DataType) -> pl.DataType:
    """The type of a column; NULL has one here, as constants of no type are NULL."""
    return pl.Null() if type_.kind is Kind.NULL else polars_type(type_)


def typed(value: Value, type_: DataType) -> pl.Expr:
    """A constant of exactly the type."""
    return pl.lit(conform(value, type_), dtype=column_type(type_))


def int128(value: int) -> pl.Expr:
    """A wide constant."""
    return pl.lit(value, dtype=pl.Int128)


def whole(x: pl.Expr, type_: DataType) -> pl.Expr:
    """A wider integer as one of the type; NULL where it does not fit."""
    return x.cast(polars_type(type_), strict=False)


def constant(expr: Expr) -> Value:
    """The value of an argument that the binder has found to be a constant."""
    assert isinstance(expr, Literal), "the binder refuses what is not constant here"
    return expr.value
