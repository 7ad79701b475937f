"""The printed formulas of resources: their vectors, and how the model of this engine relates.

Memory agrees with what the operators of this engine remember, but for this: the thesis purges when
an element comes, we when the watermark has passed (``d / 2`` less for a join); a DISTINCT remembers
rows, not elements; an aggregate remembers ends and totals, not partial aggregates. Work is another
thing here: columns are worked on in steps, so a step costs calls whatever comes, and a row a
little. Of the printed variables there remain those by row that comes, by row that leaves and by
pair that is compared, for every operator.
"""

from __future__ import annotations

import pytest
from hypothesis import given

from optimizer import printed
from optimizer.test_characteristics import COUNTS, SHARES, TRIPLES
from tidemill.optimizer import characteristics as shape
from tidemill.optimizer.characteristics import Triple

ONE = printed.costs(dict.fromkeys("PFCOHBRLUQEMIASTDG", 1.0) | {"L1": 1.0, "L2": 1.0})


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (Triple(10, 600, 1), 57.143),
        (Triple(10, 600, 50), 11.935),
        (Triple(1, 100, 1), 63.397),
    ],
)
def test_partial_aggregates_have_the_vectors_of_22_30(of: Triple, expected: float) -> None:
    assert printed.partial_aggregates(of) == pytest.approx(expected, abs=5e-4)
    assert printed.aggregate_memory(of, 3) == pytest.approx(3 * expected, abs=2e-3)


def test_partial_aggregates_of_x12_are_bounded_by_granules() -> None:
    """A window of ten minutes with a granule of ten seconds has at most 60 of them."""
    assert printed.partial_aggregates(Triple(0.05, 600, 10)) == pytest.approx(60)


def test_a_join_by_hand() -> None:
    left, right = Triple(10, 600), Triple(20, 300)
    assert printed.join_memory(left, right, (8, 16)) == pytest.approx(61 * 8 + 15.25 * 16)
    work = printed.join_work(left, right, 0.1, printed.costs({"P": 2, "F": 3, "O": 4}), (10, 5))
    assert work["probe"] == pytest.approx((300 / 5 + 600 / 10) / 200 * 2)
    assert work["result"] == pytest.approx(0.1 * 900 / 200 * 7)
    assert work["insert"] == work["purge"] == 0
    hashed = printed.join_work(left, right, 0.1, printed.costs({"H": 1, "B": 1, "R": 1, "L1": 1}))
    assert hashed["insert"] == pytest.approx(0.15 * 2 + 0.1)
    assert hashed["purge"] == pytest.approx(0.15 * 3 + 0.05)


def test_duplicates_by_hand() -> None:
    of = Triple(10, 600)
    few, many = printed.distinct_work(of, 20, ONE, 4), printed.distinct_work(of, 100, ONE, 4)
    assert few == pytest.approx({"purge": 0.1, "probe": 0.6, "insert": 0.5, "transfer": 0.6})
    assert many == pytest.approx({"purge": 0.4, "probe": 1.6, "insert": 0.4, "transfer": 0.1})
    assert printed.distinct_memory(of, 2) == 120


def test_rows_and_times_by_hand() -> None:
    of = Triple(10, 600)
    assert printed.filter_work(of, 0.25, ONE) == pytest.approx(0.1 + 0.025)
    assert printed.map_work(of, ONE) == pytest.approx(0.3)
    assert printed.union_work([of, of], ONE) == pytest.approx(0.2)
    assert printed.split_memory(of, 60) == 65
    assert printed.split_memory(of, 600) == 0
    assert printed.split_work(of, 60, ONE) == pytest.approx(
        {"insert": 0.1, "split": (2 + 10 * 6) / 10, "purge": 0.3}
    )
    assert printed.split_work(of, 600, ONE) == pytest.approx(
        {"insert": 0, "split": 0.2, "purge": 0.1}
    )
    assert printed.granularity_work(of, 100, ONE) == pytest.approx(0.5)
    assert printed.granularity_work(Triple(10, 25), 100, ONE) == pytest.approx(0.3 + 2 / 40)
    assert printed.time_window_work(of, ONE) == pytest.approx(0.3)
    assert printed.row_window_memory(100, 8) == 800
    assert printed.row_window_work(of, ONE) == pytest.approx(0.5)
    sizes = printed.costs({"s": 8, "m": 2, "g": 1})
    assert printed.partitioned_window_memory(5, 3, sizes) == 3 * (40 + 2 + 1 + 8)
    assert sum(printed.partitioned_window_work(of, ONE).values()) == pytest.approx(1.4)


def test_groups_by_hand() -> None:
    of, sizes = Triple(10, 600), printed.costs({"p": 10, "m": 1, "g": 2, "a": 3})
    within = printed.partial_aggregates(Triple(40, 600))
    assert printed.group_memory(of, 4, sizes) == pytest.approx(4 * within * 10 + 4 * 6)
    assert printed.group_memory(of, 100, sizes) == 100 + 10 + 2 + 3


@given(of=TRIPLES)
def test_a_group_of_its_own_is_an_aggregate(of: Triple) -> None:
    """22.35 to 22.38 with one group and no cost of grouping are 22.30 to 22.34."""
    grouped = printed.group_work(of, 1, printed.costs({}), ONE)
    alone = printed.aggregate_work(of, ONE)
    assert sum(grouped.values()) == pytest.approx(sum(alone.values()))
    assert printed.group_memory(of, 1, printed.costs({"p": 5})) == pytest.approx(
        printed.aggregate_memory(of, 5)
    )


@given(left=TRIPLES, right=TRIPLES, share=SHARES)
def test_the_results_of_a_join_cost_what_leaves(left: Triple, right: Triple, share: float) -> None:
    """22.22 is the rate of 22.4 and 22.1, once for making and once for sending."""
    work = printed.join_work(left, right, share, printed.costs({"F": 1.0, "O": 1.0}))
    assert work["result"] == pytest.approx(2 / shape.join(left, right, share).distance)
    assert sum(work.values()) == pytest.approx(work["result"])


@given(of=TRIPLES, groups=COUNTS)
def test_printed_costs_are_positive_and_rise_with_the_rate(of: Triple, groups: float) -> None:
    faster = of._replace(distance=of.distance / 2)
    for one in (of, faster):
        assert all(part >= 0 for part in printed.group_work(one, groups, ONE, ONE).values())
        assert all(part >= 0 for part in printed.distinct_work(one, groups, ONE).values())
        assert all(part >= 0 for part in printed.join_work(one, of, 0.5, ONE).values())
    assert printed.join_memory(faster, faster) >= printed.join_memory(of, of)
    for work in (printed.time_window_work, printed.row_window_work, printed.map_work):
        assert work(faster, ONE) == pytest.approx(2 * work(of, ONE))
