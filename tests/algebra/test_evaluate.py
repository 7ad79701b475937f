from __future__ import annotations

import math
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from tidemill.algebra.evaluate import evaluate
from tidemill.algebra.expr import Case, Cast, Column, Literal
from tidemill.algebra.functions import NULL_AWARE, STRICT
from tidemill.algebra.values import NAN
from tidemill.catalog.functions import function_list, scalar_call
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
    from tidemill.model.types import Value


def literal(value: Value) -> Literal:
    types: dict[type, DataType] = {
        bool: BOOLEAN,
        int: INTEGER,
        float: DOUBLE,
        str: VARCHAR,
        date: DATE,
        datetime: TIMESTAMP,
    }
    return Literal(value, types[type(value)])


def result(name: str, *arguments: Value | Literal) -> Value:
    exprs = tuple(a if isinstance(a, Literal) else literal(a) for a in arguments)
    return evaluate(scalar_call(name, exprs), {})


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


LARGEST = 2**31 - 1


def test_a_column_is_looked_up_in_the_row() -> None:
    assert evaluate(Column("a", INTEGER), {"a": 1, "b": 2}) == 1


def test_overflow_has_no_value() -> None:
    assert result("+", LARGEST, 1) is None
    assert result("neg", Literal(-(2**31), INTEGER)) is None
    assert result("abs", Literal(-(2**63), BIGINT)) is None
    nines = Literal(Decimal("9" * 38), decimal(38, 0))
    assert result("+", nines, nines) is None
    assert result("*", nines, nines) is None


def test_decimals_are_exact() -> None:
    third = Literal(Decimal("0." + "3" * 30), decimal(31, 30))
    assert result("+", third, third) == Decimal("0." + "6" * 30)
    assert result("neg", third) == Decimal("-0." + "3" * 30)
    assert result("abs", Literal(Decimal("-0." + "3" * 30), decimal(31, 30))) == third.value


def test_division_by_zero_has_no_value() -> None:
    assert result("/", 1, 0) is None
    assert result("/", 1.0, 0.0) is None
    assert result("//", 1, 0) is None
    assert result("%", 1.0, 0.0) is None


def test_integer_division_cuts_towards_zero() -> None:
    assert [result("//", a, b) for a, b in ((7, 2), (-7, 2), (7, -2))] == [3, -3, -3]
    assert [result("%", a, b) for a, b in ((7, 2), (-7, 2), (7, -2))] == [1, -1, 1]
    assert result("//", Literal(-(2**31), INTEGER), -1) is None
    assert result("%", Literal(-(2**31), INTEGER), -1) == 0


def test_functions_of_doubles_are_total() -> None:
    assert result("sqrt", -1.0) is NAN
    assert result("ln", 0.0) == -math.inf
    assert result("exp", 1000.0) == math.inf
    assert result("power", -10.0, 401.0) == -math.inf


def test_there_is_one_nan_and_one_zero() -> None:
    column = Column("x", DOUBLE)
    rows = [{"x": float("nan")}, {"x": float("nan")}, {"x": -0.0}, {"x": 0.0}]
    counted = Counter((evaluate(column, row),) for row in rows)
    assert counted == {(NAN,): 2, (0.0,): 2}
    assert str(evaluate(column, {"x": -0.0})) == "0.0"


def test_nan_equals_itself_and_is_the_greatest_number() -> None:
    assert result("=", math.nan, math.nan) is True
    assert result(">", math.nan, math.inf) is True
    assert result("greatest", 1.0, math.nan) is NAN


def test_logic_has_three_values() -> None:
    unknown = Literal(None, BOOLEAN)
    assert result("and", unknown, False) is False
    assert result("and", unknown, True) is None
    assert result("or", unknown, True) is True
    assert result("or", unknown, False) is None
    assert result("not", unknown) is None
    assert result("is_true", unknown) is False
    assert result("is_false", unknown) is False


def test_in_is_unknown_when_a_member_is() -> None:
    unknown = Literal(None, INTEGER)
    assert result("in", 1, 1, unknown) is True
    assert result("in", 1, 2, unknown) is None
    assert result("in", unknown, 1) is None


