from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest

from tidemill.algebra.expr import AggregateCall, Call, Case, Cast, Column, Expr, Literal
from tidemill.algebra.functions.dates import UNITS
from tidemill.algebra.text import expr_text
from tidemill.catalog.functions import (
    aggregate_call,
    case_call,
    cast,
    function_list,
    is_aggregate,
    is_scalar,
    scalar_call,
)
from tidemill.errors import BindError, Span
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

N, B, X = Column("n", INTEGER), Column("b", BIGINT), Column("x", DOUBLE)
P, T, F = Column("p", decimal(5, 2)), Column("t", VARCHAR), Column("f", BOOLEAN)
D, S = Column("d", DATE), Column("s", TIMESTAMP)
NOTHING = Literal(None, NULL)


def text(value: str) -> Literal:
    return Literal(value, VARCHAR)


def shown(name: str, *arguments: Expr) -> tuple[str, str]:
    """The bound call as text, and its type."""
    expr = scalar_call(name, arguments)
    return expr_text(expr), str(expr.type)


def refusal(name: str, *arguments: Expr) -> tuple[str, str | None]:
    with pytest.raises(BindError) as caught:
        scalar_call(name, arguments)
    return caught.value.message, caught.value.hint


# --- arithmetic -------------------------------------------------------------------------------


def test_integers_meet_in_the_wider_type() -> None:
    assert shown("+", N, N) == ("n + n", "INTEGER")
    assert shown("*", N, B) == ("CAST(n AS BIGINT) * b", "BIGINT")


def test_division_is_of_doubles() -> None:
    assert shown("/", N, P) == ("CAST(n AS DOUBLE) / CAST(p AS DOUBLE)", "DOUBLE")


def test_sums_of_decimals_have_room_for_one_more_digit() -> None:
    assert shown("+", P, Column("q", decimal(6, 4)))[1] == "DECIMAL(8,4)"
    assert shown("-", P, N)[1] == "DECIMAL(13,2)"
    assert (
        shown("+", Column("q", decimal(38, 2)), Column("r", decimal(10, 4)))[1] == "DECIMAL(38,4)"
    )


def test_products_of_decimals_add_up_digits() -> None:
    assert shown("*", P, P) == ("p * p", "DECIMAL(10,4)")
    assert shown("*", P, N) == ("p * CAST(n AS DECIMAL(10,0))", "DECIMAL(15,2)")
    assert shown("*", Column("q", decimal(38, 2)), P)[1] == "DECIMAL(38,4)"


def test_products_with_too_many_digits_behind_the_point_are_doubles() -> None:
    q = Column("q", decimal(38, 20))
    assert shown("*", q, q) == ("CAST(q AS DOUBLE) * CAST(q AS DOUBLE)", "DOUBLE")


def test_integer_division_is_for_integers() -> None:
    assert shown("//", N, B) == ("CAST(n AS BIGINT) // b", "BIGINT")
    assert refusal("//", N, X) == (
        'argument 2 of "//" is DOUBLE, not an integer',
        "use / or floor(a / b)",
    )


def test_days_are_added_to_dates() -> None:
    assert shown("+", D, N) == ("add_days(d, CAST(n AS BIGINT))", "DATE")
    assert shown("+", Literal(1, INTEGER), D) == ("add_days(d, 1)", "DATE")
    assert shown("-", D, Literal(1, INTEGER)) == ("add_days(d, -1)", "DATE")
    assert shown("-", D, D)[1] == "BIGINT"


def test_the_time_between_two_timestamps_needs_a_unit() -> None:
    assert refusal("-", S, S) == (
        '"-" does not take TIMESTAMP and TIMESTAMP',
        "date_diff('microsecond', start, end) gives the time between them",
    )
    assert refusal("+", S, N) == ('"+" does not take TIMESTAMP', "add or subtract an INTERVAL")


def test_a_negated_number_is_a_number() -> None:
    assert scalar_call("neg", (Literal(1, INTEGER),)) == Literal(-1, INTEGER)
    assert scalar_call("neg", (Literal(Decimal("1.5"), decimal(2, 1)),)) == Literal(
        Decimal("-1.5"), decimal(2, 1)
    )
    assert shown("neg", P) == ("-p", "DECIMAL(5,2)")


def test_arithmetic_is_for_numbers() -> None:
    assert refusal("+", T, N) == (
        'argument 1 of "+" is VARCHAR, not NUMBER',
        "convert it: CAST(… AS DOUBLE)",
    )
    assert refusal("+", D, X)[0] == 'argument 2 of "+" is DOUBLE, not BIGINT'


# --- comparisons ------------------------------------------------------------------------------


