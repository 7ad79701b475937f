"""Facts derived from a plan are true of its answers, whatever the inputs are."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws.catalogue import HORIZON, PAIR, Inputs, P, R, S, T, U, inputs
from laws.operands import IDENTICAL, NAMES, SAME_A, A, B, C, D, picked
from laws.strategies import plans, session_windows
from streams import equal
from tidemill.algebra.annotations import is_constant
from tidemill.algebra.expr import TRUE, Expr
from tidemill.algebra.keys import keys
from tidemill.algebra.patterns import UpdatePattern, lifetime, update_pattern
from tidemill.algebra.plan import (
    Distinct,
    Dstream,
    Istream,
    Join,
    JoinKind,
    Plan,
    RowWindow,
    SessionWindow,
    TimeWindow,
    Unbounded,
    Window,
)
from tidemill.algebra.tree import walk
from tidemill.model.types import BIGINT

if TYPE_CHECKING:
    from tidemill.algebra.snapshot import Bag

SESSION = Window(S, SessionWindow(2))
THREE, FOUR = Window(S, TimeWindow(3)), Window(T, TimeWindow(4, slide=2))
UNEVEN = Window(T, TimeWindow(3, slide=2))
ALL = Window(S, Unbounded())
ONE_A = Window(S, RowWindow(1, partition_by=("a",)))
ONE_B = Window(T, RowWindow(1, partition_by=("b",)))
TWO_B = Window(T, RowWindow(2, partition_by=("b",)))
PAIRS = (ONE_A, ONE_B, TWO_B, Distinct(THREE), Window(T, RowWindow(1)), SESSION)
KEYED = (*PAIRS, U, R)
CONDITIONS = (TRUE, SAME_A, equal(B, D), equal(A, A), equal(C, C), IDENTICAL)

thorough = settings(max_examples=6 * settings().max_examples)
"""A fact is about few of the plans that are drawn, so more are drawn."""


def is_monotonic(plan: Plan) -> bool:
    return update_pattern(plan) is UpdatePattern.MONOTONIC


def lives_longer_than_an_instant(plan: Plan) -> bool:
    return (lifetime(plan) or 1) > 1


def is_weak(plan: Plan) -> bool:
    """Whether the ends of rows are known when they appear, in all parts of the plan.

    In a stream of changes what passes away makes new elements; there must be none.
    """
    return all(
        update_pattern(node) <= UpdatePattern.WEAK and not isinstance(node, Istream | Dstream)
        for node in walk(plan)
    )


def assert_keys(data: Inputs, plan: Plan) -> None:
    found = data.reference()
    for key in keys(plan):
        places = [plan.schema.names.index(name) for name in key]
        for t in HORIZON:
            rows = list(found.snapshot(plan, t).elements())
            parts = [tuple(row[place] for place in places) for row in rows]
            assert len(set(parts)) == len(parts), f"key {sorted(key)} at instant {t}: {rows}"


@thorough
@given(inputs(), plans(2, leaves=KEYED))
def test_no_two_rows_agree_on_a_key(data: Inputs, plan: Plan) -> None:
    assert_keys(data, plan)


@pytest.mark.parametrize("kind", JoinKind)
@thorough
@given(inputs(), st.sampled_from(PAIRS), st.sampled_from(PAIRS), st.sampled_from(CONDITIONS))
def test_no_two_rows_of_a_join_agree_on_a_key(
    kind: JoinKind, data: Inputs, left: Plan, right: Plan, condition: Expr
) -> None:
    assert_keys(data, Join(left, right, kind, condition, NAMES))


@given(inputs(), st.sampled_from(PAIRS), st.sampled_from([("a",), ("b",), ("b", "a")]))
def test_no_two_rows_of_some_columns_agree_on_a_key(
    data: Inputs, plan: Plan, names: tuple[str, ...]
) -> None:
    assert_keys(data, picked(plan, *names))


@given(inputs(), plans())
def test_values_are_of_their_columns(data: Inputs, plan: Plan) -> None:
    found = data.reference()
    for t in HORIZON:
        for row in found.snapshot(plan, t):
            for value, field in zip(row, plan.schema, strict=True):
                if value is None:
                    assert field.nullable, f"{field.name} at instant {t}"
                else:
                    assert type(value) is (int if field.type == BIGINT else str)


@given(inputs(), plans(leaves=(R, R, P, Window(R, TimeWindow(2)))).filter(is_constant))
def test_a_constant_plan_always_has_the_same_answer(data: Inputs, plan: Plan) -> None:
    found = data.reference()
    assert all(found.snapshot(plan, t) == found.snapshot(plan, 0) for t in HORIZON)


@thorough
@given(inputs(), plans(2, leaves=(ALL, ALL, R)).filter(is_monotonic))
def test_a_monotonic_plan_never_loses_a_row(data: Inputs, plan: Plan) -> None:
    found = data.reference()
    assert all(found.snapshot(plan, t) <= found.snapshot(plan, t + 1) for t in HORIZON)


@thorough
@given(inputs(), plans(2, leaves=(THREE, FOUR, R)).filter(lives_longer_than_an_instant))
def test_rows_of_a_known_lifetime_go_when_it_is_over(data: Inputs, plan: Plan) -> None:
    # What is born at t lives for c instants, so born(t) = R(t) - R(t - 1) + born(t - c).
    c = lifetime(plan)
    assert c is not None, "the strategy draws no other plans"
    found = data.reference()
    born: list[Bag] = []
    for t in HORIZON:
        now = Counter(found.snapshot(plan, t))
        now.subtract(found.snapshot(plan, t - 1))
        now.update(born[t - c] if t >= c else Counter())
        assert all(n >= 0 for n in now.values()), f"at instant {t}: {now}"
        born.append(now)


@given(plans(leaves=(THREE, FOUR, UNEVEN, SESSION, R, S)))
def test_the_weakest_pattern_is_that_of_a_known_lifetime(plan: Plan) -> None:
    assert (update_pattern(plan) is UpdatePattern.WEAKEST) == (lifetime(plan) is not None)


@thorough
@given(inputs(), plans(2, leaves=(THREE, UNEVEN, ALL, R, S)).filter(is_weak), st.integers(0, 12))
def test_what_is_there_stays_as_long_as_if_nothing_came(data: Inputs, plan: Plan, now: int) -> None:
    # The end of a row is known when it appears: input that is still to come does not shorten it.
    found, expected = data.reference(), data.until(now).reference()
    for t in HORIZON[now:]:
        assert expected.snapshot(plan, t) <= found.snapshot(plan, t), f"at instant {t}"


@given(inputs(), session_windows(PAIR), st.integers(0, 12))
def test_a_session_is_not_over_sooner_when_more_comes(
    data: Inputs, window: SessionWindow, now: int
) -> None:
    # Its end is not known when a row appears; what is known is that it stays for the gap.
    plan, least = Window(S, window), Window(S, TimeWindow(window.gap))
    found, expected = data.reference(), data.until(now).reference()
    for t in HORIZON[now:]:
        assert expected.snapshot(plan, t) <= found.snapshot(plan, t), f"at instant {t}"
        assert found.snapshot(least, t) <= found.snapshot(plan, t), f"at instant {t}"


@given(inputs(), plans())
def test_every_instant_with_rows_counts_in_a_window(data: Inputs, plan: Plan) -> None:
    # The reference leaves out instants at which a plan cannot have rows.
    found = data.reference()
    total: Bag = Counter()
    for t in HORIZON:
        total += found.snapshot(plan, t)
    last = HORIZON[-1]
    assert found.snapshot(Window(plan, TimeWindow(len(HORIZON))), last) == total
    assert found.snapshot(Window(plan, RowWindow(10**9)), last) == total
