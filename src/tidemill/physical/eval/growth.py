"""Functions that make texts longer: what they are about to make is measured before.

``kept_small`` measures a whole batch at once, which costs next to nothing beside making the texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.expr import Literal
from tidemill.physical.eval.binding import column_type
from tidemill.physical.limits import LARGEST_TEXTS, check_texts

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.algebra.expr import Call

__all__ = ["bytes_of", "is_small", "kept_small"]


def kept_small(
    call: Call, arguments: tuple[pl.Expr, ...], size: Callable[[list[pl.Series]], int]
) -> tuple[pl.Expr, ...]:
    """The arguments; to read them is an error where the results would be too large together.

    Args:
        call: The call, of whose arguments one at least is not a constant.
        arguments: What they are compiled to.
        size: Of the arguments of a batch, how many bytes the results have at most.
    """
    place = next(i for i, part in enumerate(call.arguments) if not isinstance(part, Literal))
    names = [f"@{index}" for index in range(len(arguments))]
    given = pl.struct([part.alias(name) for part, name in zip(arguments, names, strict=True)])

    def measured(values: pl.Series) -> pl.Series:
        series = values.struct.unnest().get_columns()
        check_texts(call.function, size(series))
        return series[place]

    type_ = column_type(call.arguments[place].type)
    checked = given.map_batches(measured, return_dtype=type_, is_elementwise=True)
    return (*arguments[:place], checked, *arguments[place + 1 :])


def bytes_of(texts: pl.Series) -> int:
    """How many bytes the texts have together."""
    return int(texts.str.len_bytes().sum() or 0)


def is_small(size: int) -> bool:
    """Whether so many bytes are not too many."""
    return size <= LARGEST_TEXTS
