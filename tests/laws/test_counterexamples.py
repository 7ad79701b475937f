"""What looks like an identity and is none: two plans, one stream, two answers (K43, K44, E4)."""

from __future__ import annotations

from streams import (
    LETTER,
    assert_bags,
    column,
    cross,
    equal,
    one_column,
    project,
    reference,
    text,
    words,
)
from tidemill.algebra.expr import AggregateCall, Call, Column, Expr, Literal, Named
from tidemill.algebra.plan import (
    Aggregate,
    Difference,
    Distinct,
    Filter,
    Join,
    JoinKind,
    NamedAggregate,
    Plan,
    RowWindow,
    SemiJoin,
    SessionWindow,
    StrictDifference,
    TimeWindow,
    Union,
    Window,
)
from tidemill.model.types import BIGINT, BOOLEAN, VARCHAR

S, T = one_column("S"), one_column("T")
OTHER = Column("other", VARCHAR)
IS_A = equal(LETTER, text("a"))
FIRST = range(4)


def in_capitals(letter: Expr) -> Call:
    return Call("upper", (letter,), VARCHAR)


def test_a_filter_does_not_pass_a_count_window() -> None:
    found = reference(S={1: "a", 2: "b"})
    assert_bags(found, Filter(Window(S, RowWindow(1)), IS_A), {1: "a"}, FIRST)
    assert_bags(found, Window(Filter(S, IS_A), RowWindow(1)), {1: "a", 2: "a", 3: "a"}, FIRST)


def test_a_filter_on_other_columns_does_not_pass_a_partitioned_window() -> None:
    found = reference(S={1: "a", 2: "b"})
    last = RowWindow(1, partition_by=("group",))
    grouped = project(S, letter=LETTER, group=text("g"))
    assert_bags(found, Filter(Window(grouped, last), IS_A), {1: words("ag")}, FIRST)
    assert_bags(
        found,
        Window(Filter(grouped, IS_A), last),
        dict.fromkeys((1, 2, 3), words("ag")),
        FIRST,
    )


def test_a_filter_does_not_pass_a_session_window() -> None:
    found = reference(S={1: "a", 2: "b"})
    assert_bags(found, Filter(Window(S, SessionWindow(1)), IS_A), {1: "a", 2: "a"}, FIRST)
    assert_bags(found, Window(Filter(S, IS_A), SessionWindow(1)), {1: "a"}, FIRST)


def test_a_union_does_not_pass_session_windows() -> None:
    found = reference(S={1: "a"}, T={2: "b"})
    one = SessionWindow(1)
    assert_bags(found, Union(Window(S, one), Window(T, one)), {1: "a", 2: "b"}, FIRST)
    assert_bags(found, Window(Union(S, T), one), {1: "a", 2: "ab"}, FIRST)


def test_a_union_does_not_pass_count_windows() -> None:
    found = reference(S={1: "a"}, T={2: "b"})
    one = RowWindow(1)
    assert_bags(found, Union(Window(S, one), Window(T, one)), {1: "a", 2: "ab", 3: "ab"}, FIRST)
    assert_bags(found, Window(Union(S, T), one), {1: "a", 2: "b", 3: "b"}, FIRST)


def test_a_map_that_changes_the_groups_does_not_pass_a_partitioned_window() -> None:
    found = reference(S={1: "a", 2: "b"})
    last = RowWindow(1, partition_by=("letter",))
    assert_bags(
        found, project(Window(S, last), letter=text("x")), {1: "x", 2: "xx", 3: "xx"}, FIRST
    )
    assert_bags(found, Window(project(S, letter=text("x")), last), {1: "x", 2: "x", 3: "x"}, FIRST)


def test_duplicate_elimination_does_not_pass_a_map_that_is_not_injective() -> None:
    found = reference(S={1: "aA"})
    assert_bags(found, Distinct(project(S, letter=in_capitals(LETTER))), {1: "A"})
    assert_bags(found, project(Distinct(S), letter=in_capitals(LETTER)), {1: "AA"})


