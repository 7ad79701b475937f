"""What a log of statements means: the statements that hold, and the drops that are not done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tidemill.catalog.durable import (
    Done,
    Undone,
    Written,
    key_of,
    question,
    standing,
    unfinished_drops,
)
from tidemill.lang.statements import ObjectKind

if TYPE_CHECKING:
    from tidemill.catalog.durable import LogEntry

NAMES = st.sampled_from(["a", "A", "b"])


def create(number: int, name: str, kind: ObjectKind = ObjectKind.QUERY) -> Written:
    return Written(number, kind, name, f"CREATE {number}")


def drop(number: int, name: str, kind: ObjectKind = ObjectKind.QUERY) -> Written:
    return Written(number, kind, name, f"DROP {number}", is_drop=True)


def test_what_was_created_and_not_dropped_holds_in_its_order() -> None:
    entries = [create(1, "a"), create(2, "b"), drop(3, "a"), create(4, "c"), create(5, "a")]
    assert [one.number for one in standing(entries)] == [2, 4, 5]


def test_what_was_created_once_more_keeps_its_place() -> None:
    entries = [create(1, "a"), create(2, "b"), create(3, "a")]
    assert standing(entries) == [entries[2], entries[1]]


def test_names_are_the_same_in_any_case_and_functions_have_their_own() -> None:
    function = ObjectKind.FUNCTION
    entries = [create(1, "a"), create(2, "A", function), drop(3, "A")]
    assert standing(entries) == [entries[1]]
    assert key_of(ObjectKind.STREAM, "A") == key_of(ObjectKind.QUERY, "a")


def test_what_was_undone_is_left_out() -> None:
    entries: list[LogEntry] = [create(1, "a"), create(2, "b"), Undone(2), drop(3, "a"), Undone(3)]
    assert standing(entries) == [entries[0]]


def test_a_drop_of_a_query_is_unfinished_until_it_is_done() -> None:
    entries: list[LogEntry] = [create(1, "a"), drop(2, "a")]
    assert unfinished_drops(entries) == [entries[1]]
    assert unfinished_drops([*entries, Done(2)]) == []
    assert unfinished_drops([*entries, Undone(2)]) == []
    again = [*entries, create(3, "A")]
    assert unfinished_drops(again) == [], "the state is that of the new one"
    assert unfinished_drops([*again, drop(4, "a")]) == [drop(4, "a")]
    assert (
        unfinished_drops([create(1, "s", ObjectKind.STREAM), drop(2, "s", ObjectKind.STREAM)]) == []
    )


@given(
    st.lists(st.tuples(st.sampled_from(["create", "drop", "create, undo", "drop, undo"]), NAMES))
)
def test_what_holds_is_what_a_catalog_would_have(said: list[tuple[str, str]]) -> None:
    """Statement by statement, with a set of names; those that a catalog refuses are not written."""
    entries: list[LogEntry] = []
    there: dict[str, int] = {}
    for number, (verb, name) in enumerate(said, start=1):
        if ("create" in verb) == (name.lower() in there):
            continue
        entries.append(create(number, name) if "create" in verb else drop(number, name))
        if "undo" in verb:
            entries.append(Undone(number))
        elif verb == "create":
            there[name.lower()] = number
        else:
            del there[name.lower()]
    assert [one.number for one in standing(entries)] == sorted(there.values())


def test_what_a_query_asks_is_without_its_name_and_sink() -> None:
    asked = "SELECT * FROM s [NOW]"
    assert question(f"CREATE QUERY q INTO console() AS {asked}") == question(asked) == asked
