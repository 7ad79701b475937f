"""An index of predicates: which of many conditions a row meets, found by its values.

    bit 0: k = 7                    k    <7  =7  >7            v    <3  =3  >3
    bit 1: k = 7 AND v > 3    ->    0:    0   1   0      and   0:    1   1   1
    bit 2: v <= 3                   1:    0   1   0            1:    0   0   1
                                    2:    1   1   1            2:    1   1   0

The constants that conditions compare a term with cut its values into intervals and points. In
which of them a value lies is found by a binary search in the sorted constants; a table says which
bits allow it. The bits of a row are those that the tables of all terms allow. What is no comparison
with a constant is evaluated, once for all bits that have it.

Law:    bit b of a row is set if and only if all conditions of the bit are true of the row.
Cost:   for each row and term one search and one line of a table, however many conditions there are.

Values are ordered as ``order_key`` says: -0.0 equals 0.0, NaN equals NaN and is the greatest, texts
are ordered by code points, which is the order of their bytes. NULL is in no interval, so that only
bits without a condition on the term, or with IS NULL, allow it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from tidemill.algebra.expr import Column, Expr
from tidemill.algebra.values import conform
from tidemill.physical import comparisons
from tidemill.physical.comparisons import comparison_of
from tidemill.physical.eval import compile_expr, compile_predicate
from tidemill.physical.eval.binding import column_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from numpy.typing import NDArray

    from tidemill.algebra.expr import Literal
    from tidemill.model.batch import Batch
    from tidemill.model.types import DataType
    from tidemill.physical.comparisons import Comparison

    _Bools: TypeAlias = NDArray[np.bool_]
    Words: TypeAlias = NDArray[np.uint64]

__all__ = ["WORD", "PredicateIndex"]

WORD: Final = 64
"""So many bits are in a word."""

_FEWEST: Final = 16
"""Of fewer conditions on a term each is evaluated by itself: a search costs as much as they do."""

_LARGEST: Final = 1 << 28
"""So many bits a table may have."""

_LOWER: Final = 0x7FFF_FFFF_FFFF_FFFF
"""All bits but that of the sign."""


@dataclass(frozen=True, slots=True)
class _Table:
    """What the bits allow a term to be.

    Attributes:
        term: The term.
        keys: The constants, in order, as they are searched.
        allowed: The words of the bits, for each place of a value.
    """

    term: Expr
    keys: pl.Series
    allowed: Words

    def words(self, values: pl.Series) -> Words:
        """The bits that the value of each row allows."""
        keys = _keys(values)
        if not len(self.keys):
            below, is_at = np.zeros(len(keys), np.intp), np.zeros(len(keys), bool)
        elif self.keys.dtype == pl.Int64:
            sorted_, searched = self.keys.to_numpy(), keys.fill_null(0).to_numpy()
            below = np.searchsorted(sorted_, searched)
            is_at = sorted_[np.minimum(below, len(sorted_) - 1)] == searched
        else:
            below = self.keys.search_sorted(keys, side="left").to_numpy()
            nearest = self.keys.gather(np.minimum(below, len(self.keys) - 1))
            is_at = (nearest == keys).fill_null(value=False).to_numpy()
            below = below.astype(np.intp)
        places = 2 * below + (is_at & (below < len(self.keys)))
        if keys.null_count():
            places[keys.is_null().to_numpy()] = 2 * len(self.keys) + 1
        return self.allowed[places]


class PredicateIndex:
    """The conditions of some bits.

    Args:
        bits: What must be true for each bit.
    """

    def __init__(self, bits: Sequence[tuple[Expr, ...]]) -> None:
        bits = [tuple(dict.fromkeys(conditions)) for conditions in bits]  # each once for a bit
        self._width = -(-len(bits) // WORD)
        tests = [[comparison_of(condition) for condition in conditions] for conditions in bits]
        searched = self._searched(tests)
        by_term: dict[Expr, dict[int, list[Comparison]]] = {term: {} for term in searched}
        rest: dict[Expr, list[int]] = {}
        for bit, conditions in enumerate(bits):
            for condition, test in zip(conditions, tests[bit], strict=True):
                if test is not None and test.term in searched:
                    by_term[test.term].setdefault(bit, []).append(test)
                else:
                    rest.setdefault(condition, []).append(bit)
        self._none = self._packed(np.arange(WORD * self._width)[None, :] < len(bits))[0]
        self._tables = tuple(self._table(term, found) for term, found in by_term.items())
        self._rest = tuple(rest.items())
        self._computed = tuple(
            compile_expr(table.term).alias(str(number))
            for number, table in enumerate(self._tables)
            if not isinstance(table.term, Column)
        )
        self._judged = tuple(
            compile_predicate(condition).alias(f"?{number}")
            for number, (condition, _) in enumerate(self._rest)
        )

    def _searched(self, tests: Sequence[Sequence[Comparison | None]]) -> set[Expr]:
        """The terms of which enough is asked, and whose tables do not become too large."""
        uses, sizes = Counter[Expr](), Counter[Expr]()
        for test in (test for some in tests for test in some if test is not None):
            uses[test.term] += 1
            sizes[test.term] += len(test.constants)
        most = _LARGEST // (2 * WORD * max(self._width, 1))
        return {term for term, count in uses.items() if count >= _FEWEST and sizes[term] <= most}

    def words(self, batch: Batch) -> Words:
        """The bits of each row, bit 0 the lowest of the first word."""
        found = np.broadcast_to(self._none, (batch.height, self._width))
        exprs = (*self._computed, *self._judged)
        columns = batch.select(exprs) if exprs else None
        parts = []
        for number, table in enumerate(self._tables):
            if isinstance(table.term, Column):
                values = batch.get_column(table.term.name)
            else:
                assert columns is not None, "what is no column is computed"
                values = columns.get_column(str(number))
            parts.append(table.words(values))
        words = reduce(np.bitwise_and, parts, found) if parts else found.copy()
        for number, (_, bits) in enumerate(self._rest):
            assert columns is not None, "it has been judged"
            is_false = ~columns.get_column(f"?{number}").to_numpy()
            self._clear(words, is_false, bits)
        return words

    def _clear(self, words: Words, rows: _Bools, bits: Sequence[int]) -> None:
        """Clear bits of some rows."""
        for word in {bit // WORD for bit in bits}:
            mask = sum(1 << (bit % WORD) for bit in bits if bit // WORD == word)
            words[:, word] &= ~(rows * np.uint64(mask))

    def _table(self, term: Expr, tests: Mapping[int, Sequence[Comparison]]) -> _Table:
        constants = {c: None for some in tests.values() for test in some for c in test.constants}
        keys = _keys(_series(list(constants), term.type))
        unique = keys.unique().sort()
        places = dict(zip(unique.to_list(), range(len(unique)), strict=True))
        numbers = {c: places[key] for c, key in zip(constants, keys.to_list(), strict=True)}
        allowed = np.ones((WORD * self._width, 2 * len(unique) + 2), bool)
        for bit, some in tests.items():
            for test in some:
                allowed[bit] &= _places(test, numbers, len(unique))
        return _Table(term, unique, self._packed(allowed.T) & self._none)

    def _packed(self, bits: _Bools) -> Words:
        """Rows of bits as words."""
        return np.ascontiguousarray(np.packbits(bits, axis=1, bitorder="little")).view("<u8")


def _places(test: Comparison, numbers: Mapping[Literal, int], count: int) -> _Bools:
    """Where a value may lie: below the first constant, at it, between it and the next.

    Args:
        test: What must be true of the value.
        numbers: The number of each constant in the order of all.
        count: How many constants there are; NULL has the last place.
    """
    places = np.zeros(2 * count + 2, bool)
    at = [2 * numbers[constant] + 1 for constant in test.constants]
    match test.sign:
        case comparisons.NULL:
            places[-1] = True
        case comparisons.NOT_NULL:
            places[:-1] = True
        case "=":
            places[at] = True
        case "<>":
            places[:-1] = True
            places[at] = False
        case "<" | "<=":
            places[: at[0] + (test.sign == "<=")] = True
        case _:
            places[at[0] + (test.sign == ">") : -1] = True
    return places


def _series(constants: Sequence[Literal], type_: DataType) -> pl.Series:
    values = [conform(constant.value, type_) for constant in constants]
    return pl.Series(values, dtype=column_type(type_))


def _keys(values: pl.Series) -> pl.Series:
    """Values as what is searched: whole numbers in the order of the values, or texts."""
    plain = values.to_physical()
    if plain.dtype.is_float():
        return _bits(plain)
    return plain.cast(pl.Int64) if plain.dtype.is_integer() and plain.dtype != pl.Int128 else plain


def _bits(values: pl.Series) -> pl.Series:
    """DOUBLE as whole numbers: its bits are in its order, reversed where it is negative."""
    found = values.fill_null(0.0).to_numpy()
    numbers = np.where(np.isnan(found), np.nan, found + 0.0).view(np.int64)
    ordered = np.where(numbers < 0, numbers ^ np.int64(_LOWER), numbers)
    keys = pl.Series(ordered, dtype=pl.Int64)
    return keys.set(values.is_null(), None) if values.null_count() else keys
