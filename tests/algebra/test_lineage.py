"""Which leaves a plan has, and where the definition leaves origins open."""

from __future__ import annotations

from streams import LETTER, cross, letters, one_column, project, reference
from tidemill.algebra.expr import TRUE
from tidemill.algebra.lineage import Lineage, is_certain, leaves
from tidemill.algebra.plan import (
    Distinct,
    Filter,
    Istream,
    Plan,
    Relation,
    RowWindow,
    Rstream,
    SessionWindow,
    TimeWindow,
    Union,
    Window,
)

S, T = one_column("S"), one_column("T")
R = Relation("R", S.schema)


def test_leaves_are_counted_from_the_left() -> None:
    assert leaves(Union(cross(S, R), cross(T, S))) == (S, R, T, S)


def test_a_shared_part_is_as_many_leaves_as_it_has_places() -> None:
    shared = Distinct(S)
    plan = cross(shared, shared)
    assert leaves(plan) == (S, S)
    made = Lineage({"S": letters({1: "a"})}).rows(plan, 1)
    assert made == [(("a", "a"), frozenset({(0, 0), (1, 0)}))]


def test_a_row_of_a_relation_is_known_by_its_position() -> None:
    made = Lineage({}, {"R": [("a",), ("b",), ("a",)]}).rows(Distinct(R), 0)
    assert made == [(("a",), frozenset({(0, 0), (0, 2)})), (("b",), frozenset({(0, 1)}))]


def test_nothing_was_before_the_beginning() -> None:
    lineage = Lineage({}, {"R": [("a",)]})
    assert lineage.rows(R, -1) == []
    assert lineage.rows(Istream(R), 0) == [(("a",), frozenset({(0, 0)}))]


def test_an_answer_is_not_changed_by_who_asked_for_it() -> None:
    lineage = Lineage({}, {"R": [("a",)]})
    lineage.rows(R, 0).clear()
    assert lineage.rows(R, 0) == [(("a",), frozenset({(0, 0)}))]


def test_which_of_equal_rows_of_a_derived_stream_are_held_is_not_certain() -> None:
    last = RowWindow(1)
    plan = Window(Union(S, S), last)
    made = Lineage({"S": letters({1: "a"})}).rows(plan, 1)
    assert made == [(("a",), frozenset({(1, 0)}))], "it could as well be the other one"
    assert reference(S={1: "a"}).snapshot(plan, 1).total() == 1
    uncertain: list[Plan] = [
        plan,
        Window(Rstream(S), last),
        Distinct(Window(Window(S, TimeWindow(2)), last)),
    ]
    assert not any(is_certain(one) for one in uncertain)


def test_what_a_window_holds_of_one_stream_is_certain() -> None:
    some = Filter(project(S, letter=LETTER), TRUE)
    assert is_certain(Istream(Window(some, RowWindow(3))))
    assert is_certain(Window(Union(S, T), SessionWindow(2)))
    assert is_certain(Window(Union(S, T), TimeWindow(2)))
