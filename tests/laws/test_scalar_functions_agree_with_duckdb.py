"""Every scalar function and operator means what it means in DuckDB, except where we say so.

A case is a function with the types of its arguments; constants stand for themselves. The text that
DuckDB is asked is the call itself, unless our meaning departs from DuckDB's: then it says how.
``try`` makes an overflow NULL, ``nullif(x, 0)`` a division by zero, ``in_years`` a date outside the
years 1 to 9999. The results must be equal, of the same type, and so must the types DuckDB declares.

``close`` cases compare DOUBLEs up to a relative error of 1e-12: the last bits of sin, ln or power
differ from one mathematical library to the next.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.typed_values import ask_duckdb, disagreements, values
from tidemill.algebra.evaluate import evaluate
from tidemill.algebra.expr import Column, Expr, Literal
from tidemill.algebra.functions.dates import FORMATS, PARTS, UNITS
from tidemill.algebra.nullability import is_nullable
from tidemill.catalog.functions import function_list, scalar_call
from tidemill.model.schema import Field, Schema
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

D5, D10, D38 = decimal(5, 2), decimal(10, 4), decimal(38, 6)
ALL = (BOOLEAN, INTEGER, BIGINT, D10, D38, DOUBLE, VARCHAR, DATE, TIMESTAMP)
NUMBERS = (INTEGER, BIGINT, D10, D38, DOUBLE)
MIXED = (
    (INTEGER, BIGINT),
    (D5, D10),
    (D5, INTEGER),
    (BIGINT, D5),
    (D10, DOUBLE),
    (DATE, TIMESTAMP),
)
PARTS_WITH_A_NAME = (
    *("year", "quarter", "month", "week", "weekofyear", "day", "dayofmonth", "dayofweek"),
    *("weekday", "isodow", "dayofyear", "hour", "minute", "second"),
)


@dataclass(frozen=True)
class Case:
    """A function, its arguments (a type for a column, or a constant), and DuckDB's text for it."""

    name: str
    arguments: tuple[DataType | str | int, ...]
    sql: str = ""
    close: bool = False
    small: bool = False  # integers between -9 and 9: repetitions, lengths, exponents

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"

    @property
    def types(self) -> tuple[DataType, ...]:
        return tuple(part for part in self.arguments if isinstance(part, DataType))

    def exprs(self) -> tuple[Expr, ...]:
        columns = iter(range(len(self.arguments)))
        return tuple(
            Column(f"c{next(columns)}", part) if isinstance(part, DataType) else _literal(part)
            for part in self.arguments
        )

    def text(self) -> str:
        columns = iter(range(len(self.arguments)))
        parts = [
            f"c{next(columns)}" if isinstance(part, DataType) else _quoted(part)
            for part in self.arguments
        ]
        return (self.sql or f"{self.name}({', '.join(parts)})").format(*parts)


def _literal(constant: str | int) -> Literal:
    return Literal(constant, VARCHAR if isinstance(constant, str) else INTEGER)


def _quoted(constant: str | int) -> str:
    return "'" + constant.replace("'", "''") + "'" if isinstance(constant, str) else str(constant)


def in_years(sql: str) -> str:
    return f"CASE WHEN year({sql}) BETWEEN 1 AND 9999 THEN {sql} END"


