"""Compiled expressions, one trap at a time; the law is in ``tests/laws``."""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tidemill.physical.eval
from tidemill.algebra.expr import FALSE, TRUE, Call, Cast, Column, Expr, Literal
from tidemill.algebra.functions import NULL_AWARE, STRICT
from tidemill.catalog.functions import case_call, cast, scalar_call
from tidemill.errors import PlanError
from tidemill.model.batch import polars_type
from tidemill.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    NULL,
    TIMESTAMP,
    VARCHAR,
    DataType,
    decimal,
)
from tidemill.physical.eval import compile_expr, compile_predicate

if TYPE_CHECKING:
    from tidemill.model.types import Value

INF, NAN = math.inf, math.nan
D5, D38 = decimal(5, 2), decimal(38, 0)


def column(type_: DataType, index: int = 0) -> Column:
    return Column(f"c{index}", type_)


def frame(*columns: tuple[DataType, list[Value]]) -> pl.DataFrame:
    return pl.DataFrame(
        {f"c{i}": pl.Series(vs, dtype=polars_type(t)) for i, (t, vs) in enumerate(columns)}
    )


def run(expr: Expr, *columns: tuple[DataType, list[Value]]) -> list[Value]:
    result = frame(*columns).select(compile_expr(expr)).to_series()
    assert result.dtype == polars_type(expr.type)
    return result.to_list()


def unary(name: str, type_: DataType, values: list[Value], *rest: Expr) -> list[Value]:
    return run(scalar_call(name, (column(type_), *rest)), (type_, values))


def binary(name: str, type_: DataType, *pairs: tuple[Value, Value]) -> list[Value]:
    left, right = ([pair[i] for pair in pairs] for i in (0, 1))
    expr = scalar_call(name, (column(type_), column(type_, 1)))
    return run(expr, (type_, left), (type_, right))


def text(value: str) -> Literal:
    return Literal(value, VARCHAR)


def test_an_integer_that_overflows_is_null() -> None:
    top, bottom = 2**31 - 1, -(2**31)
    assert binary("+", INTEGER, (top, 1), (1, 1)) == [None, 2]
    assert binary("-", INTEGER, (bottom, 1)) == [None]
    assert binary("*", INTEGER, (top, 2)) == [None]
    assert binary("//", INTEGER, (bottom, -1)) == [None]
    assert unary("neg", INTEGER, [bottom, 5]) == [None, -5]
    assert unary("abs", INTEGER, [bottom, -5]) == [None, 5]


def test_a_bigint_that_overflows_is_null() -> None:
    top, bottom = 2**63 - 1, -(2**63)
    assert binary("+", BIGINT, (top, 1), (top, -1)) == [None, top - 1]
    assert binary("*", BIGINT, (top, top), (2**32, 2**31), (2**31, 2**31)) == [None, None, 2**62]
    assert binary("//", BIGINT, (bottom, -1)) == [None]
    assert binary("%", BIGINT, (bottom, -1)) == [0]
    assert unary("neg", BIGINT, [bottom]) == [None]


def test_division_cuts_towards_zero_and_its_rest_has_the_sign_of_the_dividend() -> None:
    pairs = ((7, 2), (-7, 2), (7, -2), (-7, -2), (7, 0), (None, 2))
    assert binary("//", INTEGER, *pairs) == [3, -3, -3, 3, None, None]
    assert binary("%", INTEGER, *pairs) == [1, -1, 1, -1, None, None]


def test_division_by_zero_is_null_for_doubles_too() -> None:
    assert binary("/", DOUBLE, (1.0, 0.0), (0.0, 0.0), (1.0, -0.0), (1.0, 4.0)) == [
        *(None, None, None),
        0.25,
    ]


def test_division_by_a_constant_rounds_once() -> None:
    tenth = Call("/", (column(DOUBLE), Literal(10.0, DOUBLE)), DOUBLE)
    values = [float(n) + 0.7 for n in range(100)]
    assert run(tenth, (DOUBLE, [*values])) == [value / 10.0 for value in values]


