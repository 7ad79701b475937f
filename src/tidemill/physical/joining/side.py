"""One side of a join: its rows under new names, with the keys they are found by.

A key is a column of the side or an expression over its columns. Keys of two sides are equal as
columns if and only if the expressions are equal in SQL: NaN = NaN and 0.0 = -0.0, so a DOUBLE is
looked up by its bits. Where NULL equals nothing, a row with a NULL has no partner and is left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.expr import Column, Expr, replace_columns
from tidemill.model.batch import END, START, TIME_TYPE, polars_type
from tidemill.model.types import DOUBLE
from tidemill.physical.eval import compile_expr
from tidemill.physical.frames import pick

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidemill.model.batch import Batch
    from tidemill.model.schema import Field, Schema
    from tidemill.model.types import DataType

__all__ = ["Side", "lookup_key", "numbered_inside"]


def numbered_inside(
    names: Sequence[str], fields: Iterable[Field], condition: Expr
) -> tuple[tuple[Field, ...], Expr]:
    """The columns of a join and its condition with numbers for names.

    To Polars some names are patterns; what a join gives has its names again.
    """
    numbers = {name: f"@{i}" for i, name in enumerate(names)}
    inside = tuple(replace(f, name=n) for f, n in zip(fields, numbers.values(), strict=True))
    return inside, replace_columns(condition, lambda c: Column(numbers[c.name], c.type))


class Side:
    """One input of a join: its columns under their new names, and what its rows are found by.

    Args:
        schema: The columns of the input.
        fields: The same under their new names.
        keys: What rows are found by, in the new names.
        required: For each key, whether a row without it can have no partner.
        mark: How the names of computed keys begin; no other input's begin so.

    Attributes:
        columns: What is remembered of an element.
        keys: The columns that hold the keys.
    """

    __slots__ = ("_computed", "_inputs", "_names", "_required", "columns", "keys")

    def __init__(
        self,
        schema: Schema,
        fields: Sequence[Field],
        keys: Sequence[Expr],
        required: Sequence[bool],
        *,
        mark: str = "@key",
    ) -> None:
        self._inputs = schema.names
        self._names = [f.name for f in fields]
        self.keys: list[str] = []
        computed: dict[str, Expr] = {}
        for i, key in enumerate(keys):
            # Polars wants each key once; a column that occurs twice gets a second name.
            if isinstance(key, Column) and key.type != DOUBLE and key.name not in self.keys:
                self.keys.append(key.name)
            else:
                self.keys.append(f"{mark}{i}")
                computed[f"{mark}{i}"] = key
        self._computed = [lookup_key(key).alias(name) for name, key in computed.items()]
        self._required = [name for name, needed in zip(self.keys, required, strict=True) if needed]
        self.columns = {
            **{f.name: polars_type(f.type) for f in fields},
            START: TIME_TYPE,
            END: TIME_TYPE,
            **{name: _key_type(key.type) for name, key in computed.items()},
        }

    def entry(self, batch: Batch, times: tuple[str, str] = (START, END)) -> pl.DataFrame:
        """The elements of a batch that can have a partner, with their time columns."""
        elements = pick(batch, (*self._inputs, *times))
        elements.columns = [*self._names, *times]
        if self._computed:
            elements = elements.with_columns(self._computed)
        return elements.drop_nulls(self._required) if self._required else elements


def lookup_key(expr: Expr) -> pl.Expr:
    """What an expression is looked up by; a number with a point by its bits.

    Polars merges two sorted columns of floats (a column of one row is sorted) without finding NaN.
    """
    value = compile_expr(expr)
    if expr.type != DOUBLE:
        return value
    nan, zero = pl.lit(float("nan"), pl.Float64), pl.lit(0.0, pl.Float64)
    one_of_each = pl.when(value.is_nan()).then(nan).when(value == 0.0).then(zero).otherwise(value)
    return one_of_each.reinterpret(dtype=pl.Int64)


def _key_type(type_: DataType) -> pl.DataType:
    return pl.Int64() if type_ == DOUBLE else polars_type(type_)
