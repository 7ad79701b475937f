"""Probing: weights multiply, starts are the latest and ends the earliest, and memory is bounded."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import prod
from typing import TypeAlias

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.model.batch import END, START
from tidemill.physical.joining import pairs as pairs_module
from tidemill.physical.joining.partners import Given
from tidemill.physical.joining.probe import WEIGHT, Step, probe

Weighted: TypeAlias = tuple[int, int, int, int]
"""A value, its start and end, and its weight."""

STEPS = (
    Step(("a",), ("b",)),
    Step(("b",), ("c",), filters=(pl.col("a") + pl.col("c") > 0,)),
)

BAGS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 6), st.integers(1, 5), st.integers(-2, 2)).map(
        lambda row: (row[0], row[1], row[1] + row[2], row[3])
    ),
    max_size=8,
)


def frame(name: str, rows: list[Weighted]) -> pl.DataFrame:
    return pl.DataFrame(rows, dict.fromkeys((name, START, END, WEIGHT), pl.Int64), orient="row")


def probed(one: list[Weighted], *others: list[Weighted]) -> Counter[tuple[int, ...]]:
    """The sum of the weights of each combination with its interval; 0 is nothing."""
    partners = [Given(frame(name, rows)) for name, rows in zip("bc", others, strict=True)]
    found: Counter[tuple[int, ...]] = Counter()
    for part in probe(frame("a", one), STEPS, partners):
        for *row, weight in part.select("a", "b", "c", START, END, WEIGHT).iter_rows():
            found[tuple(row)] += weight
    return Counter({row: weight for row, weight in found.items() if weight})


def total(*bags: Counter[tuple[int, ...]]) -> Counter[tuple[int, ...]]:
    """The sum of bags whose weights may be negative."""
    weights: Counter[tuple[int, ...]] = Counter()
    for bag in bags:
        weights.update(bag)
    return Counter({row: weight for row, weight in weights.items() if weight})


@given(a=BAGS, b=BAGS, c=BAGS)
def test_weights_multiply_starts_are_the_latest_and_ends_the_earliest(
    a: list[Weighted], b: list[Weighted], c: list[Weighted]
) -> None:
    expected: Counter[tuple[int, ...]] = Counter()
    for rows in product(a, b, c):
        values, starts, ends, weights = zip(*rows, strict=True)
        if max(starts) < min(ends) and len(set(values)) == 1 and values[0] > 0:
            expected[*values, max(starts), min(ends)] += prod(weights)
    assert probed(a, b, c) == total(expected)


@given(bags=st.tuples(BAGS, BAGS, BAGS), more=BAGS)
def test_the_join_of_a_sum_is_the_sum_of_the_joins(
    bags: tuple[list[Weighted], list[Weighted], list[Weighted]], more: list[Weighted]
) -> None:
    for place in range(3):
        summed, other = list(bags), list(bags)
        summed[place] = [*bags[place], *more]
        other[place] = more
        assert probed(*summed) == total(probed(*bags), probed(*other))


def test_a_negative_element_takes_back_what_the_positive_one_gave() -> None:
    others = [(1, 0, 9, 1), (1, 2, 5, 2)], [(1, 1, 4, 1)]
    assert probed([(1, 0, 9, 1)], *others) == Counter({(1, 1, 1, 1, 4): 1, (1, 1, 1, 2, 4): 2})
    assert probed([(1, 0, 9, 1), (1, 0, 9, -1)], *others) == Counter()


def test_without_weights_each_row_counts_once() -> None:
    frames = [frame(name, [(1, 0, 9, 1)]).drop(WEIGHT) for name in "abc"]
    others = [Given(each) for each in frames[1:]]
    (found,) = probe(frames[0], STEPS, others)
    assert found.columns == ["a", START, END, "b", "c"]
    weighted = frame("b", [(1, 0, 9, -3)])
    (found,) = probe(frames[0], STEPS, [Given(weighted), others[1]])
    assert found[WEIGHT].to_list() == [-3]


@pytest.mark.parametrize("steps", [STEPS, (Step(), Step())], ids=["equi", "cross"])
@pytest.mark.parametrize("bound", [5, 20, 1000])
def test_combinations_are_made_a_bounded_number_at_a_time(
    steps: tuple[Step, ...], bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = [frame(name, [(1, 0, 9, 1)] * 8) for name in "abc"]
    others = [Given(each) for each in frames[1:]]
    whole = [part.height for part in probe(frames[0], steps, others)]
    monkeypatch.setattr(pairs_module, "_PAIRS_AT_ONCE", bound)
    parts = [part.height for part in probe(frames[0], steps, others)]
    assert sum(parts) == sum(whole) == 8**3
    assert max(parts) <= 2 * bound + 8


@pytest.mark.parametrize("value", [2, None], ids=["no match", "no partner"])
def test_where_a_step_finds_nothing_the_later_ones_are_not_made(value: int | None) -> None:
    a, c = frame("a", [(1, 0, 9, 1)]), frame("c", [(1, 0, 9, 1)])
    b = frame("b", [] if value is None else [(value, 0, 9, 1)])
    impossible = Step(filters=(pl.col("no such column") > 0,))
    assert list(probe(a, (STEPS[0], impossible), [Given(b), Given(c)])) == []
