"""Output characteristics: the vectors of the digest, printed formulas, and laws of all of them."""

from __future__ import annotations

from math import inf, isfinite
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.optimizer import characteristics as shape
from tidemill.optimizer.characteristics import Triple

if TYPE_CHECKING:
    from collections.abc import Callable

TRIPLES = st.builds(
    lambda granule, length, distance: Triple(distance, granule * length, granule),
    granule=st.integers(1, 1_000).map(float),
    length=st.integers(1, 1_000_000).map(float),
    distance=st.floats(1e-3, 1e9),
)
SHARES = st.floats(1e-6, 1)
COUNTS = st.floats(1, 1e6)

# The vectors that are computed from the formulas, to five digits.


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (Triple(10, 600, 1), 5.5125),
        (Triple(10, 600, 50), 50.0015),
        (Triple(1, 100, 1), 1.15471),
    ],
)
def test_an_aggregate_has_the_vectors_of_22_6(of: Triple, expected: float) -> None:
    out = shape.aggregate(of)
    assert out.distance == pytest.approx(expected, rel=1e-5)
    assert out.length == pytest.approx(expected, rel=1e-5)


def test_groups_have_the_vector_of_22_7() -> None:
    out = shape.group(Triple(10, 600, 1), 4)
    assert out.distance == pytest.approx(5.1219, rel=1e-5)
    assert out.length == pytest.approx(20.4875, rel=1e-5)


def test_a_product_has_the_vector_of_22_4() -> None:
    assert shape.join(Triple(10, 10_000), Triple(10, 10_000)) == Triple(0.005, 5_000, 1)


def test_a_regular_stream_has_one_result_an_element() -> None:
    assert shape.aggregate(Triple(10, 600), regular=True) == Triple(10, 10, 1)


def test_the_results_of_experiment_x13() -> None:
    """Two streams of 100/s with 50 values, in milliseconds: full, half a window, half the rows."""
    full, short, thin = Triple(10, 10_000), Triple(10, 5_000), Triple(20, 10_000)
    found = [1_000 / shape.join(one, one, 1 / 50).distance for one in (full, short, thin)]
    assert found == pytest.approx([4_000, 2_000, 1_000])
    assert [2 * one.size for one in (full, short, thin)] == [2_000, 1_000, 1_000]


@pytest.mark.parametrize(("values", "results"), [(1_000, 0.5), (100, 5.0)])
def test_results_for_each_element_of_experiment_x10(values: int, results: float) -> None:
    """KB23: as many are expected as there are results for each element that comes."""
    one = Triple(10, 5_000)
    out = shape.join(one, one, 1 / values)
    assert 1 / out.distance / (2 / one.distance) == pytest.approx(results)


def test_windows_of_experiment_x4() -> None:
    """9.6 bids a minute: 96 in 10 minutes, 2,880 in 5 hours; the digest has 97 and 2,880."""
    bids = Triple(60 / 9.6, 1)
    assert shape.time_window(bids, 600).size == pytest.approx(97, rel=0.02)
    assert shape.time_window(bids, 18_000).size == pytest.approx(2_880)


# The table of KB53, row by row, with other numbers than the formulas' own


def test_rows_of_the_table() -> None:
    of = Triple(10, 600, 2)
    assert shape.select(of, 0.25) == Triple(40, 600, 2)
    assert shape.project(of) == of
    both = shape.union([Triple(10, 600), Triple(30, 200)])
    assert both == pytest.approx(Triple(7.5, 500, 1))
    assert shape.distinct(of, 20) == Triple(10, 200, 2)
    assert shape.distinct(of, 61) == of
    assert shape.split(of, 60) == Triple(1, 60, 2)
    assert shape.split(of, 600) == of
    assert shape.granularity(of, 2) == of
    assert shape.granularity(of, 100) == Triple(10, 600, 100)
    assert shape.granularity(Triple(10, 25), 100) == Triple(40, 100, 100)
    assert shape.time_window(of, 70) == Triple(10, 70, 2)
    assert shape.row_window(of, 5) == Triple(10, 50, 2)
    assert shape.partitioned_window(of, 5, 3) == Triple(10, 150, 2)


def test_an_aggregate_whose_elements_do_not_meet_gives_what_comes() -> None:
    assert shape.aggregate(Triple(10, 10)) == Triple(10, 10)
    assert shape.group(Triple(10, 40), 4) == Triple(10, 40)


def test_limits_of_an_aggregate() -> None:
    """Two results an element where granules are fine, one a granule where they are coarse."""
    fine, coarse = Triple(10, 600, 1e-6), Triple(0.01, 600, 50)
    assert shape.aggregate(fine).distance == pytest.approx(5, rel=1e-4)
    assert shape.aggregate(coarse).distance == pytest.approx(50)


# Laws


@given(of=TRIPLES, groups=COUNTS)
def test_groups_give_one_or_two_results_an_element(of: Triple, groups: float) -> None:
    out = shape.group(of, groups)
    assert out.distance >= of.distance / 2 * (1 - 1e-9)
    # What is there at an instant is one result for each group, as long as all groups are there.
    if groups * of.distance < of.length:
        assert out.size == pytest.approx(groups, rel=1e-6)


