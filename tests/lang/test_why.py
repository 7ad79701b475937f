"""WHY: what is asked, of which rows, and which words are names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lang.texts import is_name, quoted
from tidemill.errors import ParseError, Span
from tidemill.lang import parse_one, parse_query, unparse
from tidemill.lang.statements import (
    CreateFunction,
    Explain,
    ExplainMode,
    Instant,
    Name,
    Select,
    Why,
    WhyKind,
)

if TYPE_CHECKING:
    from sqlglot import exp

Q, V = Name("q"), Name("v")
NOON = 1_772_366_400_000_000


def scalar(text: str) -> exp.Expr:
    statement = parse_one(f"CREATE FUNCTION f() AS {text}")
    assert isinstance(statement, CreateFunction)
    return statement.body


# What is asked


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("WHY q", Why(Q)),
        ("WHY all q", Why(Q, flat=True)),
        ("why change q", Why(Q, WhyKind.CHANGE)),
        ("WHY q WHERE a = 1", Why(Q, condition=scalar("a = 1"))),
        ("WHY NOT q WHERE a = 1", Why(Q, WhyKind.NOT, scalar("a = 1"))),
        ("WHY q DOWN TO v", Why(Q, down_to=V)),
        ("WHY q AT 5", Why(Q, at=Instant(5))),
        ("WHY q AT '2026-03-01T12:00:00'", Why(Q, at=Instant(NOON))),
        ("WHY q at now", Why(Q)),
        (
            "WHY ALL q WHERE a IS NULL down to v AT TIMESTAMP '2026-03-01 12:00:00'",
            Why(Q, WhyKind.ROWS, scalar("a IS NULL"), V, Instant(NOON), flat=True),
        ),
        (
            "WHY CHANGE q WHERE a DOWN TO v AT 5",
            Why(Q, WhyKind.CHANGE, scalar("a"), V, Instant(5)),
        ),
    ],
)
def test_it_is_asked_about_rows_of_an_answer(text: str, statement: Why) -> None:
    assert parse_one(text) == statement
    assert parse_one(unparse(statement)) == statement


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a FROM s",
        "SELECT a FROM s at",
        "SELECT a FROM s AS of",
        "SELECT a FROM s [RANGE 5] UNION SELECT b FROM t WHERE b = at",
        "ISTREAM(SELECT a FROM s)",
        "(SELECT a FROM s)",
        "SELECT a FROM s ORDER BY a LIMIT 3",
    ],
)
@pytest.mark.parametrize("end", ["", " WHERE a = 1", " DOWN TO v", " AT 5"])
def test_a_query_can_be_asked_about_in_parentheses(query: str, end: str) -> None:
    found = parse_one(f"WHY ({query}){end}")
    assert isinstance(found, Why)
    assert found.target == parse_query(query)
    assert parse_one(unparse(found)) == found


@pytest.mark.parametrize("mode", ["", "FORMAT JSON "])
def test_it_can_be_explained(mode: str) -> None:
    text = f"EXPLAIN {mode}WHY NOT q WHERE a = 1 AT 5"
    target = Why(Q, WhyKind.NOT, scalar("a = 1"), at=Instant(5))
    assert parse_one(text) == Explain(ExplainMode.LOGICAL, target, as_json=bool(mode))
    assert unparse(parse_one(text)) == text


def test_names_and_instants_know_where_they_stand() -> None:
    found = parse_one("WHY hot DOWN TO v AT 5")
    assert isinstance(found, Why)
    assert isinstance(found.target, Name)
    assert found.target.span == Span(4, 7)
    assert found.down_to is not None
    assert found.down_to.span == Span(16, 17)
    assert found.at is not None
    assert found.at.span == Span(21, 22)


# Words that are names


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("WHY change", Why(Name("change"))),
        ("WHY change AT 5", Why(Name("change"), at=Instant(5))),
        ("WHY change AT NOW", Why(Name("change"))),
        ("WHY change AT '2026-03-01T12:00'", Why(Name("change"), at=Instant(NOON))),
        ("WHY change WHERE a", Why(Name("change"), condition=scalar("a"))),
        ("WHY change DOWN TO v", Why(Name("change"), down_to=V)),
        ("WHY change change", Why(Name("change"), WhyKind.CHANGE)),
        ("WHY change at", Why(Name("at"), WhyKind.CHANGE)),
        ("WHY change at AT 5", Why(Name("at"), WhyKind.CHANGE, at=Instant(5))),
        ("WHY change down", Why(Name("down"), WhyKind.CHANGE)),
        ("WHY all change", Why(Name("change"), flat=True)),
        ("WHY all at AT NOW", Why(Name("at"), flat=True)),
        ('WHY "all"', Why(Name("all"))),
        ('WHY all "all"', Why(Name("all"), flat=True)),
        ('WHY "not" WHERE a', Why(Name("not"), condition=scalar("a"))),
        ('WHY NOT "not" WHERE a', Why(Name("not"), WhyKind.NOT, scalar("a"))),
        ('WHY "change" AT 5', Why(Name("change"), at=Instant(5))),
        ('WHY change "at" AT 5', Why(Name("at"), WhyKind.CHANGE, at=Instant(5))),
        ("WHY at", Why(Name("at"))),
        ("WHY at AT 5", Why(Name("at"), at=Instant(5))),
        ("WHY down DOWN TO down", Why(Name("down"), down_to=Name("down"))),
        ("WHY q DOWN TO at AT 5", Why(Q, down_to=Name("at"), at=Instant(5))),
        ("WHY q DOWN TO to", Why(Q, down_to=Name("to"))),
        ("WHY why", Why(Name("why"))),
        ("WHY now AT NOW", Why(Name("now"))),
    ],
)
def test_a_word_is_a_name_where_no_target_follows(text: str, statement: Why) -> None:
    assert parse_one(text) == statement
    assert parse_one(unparse(statement)) == statement


@pytest.mark.parametrize(
    "text", ["SELECT why, change, down, at FROM why AS down", "SELECT a FROM change AS why"]
)
def test_no_new_word_is_reserved(text: str) -> None:
    assert isinstance(parse_one(text), Select)
    assert unparse(parse_one(text)) == text


@pytest.mark.parametrize("mode", ["LOGICAL", "PHYSICAL", "ANALYZE"])
def test_a_query_called_why_can_be_explained(mode: str) -> None:
    assert parse_one(f"EXPLAIN {mode} why") == Explain(ExplainMode[mode], Name("why"))


NAMES = st.one_of(
    st.sampled_from(["change", "all", "not", "at", "down", "to", "now", "why", "where", "x y"]),
    st.text(min_size=1, max_size=3).filter(is_name),
)


@settings(max_examples=200, deadline=None)
@given(
    target=NAMES,
    kind=st.sampled_from(WhyKind),
    condition=st.sampled_from([None, "at", "down = change", "at - 5 > 0", "a IS NOT NULL"]),
    down_to=st.none() | NAMES,
    at=st.none() | st.integers(min_value=0, max_value=NOON),
    flat=st.booleans(),
)
def test_what_is_unparsed_is_parsed_to_the_same(  # noqa: PLR0913
    target: str,
    kind: WhyKind,
    condition: str | None,
    down_to: str | None,
    at: int | None,
    *,
    flat: bool,
) -> None:
    is_not = kind is WhyKind.NOT
    asked = "at" if condition is None and is_not else condition
    statement = Why(
        Name(target),
        kind,
        None if asked is None else scalar(asked),
        None if down_to is None or is_not else Name(down_to),
        None if at is None else Instant(at),
        flat=flat and kind is WhyKind.ROWS,
    )
    assert parse_one(unparse(statement)) == statement
    assert parse_one(f"EXPLAIN {unparse(statement)}") == Explain(ExplainMode.LOGICAL, statement)
    assert parse_one(f"WHY {quoted(target)}") == Why(Name(target))


# Where a condition ends


@pytest.mark.parametrize(
    "condition",
    [
        "at",
        "at = 5",
        "at - 5 > 0",
        "5 < at",
        "down = change AND at > down",
        "a::TIMESTAMP > TIMESTAMP '2026-03-01'",
        "a > b - INTERVAL 5 MINUTES",
        "CASE WHEN a THEN b END",
        "a IS NOT NULL",
        "a LIKE '%' ESCAPE '!'",
        "a IN (at, 5)",
        "(at)",
        "a = (SELECT at FROM s AT)",
    ],
)
@pytest.mark.parametrize("end", ["", " AT 5", " AT '2026-03-01'", " AT NOW"])
@pytest.mark.parametrize("down", ["", " DOWN TO v"])
def test_a_condition_goes_on_as_far_as_it_can(condition: str, end: str, down: str) -> None:
    found = parse_one(f"WHY q WHERE {condition}{down}{end}")
    assert isinstance(found, Why)
    assert found.condition == scalar(condition)
    assert found.down_to == (V if down else None)
    assert (found.at is not None) == (end not in ("", " AT NOW"))


# What is none


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("WHY", "expected the name of a query, table or derived stream", "write WHY"),
        ("WHY AT 5", 'or a query in parentheses, found "AT"', "write WHY"),
        ("WHY DOWN TO v", 'found "DOWN"', "write WHY"),
        ("WHY where", 'found "where"', "write WHY"),
        ("WHY end", 'found "end"', 'in quotes: "end"'),
        ("WHY all", "found the end of the statement", "write WHY"),
        ("WHY not AT NOW", 'found "AT"', "write WHY"),
        ("WHY SELECT a FROM s", "stands in parentheses", "write WHY (SELECT …)"),
        ("WHY WITH a AS (SELECT 1) SELECT 1", "stands in parentheses", "WHY (SELECT …)"),
        ("WHY WSTREAM[ROWS 5](SELECT a FROM s)", "stands in parentheses", "WHY (SELECT …)"),
        ("WHY ALL CHANGE q", "ALL and CHANGE do not go together", "one of WHY ALL"),
        ("WHY CHANGE NOT q WHERE a", "CHANGE and NOT do not go together", "one of WHY ALL"),
        ("WHY NOT ALL q", "NOT and ALL do not go together", "one of WHY ALL"),
        ("WHY ()", 'expected a query, found ")"', "begins with SELECT"),
        ("WHY (q)", 'expected a query, found "q"', "begins with SELECT"),
        ("WHY (SELECT a FROM)", 'found ")"', "write WHY"),
        ("WHY (SELECT a FROM s AS OF 5) AT 5", "AS OF does not stand in par", "AT NOW"),
        ("WHY (SELECT a FROM s) b", 'unexpected "b"', "write WHY"),
        ("WHY (SELECT a FROM s) UNION SELECT b FROM s", 'unexpected "UNION"', "another pair"),
        ("WHY q WHERE", "expected an expression", "write WHY"),
        ("WHY q WHERE AT 5", 'expected a condition, found "AT"', "write WHY"),
        ("WHY q WHERE DOWN TO v", 'expected a condition, found "DOWN"', "write WHY"),
        ("WHY q WHER a = 1", 'unexpected "WHER"', "write WHY"),
        ("WHY q WHERE a = 1 b", 'unexpected "b"', "write WHY"),
        ("WHY q WHERE a AT noon", 'expected an instant or NOW, found "noon"', "microseconds"),
        ("WHY q AT", "expected an instant or NOW, found the end", "microseconds"),
        ("WHY q AT -5", "an instant is not before 1970", "microseconds"),
        ("WHY q WHERE a AT -5", "an instant is not before 1970", "microseconds"),
        ("WHY q AT 5 AT 6", 'unexpected "AT"', "write WHY"),
        ("WHY q DOWN v", 'expected TO, found "v"', "write WHY"),
        ("WHY q DOWN TO", "expected the name of a derived stream", "write WHY"),
        ("WHY q DOWN TO AT 5", 'derived stream, found "AT"', "write WHY"),
        ("WHY q DOWN TO v WHERE a", "WHERE stands before DOWN TO and AT", "write WHY"),
        ("WHY q AT 5 WHERE a", "WHERE stands before DOWN TO and AT", "write WHY"),
        ("WHY q AT 5 DOWN TO v", "DOWN TO stands before AT", "write WHY"),
        ("WHY q AS OF 5", "WHY takes no AS OF", "write AT"),
        ("WHY q WHERE a = 1 AS OF NOW", "WHY takes no AS OF", "write AT"),
        ("WHY NOT q", "WHY NOT needs WHERE, found the end", "say which rows"),
        ("WHY NOT q AT 5", 'WHY NOT needs WHERE, found "AT"', "say which rows"),
        ("WHY NOT q DOWN TO v", 'WHY NOT needs WHERE, found "DOWN"', "say which rows"),
        ("WHY NOT q WHERE a DOWN TO v", "WHY NOT takes no DOWN TO", "leave it out"),
        ("EXPLAIN TRACE WHY q", "TRACE is a form of a plan; EXPLAIN WHY says", "FORMAT JSON"),
        ("EXPLAIN ANALYZE WHY q", "ANALYZE is a form of a plan; EXPLAIN WHY", "FORMAT JSON"),
        ("EXPLAIN COST FORMAT JSON WHY q", "COST is a form of a plan", "FORMAT JSON"),
        ("EXPLAIN WHY q r", 'unexpected "r"', "write WHY"),
    ],
)
def test_anything_else_is_refused(text: str, message: str, hint: str) -> None:
    with pytest.raises(ParseError) as raised:
        parse_one(text)
    assert message in raised.value.message
    assert hint in (raised.value.hint or "")
    assert raised.value.span is not None
