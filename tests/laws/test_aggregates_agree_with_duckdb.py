"""Every aggregate means what it means in DuckDB, over any bag, with DISTINCT and FILTER.

The text DuckDB is asked says where we depart: sums of integers are BIGINT, and NULL where that
overflows; medians of DECIMAL are DOUBLE; the variance of a single NaN is NaN. Numbers that are
averaged or added as DOUBLE are quarters below 50, so that DuckDB's sums are exact too, whatever the
order of the rows. Means and variances are then equal up to a relative error of 1e-12: ours are
rounded once, DuckDB's at every step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
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

NAN_STAYS = "if((bool_and(isfinite(c0)) {{1}}) IS FALSE, 'nan'::DOUBLE, {0})"


@dataclass(frozen=True)
class Case:
    """An aggregate over a column of a type, and DuckDB's text for it."""

    name: str
    type: DataType
    sql: str
    quarters: bool = False

    def __str__(self) -> str:
        return f"{self.name}({self.type})"


def cases() -> Iterator[Case]:
    for type_ in ALL:
        for name in ("count", "min", "max"):
            yield Case(name, type_, f"{name}({{0}}) {{1}}")
    for type_ in (INTEGER, BIGINT):
        yield Case("sum", type_, "TRY_CAST(sum({0}) {1} AS BIGINT)")
    yield Case("sum", D10, "sum({0}) {1}")
    yield Case("sum", D38, "sum({0}) {1}", quarters=True)
    yield Case("sum", DOUBLE, "sum({0}) {1}", quarters=True)
    for type_ in NUMBERS:
        for name in ("avg", "mean", *FAMILY):
            text = f"{name}({{0}}) {{1}}"
            odd = type_ == DOUBLE and name.endswith("_pop")
            yield Case(name, type_, NAN_STAYS.format(text) if odd else text, quarters=True)
        yield Case("median", type_, "(median({0}) {1})::DOUBLE", quarters=True)
    for name in ("bool_and", "bool_or"):
        yield Case(name, BOOLEAN, f"{name}({{0}}) {{1}}")


CASES = tuple(cases())


def table(case: Case) -> str:
    return f"{case.type} (quarters)" if case.quarters else str(case.type)


TABLES = {name: list(group) for name, group in groupby(sorted(CASES, key=table), key=table)}


def quarters(type_: DataType) -> st.SearchStrategy[Value]:
    numbers = st.integers(-199, 199)
    if type_ == DOUBLE:
        odd = st.sampled_from((math.nan, math.inf, -math.inf))
        return st.none() | numbers.map(lambda n: n / 4) | odd
    if type_.is_integer:
        return st.none() | numbers.map(lambda n: n // 4)
    digits = Decimal(1).scaleb(-type_.scale)
    return st.none() | numbers.map(lambda n: (Decimal(n) / 4).quantize(digits))


@pytest.mark.parametrize("name", TABLES)
@given(data=st.data(), filtered=st.booleans(), distinct=st.booleans())
def test_aggregates_mean_what_they_mean_in_duckdb(
    name: str, data: st.DataObject, *, filtered: bool, distinct: bool
) -> None:
    group = TABLES[name]
    type_ = group[0].type
    argument = quarters(type_) if group[0].quarters else values(type_)
    bag = data.draw(st.lists(st.tuples(argument, values(BOOLEAN), st.integers(1, 3)), max_size=12))
    column = "DISTINCT c0" if distinct else "c0"
    where = "FILTER (WHERE c1)" if filtered else ""
    query = f"SELECT {', '.join(case.sql.format(column, where) for case in group)} FROM t"
    rows = [(value, condition) for value, condition, count in bag for _ in range(count)]
    (theirs,), their_types = ask_duckdb(query, [type_, BOOLEAN], rows)
    calls = [
        aggregate_call(
            case.name,
            Column("c0", type_),
            distinct=distinct,
            condition=Column("c1", BOOLEAN) if filtered else None,
        )
        for case in group
    ]
    assert [str(call.type) for call in calls] == their_types
    elements = [({"c0": value, "c1": condition}, count) for value, condition, count in bag]
    ours = [aggregate(call, elements) for call in calls]
    wrong = disagreements(ours, theirs, close=group[0].quarters)
    assert [(str(group[index]), a, b) for index, a, b in wrong] == []


@given(conditions=st.lists(st.tuples(values(BOOLEAN), st.integers(1, 3)), max_size=12))
def test_count_of_rows_is_their_number(conditions: list[tuple[Value, int]]) -> None:
    call = aggregate_call("count", None, condition=Column("c0", BOOLEAN))
    elements = [({"c0": condition}, count) for condition, count in conditions]
    assert aggregate(call, elements) == sum(count for condition, count in conditions if condition)


def test_every_aggregate_is_compared() -> None:
    listed = [f for f in function_list() if f.group == "aggregate"]
    assert {name for f in listed for name in (f.name, *f.aliases)} == {case.name for case in CASES}
