from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tidemill.algebra.aggregates import aggregate
from tidemill.algebra.expr import Column
from tidemill.algebra.values import NAN
from tidemill.catalog.functions import aggregate_call
from tidemill.model.types import BIGINT, DOUBLE, DataType, decimal

if TYPE_CHECKING:
    from tidemill.model.types import Value


def over(name: str, type_: DataType, *values: Value, distinct: bool = False) -> Value:
    call = aggregate_call(name, Column("x", type_), distinct=distinct)
    return aggregate(call, [({"x": value}, 1) for value in values])


def test_nothing_counts_zero_and_has_no_sum() -> None:
    assert over("count", BIGINT, None) == 0
    assert over("sum", BIGINT, None) is None
    assert aggregate(aggregate_call("count", None), []) == 0


def test_rows_count_as_often_as_they_occur() -> None:
    call = aggregate_call("sum", Column("x", BIGINT))
    assert aggregate(call, [({"x": 2}, 3), ({"x": 5}, 1)]) == 11


def test_a_sum_that_overflows_has_no_value() -> None:
    assert over("sum", BIGINT, 2**63 - 1, 1) is None
    assert over("sum", BIGINT, 2**63 - 1, 1, -1) == 2**63 - 1
    nines = Decimal("9" * 38)
    assert over("sum", decimal(38, 0), nines, Decimal(1)) is None


def test_sums_of_doubles_are_rounded_once() -> None:
    assert over("sum", DOUBLE, 1e16, 1.0, -1e16) == 1.0
    assert over("avg", DOUBLE, 0.1, 0.1, 0.1) == 0.1
    assert over("sum", DOUBLE, 1e308, 1e308, -1e308) == 1e308
    assert over("sum", DOUBLE, 1e308, 1e308) == math.inf


def test_infinities_add_up_as_in_ieee() -> None:
    assert over("sum", DOUBLE, math.inf, 1.0) == math.inf
    assert over("sum", DOUBLE, math.inf, -math.inf) is NAN
    assert over("avg", DOUBLE, -math.inf, 1.0) == -math.inf
    assert over("var_pop", DOUBLE, math.inf) is NAN


def test_integers_are_averaged_exactly() -> None:
    assert over("avg", BIGINT, 2**62 + 1, 2**62 + 1, 2**62 - 2) == float(2**62)


def test_a_sample_of_one_has_no_deviation() -> None:
    assert over("stddev", DOUBLE, 1.0) is None
    assert over("stddev_pop", DOUBLE, 1.0) == 0.0
    assert over("variance", BIGINT, 1, 2, 3, 4) == 5 / 3


def test_the_median_lies_between_two() -> None:
    assert over("median", BIGINT, 4, 1, 2, 8) == 3.0
    assert over("median", DOUBLE, 1.0, math.nan, 2.0) == 2.0
    assert over("median", decimal(3, 1), Decimal("0.1")) == 0.1


def test_distinct_leaves_each_value_once() -> None:
    assert over("sum", BIGINT, 2, 2, 3, distinct=True) == 5
    assert over("count", DOUBLE, math.nan, -math.nan, 0.0, -0.0, distinct=True) == 2


def test_nan_is_the_greatest() -> None:
    assert over("max", DOUBLE, math.nan, math.inf) is NAN
    assert over("min", DOUBLE, math.nan, math.inf) == math.inf


@given(values=st.lists(st.floats(), min_size=1), name=st.sampled_from(("sum", "avg", "var_samp")))
def test_the_order_of_rows_does_not_matter(values: list[float], name: str) -> None:
    ours, reversed_ = over(name, DOUBLE, *values), over(name, DOUBLE, *reversed(values))
    assert ours is reversed_ or ours == reversed_
