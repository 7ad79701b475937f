"""Join of many inputs in interval form: overlap, state, lazy evaluation and expiration, windows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from physical.letters import LETTERS, assert_stream, one_by_one, stream, together
from physical.run import Advance, Arrive, Element, Schedule, batch, run
from streams import both, call, equal
from tidemill.algebra.expr import FALSE, TRUE, Call, Column, conjunction
from tidemill.model.batch import END
from tidemill.model.time import END_OF_TIME, Time
from tidemill.model.types import VARCHAR
from tidemill.physical.joining.condition_parts import ConditionParts
from tidemill.physical.kernels.window_closure import window_closure
from tidemill.physical.operators.join.multi_join import MultiJoin, ShortLived

if TYPE_CHECKING:
    from tidemill.algebra.expr import Expr
    from tidemill.physical.operator import State

A, B, C = (Column(name, VARCHAR) for name in "abc")
COMMON = both(equal(A, B), equal(B, C))
ORDERS = ((1, 2), (0, 2), (0, 1))
CROSS = MultiJoin((LETTERS,) * 3, ("a", "b", "c"), TRUE, ORDERS)
EQUI = MultiJoin((LETTERS,) * 3, ("a", "b", "c"), COMMON, ORDERS)
LAZY = replace(CROSS, evaluation=10)

THREE = [stream("a[0,9) b[2,6)"), stream("a[3,7) b[4,9)"), stream("a[5,12) b[6,8)")]


def take(join: MultiJoin, state: State, *parts: str) -> int:
    """How many results come out when elements come in, input by input."""
    frames = [batch(LETTERS, stream(part)) for part in parts]
    found = [list(join.on_batch(state, port, frame)) for port, frame in enumerate(frames)]
    return sum(part.height for parts in found for part in parts)


@pytest.mark.parametrize("schedule", [together(*THREE), one_by_one(*THREE)], ids=["all", "single"])
def test_a_combination_is_valid_where_all_its_elements_are(schedule: Schedule) -> None:
    assert_stream(run(EQUI, schedule), "aaa[5,7)")
    less = replace(CROSS, condition=both(call("<", A, B), equal(A, C)))
    assert_stream(run(less, schedule), "aba[5,9)")


def test_elements_that_only_touch_do_not_meet() -> None:
    touching = stream("a[0,9)"), stream("a[0,5)"), stream("a[5,9)")
    assert_stream(run(CROSS, together(*touching)), "")


def test_a_condition_that_is_never_true_remembers_nothing() -> None:
    state = (never := replace(CROSS, condition=FALSE)).new_state()
    assert take(never, state, "a[0,9)", "a[0,9)", "a[0,9)") == 0
    assert state.rows() == 0


@pytest.mark.parametrize(
    "condition",
    [COMMON, equal(B, Call("concat", (A, C), VARCHAR)), equal(B, B)],
    ids=["common", "of two", "itself"],
)
def test_a_row_that_can_match_nothing_is_not_remembered(condition: Expr) -> None:
    state = (join := replace(EQUI, condition=condition)).new_state()
    list(join.on_batch(state, 1, batch(LETTERS, [Element((None,), 0, 9)])))
    assert state.rows() == 0


def test_what_the_equalities_imply_is_looked_up_in_every_order() -> None:
    parts = ConditionParts(["a", "b", "c"], COMMON)
    assert parts.classes == [{A: 0, B: 1, C: 2}]
    assert [list(parts.keys(port)) for port in range(3)] == [[A], [B], [C]]
    assert [parts.due([0], 2), parts.entry(0)] == [TRUE, TRUE]


def test_a_part_of_the_condition_is_due_when_its_last_input_comes() -> None:
    rest = [call("<", A, C), call("is_null", B), call("or", equal(A, B), equal(B, C))]
    parts = ConditionParts(["a", "b", "c"], conjunction(*rest))
    assert parts.entry(1) == rest[1]
    assert parts.due([0], 1) == TRUE
    assert parts.due([0], 2) == rest[0]
    assert parts.due([0, 1], 2) == conjunction(rest[0], rest[2])
    assert parts.due([0, 2], 1) == rest[2]


# State


def test_after_eager_expiration_nothing_is_left_that_is_over() -> None:
    state = CROSS.new_state()
    assert take(CROSS, state, "a[0,5) b[0,6) c[9,10)", "a[0,5)", "a[4,7)") == 2
    list(CROSS.on_watermark(state, Time(5)))
    left = [state.tables[f"joined{port}"].all() for port in range(3)]
    assert [frame.height for frame in left] == [2, 0, 1]
    assert all((frame[END] > 5).all() for frame in left)


def test_lazy_expiration_forgets_at_multiples_and_passes_over_what_is_left() -> None:
    join = replace(CROSS, expiration=10)
    events: list[Arrive | Advance] = [
        Advance(0),
        *(Arrive(port, tuple(stream("a[0,5) b[0,16)"))) for port in (0, 1)),
        *(Advance(9), Arrive(2, tuple(stream("c[9,11)"))), Advance(10), Advance(19)),
    ]
    output = run(join, Schedule((LETTERS,) * 3, tuple(events)))
    assert_stream(output, "bbc[9,11)")
    assert output.sizes == [0, 4, 3, 3, 0]


def test_state_is_kept_when_orders_and_expiration_change() -> None:
    other = replace(EQUI, orders=((2, 1), (2, 0), (1, 0)), expiration=7, orderly=(False,) * 3)
    assert (other, hash(other), repr(other)) == (EQUI, hash(EQUI), repr(EQUI))
    state = EQUI.new_state()
    take(EQUI, state, "a[0,9)", "a[0,9)")
    assert sum(part.height for part in other.on_batch(state, 2, batch(LETTERS, stream("a@3")))) == 1


def test_after_the_end_of_time_nothing_is_left() -> None:
    for join in (CROSS, LAZY, replace(CROSS, expiration=10)):
        state = join.new_state()
        take(join, state, "a[0,inf)", "a[0,9)")
        list(join.on_watermark(state, Time(END_OF_TIME - 1)))
        take(join, state, f"a[{END_OF_TIME - 1},inf)")
        list(join.on_watermark(state, END_OF_TIME))
        assert state.rows() == 0


# Lazy evaluation


def test_lazy_evaluation_waits_for_a_multiple_and_says_so() -> None:
    state = LAZY.new_state()
    list(LAZY.on_watermark(state, Time(1)))
    assert LAZY.held(state) == END_OF_TIME
    assert take(LAZY, state, "a[3,9)", "a[2,8)", "a[4,5)") == 0
    assert list(LAZY.on_watermark(state, Time(9))) == []
    assert LAZY.held(state) == 2
    (found,) = LAZY.on_watermark(state, Time(10))
    assert found.rows() == [("a", "a", "a", 4, 5)]
    assert (LAZY.held(state), state.rows()) == (END_OF_TIME, 0)


def test_what_waits_keeps_what_it_can_meet() -> None:
    state = LAZY.new_state()
    take(LAZY, state, "a[0,5) b[0,12)", "a[0,12)")
    list(LAZY.on_watermark(state, Time(1)))
    take(LAZY, state, "", "", "c[4,9)")
    list(LAZY.on_watermark(state, Time(8)))
    assert state.rows() == 4
    assert sum(part.height for part in LAZY.on_watermark(state, Time(11))) == 2
    assert state.rows() == 2


def test_without_restore_results_begin_at_a_multiple_or_are_missing() -> None:
    join = replace(LAZY, short_lived=ShortLived.NO_RESTORE)
    short = stream("a[0,25)"), stream("a[3,20) b[3,10)"), stream("c[11,13) d[13,22)")
    for schedule in (together(*short), one_by_one(*short)):
        assert_stream(run(LAZY, schedule), "aac[11,13) aad[13,20)")
        assert_stream(run(join, schedule), "")
    longer = stream("a[0,25)"), stream("a[3,21) b[10,11)"), stream("c[5,13) d[13,22)")
    for schedule in (together(*longer), one_by_one(*longer)):
        assert_stream(run(join, schedule), "aac[10,13) abc[10,11) aad[20,21)")


def test_without_restore_is_asked_for_with_an_interval() -> None:
    with pytest.raises(AssertionError, match="eager gives all results"):
        replace(CROSS, short_lived=ShortLived.NO_RESTORE)


# Windows


def test_a_window_forgets_what_no_later_element_can_be_near_enough_to() -> None:
    join = replace(CROSS, within=window_closure({(0, 1): 3, (1, 2): 2}, 3))
    state = join.new_state()
    assert take(join, state, "a[0,inf) b[4,inf)", "a[3,inf)", "a[5,inf) b[6,inf)") == 2
    list(join.on_watermark(state, Time(6)))
    # The first input is within 3 of the second and so within 5 of the third.
    assert [state.tables[f"joined{port}"].rows() for port in range(3)] == [1, 1, 2]
    list(join.on_watermark(state, Time(10)))
    assert [state.tables[f"joined{port}"].rows() for port in range(3)] == [0, 0, 2]


def test_a_window_that_bounds_only_some_keeps_the_others_to_their_ends() -> None:
    join = replace(CROSS, within=window_closure({(0, 1): 3}, 3))
    state = join.new_state()
    take(join, state, "a[0,99)", "a[0,99)", "a[0,99)")
    list(join.on_watermark(state, Time(50)))
    assert state.rows() == 3


@pytest.mark.parametrize(
    "orders", [((1, 2), (0, 2), (0,)), ((1, 2), (0, 2)), ((1, 2), (1, 2), (0, 1))]
)
def test_every_input_probes_each_of_the_others_once(orders: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(AssertionError, match="every input probes each of the others once"):
        replace(CROSS, orders=orders)
