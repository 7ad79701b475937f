"""The functions of DATE and TIMESTAMP, counted in days and microseconds since 1970.

Calendars are arithmetic here: what lies outside the years 1 to 9999, or is no day, is NULL.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.time import UNITS
from tidemill.physical.eval.binding import constant, let, quotient

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.algebra.expr import Call
    from tidemill.physical.eval.binding import Compiler

__all__ = ["COMPILERS", "DAY", "days_of", "moment_of"]

DAY = UNITS["DAY"]
"""The microseconds of a day."""

_EPOCH = date(1970, 1, 1)
_FIRST = (date.min - _EPOCH).days
_LAST = (date.max - _EPOCH).days
_DAYS_BEFORE_1970 = 719_468  # since March 1 of the year 0
_EXACT = 2**53
_FEBRUARY, _MARCH, _JULY = 2, 3, 7


def moment_of(microseconds: pl.Expr) -> pl.Expr:
    """The TIMESTAMP so many microseconds after 1970, if the calendar has it."""
    return let(
        microseconds,
        body=lambda us: pl.when(us.is_between(_FIRST * DAY, (_LAST + 1) * DAY - 1)).then(us),
    ).cast(pl.Datetime("us"))


def _day_of(days: pl.Expr) -> pl.Expr:
    in_calendar = let(days, body=lambda d: pl.when(d.is_between(_FIRST, _LAST)).then(d))
    return in_calendar.cast(pl.Int32).cast(pl.Date)


def days_of(year: pl.Expr, month: pl.Expr, day: pl.Expr) -> pl.Expr:
    """The days since 1970 of a day of the calendar; NULL if there is no such day.

    Years are counted from March, so that the leap day is the last; 400 of them are an era.
    """

    def valid(y: pl.Expr, m: pl.Expr, d: pl.Expr) -> pl.Expr:
        exists = y.is_between(1, 9999) & m.is_between(1, 12) & d.is_between(1, _month_length(y, m))
        early = (m < _MARCH).cast(pl.Int64)
        return pl.when(exists).then(_days_from_march(y - early, (m + 9) % 12, d))

    return let(year, month, day, body=valid)


def _days_from_march(year: pl.Expr, month: pl.Expr, day: pl.Expr) -> pl.Expr:
    before_month = (month * 153 + 2) // 5
    before_year = year * 365 + year // 4 - year // 100 + year // 400
    return before_year + before_month + day - 1 - _DAYS_BEFORE_1970


def _month_length(year: pl.Expr, month: pl.Expr) -> pl.Expr:
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    long = ((month + (month > _JULY).cast(pl.Int64)) % 2).cast(pl.Int64)
    return pl.when(month == _FEBRUARY).then(leap.cast(pl.Int64) + 28).otherwise(long + 30)


def _us(moment: pl.Expr) -> pl.Expr:
    return moment.to_physical()


def _int64(x: pl.Expr) -> pl.Expr:
    return x.cast(pl.Int64)


def _epoch(moment: pl.Expr) -> pl.Expr:
    """The seconds since 1970, the nearest DOUBLE.

    One division rounds once while the microseconds have 53 bits. Above, DOUBLEs are multiples of
    2**-19 or more, and a sum of seconds and millionths lies on or far from the middle of two.
    """

    def seconds(us: pl.Expr) -> pl.Expr:
        is_small = us.abs() < _EXACT
        whole = pl.when(is_small).then(pl.lit(0, dtype=pl.Int64)).otherwise(us // 1_000_000)
        rest = pl.when(is_small).then(us).otherwise(us % 1_000_000)
        return whole.cast(pl.Float64) + quotient(rest.cast(pl.Float64), pl.lit(1e6))

    return let(_us(moment), body=seconds)


_PARTS: dict[str, Callable[[pl.Expr], pl.Expr]] = {
    "year": lambda t: t.dt.year(),
    "quarter": lambda t: t.dt.quarter(),
    "month": lambda t: t.dt.month(),
    "week": lambda t: t.dt.week(),
    "day": lambda t: t.dt.day(),
    "hour": lambda t: t.dt.hour(),
    "minute": lambda t: t.dt.minute(),
    "second": lambda t: t.dt.second(),
    "millisecond": lambda t: _us(t) % UNITS["MINUTE"] // 1_000,
    "microsecond": lambda t: _us(t) % UNITS["MINUTE"],
    "dayofweek": lambda t: t.dt.weekday() % 7,
    "isodow": lambda t: t.dt.weekday(),
    "dayofyear": lambda t: t.dt.ordinal_day(),
    "isoyear": lambda t: t.dt.iso_year(),
}


def _date_part(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    unit = str(constant(call.arguments[0]))
    return _epoch(arguments[1]) if unit == "epoch" else _int64(_PARTS[unit](arguments[1]))


def _months(t: pl.Expr) -> pl.Expr:
    """The number of the month, counted from the year 0."""
    return _int64(t.dt.year()) * 12 + _int64(t.dt.month()) - 1


def _index(unit: str, t: pl.Expr) -> pl.Expr:
    """The number of the period of ``unit`` that the time lies in."""
    match unit:
        case "year":
            return _int64(t.dt.year())
        case "quarter":
            return let(t, body=lambda t: _months(t) // 3)
        case "month":
            return let(t, body=_months)
        case "week":
            return (_us(t) - _FIRST * DAY) // UNITS["WEEK"]
        case _:
            return _us(t) // UNITS[unit.upper()]


def _date_diff(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    unit = str(constant(call.arguments[0]))
    return _index(unit, arguments[2]) - _index(unit, arguments[1])


def _date_trunc(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    unit = str(constant(call.arguments[0]))
    calendar = {"year": "1y", "quarter": "1q", "month": "1mo", "week": "1w"}
    if unit in calendar:
        return arguments[1].dt.truncate(calendar[unit])
    length = UNITS[unit.upper()]
    return (_us(arguments[1]) // length * length).cast(pl.Datetime("us"))


def _add_days(_: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    day, count = arguments
    # What is added is cut so that sums cannot overflow; they are out of the calendar all the same.
    return _day_of(_int64(day.to_physical()) + count.clip(-(10**8), 10**8))


def _add_microseconds(_: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    moment, count = arguments
    return moment_of(_us(moment) + count.clip(-(10**18), 10**18))


def _add_months(_: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    def added(t: pl.Expr, count: pl.Expr) -> pl.Expr:
        month = _months(t) + count.clip(-(10**6), 10**6)
        return let(month // 12, month % 12 + 1, _int64(t.dt.day()), _us(t) % DAY, body=joined)

    def joined(year: pl.Expr, month: pl.Expr, day: pl.Expr, time: pl.Expr) -> pl.Expr:
        last = _month_length(year, month)
        return days_of(year, month, pl.min_horizontal(day, last)) * DAY + time

    return let(*arguments, body=added).cast(pl.Datetime("us"))


def _last_day(_: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    def last(day: pl.Expr) -> pl.Expr:
        return day.to_physical() - day.dt.day() + day.dt.days_in_month()

    return let(arguments[0].cast(pl.Date), body=last).cast(pl.Int32).cast(pl.Date)


def _strftime(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    format_ = str(constant(call.arguments[1]))
    if "%" not in format_:  # to Polars, "iso" is not a text but the name of a format
        return pl.when(arguments[0].is_not_null()).then(pl.lit(format_))
    # %% first: what stands behind it is no specifier. Polars' %f has nine digits.
    pieces = [piece.replace("%f", "%6f") for piece in format_.split("%%")]
    return arguments[0].dt.strftime("%%".join(pieces))


def _of_moment(function: Callable[[pl.Expr], pl.Expr]) -> Compiler:
    return lambda _, arguments: function(arguments[0])


COMPILERS: dict[str, Compiler] = {
    "add_days": _add_days,
    "add_microseconds": _add_microseconds,
    "add_months": _add_months,
    "date_diff": _date_diff,
    "date_part": _date_part,
    "date_trunc": _date_trunc,
    "epoch_ms": _of_moment(lambda t: _us(t) // 1_000),
    "epoch_us": _of_moment(_us),
    "last_day": _last_day,
    "make_date": lambda _, arguments: _day_of(days_of(*arguments)),
    "make_timestamp": _of_moment(moment_of),
    "strftime": _strftime,
}
