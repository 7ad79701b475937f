"""Tempting rewrites that change the answer: none of them may come out of the optimizer.

Each test shows a stream for which the wrong plan gives another answer than the right one, and that
the optimizer does not make it.
"""

from __future__ import annotations

import pytest

from streams import LETTER, differing, equal, names_of_both, one_column, project, reference, text
from tidemill.algebra.expr import TRUE, AggregateCall, Call, Column, Expr, Literal, Named
from tidemill.algebra.plan import (
    NOW,
    Aggregate,
    AntiJoin,
    Difference,
    Distinct,
    Filter,
    Istream,
    Join,
    JoinKind,
    NamedAggregate,
    Plan,
    Project,
    RowWindow,
    SessionWindow,
    Source,
    TimeWindow,
    Window,
)
from tidemill.algebra.snapshot import Element, Reference
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT, BOOLEAN, VARCHAR
from tidemill.optimizer.logical.rewrite import optimize

S, T = one_column("S"), one_column("T")
PAIRS = Source("P", Schema((Field("x", VARCHAR), Field("y", VARCHAR))))
X, Y = Column("x", VARCHAR), Column("y", VARCHAR)
L, R = Column("l0", VARCHAR), Column("r0", VARCHAR)
SAME = equal(L, R)
IS_A, IS_B = equal(LETTER, text("a")), equal(LETTER, text("b"))
COUNT = (NamedAggregate("n", AggregateCall("count", None, BIGINT)),)


def pairs(*elements: tuple[int, str]) -> Reference:
    """The evaluator for a stream of rows of two letters."""
    return Reference({"P": [Element(t, i, tuple(row)) for i, (t, row) in enumerate(elements)]})


def join(left: Plan, right: Plan, kind: JoinKind, condition: Expr = SAME) -> Join:
    return Join(left, right, kind, condition, names_of_both(left, right))


def or_null(condition: Expr, column: Column) -> Expr:
    """The condition, or that a column is NULL, as it is in rows that an outer join adds."""
    return Call("or", (condition, Call("is_null", (column,), BOOLEAN)), BOOLEAN)


def assert_wrong(found: Reference, right: Plan, wrong: Plan) -> None:
    """Fail unless the wrong plan has another answer, and the optimizer's has the right one."""
    assert differing(found, right, wrong), "the stream shows the difference"
    assert not differing(found, right, optimize(right))


def test_a_filter_stays_above_a_count_window() -> None:
    plan = Filter(Window(S, RowWindow(1)), IS_A)
    assert_wrong(reference(S={1: "a", 2: "b"}), plan, Window(Filter(S, IS_A), RowWindow(1)))
    assert optimize(plan) == plan


def test_a_filter_on_other_columns_stays_above_a_partitioned_window() -> None:
    last = RowWindow(1, partition_by=("x",))
    is_a = equal(Y, text("a"))
    plan = Filter(Window(PAIRS, last), is_a)
    assert_wrong(pairs((1, "xa"), (2, "xb")), plan, Window(Filter(PAIRS, is_a), last))
    assert optimize(plan) == plan


def test_a_filter_stays_above_a_session_window() -> None:
    plan = Filter(Window(S, SessionWindow(1)), IS_A)
    assert_wrong(reference(S={1: "a", 2: "b"}), plan, Window(Filter(S, IS_A), SessionWindow(1)))
    assert optimize(plan) == plan


def test_a_filter_of_the_null_supplying_side_stays_above_a_left_join() -> None:
    found = reference(S={1: "a"}, T={1: "a"})
    plan = Filter(join(S, T, JoinKind.LEFT), or_null(equal(R, text("b")), R))
    below = Filter(T, or_null(IS_B, LETTER))
    assert_wrong(found, plan, join(S, below, JoinKind.LEFT))
    assert optimize(plan) == plan
    # One that is not true of NULL makes it an inner join, which it passes.
    strict = Filter(join(S, T, JoinKind.LEFT), equal(R, text("b")))
    assert_wrong(found, strict, join(S, Filter(T, IS_B), JoinKind.LEFT))
    assert optimize(strict) == join(Filter(S, IS_B), Filter(T, IS_B), JoinKind.INNER)