def operators() -> Iterator[Case]:
    numbers = (*((t, t) for t in NUMBERS), *MIXED[:-1])
    for pair in numbers:
        for name in "+-":
            yield Case(name, pair, f"try({{0}} {name} {{1}})")
        yield Case("*", pair, MANY_DIGITS if pair == (D10, D10) else "try({0} * {1})")
        yield Case("/", pair, "{0}::DOUBLE / nullif({1}::DOUBLE, 0)")
        whole = all(type_.is_integer for type_ in pair)
        yield Case("%", pair, REST_OF_INTEGERS if whole else "{0} % nullif({1}, 0)")
    yield Case("mod", (INTEGER, INTEGER), REST_OF_INTEGERS)
    for pair in ((INTEGER, INTEGER), (BIGINT, BIGINT), (INTEGER, BIGINT)):
        yield Case("//", pair, "try({0} // nullif({1}, 0))")
    yield Case("+", (DATE, INTEGER), in_years("({0} + {1})"), small=True)
    yield Case("+", (INTEGER, DATE), in_years("({0} + {1})"), small=True)
    yield Case("-", (DATE, INTEGER), in_years("({0} - {1})"), small=True)
    yield Case("-", (DATE, DATE), "{0} - {1}")
    for type_ in NUMBERS:
        yield Case("neg", (type_,), "try(-{0})")
    for pair in (*((t, t) for t in ALL), *MIXED):
        for name in ("=", "<>", "<", "<=", ">", ">="):
            yield Case(name, pair, f"{{0}} {name} {{1}}")
        yield Case("is_distinct", pair, "{0} IS DISTINCT FROM {1}")
        yield Case("is_not_distinct", pair, "{0} IS NOT DISTINCT FROM {1}")
        yield Case("in", (*pair, pair[0]), "{0} IN ({1}, {2})")
    for name in ("and", "or"):
        yield Case(name, (BOOLEAN, BOOLEAN), f"{{0}} {name} {{1}}")
    yield Case("not", (BOOLEAN,), "NOT {0}")
    yield Case("is_true", (BOOLEAN,), "{0} IS TRUE")
    yield Case("is_false", (BOOLEAN,), "{0} IS FALSE")
    for type_ in ALL:
        yield Case("is_null", (type_,), "{0} IS NULL")


def texts() -> Iterator[Case]:
    for name in ("lower", "upper", "lcase", "ucase", "length", "len", "char_length", "reverse"):
        yield Case(name, (VARCHAR,))
    yield Case("character_length", (VARCHAR,))
    yield Case("ascii", (VARCHAR,))
    for name in ("trim", "ltrim", "rtrim"):
        yield Case(name, (VARCHAR,))
        yield Case(name, (VARCHAR, VARCHAR))
    for name in ("substring", "substr"):
        yield Case(name, (VARCHAR, BIGINT), small=True)
        yield Case(name, (VARCHAR, BIGINT, INTEGER), small=True)
    for name in ("left", "right", "repeat"):
        yield Case(name, (VARCHAR, BIGINT), small=True)
    for name in ("starts_with", "ends_with", "contains", "strpos", "instr"):
        yield Case(name, (VARCHAR, VARCHAR))
    yield Case("position", (VARCHAR, VARCHAR), "position({0} IN {1})")
    yield Case("replace", (VARCHAR, VARCHAR, VARCHAR))
    yield Case("split_part", (VARCHAR, VARCHAR, BIGINT), small=True)
    for name in ("lpad", "rpad"):  # without a padding there is no value: NULL, not an error
        yield Case(
            name, (VARCHAR, INTEGER, VARCHAR), f"try({name}({{0}}, {{1}}, {{2}}))", small=True
        )
    yield Case("chr", (INTEGER,), "try(chr({0}))")
    for type_ in (BOOLEAN, INTEGER, D10, VARCHAR, DATE, TIMESTAMP):
        yield Case("||", (VARCHAR, type_), "{0} || {1}")
        yield Case("concat", (type_, VARCHAR, type_))
        yield Case("concat_ws", (VARCHAR, type_, VARCHAR))
    for name in ("like", "ilike"):
        yield Case(name, (VARCHAR, VARCHAR), f"{{0}} {name} {{1}}")
        for pattern in ("a%", "%b_", "_", "%", "", "%.%"):
            yield Case(name, (VARCHAR, pattern), f"{{0}} {name} {{1}}")
        for pattern in ("%a%%", "aa", "a_%", "%a_b%"):
            yield Case(name, (VARCHAR, pattern, "a"), f"{{0}} {name} {{1}} ESCAPE {{2}}")
    for pattern in (
        r"a",
        r"^a",
        r"b$",
        r"[a-b]+",
        r"(a)(b)?",
        r"\d+",
        r"\s",
        r"[^\s,]*",
        r"\w|,",
        "",
    ):
        yield Case("regexp_matches", (VARCHAR, pattern))
        yield Case("regexp_extract", (VARCHAR, pattern))
        yield Case("regexp_replace", (VARCHAR, pattern, r"<\0\\>"))
        yield Case("regexp_replace", (VARCHAR, pattern, "-", "g"))
    yield Case("regexp_extract", (VARCHAR, "(a)(b)?", 2))
    yield Case("regexp_replace", (VARCHAR, "(a)(b)?", r"\2\1", "g"))