def test_sides_of_a_comparison_get_a_common_type() -> None:
    assert shown("<", N, X) == ("CAST(n AS DOUBLE) < x", "BOOLEAN")
    assert shown("=", D, S) == ("CAST(d AS TIMESTAMP) = s", "BOOLEAN")


def test_constants_are_converted_at_once() -> None:
    half = Literal(Decimal("1.5"), decimal(2, 1))
    assert scalar_call(">", (X, half)) == Call(">", (X, Literal(1.5, DOUBLE)), BOOLEAN)


def test_text_beside_a_time_is_read_as_one() -> None:
    assert shown(">=", D, text("2024-05-06")) == ("d >= DATE '2024-05-06'", "BOOLEAN")
    assert scalar_call("=", (text("2024-05-06T07:08"), S)) == Call(
        "=", (Literal(datetime.fromisoformat("2024-05-06T07:08"), TIMESTAMP), S), BOOLEAN
    )
    assert shown("in", D, text("2024-05-06"), NOTHING) == (
        "d IN (DATE '2024-05-06', NULL)",
        "BOOLEAN",
    )
    assert shown("coalesce", D, text("2024-05-06")) == ("coalesce(d, DATE '2024-05-06')", "DATE")


def test_text_beside_a_time_must_be_one() -> None:
    with pytest.raises(BindError) as caught:
        scalar_call("=", (S, text("soon")), span=Span(0, 9), spans=(Span(0, 1), Span(4, 9)))
    assert caught.value.message == "'soon' is not a value of type TIMESTAMP"
    assert caught.value.span == Span(4, 9)
    assert caught.value.hint == "write it as '2024-05-06 07:08:09.123456'"


def test_text_with_a_time_of_day_is_not_a_date() -> None:
    message, hint = refusal("<", D, text("2024-05-06 12:00"))
    assert message == "'2024-05-06 12:00' is not a value of type DATE"
    assert hint == "write it as '2024-05-06'"


def test_numbers_and_text_are_not_compared() -> None:
    assert refusal("=", T, N) == (
        'the sides of "=" have no common type: VARCHAR and INTEGER',
        "convert one of them: CAST(… AS INTEGER)",
    )


def test_decimals_are_compared_without_losing_digits() -> None:
    wide, fine = Column("w", decimal(38, 2)), Column("v", decimal(20, 10))
    assert shown("=", wide, fine) == ("w = v", "BOOLEAN")
    assert shown("in", wide, fine, NOTHING) == ("w IN (v, NULL)", "BOOLEAN")
    assert shown("=", P, fine) == ("CAST(p AS DECIMAL(20,10)) = v", "BOOLEAN")


def test_null_takes_the_type_of_the_other_side() -> None:
    assert scalar_call("=", (T, NOTHING)) == Call("=", (T, Literal(None, VARCHAR)), BOOLEAN)
    assert scalar_call("+", (X, NOTHING)) == Call("+", (X, Literal(None, DOUBLE)), DOUBLE)


@pytest.mark.parametrize(("name", "type_"), [("+", INTEGER), ("=", BOOLEAN), ("coalesce", INTEGER)])
def test_nothing_but_nulls_still_have_a_type(name: str, type_: DataType) -> None:
    assert scalar_call(name, (NOTHING, NOTHING)).type == type_


# --- functions --------------------------------------------------------------------------------


def test_names_are_found_in_any_case_and_by_their_aliases() -> None:
    assert shown("Ceiling", X) == ("ceil(x)", "DOUBLE")
    assert shown("SUBSTR", T, N) == ("substring(t, CAST(n AS BIGINT))", "VARCHAR")
    assert shown("len", T) == ("length(t)", "BIGINT")


def test_searching_has_one_form() -> None:
    assert shown("strpos", T, text("a")) == ("strpos(t, 'a')", "BIGINT")
    assert shown("instr", T, text("a")) == ("strpos(t, 'a')", "BIGINT")
    assert shown("position", text("a"), T) == ("strpos(t, 'a')", "BIGINT")


def test_some_functions_stand_for_other_expressions() -> None:
    assert shown("nullif", N, Literal(0, INTEGER)) == (
        "CASE WHEN n = 0 THEN NULL ELSE n END",
        "INTEGER",
    )
    assert shown("if", F, N, X) == ("CASE WHEN f THEN CAST(n AS DOUBLE) ELSE x END", "DOUBLE")
    assert shown("ifnull", N, B) == ("coalesce(CAST(n AS BIGINT), b)", "BIGINT")
    assert shown("year", D) == ("date_part('year', CAST(d AS TIMESTAMP))", "BIGINT")
    assert shown("dayname", S) == ("strftime(s, '%A')", "VARCHAR")
    assert shown("mod", N, N) == ("n % n", "INTEGER")


