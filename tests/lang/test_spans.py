from __future__ import annotations

import pytest
from sqlglot import exp

from tidemill.lang import (
    StreamOperator,
    WindowClause,
    Windowed,
    parse,
    parse_query,
    span_of,
    value_span,
)
from tidemill.lang.statements import Select


def text_of(text: str, kind: type[exp.Expression]) -> str:
    """The text of the first node of a kind."""
    node = parse_query(text).find(kind)
    assert node is not None
    span = span_of(node)
    assert span is not None
    return text[span.start : span.end]


@pytest.mark.parametrize(
    ("shown", "kind"),
    [
        ("bid.price", exp.Column),
        ("'it''s'", exp.Literal),
        ("1.5e3", exp.Literal),
        ("TRUE", exp.Boolean),
        ("NULL", exp.Null),
        ("COUNT( * )", exp.Anonymous),
        ("*", exp.Star),
        ("bid.*", exp.Column),
        ("CASE WHEN a THEN 1 ELSE 2 END", exp.Case),
        ("CAST(a AS INT)", exp.Cast),
        ("a :: INT", exp.Cast),
        ("(a + 1)", exp.Paren),
        ("a + 1 * b", exp.Add),
        ("a AND b OR (c)", exp.Or),
        ("- a", exp.Neg),
        ("NOT a", exp.Not),
        ("a NOT IN (1, 2)", exp.Not),
        ("a NOT IN (1, 2)", exp.In),
        ("a BETWEEN 1 AND (2)", exp.Between),
        ("(a, b) IN (SELECT 1, 2)", exp.In),
        ("a LIKE 'x' ESCAPE '!'", exp.Escape),
        ("a IS NOT NULL", exp.Is),
        ("(SELECT 1)", exp.Subquery),
        ("EXISTS(SELECT 1)", exp.Exists),
        ("INTERVAL '5' MINUTES", exp.Interval),
        ("EXTRACT(YEAR FROM a)", exp.Extract),
        ("SUM(a) FILTER (WHERE b)", exp.Filter),
        ("SUM(a) OVER (ORDER BY b)", exp.Window),
        ("TRIM(LEADING 'x' FROM a)", exp.Anonymous),
    ],
)
def test_an_expression_stands_where_it_is_written(shown: str, kind: type[exp.Expression]) -> None:
    assert text_of(f"SELECT {shown} , x FROM bid", kind) == shown


def test_a_type_stands_where_it_is_written() -> None:
    assert text_of("SELECT CAST(a AS DECIMAL(10, 2)) FROM bid", exp.DataType) == "DECIMAL(10, 2)"


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ("bid", exp.Table),
        ("bid WINDOW(RANGE 10 MINUTES SLIDE 60) AS b", Windowed),
        ("WINDOW(RANGE 10 MINUTES SLIDE 60)", WindowClause),
        ("b", exp.TableAlias),
        ("DSTREAM(customer)", StreamOperator),
        ("LEFT JOIN DSTREAM(customer) ON a = c", exp.Join),
        ("a = c", exp.EQ),
        ("WHERE d", exp.Where),
        ("GROUP BY e, f", exp.Group),
        ("HAVING g", exp.Having),
    ],
)
def test_the_parts_of_a_query_stand_where_they_are_written(
    part: str, kind: type[exp.Expression]
) -> None:
    text = (
        "SELECT x FROM bid WINDOW(RANGE 10 MINUTES SLIDE 60) AS b"
        " LEFT JOIN DSTREAM(customer) ON a = c WHERE d GROUP BY e, f HAVING g ;"
    )
    assert text_of(text, kind) == part
    assert text_of(text, exp.Select) == text.removesuffix(" ;")


def test_the_values_of_a_window_have_spans() -> None:
    text = "SELECT * FROM a [RANGE 1 HOUR 30 MINUTES SLIDE -5], b [ROWS 7]"
    first, second = parse_query(text).find_all(WindowClause)
    size, slide, rows = (
        value_span(first, "size"),
        value_span(first, "slide"),
        value_span(second, "size"),
    )
    assert size is not None
    assert slide is not None
    assert rows is not None
    assert text[size.start : size.end] == "1 HOUR 30 MINUTES"
    assert text[slide.start : slide.end] == "-5"
    assert text[rows.start : rows.end] == "7"
    assert value_span(second, "slide") is None


def test_a_call_knows_where_its_name_is() -> None:
    text = "SELECT avg(price) FROM bid"
    call = parse_query(text).find(exp.Anonymous)
    assert call is not None
    span = value_span(call, "name")
    assert span is not None
    assert text[span.start : span.end] == "avg"


def test_spans_count_from_the_start_of_the_script() -> None:
    text = "SHOW STREAMS;\nSELECT wrong FROM bid"
    statement = parse(text)[1]
    assert isinstance(statement, Select)
    column = statement.query.find(exp.Column)
    assert column is not None
    span = span_of(column)
    assert span is not None
    assert text[span.start : span.end] == "wrong"


def test_places_take_no_part_in_equality() -> None:
    assert parse_query("SELECT a FROM b [ROWS 5]") == parse_query(
        "\nselect  a  from b window(rows 5)"
    )


def test_a_node_that_was_not_read_has_no_span() -> None:
    assert span_of(exp.column("a") + 1) is None
