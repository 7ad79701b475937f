"""Values of every type, and DuckDB as a second opinion on what is computed from them."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING

import duckdb
from hypothesis import strategies as st

from tidemill.algebra.values import EXACT
from tidemill.model.types import DataType, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.model.types import Value

__all__ = ["ask_duckdb", "disagreements", "values"]

# Characters whose upper and lower case are single characters, in DuckDB too; signs that mean
# something to LIKE, to regular expressions or to numbers; none that combine with the one before.
_CHARACTERS = "aaabBzZ019 ,.%_-+éÉ€😀\n\t"
_TEXTS = ("", "a", "ab", "abab", "a,b,,c", " a ", "\u00a0a\u2003", "%", "_", "NULL", "hello")
_WHOLE = (0, 1, -1, 2, -2, 3, 5, 7, 10, -10, 45, 50, 55, 100, -150)
_DOUBLES = (0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, 0.15, 1e15, 1e16, 1e22, 1e300, 5e-324)
_NOT_FINITE = (math.nan, math.inf, -math.inf)
_DATES = (
    date(1, 1, 1),
    date(1, 1, 7),
    date(1582, 10, 15),
    date(1969, 12, 28),
    date(1969, 12, 31),
    date(1970, 1, 1),
    date(2000, 2, 29),
    date(2020, 1, 5),
    date(2020, 1, 6),
    date(2021, 1, 3),
    date(2024, 12, 31),
    date(9999, 12, 31),
)
_MOMENTS = tuple(
    map(
        datetime.fromisoformat,
        (
            "0001-01-01",
            "1969-12-31 23:59:59.999500",
            "1970-01-01",
            "1970-01-01 00:00:00.000001",
            "2000-02-29 12:30:15.250000",
            "2020-01-05 23:59:59.999999",
            "2020-01-06",
            "9999-12-31 23:59:59.999999",
        ),
    )
)


@cache
def values(type_: DataType) -> st.SearchStrategy[Value]:
    """NULL, the values at the edges, and any others."""
    return st.one_of(st.none(), _edges(type_), _any(type_))


def _edges(type_: DataType) -> st.SearchStrategy[Value]:
    match type_.kind:
        case Kind.INTEGER:
            return st.sampled_from((*_WHOLE, 2**31 - 1, -(2**31)))
        case Kind.BIGINT:
            return st.sampled_from((*_WHOLE, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)))
        case Kind.DECIMAL:
            largest = 10**type_.precision - 1
            digits = (*_WHOLE, largest, -largest, largest // 2)
            return st.sampled_from([_decimal(d, type_) for d in digits])
        case Kind.DOUBLE:
            return st.sampled_from((*_DOUBLES, *_NOT_FINITE))
        case Kind.VARCHAR:
            return st.sampled_from(_TEXTS)
        case Kind.DATE:
            return st.sampled_from(_DATES)
        case Kind.TIMESTAMP:
            return st.sampled_from(_MOMENTS)
        case Kind.BOOLEAN | Kind.NULL:
            return st.booleans()


def _any(type_: DataType) -> st.SearchStrategy[Value]:
    match type_.kind:
        case Kind.INTEGER:
            return st.integers(-(2**31), 2**31 - 1)
        case Kind.BIGINT:
            return st.integers(-(2**63), 2**63 - 1)
        case Kind.DECIMAL:
            limit = 10**type_.precision - 1
            return st.integers(-limit, limit).map(lambda digits: _decimal(digits, type_))
        case Kind.DOUBLE:
            return st.floats(-1e9, 1e9).map(lambda x: x + 0.0)
        case Kind.VARCHAR:
            return st.text(_CHARACTERS, max_size=8)
        case Kind.DATE:
            return st.dates()
        case Kind.TIMESTAMP:
            return st.datetimes()
        case Kind.BOOLEAN | Kind.NULL:
            return st.booleans()


def _decimal(digits: int, type_: DataType) -> Decimal:
    return EXACT.scaleb(Decimal(digits), -type_.scale)


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def ask_duckdb(
    query: str, types: Sequence[DataType], rows: Sequence[Sequence[Value]]
) -> tuple[list[tuple[Value, ...]], list[str]]:
    """The rows and types DuckDB gives for a query over the table ``t`` of columns c0, c1."""
    columns = [f"unnest(?::{type_}[]) AS c{index}" for index, type_ in enumerate(types)]
    # A column that numbers the rows keeps their order, and lets a table be without others.
    table = ", ".join([*columns, f"unnest(range({len(rows)})) AS row"])
    lists = [[row[index] for row in rows] for index in range(len(types))]
    result = _connection().execute(f"WITH t AS (SELECT {table}) {query}", lists)
    names = [str(column[1]) for column in result.description or ()]
    return result.fetchall(), names


def disagreements(
    ours: Sequence[Value], theirs: Sequence[Value], *, close: bool = False
) -> list[tuple[int, Value, Value]]:
    """The positions where two lists of values differ, in value or in type."""
    pairs = enumerate(zip(ours, theirs, strict=True))
    return [(index, a, b) for index, (a, b) in pairs if not _same(a, b, close=close)]


def _same(ours: Value, theirs: Value, *, close: bool) -> bool:
    if type(ours) is not type(theirs):
        return False
    if isinstance(ours, float) and isinstance(theirs, float):
        if math.isnan(ours) or math.isnan(theirs):
            return math.isnan(ours) and math.isnan(theirs)
        return ours == theirs or (close and math.isclose(ours, theirs, rel_tol=1e-12))
    if isinstance(ours, Decimal) and isinstance(theirs, Decimal):
        return ours == theirs and ours.as_tuple().exponent == theirs.as_tuple().exponent
    return ours == theirs
