"""Parallel Track with flags is right for joins, and for nothing that makes one row of many.

So is the reference point. The examples are those of the literature (KB61, E-10, Z49, Z50). The
engine cuts parts by time instead, which is right for all of them; it still refuses Parallel Track
where the flags would not do, so that the baseline is the one that others measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws.flagged import (
    Flagged,
    counted,
    cut_by_time,
    distinct,
    joined,
    parallel_track,
    reference_point,
    snapshots,
)

if TYPE_CHECKING:
    from laws.flagged import Box, Inputs

PAST = 45
NAMES = ("A", "B", "C")


ROWS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 12)), max_size=4)


@st.composite
def inputs(draw: st.DrawFn) -> dict[str, list[Flagged]]:
    """Elements of three streams with windows of their own, at even instants."""
    found: dict[str, list[Flagged]] = {}
    for name in NAMES:
        window, rows = draw(st.integers(1, 8)), draw(ROWS)
        found[name] = [Flagged((key,), 2 * time, 2 * (time + window)) for key, time in rows]
    return found


TREES: tuple[Box, ...] = (
    lambda i: joined(joined(i["A"], i["B"]), i["C"]),
    lambda i: joined(i["A"], joined(i["B"], i["C"])),
    lambda i: joined(joined(i["A"], i["C"]), i["B"]),
)
"""Plans of one meaning."""

FORMS: tuple[Box, ...] = (
    lambda i: distinct(joined(i["A"], i["B"])),
    lambda i: joined(distinct(i["A"]), distinct(i["B"])),
)
"""DISTINCT above a join, and below it, of rows that are equal."""


@settings(max_examples=60)
@given(inputs(), st.sampled_from(TREES), st.sampled_from(TREES), st.integers(0, 15))
def test_both_are_right_for_joins(
    content: dict[str, list[Flagged]], old: Box, new: Box, start: int
) -> None:
    right = snapshots(old(content), PAST)
    assert snapshots(parallel_track(old, new, content, 2 * start), PAST) == right
    assert snapshots(reference_point(old, new, content, 2 * start + 1), PAST) == right
    assert snapshots(cut_by_time(old, new, content, 2 * start), PAST) == right


@settings(max_examples=60)
@given(content=inputs(), start=st.integers(0, 40), back=st.booleans())
def test_parts_that_are_cut_by_time_are_right_for_others_as_well(
    content: dict[str, list[Flagged]], start: int, *, back: bool
) -> None:
    old, new = reversed(FORMS) if back else FORMS
    assert snapshots(cut_by_time(old, new, content, start), PAST) == snapshots(old(content), PAST)

    def count(i: Inputs) -> list[Flagged]:
        return counted(TREES[0](i))

    assert snapshots(cut_by_time(count, count, content, start), PAST) == snapshots(
        count(content), PAST
    )


def test_without_a_rule_for_the_root_new_results_come_twice() -> None:
    """The mutant of Zhu: what is all new is given by both plans."""
    content = {name: [Flagged((1,), 50, 60)] for name in NAMES}
    twice = [*TREES[0](content), *TREES[1](content)]
    assert snapshots(twice, 56)[55] == {(1,): 2}
    assert snapshots(parallel_track(TREES[0], TREES[1], content, 40), 56)[55] == {(1,): 1}


# KB61


KB61 = {
    "A": [Flagged((7,), 10, 111), Flagged((7,), 50, 151)],
    "B": [Flagged((7,), 20, 121), Flagged((7,), 70, 171)],
}
START = 40


def test_with_distinct_a_row_comes_twice() -> None:
    """The old plan has a row until 121 that is made of an old one; the new plan has it from 70."""
    old, new = FORMS
    given_ = parallel_track(old, new, KB61, START)
    found, right = snapshots(given_, 160), snapshots(old(KB61), 160)
    assert Flagged((7,), 111, 121) in given_
    assert Flagged((7,), 70, 151, is_new=True) in given_
    wrong = [time for time in range(160) if found[time] != right[time]]
    assert wrong == list(range(70, 121))
    assert all(found[time] == {(7,): 2} for time in wrong)
    assert snapshots(cut_by_time(old, new, KB61, START), 160) == right


# E-10


def test_the_reference_point_gives_two_counts() -> None:
    """In half instants, so that 10.5 is one: rows at 0, 8 and 12 in a window of 10."""
    content = {"A": [Flagged((1,), 2 * time, 2 * time + 20) for time in (0, 8, 12)]}

    def count(i: Inputs) -> list[Flagged]:
        return counted(i["A"])

    found = snapshots(reference_point(count, count, content, 21), 50)
    assert found[2 * 13] == {(1,): 1, (2,): 1}
    assert snapshots(count(content), 50)[2 * 13] == {(2,): 1}
    right = snapshots(cut_by_time(count, count, content, 21), 50)
    assert right == snapshots(count(content), 50)


def test_the_reference_point_gives_a_row_twice_with_distinct() -> None:
    """Rows at 5 and 8 in a window of 10: what the second adds starts with the end of the first."""
    content = {"A": [Flagged((1,), 2 * time, 2 * time + 20) for time in (5, 8)]}

    def once(i: Inputs) -> list[Flagged]:
        return distinct(i["A"])

    # Both start before the split, so the old plan has all of it; the new one has 15 to 18 again.
    found = snapshots(reference_point(once, once, content, 21), 50)
    assert found[2 * 16] == {(1,): 2}
    assert snapshots(once(content), 50)[2 * 16] == {(1,): 1}


# Aggregates below a join: what is counted twice if state is copied (Z49, Z50)


def groups(rows: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The sum of each key."""
    sums: dict[int, int] = {}
    for key, value in rows:
        sums[key] = sums.get(key, 0) + value
    return sorted(sums.items())


def pairs(left: list[int], right: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The pairs of keys and values that have a partner."""
    return [(key, value) for one in left for key, value in right if key == one]


A, B = [1, 1, 2], [(1, 10), (1, 5), (2, 3)]
RIGHT = groups(pairs(A, B))


def test_both_forms_mean_the_same() -> None:
    assert groups(pairs(A, groups(B))) == RIGHT == [(1, 30), (2, 3)]


def test_partial_sums_that_are_copied_and_rows_that_are_put_in_again_count_twice() -> None:
    """From the aggregate below the join to the one above: rows are the truth, sums are dropped."""
    copied, rows = groups(B), B
    assert groups(pairs(A, [*copied, *rows])) == [(1, 60), (2, 6)]
    assert groups(pairs(A, rows)) == RIGHT


def test_a_sum_of_old_and_new_rows_is_counted_by_both_plans() -> None:
    """Parallel Track with an aggregate below the join: the flag of a sum is old, so it is kept."""
    old, new = B[:1], B[1:]
    mixed = groups([*old, *new])  # by its flag an old sum, with a new row in it
    both = groups([*pairs(A, mixed), *pairs(A, groups(new))])
    assert both == [(1, 40), (2, 6)]
    split = groups([*pairs(A, groups(old)), *pairs(A, groups(new))])
    assert split == RIGHT


@pytest.mark.parametrize("rows", [B, [*B, (2, 4)]])
def test_counts_above_are_sums_of_counts(rows: list[tuple[int, int]]) -> None:
    counts = groups([(key, 1) for key, _ in rows])
    naive = groups([(key, 1) for key, _ in pairs(A, counts)])
    assert groups(pairs(A, counts)) == groups([(key, 1) for key, _ in pairs(A, rows)])
    assert naive != groups(pairs(A, counts))