def test_the_rest_of_doubles_is_exact() -> None:
    pairs = ((1e300, 3.0), (-5.5, 2.0), (5.5, -2.0), (5.0, INF), (1e16, 0.1), (1.0, 5e-324))
    assert binary("%", DOUBLE, *pairs) == [math.fmod(x, y) for x, y in pairs]
    assert binary("%", DOUBLE, (5.0, 0.0)) == [None]
    assert str(binary("%", DOUBLE, (INF, 2.0), (NAN, 1.0), (-4.0, 2.0))) == "[nan, nan, 0.0]"
    assert binary("%", DOUBLE, (None, NAN), (NAN, None), (None, 1.0)) == [None, None, None]


def test_there_is_one_zero() -> None:
    assert str(run(column(DOUBLE), (DOUBLE, [None, -0.0]))) == "[None, 0.0]"
    assert str(unary("neg", DOUBLE, [0.0])) == "[0.0]"
    assert str(binary("-", DOUBLE, (0.0, None), (0.0, 0.0))) == "[None, 0.0]"
    assert str(binary("*", DOUBLE, (-1.0, 0.0))) == "[0.0]"
    assert str(run(cast(column(VARCHAR), DOUBLE), (VARCHAR, ["-0"]))) == "[0.0]"


def test_nan_equals_itself_and_is_the_greatest() -> None:
    pairs = ((NAN, NAN), (NAN, INF), (1.0, NAN), (None, NAN))
    assert binary("=", DOUBLE, *pairs) == [True, False, False, None]
    assert binary(">", DOUBLE, *pairs) == [False, True, False, None]
    assert str(binary("greatest", DOUBLE, *pairs)) == "[nan, nan, nan, nan]"
    assert str(binary("least", DOUBLE, *pairs)) == "[nan, inf, 1.0, nan]"
    assert binary("is_not_distinct", DOUBLE, *pairs) == [True, False, False, False]
    assert unary("sign", DOUBLE, [NAN, -INF]) == [0, -1]
    assert unary("in", DOUBLE, [NAN, 1.0, None], Literal(NAN, DOUBLE)) == [True, False, None]


def test_halves_are_rounded_away_from_zero() -> None:
    assert unary("round", DOUBLE, [0.5, 2.5, -2.5, 0.49999999999999994]) == [1.0, 3.0, -3.0, 0.0]
    assert unary("round", INTEGER, [25, -25, 24], Literal(-1, BIGINT)) == [30, -30, 20]
    assert unary("round", INTEGER, [2**31 - 1], Literal(-1, BIGINT)) == [None]
    values: list[Value] = [Decimal("1.25"), Decimal("-1.25"), Decimal("1.24")]
    rounded = [Decimal("1.3"), Decimal("-1.3"), Decimal("1.2")]
    assert unary("round", D5, values, Literal(1, BIGINT)) == rounded
    assert unary("round", D5, [Decimal("999.99")], Literal(-40, BIGINT)) == [Decimal(0)]


def test_a_double_becomes_the_nearest_integer_halves_to_even() -> None:
    values: list[Value] = [0.5, 1.5, -2.5, 2147483647.4, 2147483647.5, NAN, INF]
    assert run(cast(column(DOUBLE), INTEGER), (DOUBLE, values)) == [
        *(0, 2, -2),
        2**31 - 1,
        *(None, None, None),
    ]


def test_a_double_is_written_as_python_writes_it() -> None:
    values = [1e15, 1e16, 1e22, 5e-324, 1e-5, 1.5e-5, -9.75e-5, 1e-4, 1.2345e-7, 0.1, NAN, -INF]
    texts = [*map(str, values[:-2]), "NaN", "-Infinity"]
    assert run(cast(column(DOUBLE), VARCHAR), (DOUBLE, [*values])) == texts


def test_decimals_are_exact_and_null_where_they_overflow() -> None:
    most = Decimal("9" * 38)
    assert binary("+", D38, (most, Decimal(1)), (most, most), (Decimal(1), Decimal(2))) == [
        *(None, None),
        Decimal(3),
    ]
    big = decimal(38, 19)
    half, many = Decimal("0.5"), Decimal(10000000000)
    assert binary("*", big, (half, half), (many, many), (many, Decimal(0))) == [
        *(Decimal("0.25"), None),
        Decimal(0),
    ]
    assert binary("%", D5, (Decimal("-5.50"), Decimal(2)), (Decimal(1), Decimal(0))) == [
        *(Decimal("-1.50"), None),
    ]


