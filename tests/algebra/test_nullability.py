from __future__ import annotations

import pytest

from tidemill.algebra.expr import Column, Expr, Literal
from tidemill.algebra.nullability import is_nullable
from tidemill.algebra.text import expr_text
from tidemill.catalog.functions import case_call, cast, scalar_call
from tidemill.model.schema import Field, Schema
from tidemill.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    TIMESTAMP,
    VARCHAR,
    decimal,
)

TYPES = (BOOLEAN, INTEGER, BIGINT, DOUBLE, VARCHAR, DATE, TIMESTAMP, decimal(5, 2))
SURE = {type_: Column(f"sure {type_}", type_) for type_ in TYPES}
MAYBE = {type_: Column(f"maybe {type_}", type_) for type_ in TYPES}
SCHEMA = Schema(
    (
        *(Field(c.name, c.type, nullable=False) for c in SURE.values()),
        *(Field(c.name, c.type) for c in MAYBE.values()),
    )
)
N, X, T, F = (SURE[t] for t in (INTEGER, DOUBLE, VARCHAR, BOOLEAN))


def call(name: str, *arguments: Expr) -> Expr:
    return scalar_call(name, arguments)


@pytest.mark.parametrize(
    "expr",
    [
        N,
        Literal(1, INTEGER),
        call("+", X, X),
        call("<", N, N),
        call("and", F, F),
        call("is_null", MAYBE[INTEGER]),
        call("is_distinct", MAYBE[INTEGER], MAYBE[INTEGER]),
        call("is_true", MAYBE[BOOLEAN]),
        call("coalesce", MAYBE[INTEGER], N),
        call("greatest", MAYBE[INTEGER], N),
        call("upper", T),
        call("concat", MAYBE[VARCHAR]),
        call("concat_ws", T, MAYBE[VARCHAR]),
        call("year", SURE[DATE]),
        call("in", N, N, N),
        case_call(((MAYBE[BOOLEAN], N),), N),
        cast(N, VARCHAR),
        cast(N, decimal(12, 2)),
        cast(SURE[decimal(5, 2)], decimal(7, 3)),
        cast(SURE[TIMESTAMP], DATE),
        cast(F, INTEGER),
    ],
    ids=expr_text,
)
def test_it_is_never_null(expr: Expr) -> None:
    assert not is_nullable(expr, SCHEMA)


@pytest.mark.parametrize(
    "expr",
    [
        MAYBE[INTEGER],
        Literal(None, INTEGER),
        call("+", N, N),
        call("*", SURE[decimal(5, 2)], N),
        call("/", X, X),
        call("%", X, X),
        call("<", N, MAYBE[INTEGER]),
        call("or", F, MAYBE[BOOLEAN]),
        call("in", N, MAYBE[INTEGER]),
        call("coalesce", MAYBE[INTEGER], MAYBE[INTEGER]),
        call("concat_ws", MAYBE[VARCHAR], T),
        call("nullif", N, N),
        call("chr", N),
        case_call(((F, N),)),
        case_call(((F, MAYBE[INTEGER]),), N),
        cast(T, INTEGER),
        cast(X, INTEGER),
        cast(SURE[BIGINT], INTEGER),
        cast(SURE[decimal(5, 2)], decimal(5, 3)),
        cast(SURE[decimal(5, 2)], decimal(4, 1)),
        cast(F, decimal(2, 2)),
    ],
    ids=expr_text,
)
def test_it_may_be_null(expr: Expr) -> None:
    assert is_nullable(expr, SCHEMA)
