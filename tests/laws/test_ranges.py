"""A condition that is true of some row is not taken for one that cannot be."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws.test_mutants import fails
from laws.test_predicate_index import SCHEMA, batches, conditions
from tidemill.algebra.expr import Call, Column, Expr, Literal, conjunction
from tidemill.algebra.values import order_key
from tidemill.model.types import BIGINT, BOOLEAN, DOUBLE
from tidemill.physical import ranges
from tidemill.physical.eval import compile_predicate
from tidemill.physical.ranges import Range, can_hold

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from tidemill.algebra.values import OrderKey
    from tidemill.model.types import Value
    from tidemill.physical.ranges import Compared


def range_of(values: list[Value], *, loose: bool = False) -> Range:
    """The narrowest range of some values; or one without bounds."""
    there = [value for value in values if value is not None]
    plain = [one for one in there if not (isinstance(one, float) and math.isnan(one))]
    known = plain and not loose
    return Range(
        min(plain, key=order_key) if known else None,
        max(plain, key=order_key) if known else None,
        may_be_value=bool(plain),
        may_be_nan=len(plain) < len(there),
        may_be_null=len(there) < len(values),
    )


@st.composite
def known_ranges(draw: st.DrawFn, batch: pl.DataFrame) -> dict[str, Range]:
    """What is known of the rows of a batch."""
    return {
        name: range_of(batch[name].to_list(), loose=draw(st.integers(0, 5)) == 0)
        for name in draw(st.lists(st.sampled_from(SCHEMA.names), unique=True, min_size=1))
    }


@settings(max_examples=4 * settings().max_examples)
@given(data=st.data(), batch=batches(), some=st.lists(conditions(), min_size=1, max_size=4))
def test_what_is_true_of_a_row_can_be(
    data: st.DataObject, batch: pl.DataFrame, some: list[Expr]
) -> None:
    met = batch.filter(*(compile_predicate(one) for one in some))
    known = data.draw(known_ranges(batch))
    if met.height:
        assert can_hold(some, known)
        assert can_hold([conjunction(*some)], known)


BIG, NUMBER = Column("b", BIGINT), Column("d", DOUBLE)


def compared(sign: str, column: Column, value: Value) -> Expr:
    return Call(sign, (column, Literal(value, column.type)), BOOLEAN)


SMALL = Range(1, 5, may_be_null=False)
NO_NULL = Range(1.0, 5.0, may_be_nan=True, may_be_null=False)
ONLY_NULL = Range(may_be_value=False)


@pytest.mark.parametrize(
    ("some", "range_", "expected"),
    [
        ([compared(">", BIG, 5)], SMALL, False),
        ([compared(">=", BIG, 5)], SMALL, True),
        ([compared("<", BIG, 1)], SMALL, False),
        ([compared("<=", BIG, 1)], SMALL, True),
        ([compared("=", BIG, 6)], SMALL, False),
        ([compared(">=", BIG, 3), compared("<", BIG, 3)], SMALL, False),
        ([compared("<>", BIG, 1)], Range(1, 1), False),
        ([Call("in", (BIG, Literal(0, BIGINT), Literal(9, BIGINT)), BOOLEAN)], SMALL, False),
        ([Call("is_null", (BIG,), BOOLEAN)], SMALL, False),
        ([Call("is_null", (BIG,), BOOLEAN)], ONLY_NULL, True),
        ([compared(">", BIG, 0)], ONLY_NULL, False),
        ([Call("or", (compared(">", BIG, 9), compared("<", BIG, 0)), BOOLEAN)], SMALL, False),
        ([compared(">", NUMBER, 9.0)], NO_NULL, True),  # NaN is greater
        ([compared(">", NUMBER, 9.0), compared("<", NUMBER, 99.0)], NO_NULL, False),
    ],
)
def test_what_is_out_of_range_cannot_be(some: list[Expr], range_: Range, *, expected: bool) -> None:
    assert can_hold(some, {"b": range_, "d": range_}) is expected


# The law finds what is wrong

IS_MET, HAS_PLACE = ranges._is_met, ranges._has_place  # noqa: SLF001 — where nobody else goes
STRICT = {"<=": "<", ">=": ">"}


def boundary_excluded(comparison: Compared, key: OrderKey) -> bool:
    return IS_MET(replace(comparison, sign=STRICT.get(comparison.sign, comparison.sign)), key)


def without_nan(comparisons: Sequence[Compared], range_: Range) -> bool:
    return HAS_PLACE(comparisons, replace(range_, may_be_nan=False))


def without_null(comparisons: Sequence[Compared], range_: Range) -> bool:
    return HAS_PLACE(comparisons, replace(range_, may_be_null=False))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("_is_met", boundary_excluded),
        pytest.param("_has_place", without_nan, marks=pytest.mark.soak),
        ("_has_place", without_null),
    ],
)
def test_the_law_finds_what_is_wrong(name: str, wrong: object) -> None:
    with patch.object(ranges, name, wrong):
        fails(test_what_is_true_of_a_row_can_be)
