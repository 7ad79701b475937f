"""What covers each row of a timeline, against a loop over rows and pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from tidemill.physical.kernels.cover import COUNT, FIRST, PAST, VALUE, extremes, middle
from tidemill.physical.kernels.sweep import GROUP

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

HEIGHT = 9
SCHEMA = {VALUE: pl.Int64(), COUNT: pl.Int64(), FIRST: pl.UInt32(), PAST: pl.UInt32()}


def _pieces(values: SearchStrategy[int]) -> SearchStrategy[list[tuple[int, int, int, int]]]:
    spans = st.tuples(st.integers(0, HEIGHT), st.integers(0, HEIGHT)).filter(lambda s: s[0] < s[1])
    piece = st.tuples(values, st.integers(1, 3), spans)
    return st.lists(piece.map(lambda p: (p[0], p[1], *p[2])), max_size=20)


PIECES = _pieces(st.integers(0, 3)) | _pieces(st.integers(-(2**63), 2**63 - 1))


def covered(pieces: list[tuple[int, int, int, int]], row: int) -> list[int]:
    return sorted(v for value, n, first, past in pieces if first <= row < past for v in [value] * n)


@given(pieces=PIECES)
def test_the_middle_is_that_of_the_values_in_order(pieces: list[tuple[int, int, int, int]]) -> None:
    frame = pl.DataFrame(pieces, schema=SCHEMA, orient="row")
    # Two groups with the same pieces, one below the other.
    both = pl.concat(
        frame.with_columns(
            pl.lit(group, pl.UInt32).alias(GROUP), pl.col(FIRST, PAST) + group * HEIGHT
        )
        for group in (0, 1)
    )
    found = middle(both, 2 * HEIGHT)
    for row, (low, high) in enumerate(found.iter_rows()):
        values = covered(pieces, row % HEIGHT)
        n = len(values)
        assert (low, high) == ((values[(n - 1) // 2], values[n // 2]) if n else (None, None)), row


@given(pieces=PIECES, greatest=st.booleans())
def test_the_extreme_is_the_first_or_last_of_the_values(
    pieces: list[tuple[int, int, int, int]], *, greatest: bool
) -> None:
    frame = pl.DataFrame(pieces, schema=SCHEMA, orient="row")
    best = max if greatest else min
    for row, value in enumerate(extremes(frame, HEIGHT, greatest=greatest)):
        assert value == best(covered(pieces, row), default=None), row
