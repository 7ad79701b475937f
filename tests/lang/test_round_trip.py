"""Laws over random texts: what is parsed can be written, and nothing is passed over."""

from __future__ import annotations

import contextlib

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from lang.texts import texts
from tidemill.errors import ParseError
from tidemill.lang import parse, parse_one, parse_query, span_of, unparse
from tidemill.lang.statements import CreateFunction
from tidemill.lang.tokens import tokenize

QUICK = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

WORDS = """
    SELECT FROM WHERE GROUP BY HAVING ORDER WITH AS UNION ALL EXCEPT JOIN LEFT ON USING WINDOW
    RANGE ROWS NOW SLIDE UNBOUNDED PARTITION MINUTES INTERVAL CASE WHEN THEN END NOT IN IS NULL
    LIKE BETWEEN AND OR EXISTS DISTINCT CAST EXTRACT TRIM ISTREAM CREATE STREAM QUERY RELATION
    ALTER REPLAN GENMIG PARALLEL TRACK MOVING STATE
    START STOP PAUSE RESUME WARM DRAIN GRACEFUL AT TIMESTAMP '2026-03-01'
    WHY WHY CHANGE DOWN TO
    WSTREAM INTERNAL SESSION KEY NON RETROACTIVE DELETE
    FUNCTION SOURCE ORDERED WITHIN LATE IDLE AFTER DROP SHOW EXPLAIN DESC INTO VALID a b bid 1 2.5
    'x' "q" ( ) [ ] , . ; * + - / % // || = <> :: =>
"""


def scalar(text: str) -> exp.Expr:
    statement = parse_one(f"CREATE FUNCTION f() AS {text}")
    assert isinstance(statement, CreateFunction)
    return statement.body


@QUICK
@given(texts("statement", 6))
def test_what_is_unparsed_is_parsed_to_the_same(text: str) -> None:
    statement = parse_one(text)
    canonical = unparse(statement)
    assert parse_one(canonical) == statement
    assert unparse(parse_one(canonical)) == canonical


@QUICK
@given(texts("scalar", 5))
def test_operators_of_every_level_keep_their_operands(text: str) -> None:
    tree = scalar(text)
    canonical = unparse(tree)
    assert scalar(canonical) == tree
    assert unparse(scalar(canonical)) == canonical


SPANNED = (
    exp.Column,
    exp.Literal,
    exp.Binary,
    exp.Not,
    exp.In,
    exp.Between,
    exp.Anonymous,
    exp.Cast,
    exp.Case,
    exp.Paren,
    exp.Neg,
    exp.Interval,
    exp.Extract,
    exp.All,
    exp.Any,
    exp.Exists,
    exp.Filter,
    exp.Window,
)


@QUICK
@given(texts("scalar", 5))
def test_the_span_of_an_expression_is_its_text(text: str) -> None:
    for node in scalar(text).find_all(*SPANNED):
        span = span_of(node)
        negated = isinstance(node.parent, exp.Not) and span_of(node.parent) == span
        if span is None or negated or node.is_star or isinstance(node.parent, exp.Escape):
            continue
        start = len("CREATE FUNCTION f() AS ")
        assert scalar(text[span.start - start : span.end - start]) == node


@QUICK
@given(texts("query", 5))
def test_the_span_of_a_query_is_its_text(text: str) -> None:
    for node in parse_query(text).find_all(exp.Select, exp.SetOperation):
        span = span_of(node)
        assert span is not None
        assert parse_query(text[span.start : span.end]) == node


@QUICK
@given(texts("statement", 5), st.sampled_from(("zzz", "'zzz'", '"zzz"')), st.data())
def test_a_word_too_many_is_refused_or_kept(text: str, extra: str, data: st.DataObject) -> None:
    tokens = tokenize(text)
    place = data.draw(st.sampled_from([0, *(token.end + 1 for token in tokens)]))
    with contextlib.suppress(ParseError):
        assert "zzz" in unparse(parse_one(f"{text[:place]} {extra} {text[place:]}"))


@QUICK
@given(texts("statement", 5), st.data())
def test_a_text_with_a_word_missing_is_refused_or_round_trips_too(
    text: str, data: st.DataObject
) -> None:
    token = data.draw(st.sampled_from(tokenize(text)))
    with contextlib.suppress(ParseError):
        for statement in parse(text[: token.start] + " " + text[token.end + 1 :]):
            assert parse_one(unparse(statement)) == statement


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(WORDS.split()), max_size=25))
def test_a_soup_of_words_raises_nothing_but_parse_errors(words: list[str]) -> None:
    with contextlib.suppress(ParseError):
        for statement in parse(" ".join(words)):
            assert parse_one(unparse(statement)) == statement


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=40))
def test_any_text_raises_nothing_but_parse_errors(text: str) -> None:
    with contextlib.suppress(ParseError):
        parse(f"SELECT {text}")
    with contextlib.suppress(ParseError):
        parse(text)


def test_a_comma_in_the_window_of_a_query_makes_no_row_of_values() -> None:
    text = "(WSTREAM[PARTITION BY a, b ROWS 9](SELECT *)) IN (SELECT *)"
    assert isinstance(scalar(text).this, exp.Subquery)
    assert scalar(unparse(scalar(text))) == scalar(text)