def test_duplicate_elimination_does_not_pass_a_union() -> None:
    found = reference(S={1: "a"}, T={1: "a"})
    assert_bags(found, Distinct(Union(S, T)), {1: "a"})
    assert_bags(found, Union(Distinct(S), Distinct(T)), {1: "aa"})


def test_duplicate_elimination_does_not_pass_a_time_window() -> None:
    found = reference(S={1: "a", 2: "a"})
    two = TimeWindow(2)
    assert_bags(found, Distinct(Window(S, two)), {1: "a", 2: "a", 3: "a"})
    assert_bags(found, Window(Distinct(S), two), {1: "a", 2: "aa", 3: "a"})


def test_a_union_with_itself_is_not_the_same() -> None:
    found = reference(S={1: "a"})
    assert_bags(found, Union(S, S), {1: "aa"})
    assert_bags(found, S, {1: "a"})


def test_a_semi_join_is_not_a_join_with_the_distinct_right() -> None:
    # The printed definition of the semi-join counts a row once for every different partner.
    found = reference(S={1: "k"}, T={1: "xy"})
    always = Literal(True, BOOLEAN)
    names = ("letter", "other")
    printed = Join(S, Distinct(T), JoinKind.INNER, always, names)
    assert_bags(found, SemiJoin(S, T, always, names), {1: "k"})
    assert_bags(found, project(printed, letter=LETTER), {1: "kk"})


def test_a_map_does_not_pass_a_difference() -> None:
    found = reference(S={1: "a"}, T={1: "A"})
    assert_bags(found, project(Difference(S, T), letter=in_capitals(LETTER)), {1: "A"})
    assert_bags(
        found,
        Difference(project(S, letter=in_capitals(LETTER)), project(T, letter=in_capitals(LETTER))),
        {},
    )


def test_a_filter_on_the_right_does_not_pass_a_left_join() -> None:
    found = reference(S={1: "a"}, T={1: "a"})
    names = ("letter", "other")
    is_b = equal(OTHER, text("b"))
    same = equal(LETTER, OTHER)
    only_b = Filter(T, equal(LETTER, text("b")))
    assert_bags(found, Filter(Join(S, T, JoinKind.LEFT, same, names), is_b), {})
    outer = Join(S, only_b, JoinKind.LEFT, same, names)
    assert found.snapshot(outer, 1) == {("a", None): 1}


def test_a_time_window_does_not_pass_a_product() -> None:
    found = reference(S={1: "a"}, T={2: "b"})
    two = TimeWindow(2)
    assert_bags(found, cross(Window(S, two), Window(T, two)), {2: words("ab")})
    assert_bags(found, Window(cross(S, T), two), {})


def test_a_count_does_not_pass_a_join_whose_other_rows_repeat() -> None:
    found = reference(S={1: "a"}, T={1: "aa"})
    count = (NamedAggregate("n", AggregateCall("count", None, BIGINT)),)
    by_letter = (Named("letter", LETTER),)
    same = equal(LETTER, OTHER)
    after = Aggregate(Join(S, T, JoinKind.INNER, same, ("letter", "other")), by_letter, count)
    before = Join(Aggregate(S, by_letter, count), T, JoinKind.INNER, same, ("letter", "n", "other"))
    eager: Plan = project(before, letter=LETTER, n=column(before, "n"))
    assert found.snapshot(after, 1) == {("a", 2): 1}
    assert found.snapshot(eager, 1) == {("a", 1): 2}


def test_a_difference_takes_copy_for_copy_and_a_strict_one_all() -> None:
    found = reference(S={1: "aab"}, T={1: "a"})
    assert_bags(found, Difference(S, T), {1: "ab"})
    assert_bags(found, StrictDifference(S, T), {1: "b"})