def numbers() -> Iterator[Case]:
    for type_ in NUMBERS:
        yield Case("abs", (type_,), "try(abs({0}))")
        yield Case("sign", (type_,), "sign({0})::INTEGER")
        yield Case("round", (type_,))
        for digits in (-3, -1, 0, 1, 2, 9):
            yield Case("round", (type_, digits), "try(round({0}, {1}))")
    yield Case("round", (DOUBLE, INTEGER), small=True)
    yield Case("round", (BIGINT, INTEGER), "try(round({0}, {1}))", small=True)
    for name in ("ceil", "ceiling", "floor", "trunc"):
        for type_ in NUMBERS:  # integers stay integers
            yield Case(name, (type_,), "{0}" if type_.is_integer else "")
    for name in ("sqrt", "cbrt", "exp", "ln", "log10", "log2", "sin", "cos", "tan", "asin", "acos"):
        yield Case(name, (DOUBLE,), close=True)
        yield Case(name, (INTEGER,), close=True)
    for name in ("atan", "degrees", "radians"):
        yield Case(name, (DOUBLE,), close=True)
    for name in ("power", "pow", "atan2"):
        yield Case(name, (DOUBLE, DOUBLE), close=True)
    yield Case("power", (INTEGER, INTEGER), close=True, small=True)
    yield Case("pi", (), close=True)


def conditionals() -> Iterator[Case]:
    for pair in (*((t, t) for t in ALL), *MIXED):
        for name in ("coalesce", "greatest", "least"):
            yield Case(name, (*pair, pair[0]))
        yield Case("ifnull", pair)
        yield Case("nullif", pair)
        yield Case("if", (BOOLEAN, *pair))
    yield Case("iff", (BOOLEAN, INTEGER, INTEGER), "if({0}, {1}, {2})")


def dates() -> Iterator[Case]:
    for type_ in (DATE, TIMESTAMP):
        for name in PARTS_WITH_A_NAME:
            yield Case(name, (type_,))
        for name in ("epoch_us", "last_day", "dayname", "monthname"):
            yield Case(name, (type_,))
        yield Case("epoch", (type_,), close=True)
        yield Case("epoch_ms", (type_,), MILLISECONDS)
        for unit in (*PARTS, "dow", "doy", "weekday", "YEARS"):
            yield Case("date_part", (unit, type_), close=unit == "epoch")
        for unit in UNITS:
            yield Case("date_trunc", (unit, type_))
            yield Case("date_diff", (unit, type_, type_), WEEKS if unit == "week" else "")
        yield Case("strftime", (type_, " ".join(FORMATS)))
        yield Case("add_months", (type_, INTEGER), in_years("({0} + to_months({1}))"), small=True)
        yield Case(
            "add_microseconds",
            (type_, BIGINT),
            in_years("({0} + to_microseconds({1}))"),
            small=True,
        )
    yield Case("datepart", ("hour", TIMESTAMP))
    yield Case("datetrunc", ("hour", TIMESTAMP))
    yield Case("datediff", ("hour", TIMESTAMP, TIMESTAMP))
    yield Case("date_diff", ("day", DATE, TIMESTAMP))
    yield Case("add_days", (DATE, INTEGER), in_years("({0} + {1})"), small=True)
    yield Case(
        "make_date",
        (INTEGER, INTEGER, INTEGER),
        in_years("try(make_date({0}, {1}, {2}))"),
        small=True,
    )
    yield Case("make_timestamp", (BIGINT,), in_years("try(make_timestamp({0}))"))