def test_decimals_of_different_scales_are_compared_exactly() -> None:
    wide, fine = decimal(38, 0), decimal(38, 38)
    less = scalar_call("<", (column(wide), column(fine, 1)))
    left: list[Value] = [Decimal(0), Decimal(0), Decimal(-1), Decimal(1)]
    right: list[Value] = [Decimal("0.1"), Decimal("-0.1"), Decimal("-0.9"), None]
    assert run(less, (wide, left), (fine, right)) == [True, False, True, None]
    distinct = scalar_call("is_distinct", (column(wide), column(fine, 1)))
    assert run(distinct, (wide, [None, None]), (fine, [None, Decimal(0)])) == [False, True]


def test_a_decimal_becomes_the_nearest_double() -> None:
    values = [Decimal("0.0107"), Decimal("9007199254740993.0001"), Decimal("0.1")]
    for type_ in (decimal(38, 4), decimal(15, 4)):
        fitting: list[Value] = [v for v in values if v.adjusted() < type_.precision - type_.scale]
        expr = cast(column(type_), DOUBLE)
        assert run(expr, (type_, fitting)) == [float(v) for v in fitting if v]  # type: ignore[arg-type]


def test_a_logarithm_is_exact_at_the_powers_of_its_base() -> None:
    thousands = [10.0**n for n in range(-20, 23)]
    assert unary("log10", DOUBLE, [*thousands]) == [float(n) for n in range(-20, 23)]
    doubles = [2.0**n for n in range(-1000, 1000)]
    assert unary("log2", DOUBLE, [*doubles]) == [float(n) for n in range(-1000, 1000)]
    assert unary("log10", DOUBLE, [0.0, INF, None]) == [-INF, INF, None]


def test_a_power_of_a_constant_is_no_root() -> None:
    assert unary("power", DOUBLE, [-INF, 4.0], Literal(0.5, DOUBLE)) == [INF, 2.0]


def test_logic_is_three_valued() -> None:
    pairs = ((True, None), (False, None), (None, None), (True, False))
    assert binary("and", BOOLEAN, *pairs) == [None, False, None, False]
    assert binary("or", BOOLEAN, *pairs) == [True, None, None, True]
    assert unary("is_true", BOOLEAN, [True, False, None]) == [True, False, False]
    assert unary("is_false", BOOLEAN, [True, False, None]) == [False, True, False]


def test_what_is_not_in_a_list_with_null_is_unknown() -> None:
    one, null = Literal(1, INTEGER), Literal(None, INTEGER)
    assert unary("in", INTEGER, [1, 2, None], one, null) == [True, None, None]
    assert unary("in", INTEGER, [1, 2, None], one) == [True, False, None]
    assert unary("in", INTEGER, [1, 2, None], column(INTEGER), null) == [True, True, None]


def test_text_is_counted_in_code_points() -> None:
    assert unary("reverse", VARCHAR, ["abc", "a\r\n"]) == ["cba", "\n\ra"]
    values: list[Value] = ["a\u0301b", "😀é", "", None]
    assert unary("length", VARCHAR, values) == [3, 2, 0, None]
    assert unary("reverse", VARCHAR, values) == ["b\u0301a", "é😀", "", None]
    assert unary("strpos", VARCHAR, values, text("b")) == [3, 0, 0, None]
    assert unary("strpos", VARCHAR, values, text("")) == [1, 1, 1, None]
    assert unary("ascii", VARCHAR, ["a", "é", "€", "😀", ""]) == [97, 233, 0x20AC, 0x1F600, 0]
    assert unary("chr", BIGINT, [97, 233, 0x20AC, 0x1F600, -1, 0xD800]) == [
        *("a", "é", "€", "😀"),
        *(None, None),
    ]


def test_case_follows_the_full_mapping_of_unicode() -> None:
    assert unary("upper", VARCHAR, ["straße", "ǆ"]) == ["STRASSE", "Ǆ"]
    assert unary("lower", VARCHAR, ["ΑΣ", "İ"]) == ["ας", "i\u0307"]


