"""Every aggregate means what it means in DuckDB, over any bag, with DISTINCT and FILTER.

Departures stand in the text DuckDB is asked: sums of integers are cast back from HUGEINT (NULL where
they overflow), ``fsum`` and ``favg`` are its sums of DOUBLE with compensation, medians of DECIMAL are
DOUBLE. DOUBLE results are compared up to a relative error of 1e-12, since ours are exact values
rounded once and DuckDB's depend on the order of the rows; for the same reason the numbers are such
that no sum loses more digits than that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.typed_values import ask_duckdb, disagreements, values
from tidemill.algebra.aggregates import aggregate
from tidemill.algebra.expr import Column
from tidemill.catalog.functions import aggregate_call, function_list
from tidemill.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    TIMESTAMP,
    VARCHAR,
    DataType,
    decimal,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.model.types import Value

D10, D38 = decimal(10, 4), decimal(38, 6)
NUMBERS = (INTEGER, BIGINT, D10, D38, DOUBLE)
ALL = (BOOLEAN, *NUMBERS, VARCHAR, DATE, TIMESTAMP)
FAMILY = ("stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop")


@dataclass(frozen=True)
class Case:
    """An aggregate over a column of a type, and DuckDB's text for it."""

    name: str
    type: DataType
    sql: str
    small: bool = False  # whole numbers and quarters below 1000: their sums and squares are exact

    def __str__(self) -> str:
        return f"{self.name}({self.type})"


def cases() -> Iterator[Case]:
    for type_ in ALL:
        for name in ("count", "min", "max"):
            yield Case(name, type_, f"{name}({{0}}) {{1}}")
    for type_ in (INTEGER, BIGINT):
        yield Case("sum", type_, "TRY_CAST(sum({0}) {1} AS BIGINT)")
    for type_ in (D10, D38):
        yield Case("sum", type_, "try(sum({0}) {1})")
    yield Case("sum", DOUBLE, "fsum({0}) {1}", small=True)
    for type_ in NUMBERS:
        for name in ("avg", "mean"):
            yield Case(name, type_, "favg({0}::DOUBLE) {1}", small=True)
        yield Case("median", type_, "median({0}::DOUBLE) {1}", small=True)
        for name in FAMILY:
            yield Case(name, type_, f"{name}({{0}}::DOUBLE) {{1}}", small=True)
    for name in ("bool_and", "bool_or"):
        yield Case(name, BOOLEAN, f"{name}({{0}}) {{1}}")


CASES = tuple(cases())


def arguments(case: Case) -> st.SearchStrategy[Value]:
    return values(case.type).filter(_is_small) if case.small else values(case.type)
