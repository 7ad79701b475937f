"""The last resort: a function of Python, called once for each distinct value of a column.

Only for what Polars has no expression for. The only place where Python sees values one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import polars_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.model.types import DataType, Value

__all__ = ["per_distinct"]


def per_distinct(column: pl.Expr, function: Callable[[Value], Value], type_: DataType) -> pl.Expr:
    """The function of each value of the column, NULL where that is NULL."""
    result = polars_type(type_)

    def mapped(values: pl.Series) -> pl.Series:
        distinct = values.drop_nulls().unique()
        results = pl.Series([function(value) for value in distinct], dtype=result)
        return values.replace_strict(distinct, results, default=None, return_dtype=result)

    return column.map_batches(mapped, return_dtype=result, is_elementwise=True)