def test_concat_takes_values_of_any_type() -> None:
    assert shown("concat", T, N) == ("concat(t, CAST(n AS VARCHAR))", "VARCHAR")
    assert shown("||", T, D) == ("t || CAST(d AS VARCHAR)", "VARCHAR")


def test_rounded_decimals_keep_the_digits_that_are_left() -> None:
    assert shown("round", P, Literal(1, INTEGER))[1] == "DECIMAL(5,1)"
    assert shown("round", P)[1] == "DECIMAL(5,0)"
    assert shown("round", Column("q", decimal(2, 0)), Literal(-1, INTEGER))[1] == "DECIMAL(3,0)"
    assert refusal("round", P, N)[0] == (
        'argument 2 of "round", digits, must be a constant for a DECIMAL'
    )


def test_whole_numbers_stay_whole() -> None:
    assert shown("floor", N)[1] == "INTEGER"
    assert shown("ceil", P)[1] == "DECIMAL(5,0)"
    assert shown("sign", X)[1] == "INTEGER"


def test_parts_of_a_time_are_integers_but_for_epoch() -> None:
    assert shown("date_part", text("Hours"), S) == ("date_part('hour', s)", "BIGINT")
    assert shown("date_part", text("epoch"), S)[1] == "DOUBLE"
    assert shown("date_part", text("dow"), S)[0] == "date_part('dayofweek', s)"


def test_units_are_constants_that_exist() -> None:
    message, hint = refusal("date_trunc", text("eon"), S)
    assert message == '"eon" is not a unit of "date_trunc"'
    assert hint == f"the units are {', '.join(UNITS)}"
    assert refusal("date_diff", T, S, S) == (
        'argument 1 of "date_diff", unit, must be a constant text',
        "date_diff(unit VARCHAR, start TIMESTAMP, end TIMESTAMP)",
    )


def test_formats_have_known_specifiers() -> None:
    assert shown("strftime", S, text("%Y-%m %%"))[1] == "VARCHAR"
    message, hint = refusal("strftime", S, text("%Y %Q"))
    assert message == '"%Q" is not a specifier of "strftime"'
    assert hint == "the specifiers are %Y %y %m %B %b %d %j %A %a %H %I %p %M %S %f %%"
    assert refusal("strftime", S, text("100%"))[0] == '"%" is not a specifier of "strftime"'


def test_patterns_are_checked() -> None:
    assert refusal("regexp_matches", T, text("(a"))[0] == (
        "the pattern is not valid: missing ), unterminated subpattern"
    )
    assert refusal("regexp_matches", T, T)[0] == (
        'argument 2 of "regexp_matches", pattern, must be a constant text'
    )
    assert refusal("regexp_replace", T, text("a"), text(r"\1"))[0] == (
        "the replacement is not valid: the pattern has no group 1"
    )
    assert refusal("regexp_replace", T, text("a"), text("b"), text("x")) == (
        'option "x" of "regexp_replace" does not exist',
        "'g' replaces every match",
    )
    assert refusal("regexp_extract", T, text("a"), Literal(1, INTEGER))[0] == (
        "the pattern has no group 1"
    )
    assert refusal("regexp_extract", T, text("a"), N)[0] == (
        'argument 3 of "regexp_extract", group, must be a constant number'
    )


def test_an_escape_is_one_character() -> None:
    assert shown("like", T, text("a!%"), text("!"))[1] == "BOOLEAN"
    assert shown("like", T, text("a"), text("")) == ("t LIKE 'a'", "BOOLEAN")
    assert (
        refusal("like", T, text("a"), text("ab"))[0] == "the escape of LIKE must be one character"
    )


# --- errors -----------------------------------------------------------------------------------


def test_an_unknown_function_is_named_with_the_closest_one() -> None:
    assert refusal("uper", T) == ('function "uper" does not exist', 'did you mean "upper"?')


def test_a_wrong_number_of_arguments_shows_the_signature() -> None:
    assert refusal("substring", T) == (
        '"substring" does not take 1 argument',
        "substring(text VARCHAR, start BIGINT [, length BIGINT])",
    )
    assert refusal("pi", X)[0] == '"pi" does not take 1 argument'
    assert refusal("concat")[0] == '"concat" does not take no arguments'


def test_a_wrong_type_is_shown_where_it_stands() -> None:
    with pytest.raises(BindError) as caught:
        scalar_call("left", (T, T), span=Span(0, 10), spans=(Span(5, 6), Span(8, 9)))
    assert caught.value.message == 'argument 2 of "left" is VARCHAR, not BIGINT'
    assert caught.value.span == Span(8, 9)
    assert caught.value.hint == "convert it: CAST(… AS BIGINT)"