def test_a_filter_for_null_stays_above_a_left_join() -> None:
    # The classic search for rows without a partner: below the join it would find all of them.
    plan = Filter(join(S, T, JoinKind.LEFT), Call("is_null", (R,), BOOLEAN))
    empty = Filter(T, Call("is_null", (LETTER,), BOOLEAN))
    assert_wrong(reference(S={1: "a"}, T={1: "a"}), plan, join(S, empty, JoinKind.LEFT))
    assert optimize(plan) == plan


def test_a_filter_that_reads_both_sides_is_no_condition_of_an_outer_join() -> None:
    found = reference(S={1: "a"}, T={1: "b"})
    lasting = or_null(SAME, R)
    plan = Filter(join(S, T, JoinKind.LEFT, TRUE), lasting)
    assert_wrong(found, plan, join(S, T, JoinKind.LEFT, lasting))
    assert optimize(plan) == plan
    # One that is not true of NULL makes it an inner join, of which it is a condition.
    strict = Filter(join(S, T, JoinKind.LEFT, TRUE), SAME)
    assert_wrong(found, strict, join(S, T, JoinKind.LEFT, SAME))
    assert optimize(strict) == join(S, T, JoinKind.INNER, SAME)


@pytest.mark.parametrize("side", [L, R])
def test_a_filter_stays_above_a_full_join(side: Column) -> None:
    plan = Filter(join(S, T, JoinKind.FULL), or_null(equal(side, text("b")), side))
    kept = or_null(IS_B, LETTER)
    wrong = (
        join(Filter(S, kept), T, JoinKind.FULL)
        if side is L
        else join(S, Filter(T, kept), JoinKind.FULL)
    )
    assert_wrong(reference(S={1: "a"}, T={1: "a"}), plan, wrong)
    assert optimize(plan) == plan


@pytest.mark.parametrize(("side", "letter"), [(L, "a"), (R, "b")])
def test_a_filter_that_refuses_nulls_does_not_pass_a_full_join_as_it_is(
    side: Column, letter: str
) -> None:
    plan = Filter(join(S, T, JoinKind.FULL), equal(side, text(letter)))
    kept = equal(LETTER, text(letter))
    wrong = (
        join(Filter(S, kept), T, JoinKind.FULL)
        if side is L
        else join(S, Filter(T, kept), JoinKind.FULL)
    )
    assert_wrong(reference(S={1: "a"}, T={1: "b"}), plan, wrong)
    kind = JoinKind.LEFT if side is L else JoinKind.RIGHT
    assert optimize(plan) == join(Filter(S, kept), Filter(T, kept), kind)


def test_a_condition_on_the_preserved_side_stays_in_a_left_join() -> None:
    plan = join(S, T, JoinKind.LEFT, equal(L, text("b")))
    wrong = join(Filter(S, IS_B), T, JoinKind.LEFT, TRUE)
    assert_wrong(reference(S={1: "a"}, T={1: "a"}), plan, wrong)
    assert optimize(plan) == plan


def test_a_condition_on_the_left_stays_in_an_anti_join() -> None:
    plan = AntiJoin(S, T, equal(L, text("b")), ("l0", "r0"))
    wrong = AntiJoin(Filter(S, IS_B), T, TRUE, ("l0", "r0"))
    assert_wrong(reference(S={1: "a"}, T={1: "a"}), plan, wrong)
    assert optimize(plan) == plan


def test_a_filter_stays_above_a_scalar_aggregate() -> None:
    highest = NamedAggregate("letter", AggregateCall("max", LETTER, VARCHAR))
    plan = Filter(Aggregate(S, (), (highest,)), IS_A)
    wrong = Aggregate(Filter(S, IS_A), (), (highest,))
    assert_wrong(reference(S={1: "ab"}), plan, wrong)
    assert optimize(plan) == plan


def test_a_filter_on_an_aggregate_stays_above_it() -> None:
    highest = NamedAggregate("y", AggregateCall("max", Y, VARCHAR))
    is_a = equal(Y, text("a"))
    plan = Filter(Aggregate(PAIRS, (Named("x", X),), (highest,)), is_a)
    wrong = Aggregate(Filter(PAIRS, is_a), (Named("x", X),), (highest,))
    assert_wrong(pairs((1, "xa"), (1, "xb")), plan, wrong)
    assert optimize(plan) == plan


def test_columns_are_not_pruned_below_distinct() -> None:
    plan = project(Distinct(PAIRS), x=X)
    assert_wrong(pairs((1, "xa"), (1, "xb")), plan, Distinct(project(PAIRS, x=X)))
    assert optimize(plan) == plan


