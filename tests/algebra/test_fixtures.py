"""The worked examples of the thesis, with its errata corrected: one test each.

L1, L2 and L3 are logical streams (Tables 8.1 to 8.13), P1, P2 and P3 physical ones (Chapter 11).
"""

from __future__ import annotations

import pytest

from streams import (
    LETTER,
    assert_bags,
    column,
    cross,
    equal,
    names_of_both,
    one_column,
    periods,
    project,
    reference,
    text,
    valid,
    words,
)
from tidemill.algebra.expr import AggregateCall, Call, Case, Column, Expr, Literal, Named
from tidemill.algebra.plan import (
    Aggregate,
    AntiJoin,
    Difference,
    Distinct,
    Dstream,
    Filter,
    Intersect,
    Istream,
    Join,
    JoinKind,
    MaxUnion,
    NamedAggregate,
    Plan,
    Relation,
    RowWindow,
    Rstream,
    SemiJoin,
    SessionWindow,
    StrictDifference,
    TimeWindow,
    Union,
    Validity,
    Window,
    WindowSpec,
)
from tidemill.algebra.snapshot import Reference
from tidemill.model.schema import Field, Schema
from tidemill.model.types import BIGINT, BOOLEAN, VARCHAR

S1, S2, S3 = one_column("L1"), one_column("L2"), one_column("L3")
LOGICAL = reference(
    L1={1: "c", 2: "aaa", 3: "aaab", 4: "aaabc", 5: "bb", 6: "bb"},
    L2={2: "bb", 3: "bb", 4: "abc", 5: "aab", 6: "acc"},
    L3={1: "c", 2: "a", 3: "b", 4: "b", 5: "a", 6: "c"},
)

P1, P2, P3 = periods("P1"), periods("P2"), one_column("P3")
PHYSICAL = reference(
    P1="c[1,8) a[5,11) d[6,14) a[9,10) b[12,17)",
    P2="b[1,7) d[3,9) a[4,5) b[7,15) e[10,18)",
    P3={1: "b", 3: "a", 4: "c", 7: "a", 10: "b"},
)
BEYOND = range(80)


def is_one_of(content: str) -> Expr:
    return Call("in", (LETTER, *map(text, content)), BOOLEAN)


def replaced(before: str, after: str) -> Case:
    branches = tuple((equal(LETTER, text(b)), text(a)) for b, a in zip(before, after, strict=True))
    return Case(branches, LETTER, VARCHAR)


def worth(letters: dict[str, int]) -> Case:
    branches = tuple(
        (equal(LETTER, text(letter)), Literal(value, BIGINT)) for letter, value in letters.items()
    )
    return Case(branches, Literal(None, BIGINT), BIGINT)


def total(plan: Plan, letters: dict[str, int]) -> Aggregate:
    call = AggregateCall("sum", worth(letters), BIGINT)
    return Aggregate(plan, (), (NamedAggregate("total", call),))


# Logical streams


def test_filter() -> None:
    assert_bags(LOGICAL, Filter(S1, is_one_of("ac")), {1: "c", 2: "aaa", 3: "aaa", 4: "aaac"})


def test_map() -> None:
    assert_bags(
        LOGICAL,
        project(S1, letter=replaced("b", "x")),
        {1: "c", 2: "aaa", 3: "aaax", 4: "aaaxc", 5: "xx", 6: "xx"},
    )


def test_union() -> None:
    assert_bags(
        LOGICAL,
        Union(S1, S2),
        {1: "c", 2: "aaabb", 3: "aaabbb", 4: "aaaabbcc", 5: "aabbb", 6: "abbcc"},
    )


def test_product_multiplies_multiplicities() -> None:
    assert_bags(
        LOGICAL,
        cross(S1, S2),
        {
            2: words("ab*6"),
            3: words("ab*6 bb*2"),
            4: words("aa*3 ab*3 ac*3 ba bb bc ca cb cc"),
            5: words("ba*4 bb*2"),
            6: words("ba*2 bc*4"),
        },
    )


def test_duplicate_elimination() -> None:
    assert_bags(LOGICAL, Distinct(S1), {1: "c", 2: "a", 3: "ab", 4: "abc", 5: "b", 6: "b"})


def test_difference() -> None:
    assert_bags(LOGICAL, Difference(S1, S2), {1: "c", 2: "aaa", 3: "aaa", 4: "aa", 5: "b", 6: "bb"})


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (1, {2: "aaa", 3: "aaa", 4: "aaa"}),
        (2, {3: "b", 4: "b", 5: "bb", 6: "bb"}),
        (3, {1: "c", 4: "c"}),
    ],
)
def test_grouping(group: int, expected: dict[int, str]) -> None:
    number_of = Case(worth({"a": 1, "b": 2}).branches, Literal(3, BIGINT), BIGINT)
    assert_bags(LOGICAL, Filter(S1, equal(number_of, Literal(group, BIGINT))), expected)