def test_a_text_is_padded_with_a_text() -> None:
    five, pad = Literal(5, BIGINT), text("xy")
    assert unary("lpad", VARCHAR, ["a", "abcdefg", ""], five, pad) == ["xyxya", "abcde", "xyxyx"]
    assert unary("rpad", VARCHAR, ["a"], five, pad) == ["axyxy"]
    assert unary("lpad", VARCHAR, ["é", "abcdef", None], five, text("€")) == [
        "€€€€é",
        "abcde",
        None,
    ]
    assert unary("rpad", VARCHAR, ["é", "abcdef"], Literal(2, BIGINT), text("0")) == ["é0", "ab"]
    assert unary("lpad", VARCHAR, ["a", "abcdef"], five, text("")) == [None, "abcde"]
    assert unary("lpad", VARCHAR, ["a"], Literal(2**40, BIGINT), pad) == [None]
    assert unary("repeat", VARCHAR, ["ab", ""], Literal(2**40, BIGINT)) == [None, ""]


def test_texts_are_joined_without_nulls() -> None:
    values: list[Value] = ["a", None]
    joined = (column(VARCHAR), text("b"), column(VARCHAR))
    assert run(scalar_call("concat", joined), (VARCHAR, values)) == ["aba", "b"]
    assert run(scalar_call("concat_ws", (text("-"), *joined)), (VARCHAR, values)) == ["a-b-a", "b"]
    by_column = scalar_call("concat_ws", joined)
    assert run(by_column, (VARCHAR, values)) == ["baa", None]
    null = scalar_call("concat_ws", (Literal(None, VARCHAR), *joined))
    assert run(null, (VARCHAR, values)) == [None, None]


def test_a_text_is_split() -> None:
    def part(separator: str, index: int) -> list[Value]:
        arguments = (text(separator), Literal(index, BIGINT))
        return unary("split_part", VARCHAR, ["a,b,,c", "", None], *arguments)

    assert part(",", 2) == ["b", "", None]
    assert part(",", -1) == ["c", "", None]
    assert part(",", 0) == part(",", 9) == ["", "", None]
    assert part("", 2) == [",", "", None]


@pytest.mark.parametrize(
    ("pattern", "escape", "expected"),
    [
        ("a%", None, [True, True, False]),
        ("%b", None, [True, False, True]),
        ("%.%", None, [False, True, False]),
        ("a_", None, [True, False, False]),
        ("a.\n", None, [False, True, False]),
        ("a!%", "!", [False, False, False]),
        ("a!", "!", [None, None, None]),
    ],
)
def test_like_is_the_same_for_a_constant_and_a_column(
    pattern: str, escape: str | None, expected: list[Value]
) -> None:
    values: list[Value] = ["ab", "a.\n", "b"]
    rest = () if escape is None else (text(escape),)
    assert unary("like", VARCHAR, values, text(pattern), *rest) == expected
    by_column = Call("like", (column(VARCHAR), column(VARCHAR, 1), *rest), BOOLEAN)
    assert run(by_column, (VARCHAR, values), (VARCHAR, [pattern] * 3)) == expected


def test_classes_of_characters_are_of_ascii() -> None:
    values: list[Value] = ["٣", "3", "é", "e"]
    assert unary("regexp_matches", VARCHAR, values, text(r"^\d$")) == [False, True, False, False]
    assert unary("regexp_matches", VARCHAR, values, text(r"^[\w-]$")) == [False, True, False, True]
    assert unary("regexp_matches", VARCHAR, values, text(r"^[^\W]$")) == [False, True, False, True]
    assert unary("regexp_matches", VARCHAR, ["a\n", "a"], text("a$")) == [False, True]
    assert unary("regexp_matches", VARCHAR, ["a<b", "ab"], text(r"\<")) == [True, False]


def test_a_replacement_is_not_of_polars_dialect() -> None:
    replacement = text(r"$1\\<\2>")
    assert unary("regexp_replace", VARCHAR, ["ab", "b"], text("(a)(b)?"), replacement) == [
        *(r"$1\<b>", "b"),
    ]
    every = (text("x*"), text("-"), text("g"))
    assert unary("regexp_replace", VARCHAR, ["axb", ""], *every) == ["-a-b-", "-"]


