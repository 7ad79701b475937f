"""Window constraints between inputs: what follows from them, and what is refused."""

from __future__ import annotations

from itertools import product

import pytest

from tidemill.errors import PlanError
from tidemill.physical.kernels.window_closure import (
    closed_windows,
    reach,
    refuse_unbounded,
    window_closure,
)

CHAIN = {(0, 1): 5, (2, 1): 3, (2, 3): 10}


def test_a_pair_without_a_window_has_the_shortest_path() -> None:
    closed = window_closure({**CHAIN, (0, 3): 30}, 4)
    assert closed == ((0, 5, 8, 18), (5, 0, 3, 13), (8, 3, 0, 10), (18, 13, 10, 0))


def test_a_given_window_that_others_make_shorter_is_shortened() -> None:
    assert window_closure({(0, 1): 1, (1, 2): 1, (0, 2): 9}, 3)[0] == (0, 1, 2)
    assert window_closure({(0, 1): 7, (1, 0): 4}, 2) == ((0, 4), (4, 0))


def test_a_closure_is_symmetric_and_its_own_closure() -> None:
    closed = window_closure(CHAIN, 4)
    assert closed == tuple(zip(*closed, strict=True))
    assert closed_windows(closed) == closed


def test_a_derived_bound_never_removes_a_result() -> None:
    closed = window_closure(CHAIN, 4)
    met = [
        starts
        for starts in product(range(0, 24, 2), repeat=4)
        if all(abs(starts[i] - starts[j]) <= w for (i, j), w in CHAIN.items())
    ]
    assert len(met) > 100
    pairs = [(i, j, w) for i, row in enumerate(closed) for j, w in enumerate(row) if w is not None]
    assert all(abs(starts[i] - starts[j]) <= w for starts in met for i, j, w in pairs)


def test_a_pair_without_a_path_has_no_bound_and_can_be_refused() -> None:
    closed = window_closure({(0, 1): 5}, 3)
    assert closed == ((0, 5, None), (5, 0, None), (None, None, 0))
    with pytest.raises(PlanError, match='nothing bounds how far "bids" and "sales" may be apart'):
        refuse_unbounded(closed, ["bids", "asks", "sales"])
    refuse_unbounded(window_closure(CHAIN, 4), ["a", "b", "c", "d"])


def test_an_element_is_reached_by_the_furthest_of_the_others_if_all_are_bounded() -> None:
    assert [reach(window_closure(CHAIN, 4), port) for port in range(4)] == [18, 13, 10, 18]
    assert [reach(window_closure({(0, 1): 5}, 3), port) for port in range(3)] == [None, None, None]