def test_sum_is_absent_where_there_are_no_rows() -> None:
    expected = {1: 100, 2: 3, 3: 13, 4: 113, 5: 20, 6: 20}
    assert {
        time: sorted(LOGICAL.snapshot(total(S1, {"a": 1, "b": 10, "c": 100}), time).items())
        for time in range(10)
    } == {time: [((expected[time],), 1)] if time in expected else [] for time in range(10)}


def test_time_window() -> None:
    assert_bags(
        LOGICAL,
        Window(S1, TimeWindow(2)),
        {1: "c", 2: "aaac", 3: "aaaaaab", 4: "aaaaaabbc", 5: "aaabbbc", 6: "bbbb", 7: "bb"},
    )


def test_count_window() -> None:
    for_ever = dict.fromkeys(range(6, 20), "abc")
    assert_bags(
        LOGICAL,
        Window(S3, RowWindow(3)),
        {1: "c", 2: "ac", 3: "abc", 4: "abb", 5: "abb", **for_ever},
    )


def test_partitioned_window() -> None:
    keyed = project(S3, letter=LETTER, group=replaced("abc", "xyx"))
    last = Window(keyed, RowWindow(1, partition_by=("group",)))
    for_ever = dict.fromkeys(range(6, 20), "bc")
    assert_bags(
        LOGICAL,
        project(last, letter=LETTER),
        {1: "c", 2: "a", 3: "ab", 4: "ab", 5: "ab", **for_ever},
    )


def test_intersection() -> None:
    assert_bags(LOGICAL, Intersect(S1, S2), {3: "b", 4: "abc", 5: "b"})


def test_max_union() -> None:
    assert_bags(
        LOGICAL,
        MaxUnion(S1, S2),
        {1: "c", 2: "aaabb", 3: "aaabb", 4: "aaabc", 5: "aabb", 6: "abbcc"},
    )


def test_strict_difference() -> None:
    assert_bags(LOGICAL, StrictDifference(S1, S2), {1: "c", 2: "aaa", 3: "aaa", 6: "bb"})


def test_semi_join_counts_a_row_once_however_many_partners_it_has() -> None:
    fields = (Field("key", VARCHAR), Field("value", VARCHAR), Field("from", BIGINT))
    right = Relation("right", Schema((*fields, Field("to", BIGINT))), Validity("from", "to"))
    found = Reference({}, {"left": valid("k[0,10)"), "right": [("k", "x", 0, 6), ("k", "y", 4, 8)]})
    names = ("letter", "key", "value", "from", "to")
    matching = SemiJoin(periods("left"), right, equal(LETTER, column(right, "key")), names)
    assert_bags(found, matching, "k[0,8)")


# Physical streams


def test_filter_keeps_intervals() -> None:
    assert_bags(PHYSICAL, Filter(P1, is_one_of("a")), "a[5,11) a[9,10)")


def test_map_keeps_intervals() -> None:
    assert_bags(
        PHYSICAL,
        project(P1, letter=replaced("ab", "xy")),
        "c[1,8) x[5,11) d[6,14) x[9,10) y[12,17)",
    )


def test_union_keeps_intervals() -> None:
    assert_bags(
        PHYSICAL,
        Union(P1, P2),
        "c[1,8) b[1,7) d[3,9) a[4,5) a[5,11) d[6,14) b[7,15) a[9,10) e[10,18) b[12,17)",
    )


def test_equi_join_intersects_intervals() -> None:
    names = names_of_both(P1, P2)
    same = equal(Column("l0", VARCHAR), Column("r0", VARCHAR))
    join = Join(P1, P2, JoinKind.INNER, same, names)
    assert_bags(PHYSICAL, project(join, letter=column(join, "l0")), "d[6,9) b[12,15)")


def test_duplicate_elimination_joins_intervals() -> None:
    assert_bags(PHYSICAL, Distinct(P1), "c[1,8) a[5,11) d[6,14) b[12,17)")


def test_duplicate_elimination_of_unordered_ends() -> None:
    found = reference(S="a[5,11) a[9,20) a[9,10)")
    assert_bags(found, Distinct(periods("S")), "a[5,11) a[11,20)")


def test_difference_cuts_intervals() -> None:
    assert_bags(PHYSICAL, Difference(P1, P2), "c[1,8) a[5,11) d[9,14) a[9,10) b[15,17)")