@pytest.mark.parametrize("pattern", [r"\B", "|a", "a??", r"\ba*?", r"(\s|$)"])
def test_matches_of_nothing_are_those_of_the_reference(pattern: str) -> None:
    values: list[Value] = ["", "a", "aab", None, "a", "b a"]
    for rest in (("-", "g"), ("-",)):
        wanted = [
            None if v is None else STRICT["regexp_replace"](v, pattern, *rest) for v in values
        ]
        assert unary("regexp_replace", VARCHAR, values, *map(text, (pattern, *rest))) == wanted
    for name in ("regexp_matches", "regexp_extract"):
        wanted = [None if v is None else STRICT[name](v, pattern) for v in values]
        assert unary(name, VARCHAR, values, text(pattern)) == wanted


@pytest.mark.parametrize("pattern", ["(a*)*", r"x(?:\w*\s?)+", "((a|b)*){2}", "(^|a)*"])
def test_what_a_repetition_of_nothing_matches_is_not_asked(pattern: str) -> None:
    with pytest.raises(PlanError, match="may be empty"):
        unary("regexp_extract", VARCHAR, ["a"], text(pattern))
    assert unary("regexp_matches", VARCHAR, ["xa"], text(pattern)) == [True]


@pytest.mark.parametrize("pattern", ["([^,]+,)*", "(?:ab)+", r"[(]*(\))*"])
def test_a_group_that_is_not_empty_can_be_repeated(pattern: str) -> None:
    values: list[Value] = ["a,b,c", "abab", "(()))"]
    wanted = [STRICT["regexp_extract"](value, pattern) for value in values]
    assert unary("regexp_extract", VARCHAR, values, text(pattern)) == wanted


@pytest.mark.parametrize("pattern", ["(?=a)", r"(a)\1", "(?<!a)b", "((a{1000}){1000}){1000}"])
def test_a_pattern_that_cannot_be_run_is_refused(pattern: str) -> None:
    call = Call("regexp_matches", (column(VARCHAR), text(pattern)), BOOLEAN)
    with pytest.raises(PlanError, match="pattern"):
        compile_expr(call)