# In DuckDB the least integer % -1 is an overflow; the rest of that division is 0.
REST_OF_INTEGERS = "if({1} = -1, {0} - {0}, {0} % nullif({1}, 0))"

# DuckDB keeps to 18 digits as long as both factors do, and rather overflows.
MANY_DIGITS = "try({0}::DECIMAL(20, 4) * {1})::DECIMAL(20, 8)"

# DuckDB rounds the fraction; we cut it off, as date_trunc does.
MILLISECONDS = "epoch_us(date_trunc('millisecond', {0})) // 1000"

# DuckDB counts spans of seven days here; we count Mondays, as date_trunc and the other units do.
WEEKS = "((epoch(date_trunc('week', {2})) - epoch(date_trunc('week', {1}))) / 604800)::BIGINT"

CASES = (*operators(), *texts(), *numbers(), *conditionals(), *dates())


COLUMNS = dict.fromkeys((case.types, case.small) for case in CASES)


def table(case: Case) -> tuple[DataType, ...]:
    """The columns of the widest case that begins with the same ones."""
    own = case.types
    return max((t for t, small in COLUMNS if (t[: len(own)], small) == (own, case.small)), key=len)


# The functions of the same columns are asked in one query: that is quick, and rows are reused.
TABLES = defaultdict(list)
for _case in sorted(CASES, key=str):
    TABLES[table(_case), _case.small].append(_case)


def columns(type_: DataType, *, small: bool) -> st.SearchStrategy[Value]:
    return st.none() | st.integers(-9, 9) if small and type_.is_integer else values(type_)


def title(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else "small" * bool(value)


@pytest.mark.parametrize(("types", "small"), TABLES, ids=title)
@given(data=st.data())
def test_functions_mean_what_they_mean_in_duckdb(
    types: tuple[DataType, ...], data: st.DataObject, *, small: bool
) -> None:
    cases = TABLES[types, small]
    row = st.tuples(*(columns(type_, small=small) for type_ in types))
    rows = data.draw(st.lists(row, min_size=1, max_size=12))
    query = f"SELECT {', '.join(case.text() for case in cases)} FROM t ORDER BY row"
    theirs, their_types = ask_duckdb(query, types, rows)
    for index, case in enumerate(cases):
        expr = scalar_call(case.name, case.exprs())
        assert (str(case), str(expr.type)) == (str(case), their_types[index])
        ours = [evaluate(expr, {f"c{i}": value for i, value in enumerate(row)}) for row in rows]
        wrong = disagreements(ours, [answer[index] for answer in theirs], close=case.close)
        assert [(str(case), rows[row], a, b) for row, a, b in wrong] == []


@pytest.mark.parametrize(("types", "small"), TABLES, ids=title)
@given(data=st.data())
def test_what_is_not_nullable_is_never_null(
    types: tuple[DataType, ...], data: st.DataObject, *, small: bool
) -> None:
    row = data.draw(st.tuples(*(columns(type_, small=small) for type_ in types)))
    fields = (Field(f"c{i}", types[i], nullable=value is None) for i, value in enumerate(row))
    schema = Schema(tuple(fields))
    named = dict(zip(schema.names, row, strict=True))
    for case in TABLES[types, small]:
        expr = scalar_call(case.name, case.exprs())
        assert is_nullable(expr, schema) or evaluate(expr, named) is not None, str(case)


def test_every_function_is_compared() -> None:
    compared = {case.name for case in CASES}
    listed = [f for f in function_list() if f.group != "aggregate"]
    assert {name for f in listed for name in (f.name, *f.aliases)} - compared == set()
