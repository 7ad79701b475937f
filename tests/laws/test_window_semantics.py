"""What windows and streams of changes hold (O13, O14, O15): counted from the list of elements."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.catalogue import HORIZON, PAIR, Inputs, S, T, inputs
from laws.strategies import pairs, plans, windows
from streams import assert_bags, assert_same, one_column, periods, reference
from tidemill.algebra.plan import (
    NOW,
    Difference,
    Distinct,
    Dstream,
    Istream,
    Plan,
    RowWindow,
    Rstream,
    SessionWindow,
    Source,
    TimeWindow,
    Unbounded,
    Union,
    Window,
    WindowSpec,
)

if TYPE_CHECKING:
    from tidemill.algebra.snapshot import Element, Row

SIZES = st.integers(1, 6)
SLIDES = st.integers(1, 8)


def in_order(data: Inputs, source: Source = S) -> list[Element]:
    return sorted(data.streams[source.name], key=lambda e: (e.time, e.id))


# Windows over streams, from their elements


@given(inputs(), SIZES)
def test_a_time_window_holds_the_elements_of_the_last_instants(data: Inputs, size: int) -> None:
    found = data.reference()
    for t in HORIZON:
        expected = [e.row for e in in_order(data) if t - size < e.time <= t]
        assert found.snapshot(Window(S, TimeWindow(size)), t) == Counter(expected)


@given(inputs(), SIZES, SLIDES)
def test_a_sliding_time_window_holds_what_it_held_at_the_last_change(
    data: Inputs, size: int, slide: int
) -> None:
    found = data.reference()
    for t in HORIZON:
        changes = range(slide - 1, t + 1, slide)
        expected = [
            e.row for e in in_order(data) if changes and changes[-1] - size < e.time <= changes[-1]
        ]
        assert found.snapshot(Window(S, TimeWindow(size, slide)), t) == Counter(expected)


@given(inputs(), SIZES, SLIDES)
def test_an_element_is_in_a_sliding_time_window_for_one_interval(
    data: Inputs, size: int, slide: int
) -> None:
    # Algorithm 18: both ends are rounded to changes; nothing is left where they meet.
    found = data.reference()
    for t in HORIZON:
        expected = [
            e.row
            for e in in_order(data)
            if -(-(e.time + 1) // slide) * slide - 1
            <= t
            < (e.time + size + slide) // slide * slide - 1
        ]
        assert found.snapshot(Window(S, TimeWindow(size, slide)), t) == Counter(expected)


@given(inputs())
def test_an_unbounded_window_holds_every_element_so_far(data: Inputs) -> None:
    found = data.reference()
    for t in HORIZON:
        expected = [e.row for e in in_order(data) if e.time <= t]
        assert found.snapshot(Window(S, Unbounded()), t) == Counter(expected)


@given(inputs(), SIZES, SLIDES)
def test_a_count_window_holds_the_last_elements_of_whole_slides(
    data: Inputs, size: int, slide: int
) -> None:
    found = data.reference()
    for t in HORIZON:
        held: list[Row] = []
        waiting: list[Row] = []
        for element in in_order(data):
            if element.time <= t:
                waiting.append(element.row)
            if len(waiting) == slide:
                held, waiting = (held + waiting)[-size:], []
        assert found.snapshot(Window(S, RowWindow(size, slide)), t) == Counter(held)


@given(inputs(), SIZES, SLIDES, st.sampled_from([("a",), ("b",), ("b", "a")]))
def test_a_partitioned_window_holds_the_last_elements_of_each_group(
    data: Inputs, size: int, slide: int, by: tuple[str, ...]
) -> None:
    found = data.reference()
    places = [PAIR.names.index(name) for name in by]
    for t in HORIZON:
        expected: list[Row] = []
        for number, element in enumerate(in_order(data)):
            group = [
                i
                for i, other in enumerate(in_order(data))
                if other.time <= t and all(other.row[p] == element.row[p] for p in places)
            ]
            whole = group[: len(group) - len(group) % slide]
            if number in whole[-size:]:
                expected.append(element.row)
        window = Window(S, RowWindow(size, slide, partition_by=by))
        assert found.snapshot(window, t) == Counter(expected)


@given(inputs(), SIZES, st.sampled_from([(), ("a",), ("b",), ("b", "a")]))
def test_a_session_lasts_while_a_time_window_of_the_group_is_not_empty(
    data: Inputs, gap: int, by: tuple[str, ...]
) -> None:
    found = data.reference()
    places = [PAIR.names.index(name) for name in by]
    for t in HORIZON:
        expected: list[Row] = []
        for element in data.streams[S.name]:
            times = [
                other.time
                for other in data.streams[S.name]
                if all(other.row[p] == element.row[p] for p in places)
            ]
            if element.time <= t and all(
                any(u - gap < time <= u for time in times) for u in range(element.time, t + 1)
            ):
                expected.append(element.row)
        window = Window(S, SessionWindow(gap, by))
        assert found.snapshot(window, t) == Counter(expected)


def test_a_row_at_the_end_of_a_session_goes_on_with_it() -> None:
    found = reference(S={1: "a", 4: "b", 8: "c"})
    assert_bags(
        found,
        Window(one_column("S"), SessionWindow(3)),
        {
            **dict.fromkeys([1, 2, 3], "a"),
            **dict.fromkeys([4, 5, 6], "ab"),
            8: "c",
            9: "c",
            10: "c",
        },
    )


def test_ties_are_in_the_order_of_their_ids() -> None:
    found = reference(S={1: "cab"})
    assert_bags(found, Window(one_column("S"), RowWindow(2)), {1: "ab", 2: "ab"}, range(3))


def test_rows_of_one_instant_of_a_derived_stream_are_in_the_order_of_their_values() -> None:
    found = reference(S={1: "ca"}, T={1: "b"})
    both = Union(one_column("S"), one_column("T"))
    assert_bags(found, Window(both, RowWindow(1)), {1: "c", 2: "c"}, range(3))


# Windows over derived streams


def test_what_is_valid_for_several_instants_counts_once_for_each_in_the_window() -> None:
    found = reference(S="a[0,10)")
    assert_bags(
        found,
        Window(periods("S"), TimeWindow(2)),
        {0: "a", **dict.fromkeys(range(1, 10), "aa"), 10: "a"},
    )


def test_a_count_window_over_a_derived_stream_counts_every_instant() -> None:
    found = reference(S="a[0,2) b[1,2)")
    assert_bags(
        found, Window(periods("S"), RowWindow(2)), {0: "a", **dict.fromkeys(range(1, 20), "ab")}
    )


def test_a_session_over_a_derived_stream_has_a_row_for_every_instant() -> None:
    found = reference(S="a[0,2) b[3,4)")
    window = Window(periods("S"), SessionWindow(2))
    assert_bags(found, window, {0: "a", 1: "aa", 2: "aa", 3: "aab", 4: "aab"})


@given(inputs(), plans(2), SIZES)
def test_a_time_window_adds_up_the_snapshots_of_its_instants(
    data: Inputs, plan: Plan, size: int
) -> None:
    found = data.reference()
    for t in HORIZON:
        total: Counter[Row] = Counter()
        for instant in range(max(t - size + 1, 0), t + 1):
            total += found.snapshot(plan, instant)
        assert found.snapshot(Window(plan, TimeWindow(size)), t) == total


@given(inputs(), plans(2), SIZES, SLIDES)
def test_a_sliding_time_window_is_the_plain_one_at_the_last_change(
    data: Inputs, plan: Plan, size: int, slide: int
) -> None:
    found = data.reference()
    plain, sliding = Window(plan, TimeWindow(size)), Window(plan, TimeWindow(size, slide))
    for t in HORIZON:
        change = t - (t + 1) % slide
        assert found.snapshot(sliding, t) == found.snapshot(plain, change)


@given(inputs(), pairs())
def test_now_is_the_identity(data: Inputs, plan: Plan) -> None:
    assert_same(data.reference(), Window(plan, NOW), plan, HORIZON)


# Streams of changes


@given(inputs(), plans(2))
def test_changes_lead_from_one_snapshot_to_the_next(data: Inputs, plan: Plan) -> None:
    found = data.reference()
    for t in HORIZON:
        rows = list(found.snapshot(plan, t - 1).elements())
        for row in found.snapshot(Dstream(plan), t).elements():
            rows.remove(row)
        rows += found.snapshot(Istream(plan), t).elements()
        assert found.snapshot(plan, t) == Counter(rows)


@given(inputs(), plans(2))
def test_no_row_comes_and_goes_at_the_same_instant(data: Inputs, plan: Plan) -> None:
    found = data.reference()
    for t in HORIZON:
        come, gone = found.snapshot(Istream(plan), t), found.snapshot(Dstream(plan), t)
        assert not come.keys() & gone.keys()


@given(inputs(), plans(2))
def test_istream_is_a_difference_with_the_snapshot_before(data: Inputs, plan: Plan) -> None:
    before = Difference(Window(plan, TimeWindow(2)), plan)
    assert_same(data.reference(), Istream(plan), Difference(plan, before), HORIZON)
    assert_same(data.reference(), Dstream(plan), Difference(before, plan), HORIZON)


@given(inputs(), plans(2))
def test_rstream_keeps_every_snapshot(data: Inputs, plan: Plan) -> None:
    assert_same(data.reference(), Rstream(plan), plan, HORIZON)


@given(inputs())
def test_what_an_unbounded_window_gains_is_the_stream(data: Inputs) -> None:
    assert_same(data.reference(), Istream(Window(S, Unbounded())), S, HORIZON)


@given(inputs(), SIZES)
def test_what_a_time_window_loses_came_a_window_ago(data: Inputs, size: int) -> None:
    found = data.reference()
    window = Window(S, TimeWindow(size))
    for t in HORIZON:
        gone = found.snapshot(S, t - size) - found.snapshot(S, t)
        assert found.snapshot(Dstream(window), t) == gone


# Time


@given(inputs(), plans(), st.integers(0, 12))
def test_an_answer_depends_on_the_past_only(data: Inputs, plan: Plan, now: int) -> None:
    assert_same_until(data, data.until(now), plan, now)


def assert_same_until(data: Inputs, seen: Inputs, plan: Plan, now: int) -> None:
    all_, some = data.reference(), seen.reference()
    for t in range(now + 1):
        assert all_.snapshot(plan, t) == some.snapshot(plan, t), f"at instant {t}"


@given(inputs(), pairs(1), windows(PAIR))
def test_nothing_was_before_time(data: Inputs, plan: Plan, window: WindowSpec) -> None:
    for operator in (plan, Window(plan, window), Dstream(plan), Distinct(T)):
        assert not data.reference().snapshot(operator, -1)


@pytest.mark.parametrize("slide", [2, 5])
def test_nothing_is_in_a_sliding_window_before_its_first_change(slide: int) -> None:
    found = reference(S={0: "a"})
    window = Window(one_column("S"), TimeWindow(5, slide))
    assert_bags(found, window, {}, range(slide - 1))
    assert_bags(found, window, {slide - 1: "a"}, [slide - 1])
