"""Pairing: how the rows of two inputs of a join meet, in either form.

Inside, columns have numbers for names, since to Polars some names are patterns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.expr import TRUE
from tidemill.model.batch import END, START
from tidemill.model.schema import Field, Schema
from tidemill.physical.eval import compile_predicate
from tidemill.physical.joining.conditions import split_condition
from tidemill.physical.joining.pairs import OTHER, make_pairs
from tidemill.physical.joining.side import Side, numbered_inside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.algebra.expr import Expr

__all__ = ["Pairing"]


class Pairing:
    """How rows of two inputs meet.

    Args:
        left: The columns of the left input.
        right: The columns of the right input.
        names: Names for the columns of both, left first.
        condition: What must be true, in these names.

    Attributes:
        schema: The columns of pairs under ``names``.
        columns: The same with numbers for names.
        sides: What is remembered of each input, and what its rows are found by.
    """

    __slots__ = ("_nulls_equal", "_residual", "columns", "schema", "sides")

    def __init__(
        self, left: Schema, right: Schema, names: tuple[str, ...], condition: Expr
    ) -> None:
        both = zip(names, (*left, *right), strict=True)
        self.schema = Schema(tuple(Field(name, f.type, f.nullable) for name, f in both))
        inside, numbered = numbered_inside(names, self.schema, condition)
        self.columns = [f.name for f in inside]
        width = len(left)
        equalities, rest = split_condition(numbered, self.columns[:width], self.columns[width:])
        required = [not equality.null_safe for equality in equalities]
        self.sides = (
            Side(left, inside[:width], [e.left for e in equalities], required),
            Side(right, inside[width:], [e.right for e in equalities], required),
        )
        self._nulls_equal = not all(required)
        self._residual = None if rest == TRUE else compile_predicate(rest)

    def overlaps(
        self, elements: pl.DataFrame, partners: pl.DataFrame, own: int
    ) -> Iterator[pl.DataFrame]:
        """The pairs that match and are valid at one time, with that time; a bounded number at once.

        Args:
            elements: Rows of one side, with ``START`` and ``END``.
            partners: Rows of the other; columns of equal names get the suffix ``OTHER``.
            own: The number of the elements' side.
        """
        keys, other_keys = self.sides[own].keys, self.sides[1 - own].keys
        for pairs in make_pairs(
            elements, partners, keys, other_keys, nulls_equal=self._nulls_equal
        ):
            valid = pairs.with_columns(
                pl.max_horizontal(START, START + OTHER).alias(START),
                pl.min_horizontal(END, END + OTHER).alias(END),
            ).filter(pl.col(START) < pl.col(END))
            matched = valid if self._residual is None else valid.filter(self._residual)
            if not matched.is_empty():
                yield matched