@given(of=TRIPLES)
def test_an_aggregate_is_a_group(of: Triple) -> None:
    assert shape.group(of, 1) == shape.aggregate(of)


@given(of=TRIPLES, groups=COUNTS)
def test_random_groups_are_between_the_cases_of_the_formula(of: Triple, groups: float) -> None:
    out = shape.group_at_random(of, groups)
    assert out.distance >= of.distance / 2 * (1 - 1e-9)
    assert 0 < out.length <= of.length * (1 + 1e-6)
    # The printed formula counts instants that are hit, ours events at random: alike if those are
    # many, and instants fine.
    if of.size / groups > 30 and of.granule < 1e-3 * of.length:
        assert out == pytest.approx(shape.group(of, groups), rel=2e-3)
    if of.size / groups < 1e-4 and of.granule < 1e-3 * of.length:
        assert out[:2] == pytest.approx(of[:2], rel=0.01)


@given(left=TRIPLES, right=TRIPLES, share=SHARES)
def test_a_join_is_symmetric_and_has_the_product_of_the_sizes(
    left: Triple, right: Triple, share: float
) -> None:
    out = shape.join(left, right, share)
    assert out == pytest.approx(shape.join(right, left, share))
    assert out.size == pytest.approx(share * left.size * right.size)


@given(inputs=st.lists(TRIPLES, min_size=1, max_size=4))
def test_a_union_has_the_sum_of_the_sizes(inputs: list[Triple]) -> None:
    out = shape.union(inputs)
    assert out.size == pytest.approx(sum(one.size for one in inputs))
    assert 1 / out.distance == pytest.approx(sum(1 / one.distance for one in inputs))


@given(of=TRIPLES, most=st.floats(1, 1e9), share=SHARES)
def test_what_keeps_snapshots_keeps_sizes(of: Triple, most: float, share: float) -> None:
    assert shape.split(of, most).size == pytest.approx(of.size)
    assert shape.coalesce(of, 0.5, most).size == pytest.approx(of.size)
    assert shape.select(of, share).size == pytest.approx(of.size * share)


@given(left=TRIPLES, right=TRIPLES, covered=st.floats(0, 1))
def test_a_semi_join_and_its_difference_have_the_times_of_the_left_side(
    left: Triple, right: Triple, covered: float
) -> None:
    """Each instant of an element is in one of the two, up to the granule that a piece has."""
    both = [shape.matched(left, right, covered), shape.difference(left, right, covered)]
    least = sum(0 if one.distance == inf else one.size for one in both)
    assert least >= left.size * (1 - 1e-9)
    if all(one.length > left.granule for one in both):
        assert least == pytest.approx(left.size)


@given(of=TRIPLES, rows=COUNTS, step=st.floats(0, 1e6))
def test_duplicates_go_only(of: Triple, rows: float, step: float) -> None:
    for out in (shape.distinct(of, rows), shape.stretches(of, rows)):
        assert out.size <= of.size * (1 + 1e-9)
        assert out.size <= rows * (1 + 1e-9)
    assert shape.stretches(of, rows, step).distance >= of.distance * (1 - 1e-9)


UNARY: dict[str, Callable[[Triple], Triple]] = {
    "select": lambda of: shape.select(of, 0.3),
    "distinct": lambda of: shape.distinct(of, 50),
    "aggregate": shape.aggregate,
    "group": lambda of: shape.group(of, 7),
    "group_at_random": lambda of: shape.group_at_random(of, 7),
    "chained": lambda of: shape.group_at_random(of, 7, chained=True),
    "split": lambda of: shape.split(of, 1_000),
    "granularity": lambda of: shape.granularity(of, 1_000),
    "time_window": lambda of: shape.time_window(of, 1_000),
    "row_window": lambda of: shape.row_window(of, 10),
    "partitioned_window": lambda of: shape.partitioned_window(of, 10, 7),
    "advance": lambda of: shape.advance(of, 1_000, 100),
    "jump": lambda of: shape.advance(of, 100, 1_000),
    "stretches": lambda of: shape.stretches(of, 50, 10),
    "presence": lambda of: shape.presence(of, 7),
    "coalesce": lambda of: shape.coalesce(of, 0.5, 10_000),
    "changes": shape.changes,
    "session_window": lambda of: shape.session_window(of, 100, 7),
    "extreme": lambda of: shape.extreme(of, 7),
}


@pytest.mark.parametrize("name", UNARY)
@given(of=TRIPLES)
def test_characteristics_are_positive(name: str, of: Triple) -> None:
    out = UNARY[name](of)
    assert out.distance > 0
    assert out.length > 0
    assert out.granule >= of.granule
    assert isfinite(out.distance)


def test_signed_form_has_two_messages_an_element() -> None:
    """X2: the number of elements is doubled, unless they stay."""
    assert shape.signed(Triple(10, 600)) == 5
    assert shape.signed(Triple(10, inf)) == 10
