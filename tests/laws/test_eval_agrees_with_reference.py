"""A compiled expression is, on every row, what the reference says: type and value, bit by bit.

The cases are those that the functions are compared with DuckDB by (constants, small numbers), the
same with numbers from their whole range, every cast, and random nestings of all of them.

``close`` cases compare DOUBLEs up to a relative error of 1e-12: Python has its transcendental
functions from the C library, Polars from Rust's, and their last bits differ. Nestings leave them
out: the difference of one bit may become any other.
"""

from __future__ import annotations

import math
import struct
from functools import cache
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws.test_casts_agree_with_duckdb import targets, texts
from laws.test_scalar_functions_agree_with_duckdb import CASES, TABLES, Case, columns, title
from laws.typed_values import values
from tidemill.algebra import expr as algebra
from tidemill.algebra.evaluate import evaluate
from tidemill.algebra.expr import Column, Expr, Literal
from tidemill.catalog.functions import case_call, cast, castable, function_list, scalar_call
from tidemill.errors import BindError
from tidemill.model.batch import polars_type
from tidemill.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    TIMESTAMP,
    VARCHAR,
    DataType,
    Kind,
    decimal,
)
from tidemill.physical.eval import compile_expr, compile_predicate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.model.types import Value

EXAMPLES = settings().max_examples
FEW = settings(max_examples=EXAMPLES // 6)  # of many rows each
DECIMALS = (decimal(5, 2), decimal(18, 0), decimal(38, 10), decimal(38, 38))
TYPES = (BOOLEAN, INTEGER, BIGINT, *DECIMALS, DOUBLE, VARCHAR, DATE, TIMESTAMP)
LETTERS = "aAbß\r\n ,.%_\\$\u0301éÉİıσΣς€😀\0\n\t٣²"


def wide(type_: DataType) -> st.SearchStrategy[Value]:
    """Values of more kinds than DuckDB is asked about."""
    match type_.kind:
        case Kind.VARCHAR:
            return values(type_) | st.text(LETTERS, max_size=8)
        case Kind.DOUBLE:
            near = st.sampled_from((-0.0, 0.5, 1e-5, 9.5e-5, 1e-7, 2**53 + 1.0, 1e38, 1e-320))
            return values(type_) | near | st.floats()
        case _:
            return values(type_)


def lengths(type_: DataType) -> st.SearchStrategy[Value]:
    """Numbers of characters: small, or such that no text can be as long."""
    ends = {Kind.INTEGER: 2**31 - 1, Kind.BIGINT: 2**63 - 1}
    if type_.kind not in ends:
        return wide(type_)
    end = ends[type_.kind]
    return st.none() | st.integers(-9, 9) | st.sampled_from((end, end - 1, -end, -end - 1))


def rows_of(*columns_: st.SearchStrategy[Value]) -> st.SearchStrategy[list[tuple[Value, ...]]]:
    return st.lists(st.tuples(*columns_), min_size=0, max_size=40).map(_with_nulls)


def _with_nulls(rows: list[tuple[Value, ...]]) -> list[tuple[Value, ...]]:
    """The rows, and the first two with NULL in one place, or in all but one."""
    places = range(len(rows[0])) if rows else ()
    one = [tuple(v if i != n else None for i, v in enumerate(r)) for r in rows[:2] for n in places]
    most = [tuple(v if i == n else None for i, v in enumerate(r)) for r in rows[:2] for n in places]
    return rows + one + most


def frame(types: Sequence[DataType], rows: Sequence[tuple[Value, ...]]) -> pl.DataFrame:
    data = {
        f"c{i}": pl.Series([row[i] for row in rows], dtype=polars_type(type_))
        for i, type_ in enumerate(types)
    }
    return pl.DataFrame({"row": pl.Series(range(len(rows)), dtype=pl.Int64), **data})


def same(ours: Value, theirs: Value, *, close: bool) -> bool:
    if type(ours) is not type(theirs):
        return False
    if isinstance(ours, float) and isinstance(theirs, float):
        if math.isnan(ours) and math.isnan(theirs):
            return True
        equal = struct.pack("d", ours) == struct.pack("d", theirs)
        return equal or (close and math.isclose(ours, theirs, rel_tol=1e-12))
    return str(ours) == str(theirs)


def constant_frame(types: Sequence[DataType], row: tuple[Value, ...], height: int) -> pl.DataFrame:
    """The same row again and again, which Polars keeps as one value for each column."""
    numbers = pl.DataFrame({"row": pl.Series(range(height), dtype=pl.Int64)})
    return numbers.with_columns(
        pl.lit(value, dtype=polars_type(type_)).alias(f"c{i}")
        for i, (value, type_) in enumerate(zip(row, types, strict=True))
    )


def check(
    exprs: dict[str, tuple[Expr, pl.Expr, bool]],
    types: Sequence[DataType],
    rows: Sequence[tuple[Value, ...]],
    *,
    constant: bool = False,
) -> None:
    batch = constant_frame(types, rows[0], len(rows)) if constant else frame(types, rows)
    result = batch.select(
        *(compiled.alias(n) for n, (_, compiled, _) in exprs.items()), pl.col("row")
    )
    for name, (expr, _, close) in exprs.items():
        assert (name, result[name].dtype) == (name, polars_type(expr.type))
        got = result[name].to_list()
        wanted = [evaluate(expr, {f"c{i}": v for i, v in enumerate(row)}) for row in rows]
        wrong = [
            (name, row, g, w)
            for row, g, w in zip(rows, got, wanted, strict=True)
            if not same(g, w, close=close)
        ]
        assert wrong == []


def compiled(expr: Expr, *, close: bool = False) -> tuple[Expr, pl.Expr, bool]:
    return expr, compile_expr(expr), close


@cache
def compiled_case(case: Case) -> tuple[Expr, pl.Expr, bool]:
    return compiled(scalar_call(case.name, case.exprs()), close=case.close)


@pytest.mark.parametrize(("types", "small"), TABLES, ids=title)
@given(data=st.data())
@FEW
def test_functions_of_columns_are_those_of_rows(
    types: tuple[DataType, ...], data: st.DataObject, *, small: bool
) -> None:
    strategies = (columns(t, small=True) if small and t.is_integer else wide(t) for t in types)
    rows = data.draw(rows_of(*strategies))
    check({str(case): compiled_case(case) for case in TABLES[types, small]}, types, rows)


SMALL = sorted({case for case in CASES if case.small}, key=str)


@pytest.mark.parametrize("case", SMALL, ids=str)
@given(data=st.data())
@FEW
def test_counts_may_be_any_number(case: Case, data: st.DataObject) -> None:
    rows = data.draw(rows_of(*map(lengths, case.types)))
    check({str(case): compiled_case(case)}, case.types, rows)


@pytest.mark.parametrize("source", TYPES, ids=str)
@given(data=st.data())
@FEW
def test_casts_of_columns_are_those_of_rows(source: DataType, data: st.DataObject) -> None:
    to = [target for target in TYPES if castable(source, target)]
    exprs = {str(target): compiled(cast(Column("c0", source), target)) for target in to}
    check(exprs, [source], data.draw(rows_of(wide(source))))


@pytest.mark.parametrize("target", targets(VARCHAR), ids=str)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_columns_of_text_are_read_as_rows_are(target: DataType, data: st.DataObject) -> None:
    numbers = st.from_regex(r"\A ?[+-]?[0-9]{0,45}\.?[0-9]{0,45}([eE][+-]?[0-9]{1,3})?\Z")
    moments = st.from_regex(
        r"\A[0-9]{3}[1-9]-[01][0-9]-[0-3][0-9]"
        r"([ T][0-2][0-9]:[0-6][0-9](:[0-6][0-9](\.[0-9]{0,8})?)?"
        r"(Z|[+-][0-2][0-9](:[0-9]{2})?)?)?\Z"
    )
    other = moments if target.is_temporal else numbers
    rows = data.draw(rows_of(st.none() | texts(target) | other))
    check({str(target): compiled(cast(Column("c0", VARCHAR), target))}, [VARCHAR], rows)


def test_every_function_is_compared() -> None:
    compared = {case.name for case in CASES}
    listed = [f for f in function_list() if f.group != "aggregate"]
    assert {name for f in listed for name in (f.name, *f.aliases)} - compared == set()


COLUMNS = tuple(Column(f"c{i}", type_) for i, type_ in enumerate(TYPES))
EXACT = tuple(case for case in CASES if not case.close)


@st.composite
def nested(draw: st.DrawFn) -> Expr:
    """Calls of calls: every argument is one of the expressions made before."""
    known: list[Expr] = [
        *COLUMNS,
        *(Literal(draw(values(type_)), type_) for type_ in TYPES),
    ]
    for _ in range(draw(st.integers(2, 12))):
        try:
            known.append(draw(_call(known)))
        except BindError:
            continue  # a constant that has no value of the other type
    return known[-1]


@st.composite
def _call(draw: st.DrawFn, known: list[Expr]) -> Expr:
    if draw(st.integers(0, 9)) == 0:
        conditions = [draw(_argument(known, BOOLEAN)) for _ in range(2)]
        type_ = draw(st.sampled_from(TYPES))
        results = [draw(_argument(known, type_)) for _ in range(3)]
        return case_call(tuple(zip(conditions, results[:2], strict=True)), results[2])
    case = draw(st.sampled_from(EXACT))
    given_ = iter(case.exprs())
    arguments = []
    for part, expr in zip(case.arguments, given_, strict=True):
        if not isinstance(part, DataType):
            arguments.append(expr)
        elif case.small and part.is_integer:
            arguments.append(Literal(draw(st.integers(-9, 9)), part))
        else:
            arguments.append(draw(_argument(known, part)))
    return scalar_call(case.name, tuple(arguments))


@st.composite
def _argument(draw: st.DrawFn, known: list[Expr], type_: DataType) -> Expr:
    fitting = [expr for expr in known if castable(expr.type, type_)]
    # The last ones are calls: prefer them.
    return cast(fitting[-1 - min(draw(st.integers(0, 30)), len(fitting) - 1)], type_)


ROWS = rows_of(*map(wide, TYPES))


@given(expr=nested(), rows=ROWS)
@settings(max_examples=4 * EXAMPLES)
def test_nested_expressions_of_columns_are_those_of_rows(
    expr: Expr, rows: list[tuple[Value, ...]]
) -> None:
    check({"nested": compiled(expr)}, TYPES, rows)


@pytest.mark.parametrize(("types", "small"), TABLES, ids=title)
@given(data=st.data())
@FEW
def test_functions_of_constant_columns(
    types: tuple[DataType, ...], data: st.DataObject, *, small: bool
) -> None:
    strategies = (columns(t, small=True) if small and t.is_integer else wide(t) for t in types)
    rows = [data.draw(st.tuples(*strategies))] * 3
    exprs = {str(case): compiled_case(case) for case in TABLES[types, small]}
    check(exprs, types, rows, constant=True)


COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "is_distinct", "is_not_distinct")


