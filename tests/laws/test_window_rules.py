"""Rules for windows (K44): which operators pass which windows, on any streams, with ties."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from laws.catalogue import HORIZON, PAIR, Inputs, R, S, inputs
from laws.operands import (
    GROUPS,
    SAME_A,
    B,
    F,
    joined,
    mapped,
    union_of,
)
from laws.strategies import pairs, predicates, row_windows, session_windows, time_windows
from streams import assert_same, equal, text
from tidemill.algebra.plan import (
    NOW,
    Filter,
    Plan,
    RowWindow,
    SessionWindow,
    TimeWindow,
    Unbounded,
    Union,
    Window,
)

if TYPE_CHECKING:
    from tidemill.algebra.expr import Expr


moving = time_windows() | st.just(Unbounded())


@given(inputs(), pairs())
def test_the_window_of_one_instant_is_the_identity(data: Inputs, x: Plan) -> None:
    assert_same(data.reference(), Window(x, NOW), x, HORIZON)


@given(inputs(), pairs(), predicates(PAIR), moving)
def test_a_filter_passes_a_time_window(
    data: Inputs, x: Plan, p: Expr, window: TimeWindow | Unbounded
) -> None:
    assert_same(
        data.reference(), Filter(Window(x, window), p), Window(Filter(x, p), window), HORIZON
    )


@given(inputs(), pairs(), moving)
def test_a_map_passes_a_time_window(data: Inputs, x: Plan, window: TimeWindow | Unbounded) -> None:
    assert_same(
        data.reference(), mapped(Window(x, window), F), Window(mapped(x, F), window), HORIZON
    )


@given(inputs(), pairs(), pairs(), moving)
def test_a_union_passes_equal_time_windows(
    data: Inputs, x: Plan, y: Plan, window: TimeWindow | Unbounded
) -> None:
    assert_same(
        data.reference(),
        Union(Window(x, window), Window(y, window)),
        Window(Union(x, y), window),
        HORIZON,
    )


@given(inputs(), row_windows(PAIR).filter(lambda window: not window.partition_by))
def test_a_map_passes_a_count_window(data: Inputs, window: RowWindow) -> None:
    assert_same(
        data.reference(), mapped(Window(S, window), F), Window(mapped(S, F), window), HORIZON
    )


@given(inputs(), st.integers(1, 6), st.integers(1, 4))
def test_a_map_that_keeps_the_groups_passes_a_partitioned_window(
    data: Inputs, size: int, slide: int
) -> None:
    window = RowWindow(size, slide, partition_by=("b",))  # F changes the other column
    assert_same(
        data.reference(), mapped(Window(S, window), F), Window(mapped(S, F), window), HORIZON
    )


@given(inputs(), row_windows(PAIR).filter(lambda window: "b" in window.partition_by))
def test_a_filter_on_the_groups_passes_a_partitioned_window(
    data: Inputs, window: RowWindow
) -> None:
    is_x = equal(B, text("x"))
    assert_same(
        data.reference(), Filter(Window(S, window), is_x), Window(Filter(S, is_x), window), HORIZON
    )


@given(inputs(), session_windows(PAIR).filter(lambda window: "b" in window.partition_by))
def test_a_filter_on_the_groups_passes_a_partitioned_session_window(
    data: Inputs, window: SessionWindow
) -> None:
    is_x = equal(B, text("x"))
    assert_same(
        data.reference(), Filter(Window(S, window), is_x), Window(Filter(S, is_x), window), HORIZON
    )


@given(inputs(), pairs(1), st.integers(1, 6))
def test_a_map_passes_a_session_window_of_other_columns(data: Inputs, x: Plan, gap: int) -> None:
    window = SessionWindow(gap, ("b",))  # F changes the other column
    assert_same(
        data.reference(), mapped(Window(x, window), F), Window(mapped(x, F), window), HORIZON
    )


@given(inputs(), pairs(1), st.integers(1, 6))
def test_a_session_window_of_the_groups_is_a_partitioned_one(
    data: Inputs, x: Plan, gap: int
) -> None:
    parts = union_of(*(Window(Filter(x, group), SessionWindow(gap)) for group in GROUPS))
    assert_same(data.reference(), parts, Window(x, SessionWindow(gap, ("b",))), HORIZON)


@given(inputs(), pairs(1), st.sampled_from([(), ("a",), ("b", "a")]))
def test_a_session_longer_than_the_past_is_unbounded(
    data: Inputs, x: Plan, by: tuple[str, ...]
) -> None:
    window = SessionWindow(10**9, by)
    assert_same(data.reference(), Window(x, window), Window(x, Unbounded()), HORIZON)


@given(inputs(), pairs(), moving)
def test_a_time_window_of_the_groups_is_a_time_window(
    data: Inputs, x: Plan, window: TimeWindow | Unbounded
) -> None:
    parts = union_of(*(Window(Filter(x, group), window) for group in GROUPS))
    assert_same(data.reference(), parts, Window(x, window), HORIZON)


@given(inputs(), st.integers(1, 6), st.integers(1, 4))
def test_a_count_window_of_the_groups_is_a_partitioned_window(
    data: Inputs, size: int, slide: int
) -> None:
    parts = union_of(*(Window(Filter(S, group), RowWindow(size, slide)) for group in GROUPS))
    whole = Window(S, RowWindow(size, slide, partition_by=("b",)))
    assert_same(data.reference(), parts, whole, HORIZON)


@given(inputs(), pairs())
def test_a_time_window_longer_than_the_past_is_unbounded(data: Inputs, x: Plan) -> None:
    assert_same(data.reference(), Window(x, TimeWindow(10**9)), Window(x, Unbounded()), HORIZON)


@given(inputs(), pairs(), st.sampled_from([(), ("a",), ("b", "a")]))
def test_a_count_window_larger_than_the_past_is_unbounded(
    data: Inputs, x: Plan, by: tuple[str, ...]
) -> None:
    window = RowWindow(10**9, partition_by=by)
    assert_same(data.reference(), Window(x, window), Window(x, Unbounded()), HORIZON)


@given(inputs(), pairs(), moving)
def test_a_join_with_a_constant_relation_passes_a_time_window(
    data: Inputs, x: Plan, window: TimeWindow | Unbounded
) -> None:
    assert_same(
        data.reference(),
        joined(Window(x, window), R, SAME_A),
        Window(joined(x, R, SAME_A), window),
        HORIZON,
    )


@given(inputs(), pairs(), st.integers(1, 6), st.integers(1, 6))
def test_time_windows_commute(data: Inputs, x: Plan, w: int, v: int) -> None:
    assert_same(
        data.reference(),
        Window(Window(x, TimeWindow(w)), TimeWindow(v)),
        Window(Window(x, TimeWindow(v)), TimeWindow(w)),
        HORIZON,
    )