def test_what_lies_outside_the_calendar_is_null() -> None:
    first, last = date(1, 1, 1), date(9999, 12, 31)
    assert unary("add_days", DATE, [last, first], Literal(1, BIGINT)) == [None, date(1, 1, 2)]
    assert unary("add_days", DATE, [first], Literal(-(2**63), BIGINT)) == [None]
    moment = datetime(9999, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001 — no zone: UTC
    assert unary("add_microseconds", TIMESTAMP, [moment], Literal(1, BIGINT)) == [None]
    assert unary("add_months", TIMESTAMP, [moment], Literal(2**62, BIGINT)) == [None]
    assert unary("make_timestamp", BIGINT, [2**63 - 1, 0]) == [
        None,
        datetime(1970, 1, 1),  # noqa: DTZ001
    ]
    parts: tuple[list[Value], ...] = ([2023, 2024, 0, 2**62], [2, 2, 1, 1], [29, 29, 1, 1])
    make = scalar_call("make_date", tuple(column(BIGINT, i) for i in range(3)))
    assert run(make, *((BIGINT, part) for part in parts)) == [
        *(None, date(2024, 2, 29)),
        *(None, None),
    ]


def test_months_end_where_they_end() -> None:
    day = datetime(2024, 1, 31, 12)  # noqa: DTZ001
    assert unary("add_months", TIMESTAMP, [day], Literal(1, BIGINT)) == [
        datetime(2024, 2, 29, 12)  # noqa: DTZ001
    ]
    assert unary("last_day", TIMESTAMP, [day]) == [date(2024, 1, 31)]


def test_a_format_that_polars_has_a_name_for_is_a_text() -> None:
    day = datetime(2024, 1, 31, 12)  # noqa: DTZ001
    assert unary("strftime", TIMESTAMP, [day, None], text("iso")) == ["iso", None]
    assert unary("strftime", TIMESTAMP, [day], text("%%f %f %Y")) == ["%f 000000 2024"]


@pytest.mark.parametrize(
    ("given", "type_", "expected"),
    [
        (" +1 ", INTEGER, 1),
        ("1.5", INTEGER, None),
        ("1_0", DOUBLE, None),
        (" -.5e1", DOUBLE, -5.0),
        ("1.005", D5, Decimal("1.01")),
        ("-12345e-2", D5, Decimal("-123.45")),
        ("999.995", D5, None),
        ("1e99999999999999999999", D5, None),
        ("0e99999999999999999999", D5, Decimal("0.00")),
        ("1e-99999999999999999999", D5, Decimal("0.00")),
        ("YES", BOOLEAN, True),
        ("2024-02-30", DATE, None),
        ("2024-02-29T23:30-01", DATE, date(2024, 3, 1)),
        ("0001-01-01 00:00+01", TIMESTAMP, None),
        ("2024-05-06 07:08:09.1234567Z", TIMESTAMP, datetime(2024, 5, 6, 7, 8, 9, 123456)),  # noqa: DTZ001
        ("2024-05-06 07:08+24", TIMESTAMP, None),
    ],
)
def test_texts_are_read(given: str, type_: DataType, expected: Value) -> None:
    assert run(cast(column(VARCHAR), type_), (VARCHAR, [given, None])) == [expected, None]


def test_an_expression_of_no_column_has_the_height_of_the_frame() -> None:
    two = Call("+", (Literal(1, INTEGER), Literal(1, INTEGER)), INTEGER)
    for height in (0, 1, 3):
        batch = frame((INTEGER, [None] * height))
        assert batch.select(compile_expr(two)).to_series().to_list() == [2] * height
        assert batch.with_columns(x=compile_expr(two))["x"].to_list() == [2] * height
        assert batch.filter(compile_predicate(TRUE)).height == height
        assert batch.filter(compile_predicate(FALSE)).height == 0
        null = compile_expr(Literal(None, D5)).alias("x")
        assert batch.select(null).schema == {"x": pl.Decimal(5, 2)}
    assert frame((INTEGER, [1])).select(compile_expr(Literal(None, NULL))).item() is None


def test_a_predicate_is_false_where_it_is_null() -> None:
    positive = scalar_call(">", (column(INTEGER), Literal(0, INTEGER)))
    batch = frame((INTEGER, [1, None, -1]))
    assert batch.select(compile_predicate(positive)).to_series().to_list() == [True, False, False]


def test_a_branch_that_is_not_taken_does_no_harm() -> None:
    x, zero = column(INTEGER), Literal(0, INTEGER)
    inverse = Call("//", (Literal(6, INTEGER), x), INTEGER)
    expr = case_call(((scalar_call("=", (x, zero)), Literal(-1, INTEGER)),), inverse)
    assert run(expr, (INTEGER, [0, 2, None])) == [-1, 3, None]


def test_a_condition_that_is_constant_chooses() -> None:
    x = column(INTEGER)
    assert run(case_call(((TRUE, Literal(1, INTEGER)),), x), (INTEGER, [5, 6])) == [1, 1]
    assert run(case_call(((FALSE, Literal(1, INTEGER)),), x), (INTEGER, [5, 6])) == [5, 6]


@pytest.mark.parametrize("name", ["*", "^c.*$", "a b", "@0"])
def test_a_name_is_only_a_name(name: str) -> None:
    batch = pl.DataFrame({name: [1.0, 2.0], "other": [3.0, 4.0]})
    expr = Call("*", (Column(name, DOUBLE), Column("other", DOUBLE)), DOUBLE)
    assert batch.select(compile_expr(expr)).to_series().to_list() == [3.0, 8.0]


def test_a_deep_expression_computes_each_part_once() -> None:
    expr: Expr = column(DOUBLE)
    for _ in range(40):  # every level looks for -0.0 in what it has made: 3**40 parts as a tree
        expr = Call("*", (expr, Literal(1.0, DOUBLE)), DOUBLE)
    assert run(expr, (DOUBLE, [7.0, None])) == [7.0, None]


def test_every_function_has_a_compiler() -> None:
    assert set(tidemill.physical.eval._COMPILERS) | {"pi"} == {*STRICT, *NULL_AWARE}  # noqa: SLF001


def test_python_sees_no_single_values() -> None:
    package = Path(str(tidemill.physical.eval.__file__)).parent
    texts = {path.name: path.read_text("utf-8") for path in package.glob("*.py")}
    assert not any(re.search(r"map_elements|\.apply\(|iter_rows", t) for t in texts.values())
    # What is about to be made is measured, a batch at a time.
    assert {name for name, text in texts.items() if "map_batches" in text} == {"growth.py"}


def test_a_cast_to_the_same_type_is_the_value() -> None:
    assert run(Cast(column(INTEGER), INTEGER), (INTEGER, [1, None])) == [1, None]
