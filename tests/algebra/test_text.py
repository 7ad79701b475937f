from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from itertools import product

import pytest

from streams import number, text
from tidemill.algebra.expr import AggregateCall, Call, Case, Cast, Column, Expr, Literal
from tidemill.algebra.text import aggregate_text, expr_text, name_text
from tidemill.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    TIMESTAMP,
    VARCHAR,
    DataType,
    Value,
    decimal,
)

A, B, C = (Column(name, BIGINT) for name in "abc")
X = Column("x", BOOLEAN)


def op(function: str, *arguments: Expr) -> Call:
    return Call(function, arguments, BOOLEAN)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (op("-", A, op("-", B, C)), "a - (b - c)"),
        (op("-", op("-", A, B), C), "a - b - c"),
        (op("*", op("+", A, B), C), "(a + b) * c"),
        (op("+", A, op("*", B, C)), "a + b * c"),
        (op("/", A, op("*", B, C)), "a / (b * c)"),
        (op("||", A, op("||", B, C)), "a || (b || c)"),
        (op("=", op("=", A, B), C), "(a = b) = c"),
        (op("=", A, op("=", B, C)), "a = (b = c)"),
        (op("<", op("+", A, B), C), "a + b < c"),
        (op("and", op("or", A, B), C), "(a OR b) AND c"),
        (op("or", A, op("and", B, C)), "a OR b AND c"),
        (op("and", A, op("and", B, C)), "a AND (b AND c)"),
        (op("and", op("and", A, B), C), "a AND b AND c"),
        (op("not", op("and", A, B)), "NOT (a AND b)"),
        (op("and", op("not", A), B), "NOT a AND b"),
        (op("not", op("not", X)), "NOT NOT x"),
        (op("not", op("=", A, B)), "NOT a = b"),
        (op("=", op("not", A), B), "(NOT a) = b"),
        (op("neg", op("neg", A)), "-(-a)"),
        (op("neg", number(-5)), "-(-5)"),
        (op("-", A, number(-5)), "a - -5"),
        (op("neg", op("+", A, B)), "-(a + b)"),
        (op("*", op("neg", A), B), "-a * b"),
        (op("is_null", op("=", A, B)), "(a = b) IS NULL"),
        (op("=", A, op("is_null", B)), "a = (b IS NULL)"),
        (op("is_null", op("is_null", A)), "(a IS NULL) IS NULL"),
        (op("not", op("is_null", A)), "a IS NOT NULL"),
        (op("is_null", op("not", X)), "(NOT x) IS NULL"),
        (op("is_true", op("and", A, X)), "(a AND x) IS TRUE"),
        (op("not", op("in", A, number(1), number(2))), "NOT a IN (1, 2)"),
        (op("in", op("or", A, X), op("or", A, X)), "(a OR x) IN (a OR x)"),
        (op("is_distinct", A, B), "a IS DISTINCT FROM b"),
        (op("is_not_distinct", A, B), "a IS NOT DISTINCT FROM b"),
        (op("not", op("like", A, text("%"))), "NOT a LIKE '%'"),
        (op("upper", op("||", A, B)), "upper(a || b)"),
        (Cast(op("+", A, B), VARCHAR), "CAST(a + b AS VARCHAR)"),
        (
            Case(((X, A), (op("=", A, B), B)), C, BIGINT),
            "CASE WHEN x THEN a WHEN a = b THEN b ELSE c END",
        ),
        (op("+", Case(((X, A),), B, BIGINT), C), "CASE WHEN x THEN a ELSE b END + c"),
    ],
)
def test_parentheses_stand_where_they_are_needed(expr: Expr, expected: str) -> None:
    assert expr_text(expr) == expected


def test_different_expressions_have_different_texts() -> None:
    atoms: list[Expr] = [A, number(1)]
    unary = ("not", "neg", "is_null", "upper")
    binary = ("and", "or", "=", "is_distinct", "-", "*", "in")
    exprs = atoms
    for _ in range(2):
        exprs = [
            *atoms,
            *(op(function, expr) for function in unary for expr in exprs),
            *(op(function, x, y) for function in binary for x, y in product(exprs, exprs)),
        ]
    assert len({expr_text(expr) for expr in exprs}) == len(set(exprs))


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        (None, BIGINT, "NULL"),
        (True, BOOLEAN, "TRUE"),
        (False, BOOLEAN, "FALSE"),
        (-1, BIGINT, "-1"),
        (0.5, DOUBLE, "0.5"),
        (Decimal("1.50"), decimal(3, 2), "1.50"),
        ("it's", VARCHAR, "'it''s'"),
        (date(2024, 5, 6), DATE, "DATE '2024-05-06'"),
        (
            datetime(2024, 5, 6, 7, 8, 9),  # noqa: DTZ001 — a TIMESTAMP has no zone
            TIMESTAMP,
            "TIMESTAMP '2024-05-06 07:08:09'",
        ),
    ],
)
def test_literal(value: Value, type_: DataType, expected: str) -> None:
    assert expr_text(Literal(value, type_)) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("price", "price"),
        ("b.price", "b.price"),
        ("_2", "_2"),
        ("2nd", '"2nd"'),
        ("count(*)", "count(*)"),
        ("a + b", '"a + b"'),
        ('a "b"', '"a ""b"""'),
        ("", '""'),
    ],
)
def test_a_name_is_quoted_where_it_must_be(name: str, expected: str) -> None:
    assert name_text(name) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (AggregateCall("count", None, BIGINT), "count(*)"),
        (AggregateCall("sum", op("+", A, B), BIGINT), "sum(a + b)"),
        (AggregateCall("count", A, BIGINT, distinct=True), "count(DISTINCT a)"),
        (
            AggregateCall("max", A, BIGINT, condition=op("or", X, op("=", A, B))),
            "max(a) FILTER(WHERE x OR a = b)",
        ),
    ],
)
def test_aggregate(call: AggregateCall, expected: str) -> None:
    assert aggregate_text(call) == expected
