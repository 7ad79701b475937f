from __future__ import annotations

from itertools import product

import pytest
from sqlglot import exp

from tidemill.lang import StreamOperator, WindowClause, Windowed, parse_query

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

SPELLINGS = ("WINDOW(RANGE 10 MINUTES)", "[RANGE 10 MINUTES]", "window ( range 10 minutes )")
SOURCES = {
    "bid": exp.Table,
    "(SELECT a FROM bid)": exp.Subquery,
    "ISTREAM(SELECT a FROM bid)": StreamOperator,
    "DSTREAM(customer)": StreamOperator,
}
ALIASES = ("", "b", "AS b")


def item(text: str) -> exp.Expr:
    found: exp.Expr = parse_query(f"SELECT * FROM {text}").args["from_"].this
    return found


def window(text: str) -> WindowClause:
    windowed = item(f"bid [{text}]")
    assert isinstance(windowed, Windowed)
    return windowed.window


@pytest.mark.parametrize(
    ("source", "spelling", "alias"), list(product(SOURCES, SPELLINGS, ALIASES))
)
def test_a_window_stands_before_or_after_the_alias(source: str, spelling: str, alias: str) -> None:
    before = item(f"{source} {spelling} {alias}")
    after = item(f"{source} {alias} {spelling}")
    assert isinstance(before, Windowed)
    assert before == after
    assert type(before.this) is SOURCES[source]
    assert before.this.args.get("alias") is None
    assert before.alias == alias.removeprefix("AS ")
    assert before.window == WindowClause(frame="RANGE", size=10 * MINUTE)


@pytest.mark.parametrize("source", list(SOURCES))
def test_without_a_window_the_item_stays_what_it_is(source: str) -> None:
    found = item(f"{source} b")
    assert type(found) is SOURCES[source]
    assert found.alias == "b"


@pytest.mark.parametrize(
    ("text", "frame", "size", "slide"),
    [
        ("NOW", "NOW", None, None),
        ("RANGE UNBOUNDED", "RANGE", None, None),
        ("ROWS UNBOUNDED", "ROWS", None, None),
        ("RANGE 5", "RANGE", 5, None),
        ("RANGE 10 MINUTES SLIDE 1 MINUTE", "RANGE", 10 * MINUTE, MINUTE),
        ("RANGE UNBOUNDED SLIDE 1 DAY", "RANGE", None, DAY),
        ("ROWS 100", "ROWS", 100, None),
        ("ROWS 100 SLIDE 10", "ROWS", 100, 10),
        ("RANGE -5 SECONDS", "RANGE", -5 * SECOND, None),
        ("RANGE 0", "RANGE", 0, None),
        ("ROWS -1 SLIDE 0", "ROWS", -1, 0),
        ("SESSION 10 SECONDS", "SESSION", 10 * SECOND, None),
        ("session 0", "SESSION", 0, None),
    ],
)
def test_frames(text: str, frame: str, size: int | None, slide: int | None) -> None:
    found = window(text)
    assert (found.frame, found.size, found.slide) == (frame, size, slide)
    assert found.partition_by == []


@pytest.mark.parametrize(
    "text",
    ["RANGE 5", "RANGE 5 MINUTES SLIDE 1 MINUTE", "ROWS 5", "RANGE UNBOUNDED", "SESSION 5"],
)
def test_a_window_may_be_internal(text: str) -> None:
    assert not window(text).internal
    assert window(f"{text} EXTERNAL") == window(text)
    internal = window(f"{text} INTERNAL")
    assert internal.internal
    assert internal != window(text)
    assert (internal.size, internal.slide) == (window(text).size, window(text).slide)


def test_a_partitioned_window_has_columns() -> None:
    found = window("PARTITION BY seller, b.item ROWS 10 SLIDE 2")
    assert [column.sql() for column in found.partition_by] == ["seller", "b.item"]
    assert (found.frame, found.size, found.slide) == ("ROWS", 10, 2)


def test_session_is_a_name_where_a_name_can_stand() -> None:
    found = window("PARTITION BY session SESSION 10")
    assert [column.sql() for column in found.partition_by] == ["session"]
    assert (found.frame, found.size) == ("SESSION", 10)
    session = item("session [SESSION 5] session")
    assert (session.name, session.alias) == ("session", "session")


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("1 MICROSECOND", 1),
        ("2 us", 2),
        ("3 MILLISECONDS", 3_000),
        ("3 ms", 3_000),
        ("1 s", SECOND),
        ("1 sec", SECOND),
        ("90 Seconds", 90 * SECOND),
        ("2 min", 2 * MINUTE),
        ("2 MINS", 2 * MINUTE),
        ("1 h", HOUR),
        ("1 HOUR", HOUR),
        ("2 d", 2 * DAY),
        ("1 week", 7 * DAY),
        ("1.5 SECONDS", 1_500_000),
        ("1e3 ms", SECOND),
        ("1 HOUR 30 MINUTES", 90 * MINUTE),
        ("INTERVAL '5' MINUTES", 5 * MINUTE),
        ("INTERVAL 5 MINUTES", 5 * MINUTE),
        ("INTERVAL '5 minutes'", 5 * MINUTE),
        ("INTERVAL '1 hour 30 minutes'", 90 * MINUTE),
    ],
)
def test_durations(text: str, microseconds: int) -> None:
    assert window(f"RANGE {text}").size == microseconds


def test_tables_under_windows_are_found_by_traversal() -> None:
    query = parse_query("SELECT * FROM bid [NOW] b, (SELECT * FROM item [ROWS 1]) [NOW]")
    assert sorted(table.name for table in query.find_all(exp.Table)) == ["bid", "item"]
    assert [each.alias_or_name for each in query.find_all(Windowed)] == ["b", "", "item"]
