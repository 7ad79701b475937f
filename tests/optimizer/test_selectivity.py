"""Shares of rows: laws, what has been measured, and what is assumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.catalogue import PAIR
from laws.strategies import predicates
from tidemill.algebra.expr import Call, Column, Literal, conjunction
from tidemill.model.types import BIGINT, BOOLEAN, VARCHAR
from tidemill.optimizer.selectivity import (
    Columns,
    condition_text,
    harmonic,
    seen,
    selectivity,
    values_of,
)

if TYPE_CHECKING:
    from tidemill.algebra.expr import Expr

A, B = Column("a", BIGINT), Column("b", VARCHAR)
ORIGINS = {"a": "s.a", "b": "s.b"}
COLUMNS = st.builds(
    Columns,
    st.fixed_dictionaries({"a": st.floats(1, 1e6), "b": st.floats(1, 1e6)}),
    st.just(ORIGINS),
)


def call(function: str, *arguments: Expr) -> Call:
    return Call(function, arguments, BOOLEAN)


def number(value: int) -> Literal:
    return Literal(value, BIGINT)


@given(condition=predicates(PAIR), columns=COLUMNS)
def test_a_share_is_between_0_and_1_and_that_of_not_is_the_rest(
    condition: Expr, columns: Columns
) -> None:
    share = selectivity(condition, columns)
    assert 0 <= share <= 1
    if not isinstance(condition, Literal):
        assert selectivity(call("not", condition), columns) == pytest.approx(1 - share)


@given(parts=st.lists(predicates(PAIR), min_size=1, max_size=3), columns=COLUMNS)
def test_a_conjunction_is_no_more_frequent_than_its_parts(
    parts: list[Expr], columns: Columns
) -> None:
    whole = selectivity(conjunction(*parts), columns)
    assert all(whole <= selectivity(part, columns) + 1e-12 for part in parts)
    assert (
        selectivity(call("or", *parts), columns)
        >= max(selectivity(part, columns) for part in parts) - 1e-12
        if len(parts) > 1
        else True
    )


@given(values=st.floats(1, 1e9), rows=st.floats(0, 1e9), more=st.floats(1, 10))
def test_rows_have_no_more_values_than_there_are(values: float, rows: float, more: float) -> None:
    found = seen(values, rows)
    assert 0 <= found <= min(values * (1 + 1e-9), rows)
    assert seen(values, rows * more) >= found * (1 - 1e-9)
    assert seen(values * more, rows) >= found * (1 - 1e-6)


@given(count=st.integers(1, 2_000))
def test_a_harmonic_number(count: int) -> None:
    exact = sum(1 / i for i in range(1, count + 1))
    assert harmonic(count) == pytest.approx(exact, rel=0.01 if count > 1 else 1e-9)


@pytest.mark.parametrize(
    ("condition", "share"),
    [
        (call("=", A, number(3)), 1 / 50),
        (call("=", number(3), A), 1 / 50),
        (call("=", A, B), 1 / 50),
        (call("<>", A, number(3)), 49 / 50),
        (call("in", A, number(1), number(2), number(2)), 2 / 50),
        (call("<", A, number(3)), 1 / 3),
        (call("is_null", A), 0.05),
        (call("is_true", call("<", A, number(3))), 1 / 3),
        (call("is_false", call("<", A, number(3))), 2 / 3),
        (call("and", call("<", A, number(3)), call("<", A, number(3))), 1 / 3),
        (call("or", call("<", A, number(3)), call(">", A, number(9))), 5 / 9),
        (Literal(True, BOOLEAN), 1),
        (Literal(None, BOOLEAN), 0),
    ],
)
def test_what_is_assumed(condition: Expr, share: float) -> None:
    assert selectivity(condition, Columns({"a": 50, "b": 20})) == pytest.approx(share)


def test_what_was_measured_goes_before() -> None:
    less = call("<", A, number(3))
    texts = [condition_text(one, ORIGINS) for one in (less, call("=", A, B))]
    known = Columns({}, ORIGINS, {str(texts[0]): 0.9, str(texts[1]): 7.0})
    assert selectivity(less, known) == 0.9
    # The same condition, however it is written.
    assert selectivity(call(">", number(3), A), known) == 0.9
    assert selectivity(call("=", B, A), known) == 1.0, "no share is more than all"
    assert selectivity(call("not", less), known) == pytest.approx(0.1)
    assert selectivity(call("<", A, number(4)), known) == pytest.approx(1 / 3)


def test_a_condition_on_what_is_computed_has_no_text() -> None:
    assert condition_text(call("<", A, number(3)), {"b": "s.b"}) is None
    assert condition_text(call("<", number(3), number(4)), ORIGINS) is None


def test_values_of_expressions() -> None:
    known = Columns({"a": 50, "b": 20})
    assert values_of(A, known) == 50
    assert values_of(number(3), known) == 1
    assert values_of(Column("c", BIGINT), known) == 100
    assert values_of(Column("c", BOOLEAN), known) == 2
    assert values_of(call("<", A, B), known) == 2
    assert values_of(Call("+", (A, A), BIGINT), known) == 50
    assert values_of(Call("concat", (A, B), VARCHAR), known) == 1_000
