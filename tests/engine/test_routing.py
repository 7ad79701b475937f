"""Routing: equal keys meet in one partition."""

from __future__ import annotations

import struct

import polars as pl
import pytest

from tidemill.algebra.expr import Column
from tidemill.engine.routing import route
from tidemill.model.types import BIGINT, DOUBLE

X, N = Column("x", DOUBLE), Column("n", BIGINT)
OTHER_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000001))[0]


@pytest.mark.parametrize(
    ("one", "other"), [(0.0, -0.0), (float("nan"), OTHER_NAN), (None, None), (1.5, 1.5)]
)
def test_equal_values_get_the_same_partition(one: float | None, other: float | None) -> None:
    first = route(pl.DataFrame({"x": [one, 7.0]}, schema={"x": pl.Float64}), (X,), 16)
    second = route(pl.DataFrame({"x": [8.0, 9.0, other]}, schema={"x": pl.Float64}), (X,), 16)
    places = {p for p, part in enumerate(first) if not part.filter(_is(one)).is_empty()}
    assert places == {p for p, part in enumerate(second) if not part.filter(_is(other)).is_empty()}


def _is(value: float | None) -> pl.Expr:
    return pl.col("x").eq_missing(pl.lit(value, dtype=pl.Float64))


def test_every_row_goes_to_exactly_one_partition() -> None:
    batch = pl.DataFrame({"n": range(1000)})
    parts = route(batch, (N,), 4)
    assert sum(part.height for part in parts) == 1000
    assert pl.concat(parts).sort("n").equals(batch)
    assert all(part.height > 150 for part in parts), "the rows are spread"


def test_without_keys_all_rows_go_to_one_partition() -> None:
    parts = route(pl.DataFrame({"n": [1, 2, 3]}), (), 3)
    assert [part.height for part in parts] == [3, 0, 0]