@pytest.mark.parametrize(
    ("left", "right", "left_rest", "right_rest"),
    [
        ("a[3,10)", "a[2,8) a[5,12)", "", "a[2,3) a[5,8) a[10,12)"),
        ("a[0,10)", "a[3,5) a[3,7)", "a[0,3) a[7,10)", "a[3,5)"),
    ],
)
def test_difference_cancels_copy_for_copy(
    left: str, right: str, left_rest: str, right_rest: str
) -> None:
    found = reference(left=left, right=right)
    assert_bags(found, Difference(periods("left"), periods("right")), left_rest)
    assert_bags(found, Difference(periods("right"), periods("left")), right_rest)


def test_sum_changes_where_an_interval_starts_or_ends() -> None:
    values = {"a": 1, "b": 10, "c": 100, "d": 1000}
    expected = {
        **dict.fromkeys(range(1, 5), 100),
        5: 101,
        **dict.fromkeys(range(6, 8), 1101),
        8: 1001,
        9: 1002,
        10: 1001,
        11: 1000,
        **dict.fromkeys(range(12, 14), 1010),
        **dict.fromkeys(range(14, 17), 10),
    }
    found = {t: list(PHYSICAL.snapshot(total(P1, values), t).elements()) for t in range(20)}
    assert found == {t: [(expected[t],)] if t in expected else [] for t in range(20)}


def test_count_by_letter() -> None:
    counted = Aggregate(
        P1,
        (Named("letter", LETTER),),
        (NamedAggregate("n", AggregateCall("count", None, BIGINT)),),
    )
    twice = Filter(counted, equal(column(counted, "n"), Literal(2, BIGINT)))
    once = Filter(counted, equal(column(counted, "n"), Literal(1, BIGINT)))
    assert_bags(PHYSICAL, project(twice, letter=LETTER), "a[9,10)")
    assert_bags(
        PHYSICAL,
        project(once, letter=LETTER),
        "c[1,8) a[5,9) d[6,14) a[10,11) b[12,17)",
    )


# Windows over chronons


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (TimeWindow(50), "b[1,51) a[3,53) c[4,54) a[7,57) b[10,60)"),
        (RowWindow(1), "b[1,3) a[3,4) c[4,7) a[7,10) b[10,inf)"),
        (
            RowWindow(1, partition_by=("letter",)),
            "b[1,10) a[3,7) c[4,inf) a[7,inf) b[10,inf)",
        ),
        (TimeWindow(50, slide=10), "b[9,59) a[9,59) c[9,59) a[9,59) b[19,69)"),
        (RowWindow(2, slide=2), "b[3,7) a[3,7) c[7,inf) a[7,inf)"),
        (SessionWindow(2), "b[1,6) a[3,6) c[4,6) a[7,9) b[10,12)"),
        (SessionWindow(3), "b[1,13) a[3,13) c[4,13) a[7,13) b[10,13)"),
        (SessionWindow(4, ("letter",)), "b[1,5) a[3,11) c[4,8) a[7,11) b[10,14)"),
    ],
    ids=[
        *("time 50", "rows 1", "rows 1 by letter", "time 50 slide 10", "rows 2 slide 2"),
        *("session 2", "session 3", "session 4 by letter"),
    ],
)
def test_window(window: WindowSpec, expected: str) -> None:
    assert_bags(PHYSICAL, Window(P3, window), expected, BEYOND)


# Streams of changes


def test_istream_has_what_starts_and_does_not_continue() -> None:
    assert_bags(PHYSICAL, Istream(P2), {1: "b", 3: "d", 4: "a", 10: "e"})


def test_dstream_has_what_ended_at_the_end() -> None:
    assert_bags(PHYSICAL, Dstream(P2), {5: "a", 9: "d", 15: "b", 18: "e"})


def test_rstream_has_every_instant() -> None:
    assert_bags(PHYSICAL, Rstream(P2), "b[1,7) d[3,9) a[4,5) b[7,15) e[10,18)")


def test_istream_and_dstream_count_copies() -> None:
    # The formulas of the thesis use an anti-join, which would lose both events (E-06).
    found = reference(S="a[1,9) a[3,5)")
    assert_bags(found, Istream(periods("S")), {1: "a", 3: "a"})
    assert_bags(found, Dstream(periods("S")), {5: "a", 9: "a"})


def test_the_printed_formula_of_istream_loses_copies() -> None:
    found = reference(S="a[1,9) a[3,5)")
    stream = periods("S")
    before = Difference(Window(stream, TimeWindow(2)), stream)
    same = equal(LETTER, Column("old", VARCHAR))
    printed = AntiJoin(stream, before, same, ("letter", "old"))
    assert_bags(found, printed, {1: "a"})