def test_nulls_are_not_distinct() -> None:
    unknown = Literal(None, INTEGER)
    assert result("is_not_distinct", unknown, unknown) is True
    assert result("is_distinct", unknown, 1) is True


def test_case_takes_the_first_branch_that_is_true() -> None:
    unknown = Literal(None, BOOLEAN)
    expr = Case(((unknown, literal(1)), (literal(True), literal(2))), literal(3), INTEGER)
    assert evaluate(expr, {}) == 2


def test_a_cast_that_fails_has_no_value() -> None:
    assert evaluate(Cast(Column("t", VARCHAR), INTEGER), {"t": "1.5"}) is None


def test_substring_counts_from_either_end() -> None:
    assert result("substring", "hello", 2, 3) == "ell"
    assert result("substring", "hello", -3) == "llo"
    assert result("substring", "hello", 0, 3) == "he"
    assert result("substring", "hello", 3, -2) == "he"


def test_case_is_that_of_unicode() -> None:
    assert result("upper", "straße") == "STRASSE"


def test_reverse_turns_round_code_points() -> None:
    assert result("reverse", "abc") == "cba"


def test_trim_takes_away_blanks_but_not_tabs() -> None:
    assert result("trim", "\u2003 a\t ") == "a\t"


def test_padding_with_nothing_has_no_value() -> None:
    assert result("lpad", "a", 3, "xy") == "xya"
    assert result("lpad", "abc", 2, "") == "ab"
    assert result("rpad", "a", 3, "") is None


def test_a_row_cannot_take_all_memory() -> None:
    huge = Literal(2**62, BIGINT)
    assert result("repeat", "ab", huge) is None
    assert result("repeat", "", huge) == ""
    assert result("lpad", "a", huge, "b") is None
    assert result("lpad", "a", Literal(-(2**63), BIGINT), "b") == ""


def test_a_pattern_must_not_end_with_its_escape() -> None:
    assert result("like", "a%", "a!%", "!") is True
    assert result("like", "a", "a!", "!") is None


def test_line_ends_match_any_character_of_like() -> None:
    assert result("like", "a\nb", "a_b") is True


def test_regexp_replace_does_not_match_nothing_twice() -> None:
    assert result("regexp_replace", "abc", "b*", "-", "g") == "-a-c-"
    assert result("regexp_replace", "abab", "(a)(b)", r"\2\1") == "baab"


def test_concat_leaves_out_nulls() -> None:
    assert result("concat", "a", Literal(None, VARCHAR), 1) == "a1"
    assert result("concat_ws", ",", "a", Literal(None, VARCHAR), "b") == "a,b"
    assert result("concat_ws", Literal(None, VARCHAR), "a") is None


def test_weeks_begin_on_monday() -> None:
    sunday, monday = at("2020-01-05"), at("2020-01-06")
    assert result("date_diff", "week", sunday, monday) == 1
    assert result("date_trunc", "week", sunday) == at("2019-12-30")


def test_milliseconds_are_cut_off_towards_the_past() -> None:
    assert result("epoch_ms", at("1969-12-31 23:59:59.999500")) == -1
    assert result("epoch_ms", at("1970-01-01 00:00:00.000500")) == 0


def test_months_are_added_within_the_month() -> None:
    assert result("add_months", at("2024-01-31"), 1) == at("2024-02-29")
    assert result("add_months", date(2024, 3, 31), -1) == at("2024-02-29")


def test_time_ends_with_the_calendar() -> None:
    last = date(9999, 12, 31)
    assert result("+", last, 1) is None
    assert result("-", date(1, 1, 1), 1) is None
    assert result("add_months", last, 1) is None
    assert result("add_microseconds", last, Literal(2**62, BIGINT)) is None
    assert result("make_timestamp", Literal(2**63 - 1, BIGINT)) is None
    assert result("make_date", 2023, 2, 29) is None


@pytest.mark.parametrize("name", sorted({*STRICT, *NULL_AWARE}))
def test_every_meaning_belongs_to_a_function_that_can_be_called(name: str) -> None:
    assert name in {f.name for f in function_list()}