@pytest.mark.parametrize("name", ["now", "current_timestamp", "CURRENT_DATE", "random", "uuid"])
def test_clocks_and_chance_are_refused(name: str) -> None:
    assert refusal(name) == (
        f'"{name}" is not available: the answer is a function of the input alone',
        "use the column of ORDERED BY for the time of a row",
    )


def test_an_aggregate_is_no_scalar_function() -> None:
    assert refusal("sum", N)[0] == '"sum" is an aggregate, and cannot stand here'


# --- CAST and CASE ----------------------------------------------------------------------------


def test_cast_to_the_same_type_is_nothing() -> None:
    assert cast(N, INTEGER) is N
    assert cast(N, BIGINT) == Cast(N, BIGINT)


def test_cast_of_a_constant_is_a_constant() -> None:
    assert cast(text("2024-05-06 07:08"), DATE) == Literal(date(2024, 5, 6), DATE)
    with pytest.raises(BindError, match="'x' is not a value of type INTEGER"):
        cast(text("x"), INTEGER)


@pytest.mark.parametrize(("expr", "target"), [(F, DATE), (N, TIMESTAMP), (D, DOUBLE), (S, BOOLEAN)])
def test_cast_between_strangers_is_refused(expr: Expr, target: DataType) -> None:
    with pytest.raises(BindError, match=f"{expr.type} cannot be converted to {target}"):
        cast(expr, target, span=Span(0, 1))


def test_the_values_of_case_get_a_common_type() -> None:
    expr = case_call(((F, N), (NOTHING, X)))
    assert expr == Case(
        ((F, Cast(N, DOUBLE)), (Literal(None, BOOLEAN), X)), Literal(None, DOUBLE), DOUBLE
    )


def test_the_values_of_case_must_have_a_common_type() -> None:
    with pytest.raises(BindError) as caught:
        case_call(((F, N),), T, span=Span(0, 9), spans=(Span(1, 2), Span(3, 4)))
    assert caught.value.message == "the values of CASE have no common type: INTEGER and VARCHAR"
    assert caught.value.span == Span(3, 4)
    with pytest.raises(BindError, match="the condition of WHEN is INTEGER, not BOOLEAN"):
        case_call(((N, N),))


# --- aggregates -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "argument", "type_"),
    [
        ("sum", N, BIGINT),
        ("sum", P, decimal(38, 2)),
        ("sum", X, DOUBLE),
        ("avg", N, DOUBLE),
        ("median", P, DOUBLE),
        ("min", T, VARCHAR),
        ("max", S, TIMESTAMP),
        ("count", T, BIGINT),
        ("bool_and", F, BOOLEAN),
        ("min", NOTHING, INTEGER),
    ],
)
def test_aggregates_have_the_type_of_their_argument_or_their_own(
    name: str, argument: Expr, type_: DataType
) -> None:
    assert aggregate_call(name, argument).type == type_


def test_aggregates_are_found_by_their_aliases() -> None:
    assert aggregate_call("STDDEV", N, distinct=True, condition=F) == AggregateCall(
        "stddev_samp", N, DOUBLE, distinct=True, condition=F
    )
    assert aggregate_call("count", None) == AggregateCall("count", None, BIGINT)


@pytest.mark.parametrize(
    ("name", "argument", "message"),
    [
        ("sum", T, 'the argument of "sum" is VARCHAR, not NUMBER'),
        ("bool_or", N, 'the argument of "bool_or" is INTEGER, not BOOLEAN'),
        ("sum", None, '"sum" needs an argument'),
        ("summ", N, 'function "summ" does not exist'),
    ],
)
def test_aggregates_refuse_what_they_do_not_take(
    name: str, argument: Expr | None, message: str
) -> None:
    with pytest.raises(BindError) as caught:
        aggregate_call(name, argument)
    assert caught.value.message == message


def test_rows_cannot_be_counted_once_each() -> None:
    with pytest.raises(BindError, match='"count" needs an argument'):
        aggregate_call("count", None, distinct=True)


def test_filter_is_a_condition() -> None:
    with pytest.raises(BindError, match="the condition of FILTER is INTEGER, not BOOLEAN"):
        aggregate_call("sum", N, condition=N)


# --- the list ---------------------------------------------------------------------------------


def test_names_are_told_apart() -> None:
    assert is_scalar("Upper")
    assert not is_scalar("sum")
    assert is_aggregate("SUM")
    assert not is_aggregate("upper")


def test_every_function_is_described_once() -> None:
    names = [name for f in function_list() for name in (f.name, *f.aliases)]
    assert len(names) == len(set(names))
    assert all(f.signature and f.description for f in function_list())
    assert {f.group for f in function_list()} == {
        "operator",
        "text",
        "math",
        "conditional",
        "date",
        "aggregate",
    }