@pytest.mark.parametrize("sign", COMPARISONS)
@pytest.mark.parametrize("type_", TYPES, ids=str)
@given(data=st.data())
@FEW
def test_a_constant_compared_with_a_constant_column(
    type_: DataType, sign: str, data: st.DataObject
) -> None:
    # Polars 2.1 gives one row, whatever the height, where the constant stands on the left.
    constant = Literal(data.draw(wide(type_).filter(lambda value: value is not None)), type_)
    exprs = {
        "left": compiled(scalar_call(sign, (constant, Column("c0", type_)))),
        "right": compiled(scalar_call(sign, (Column("c0", type_), constant))),
    }
    check(exprs, [type_], [(data.draw(wide(type_)),)] * 3, constant=True)


@given(expr=nested(), row=st.tuples(*map(wide, TYPES)), height=st.integers(1, 3))
@settings(max_examples=4 * EXAMPLES)
def test_nested_expressions_of_constant_columns(
    expr: Expr, row: tuple[Value, ...], height: int
) -> None:
    check({"nested": compiled(expr)}, TYPES, [row] * height, constant=True)


@given(expr=nested(), rows=ROWS)
@settings(max_examples=EXAMPLES)
def test_predicates_are_true_where_the_expression_is(
    expr: Expr, rows: list[tuple[Value, ...]]
) -> None:
    predicate = cast(expr, BOOLEAN) if castable(expr.type, BOOLEAN) else algebra.TRUE
    wanted = [
        i
        for i, row in enumerate(rows)
        if evaluate(predicate, {f"c{n}": v for n, v in enumerate(row)}) is True
    ]
    batch = frame(TYPES, rows)
    assert batch.filter(compile_predicate(predicate))["row"].to_list() == wanted
    lazy = batch.lazy().filter(compile_predicate(predicate)).collect()
    assert lazy["row"].to_list() == wanted
    assert batch.select(compile_predicate(predicate)).to_series().null_count() == 0
