"""The cost of an order of probing, computed by hand too, and the orders that are chosen by it."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.optimizer.search.probe_orders import (
    InputStats,
    augmented_order,
    best_order,
    fast_inputs,
    initial_order,
    order_cost,
    probe_cost,
    probe_orders,
)

THREE = (InputStats(2, 10, 5), InputStats(1, 8, 4), InputStats(4, 3, 6))
FOUR = (*THREE, InputStats(3, 5, 3))

SPREAD = 10
"""Of 15 000 random joins of the inputs below, none had an augmented order that costs more than 5.5
times the best; the worst case of all is not known."""


def test_each_input_probes_the_others_in_the_global_order() -> None:
    assert probe_orders([0, 1, 2]) == ((1, 2), (0, 2), (0, 1))
    assert probe_orders([3, 1, 0, 2]) == ((3, 1, 2), (3, 0, 2), (3, 1, 0), (1, 0, 2))


def test_the_cost_of_three_as_computed_by_hand() -> None:
    # Windows of 20, 8 and 12 elements, with 5, 4 and 6 values.
    assert probe_cost(THREE, 0, (1, 2)) == pytest.approx(2 * (8 + 8 / 5 * 12))
    assert probe_cost(THREE, 1, (0, 2)) == pytest.approx(1 * (20 + 20 / 5 * 12))
    assert probe_cost(THREE, 2, (0, 1)) == pytest.approx(4 * (20 + 20 / 6 * 8))
    assert order_cost(THREE, (0, 1, 2)) == pytest.approx(54.4 + 68 + 4 * (20 + 160 / 6))


def test_the_cost_of_four_as_computed_by_hand() -> None:
    # A fourth window of 15 elements with 3 values. After two inputs the fewer values are left.
    first = 2 * (8 + 8 / 5 * (12 + 12 / max(4, 6) * 15))
    second = 1 * (20 + 20 / 5 * (12 + 12 / max(4, 6) * 15))
    third = 4 * (20 + 20 / 6 * (8 + 8 / max(5, 4) * 15))
    fourth = 3 * (20 + 20 / 5 * (8 + 8 / max(3, 4) * 12))
    assert order_cost(FOUR, (0, 1, 2, 3)) == pytest.approx(first + second + third + fourth)


def test_a_hash_table_shortens_what_is_scanned_and_not_what_is_found() -> None:
    hashed = (THREE[0], InputStats(1, 8, 4, buckets=4), InputStats(4, 3, 6, buckets=2))
    assert probe_cost(hashed, 0, (1, 2)) == pytest.approx(2 * (8 / 4 + 8 / 5 * 12 / 2))


def test_with_equally_many_values_the_smaller_window_comes_first() -> None:
    stats = [InputStats(rate, 10, 7) for rate in (4, 1, 3, 2)]
    assert initial_order(stats) == (1, 3, 2, 0)
    hashed = [InputStats(4, 10, 7, buckets=8), *stats[1:]]
    assert initial_order(hashed) == (0, 1, 3, 2)


def test_the_pair_with_the_fewest_results_comes_first_then_what_adds_least() -> None:
    # Pairs give 32, 40 and 16 results.
    assert initial_order(THREE) == (1, 2, 0)
    # An input with many values matches little: with the second it gives 1.2 results.
    stats = [*THREE, InputStats(3, 5, 100)]
    assert initial_order(stats) == (3, 1, 2, 0)
    assert order_cost(stats, (3, 1, 2, 0)) < order_cost(stats, (1, 3, 2, 0))


def test_a_fast_input_is_moved_up_where_that_is_cheaper() -> None:
    stats = [InputStats(10, 100, 200), InputStats(2, 100, 50), InputStats(1, 100, 50)]
    assert fast_inputs(stats) == (0,)
    assert initial_order(stats) == (2, 1, 0)
    assert augmented_order(stats) == (0, 2, 1)
    assert augmented_order(stats, budget=1) == (2, 1, 0)


def test_a_fast_input_is_not_always_best_at_the_top() -> None:
    slow = [InputStats(2, 100, 50), InputStats(2, 100, 50), InputStats(1, 100, 100)]
    stats = [*slow, InputStats(10, 100, 200)]
    assert initial_order(stats) == (2, 0, 1, 3)
    assert augmented_order(stats) == (2, 3, 0, 1)
    assert order_cost(stats, (2, 3, 0, 1)) < order_cost(stats, (3, 2, 0, 1))


def test_one_input_alone_is_no_trouble() -> None:
    assert augmented_order([InputStats(1, 1, 1)]) == (0,)


INPUTS = st.builds(
    InputStats,
    rate=st.sampled_from([1, 2, 5, 10, 50]),
    window=st.sampled_from([50, 100, 200]),
    distinct=st.sampled_from([50, 100, 200, 500]),
)


@given(stats=st.lists(INPUTS, min_size=2, max_size=5), budget=st.integers(1, 100))
def test_the_augmented_order_is_never_dearer_and_not_far_from_the_best(
    stats: list[InputStats], budget: int
) -> None:
    initial = order_cost(stats, initial_order(stats))
    assert order_cost(stats, augmented_order(stats, budget=budget)) <= initial
    best = min(order_cost(stats, order) for order in permutations(range(len(stats))))
    assert order_cost(stats, best_order(stats)) == best
    assert best <= order_cost(stats, augmented_order(stats)) <= SPREAD * best


def test_of_many_inputs_the_augmented_order_is_taken() -> None:
    stats = [InputStats(rate, 10, 7 * rate) for rate in (4, 1, 3, 2, 9, 6, 5, 8)]
    assert best_order(stats) == augmented_order(stats)


def test_all_orders_cost_the_same_where_all_inputs_are_alike() -> None:
    stats = [InputStats(2, 10, 5)] * 4
    costs = [order_cost(stats, order) for order in permutations(range(4))]
    assert costs == pytest.approx([costs[0]] * len(costs))
