"""Combine: elements that share their interval become one, and what cannot be added stays apart."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from physical.run import Element, batch
from physical.test_aggregate import COUNT, of
from tidemill.model.batch import END, START
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT, DOUBLE
from tidemill.physical.interval import Combine, can_combine

if TYPE_CHECKING:
    import polars as pl

    from tidemill.algebra.expr import AggregateCall
    from tidemill.model.types import DataType, Value


def combined(
    type_: DataType, calls: list[AggregateCall], *rows: tuple[Value, int, int]
) -> pl.DataFrame:
    """What becomes of values with their intervals, in one batch."""
    operator = Combine(tuple(calls))
    elements = [Element((value,), start, end) for value, start, end in rows]
    frame = batch(Schema((Field("x", type_),)), elements)
    (part,) = operator.on_batch(operator.new_state(), 0, frame)
    return part.sort(START, END, "@rows")


def test_elements_that_share_their_interval_become_one() -> None:
    found = combined(
        BIGINT,
        [COUNT, of("sum", BIGINT), of("min", BIGINT), of("max", BIGINT)],
        *[(5, 0, 4), (None, 0, 4), (2, 0, 4), (7, 0, 6), (9, 2, 6)],
    )
    columns = (START, END, "@rows", "@0.n", "@0.sum", "@0.min", "@0.max")
    assert found.select(columns).rows() == [
        (0, 4, 3, 2, 7, 2, 5),
        (0, 6, 1, 1, 7, 7, 7),
        (2, 6, 1, 1, 9, 9, 9),
    ]


def test_wide_numbers_meet_only_their_equals() -> None:
    found = combined(
        DOUBLE,
        [of("sum", DOUBLE)],
        *[(1e300, 0, 4), (1e300, 0, 4), (-1e300, 0, 4), (1.5, 0, 4), (math.nan, 0, 4)],
    )
    assert sorted(found.select("@0", "@rows", "@0.whole").rows(), key=str) == [
        (-1e300, 1, 0),
        (1e300, 2, 0),
        (None, 2, 1),
    ]


def test_the_greatest_of_nan_and_null_is_nan() -> None:
    found = combined(DOUBLE, [of("max", DOUBLE)], (math.nan, 0, 4), (None, 0, 4), (1.0, 0, 4))
    assert math.isnan(found["@0.max"].item())


def test_it_has_no_columns_that_people_could_name() -> None:
    found = combined(BIGINT, [of("sum", BIGINT)], (1, 0, 4))
    assert not Combine((of("sum", BIGINT),)).schema.names
    assert all(name.startswith("@") for name in found.columns)


@pytest.mark.parametrize("function", ["sum", "avg", "min", "max", "count", "var_pop"])
def test_what_comes_from_sums_and_extremes_can_be_combined(function: str) -> None:
    assert can_combine([of(function, BIGINT)])
    assert not can_combine([of(function, BIGINT), of("median", BIGINT, DOUBLE)])
