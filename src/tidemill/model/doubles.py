"""Numbers with a point as text: ``NaN``, ``Infinity`` and ``-Infinity`` everywhere."""

from __future__ import annotations

import math

import polars as pl

__all__ = ["double_text", "special_text"]


def double_text(value: float) -> str:
    """The shortest text that reads back as the same number.

    >>> [double_text(value) for value in (0.1, math.nan, math.inf, -math.inf)]
    ['0.1', 'NaN', 'Infinity', '-Infinity']
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return str(value)


def special_text(x: pl.Expr) -> pl.Expr:
    """The text of what is no finite number; NULL for the others."""
    return (
        pl.when(x.is_nan())
        .then(pl.lit("NaN"))
        .when(x == math.inf)
        .then(pl.lit("Infinity"))
        .when(x == -math.inf)
        .then(pl.lit("-Infinity"))
    )