def test_columns_are_not_pruned_below_a_difference() -> None:
    right = project(PAIRS, x=X, y=text("a"))
    plan = project(Difference(PAIRS, right), x=X)
    wrong = Difference(project(PAIRS, x=X), project(PAIRS, x=X))
    assert_wrong(pairs((1, "xb")), plan, wrong)
    assert optimize(plan) == plan


def test_columns_are_not_pruned_below_a_stream_of_changes() -> None:
    plan = project(Istream(PAIRS), x=X)
    assert_wrong(pairs((1, "xa"), (2, "xb")), plan, Istream(project(PAIRS, x=X)))
    assert optimize(plan) == plan


def test_columns_of_a_partition_are_not_pruned() -> None:
    plan = Aggregate(Window(PAIRS, RowWindow(1, partition_by=("x",))), (), COUNT)
    narrow = Aggregate(Window(project(PAIRS, y=Y), RowWindow(1)), (), COUNT)
    assert_wrong(pairs((1, "xa"), (2, "ya")), plan, narrow)


def test_keys_of_an_aggregate_are_not_pruned() -> None:
    plan = project(Aggregate(PAIRS, (Named("x", X),), COUNT), n=Column("n", BIGINT))
    assert_wrong(pairs((1, "xa"), (1, "ya")), plan, Aggregate(PAIRS, (), COUNT))


def test_columns_are_not_pruned_below_a_count_window_on_a_derived_stream() -> None:
    # Of one instant, the row with the highest values counts as the last: first by x, then by y.
    derived = Distinct(PAIRS)
    plan = project(Window(derived, RowWindow(1)), y=Y)
    wrong = Window(project(derived, y=Y), RowWindow(1))
    assert_wrong(pairs((1, "xb"), (1, "ya")), plan, wrong)
    assert optimize(plan) == plan


def test_columns_may_be_pruned_below_a_count_window_on_a_stream() -> None:
    # The elements of a stream carry ids, so the last row is the last whatever its values are.
    plan = project(Window(PAIRS, RowWindow(1)), y=Y)
    pruned = Window(Project(PAIRS, (Named("y", Y),)), RowWindow(1))
    found = pairs((1, "xb"), (1, "ya"), (1, "xa"))
    assert not differing(found, plan, pruned)
    assert optimize(plan) == pruned


def test_a_window_of_one_instant_on_a_stream_decides_about_ties() -> None:
    # With it rows of one instant are ordered by their values, without it by their ids.
    plan = Window(Window(S, NOW), RowWindow(1))
    assert_wrong(reference(S={1: "ba"}), plan, Window(S, RowWindow(1)))
    assert optimize(plan) == plan
    derived = Window(Window(S, TimeWindow(2)), RowWindow(1))
    assert optimize(Window(derived, NOW)) == derived


def test_false_or_null_is_not_false() -> None:
    null = Literal(None, BOOLEAN)
    plan = Filter(S, Call("is_null", (Call("and", (IS_A, null), BOOLEAN),), BOOLEAN))
    wrong = Filter(S, Call("is_null", (Literal(False, BOOLEAN),), BOOLEAN))
    assert_wrong(reference(S={1: "ab"}), plan, wrong)
    assert optimize(plan) == plan


def test_a_difference_stays_below_a_join() -> None:
    # One of two copies is left, and meets two; of four pairs, three would be left.
    plan = project(join(Difference(S, T), S, JoinKind.INNER), letter=L)
    wrong = Difference(project(join(S, S, JoinKind.INNER), letter=L), T)
    assert differing(reference(S={1: "aa"}, T={1: "a"}), plan, wrong)
    assert optimize(plan, negation="pulled") == optimize(plan)


def test_an_anti_join_stays_below_a_join_that_preserves_the_other_side() -> None:
    anti = AntiJoin(S, T, SAME, names_of_both(S, T))
    plan = join(S, anti, JoinKind.LEFT)
    names = ("l0", "m0", "r0")
    wrong = AntiJoin(join(S, S, JoinKind.LEFT), T, equal(Column("m0", VARCHAR), R), names)
    assert differing(reference(S={1: "a"}, T={1: "a"}), plan, wrong)
    assert optimize(plan, negation="pulled") == plan
