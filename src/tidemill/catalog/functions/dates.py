"""The functions of DATE and TIMESTAMP; a DATE is taken as the start of its day."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tidemill.algebra.expr import Call, Expr, Literal
from tidemill.algebra.functions.dates import FORMATS, PARTS, UNITS
from tidemill.catalog.functions.signature import Arguments, Function, Parameter, call
from tidemill.errors import BindError
from tidemill.model.types import BIGINT, DATE, DOUBLE, TIMESTAMP, VARCHAR, DataType

if TYPE_CHECKING:
    from collections.abc import Collection

    from tidemill.catalog.functions.signature import Builder

__all__ = ["DATE_FUNCTIONS"]

_UNIT = Parameter("unit", VARCHAR)
_X = Parameter("x", TIMESTAMP)
_SAME_UNIT = {"dow": "dayofweek", "weekday": "dayofweek", "doy": "dayofyear"}
_SPECIFIER = re.compile("%.?", re.DOTALL)


def _unit(arguments: Arguments, units: Collection[str]) -> str:
    given = arguments.constant(0).lower()
    unit = _SAME_UNIT.get(given, given)
    singular = unit.removesuffix("s")
    for candidate in (unit, singular):
        if candidate in units:
            return candidate
    raise BindError(
        f'"{given}" is not a unit of "{arguments.function.name}"',
        span=arguments.span_of(0),
        hint=f"the units are {', '.join(units)}",
    )


def _part(unit: str) -> Builder:
    """``year(x)`` is ``date_part('year', x)``."""
    return lambda arguments: _part_of(unit, arguments.argument(0))


def _part_of(unit: str, moment: Expr) -> Expr:
    type_ = DOUBLE if unit == "epoch" else BIGINT
    return Call("date_part", (Literal(unit, VARCHAR), moment), type_)


def _date_part(arguments: Arguments) -> Expr:
    return _part_of(_unit(arguments, PARTS), arguments.argument(1))


def _of_unit(result: DataType) -> Builder:
    def build(arguments: Arguments) -> Expr:
        unit = Literal(_unit(arguments, UNITS), VARCHAR)
        return Call(arguments.function.name, (unit, *arguments.converted()[1:]), result)

    return build


def _strftime(arguments: Arguments) -> Expr:
    for found in _SPECIFIER.findall(arguments.constant(1)):
        if found not in FORMATS:
            raise BindError(
                f'"{found}" is not a specifier of "strftime"',
                span=arguments.span_of(1),
                hint=f"the specifiers are {' '.join(FORMATS)}",
            )
    return call(VARCHAR)(arguments)


def _formatted(format_: str) -> Builder:
    return lambda arguments: Call(
        "strftime", (arguments.argument(0), Literal(format_, VARCHAR)), VARCHAR
    )


def _function(
    name: str,
    parameters: tuple[Parameter, ...],
    description: str,
    build: Builder | DataType,
    *aliases: str,
) -> Function:
    builder = call(build) if isinstance(build, DataType) else build
    return Function(name, parameters, description, "date", builder, aliases=aliases)


DATE_FUNCTIONS = (
    _function("year", (_X,), "the year", _part("year")),
    _function("quarter", (_X,), "the quarter of the year, 1 to 4", _part("quarter")),
    _function("month", (_X,), "the month, 1 to 12", _part("month")),
    _function("week", (_X,), "the ISO week of the year, 1 to 53", _part("week"), "weekofyear"),
    _function("day", (_X,), "the day of the month", _part("day"), "dayofmonth"),
    _function(
        "dayofweek", (_X,), "the day of the week, Sunday is 0", _part("dayofweek"), "weekday"
    ),
    _function("isodow", (_X,), "the day of the week, Monday is 1 and Sunday 7", _part("isodow")),
    _function("dayofyear", (_X,), "the day of the year", _part("dayofyear")),
    _function("hour", (_X,), "the hour of the day", _part("hour")),
    _function("minute", (_X,), "the minute of the hour", _part("minute")),
    _function("second", (_X,), "the second of the minute, without its fraction", _part("second")),
    _function("epoch", (_X,), "the seconds since 1970, a DOUBLE", _part("epoch")),
    _function("epoch_ms", (_X,), "the milliseconds since 1970", BIGINT),
    _function("epoch_us", (_X,), "the microseconds since 1970", BIGINT),
    _function(
        "date_part",
        (_UNIT, _X),
        "a part of a time, as EXTRACT(unit FROM x)",
        _date_part,
        "datepart",
    ),
    _function(
        "date_trunc",
        (_UNIT, _X),
        "the start of the unit x lies in",
        _of_unit(TIMESTAMP),
        "datetrunc",
    ),
    _function(
        "date_diff",
        (_UNIT, Parameter("start", TIMESTAMP), Parameter("end", TIMESTAMP)),
        "how many boundaries of the unit lie between two times",
        _of_unit(BIGINT),
        "datediff",
    ),
    _function("last_day", (_X,), "the last day of the month", DATE),
    _function("dayname", (_X,), "the English name of the day", _formatted("%A")),
    _function("monthname", (_X,), "the English name of the month", _formatted("%B")),
    _function(
        "strftime",
        (_X, Parameter("format", VARCHAR)),
        f"the time as text; the format has {' '.join(FORMATS)}",
        _strftime,
    ),
    _function(
        "make_timestamp",
        (Parameter("microseconds", BIGINT),),
        "the time so many microseconds after 1970",
        TIMESTAMP,
    ),
    _function(
        "make_date",
        (Parameter("year", BIGINT), Parameter("month", BIGINT), Parameter("day", BIGINT)),
        "the date; NULL if there is no such day",
        DATE,
    ),
    _function(
        "add_days",
        (Parameter("x", DATE), Parameter("days", BIGINT)),
        "the date so many days later",
        DATE,
    ),
    _function(
        "add_months",
        (_X, Parameter("months", BIGINT)),
        "the same day so many months later, or the last of that month",
        TIMESTAMP,
    ),
    _function(
        "add_microseconds",
        (_X, Parameter("microseconds", BIGINT)),
        "the time so many microseconds later",
        TIMESTAMP,
    ),
)
