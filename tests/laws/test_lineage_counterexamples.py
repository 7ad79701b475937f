"""Why the laws of provenance are not about more plans: in each of these the next one is false."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from laws.catalogue import Inputs, U
from laws.lineage_plans import all_origins, counted, origins_of, snapshot
from laws.test_minimal_lineage import COUNT, parts
from streams import LETTER, call, cross, letters, number, one_column, project
from tidemill.algebra.expr import TRUE, AggregateCall, Call, Column, Named
from tidemill.algebra.plan import (
    Aggregate,
    Filter,
    Istream,
    Join,
    JoinKind,
    NamedAggregate,
    Plan,
    RowWindow,
    SessionWindow,
    StrictDifference,
    TimeWindow,
    Union,
    Window,
)
from tidemill.algebra.snapshot import Element
from tidemill.model.types import BIGINT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.algebra.origins import Origin
    from tidemill.algebra.snapshot import Bag, Row

S, T, V = one_column("S"), one_column("T"), one_column("V")
LAST_THREE = Window(S, RowWindow(3))
A, B = ("a",), ("b",)


def of_letters(**streams: Mapping[int, str]) -> Inputs:
    return Inputs({name: tuple(letters(stream)) for name, stream in streams.items()}, {})


def of_numbers(*numbers: int) -> Inputs:
    return Inputs({"U": tuple(Element(1, n, (n,)) for n in numbers)}, {})


def origins(content: Inputs, plan: Plan, time: int, row: Row) -> frozenset[Origin]:
    return origins_of(content.lineage().rows(plan, time))[row]


def alone(content: Inputs, plan: Plan, time: int, row: Row) -> Bag:
    """The answer if there is only what a row is made of."""
    return snapshot(content, plan, origins(content, plan, time, row), time)


# Not enough


def test_a_session_is_held_open_by_elements_it_is_not_made_of() -> None:
    plan, content = Window(S, SessionWindow(2)), of_letters(S={1: "a", 2: "b"})
    assert counted(content.lineage().rows(plan, 3)) == Counter([A, B])
    assert not alone(content, plan, 3, A), "without b its session has ended"


def test_a_window_of_rows_that_slides_waits_for_elements_it_is_not_made_of() -> None:
    plan, content = Window(S, RowWindow(2, slide=2)), of_letters(S={1: "ab"})
    assert counted(content.lineage().rows(plan, 1)) == Counter([A, B])
    assert not alone(content, plan, 1, A), "without b it has not moved"


@pytest.mark.parametrize(
    ("plan", "content", "often"),
    [
        # The a of instant 1 is displaced by b at instant 2; alone, it is held at both.
        (Window(Window(S, RowWindow(1)), TimeWindow(2)), of_letters(S={1: "a", 2: "b"}), 2),
        # From a, b, b to b, a, a one a is new; of the three a alone, two are.
        (Istream(LAST_THREE), of_letters(S={1: "abb", 2: "aa"}), 2),
    ],
)
def test_windows_of_rows_hold_for_longer_what_nothing_displaces(
    plan: Plan, content: Inputs, often: int
) -> None:
    assert counted(content.lineage().rows(plan, 2))[A] == 1
    assert alone(content, plan, 2, A)[A] == often


def test_what_is_counted_at_several_instants_is_counted_again_at_others() -> None:
    """Two steps: the count of instant 1 is made of the first a, which is there at instant 2 too."""
    plan = Window(Aggregate(Window(S, TimeWindow(2)), (), (COUNT,)), TimeWindow(2))
    content = of_letters(S={1: "a", 2: "a"})
    assert counted(content.lineage().rows(plan, 2)) == Counter([(1,), (2,)])
    assert alone(content, plan, 2, (1,)) == Counter({(1,): 2})


# Something else

SUM = Call("+", (Column("l0", BIGINT), Column("r0", BIGINT)), BIGINT)
SUMS = project(cross(U, U), total=SUM)
BY_SUM = Aggregate(cross(U, U), (Named("total", SUM),), (COUNT,))


def test_a_row_made_in_two_ways_by_a_join_is_made_of_what_makes_others() -> None:
    """0 + 1 and 1 + 0: so 0 + 0 and 1 + 1 are there, as they are in the whole answer."""
    content = of_numbers(0, 1)
    assert alone(content, SUMS, 1, (1,)) == Counter([(0,), (1,), (1,), (2,)])


def test_a_group_over_a_join_is_made_of_what_makes_parts_of_other_groups() -> None:
    """Of 0, 1 and 2 three pairs have the sum 2; of what makes the sum 1, only one has."""
    content = of_numbers(0, 1, 2)
    whole = counted(content.lineage().rows(BY_SUM, 1))
    assert alone(content, BY_SUM, 1, (1, 2)) == Counter([(0, 1), (1, 2), (2, 1)])
    assert (2, 1) not in whole


def test_parts_of_other_groups_are_seen_where_groups_are_not_told_apart() -> None:
    """Two steps: of 0 and 1 with 0, 1 and 2, the sums 0 and 3 are there once; so are 1 and 2 then.

    A projection of an aggregate of a join is there more often.
    """
    small = Filter(U, call("<", Column("c", BIGINT), number(2)))
    by_sum = Aggregate(cross(small, U), BY_SUM.keys, (COUNT,))
    plan, content = project(by_sum, n=Column("n", BIGINT)), of_numbers(0, 1, 2)
    assert counted(content.lineage().rows(plan, 1))[(1,)] == 2
    assert alone(content, plan, 1, (1,))[(1,)] == 4


# Too many


def test_a_row_of_which_the_window_holds_another_is_there_without_its_origin() -> None:
    plan, content = Window(S, RowWindow(1)), of_letters(S={1: "a", 2: "a"})
    assert origins(content, plan, 2, A) == {(0, 1)}
    assert snapshot(content, plan, {(0, 0)}, 2) == Counter([A]), "the older one takes its place"


def test_what_stands_at_both_instants_is_of_what_is_new_but_never_matters() -> None:
    plan, content = Istream(Window(S, TimeWindow(2))), of_letters(S={1: "a", 2: "a"})
    assert origins(content, plan, 2, A) == {(0, 0), (0, 1)}
    for part in parts(all_origins(content, plan)):
        without = snapshot(content, plan, part - {(0, 0)}, 2)
        assert snapshot(content, plan, part, 2) == without


def test_a_zero_is_of_its_sum_but_never_matters() -> None:
    total = NamedAggregate("total", AggregateCall("sum", Column("c", BIGINT), BIGINT))
    plan, content = Aggregate(U, (), (total,)), of_numbers(0, 5)
    assert origins(content, plan, 1, (5,)) == {(0, 0), (0, 5)}
    assert snapshot(content, plan, {(0, 5)}, 1) == Counter([(5,)])


# What is not there


def test_two_differences_do_not_say_what_a_row_is_there_for() -> None:
    """What is not an origin matters: the a of V takes away the a of T, which takes this away."""
    plan = StrictDifference(S, StrictDifference(T, V))
    content = of_letters(S={1: "a"}, T={1: "a"}, V={1: "a"})
    assert origins(content, plan, 1, A) == {(0, 0)}
    assert alone(content, plan, 1, A) == Counter([A])
    assert not snapshot(content, plan, {(0, 0), (1, 0)}, 1)


def test_a_partner_of_nulls_looks_like_none() -> None:
    """What is not an origin of the row takes the place of the partner, if that is not there."""
    plan = Join(S, T, JoinKind.LEFT, TRUE, ("l0", "r0"))
    of_t = (Element(1, 0, (None,)), Element(1, 1, B))
    content = Inputs({**of_letters(S={1: "a"}).streams, "T": of_t}, {})
    row = ("a", None)
    assert origins(content, plan, 1, row) == {(0, 0), (1, 0)}
    assert snapshot(content, plan, {(0, 0)}, 1)[row] == 1
    assert snapshot(content, plan, {(0, 0), (1, 1)}, 1)[row] == 0


def test_copies_of_a_row_can_be_made_of_different_rows() -> None:
    plan, content = Union(S, project(T, letter=LETTER)), of_letters(S={1: "a"}, T={1: "a"})
    assert content.lineage().rows(plan, 1) == [(A, frozenset({(0, 0)})), (A, frozenset({(1, 0)}))]
