"""The meaning of the functions of DATE and TIMESTAMP.

Weeks begin on Monday and are numbered by ISO 8601. ``date_diff(unit, start, end)`` counts the
boundaries of the unit between the two: it is ``index(unit, end) - index(unit, start)``, where the
index of a unit numbers its periods without a gap. A result outside the years 1 to 9999 is NULL.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from tidemill.model.time import UNITS as LENGTHS
from tidemill.model.time import from_datetime, to_datetime

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.model.types import Value

__all__ = ["FORMATS", "PARTS", "STRICT", "UNITS"]

UNITS = (
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
)
"""The units of ``date_trunc`` and ``date_diff``."""

PARTS: dict[str, Callable[[datetime], Value]] = {
    "year": lambda t: t.year,
    "quarter": lambda t: (t.month + 2) // 3,
    "month": lambda t: t.month,
    "week": lambda t: t.isocalendar().week,
    "day": lambda t: t.day,
    "hour": lambda t: t.hour,
    "minute": lambda t: t.minute,
    "second": lambda t: t.second,
    "millisecond": lambda t: t.second * 1_000 + t.microsecond // 1_000,
    "microsecond": lambda t: t.second * 1_000_000 + t.microsecond,
    "dayofweek": lambda t: t.isoweekday() % 7,
    "isodow": lambda t: t.isoweekday(),
    "dayofyear": lambda t: t.timetuple().tm_yday,
    "isoyear": lambda t: t.isocalendar().year,
    "epoch": lambda t: from_datetime(t) / 1_000_000,
}
"""The units of ``date_part``; ``dayofweek`` has Sunday as 0, ``isodow`` as 7."""

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)

FORMATS: dict[str, Callable[[datetime], str]] = {
    "%Y": lambda t: f"{t.year:04}",
    "%y": lambda t: f"{t.year % 100:02}",
    "%m": lambda t: f"{t.month:02}",
    "%B": lambda t: _MONTHS[t.month - 1],
    "%b": lambda t: _MONTHS[t.month - 1][:3],
    "%d": lambda t: f"{t.day:02}",
    "%j": lambda t: f"{t.timetuple().tm_yday:03}",
    "%A": lambda t: _DAYS[t.weekday()],
    "%a": lambda t: _DAYS[t.weekday()][:3],
    "%H": lambda t: f"{t.hour:02}",
    "%I": lambda t: f"{(t.hour + 11) % 12 + 1:02}",
    "%p": lambda t: "AM" if t.hour < 12 else "PM",  # noqa: PLR2004 — noon
    "%M": lambda t: f"{t.minute:02}",
    "%S": lambda t: f"{t.second:02}",
    "%f": lambda t: f"{t.microsecond:06}",
    "%%": lambda _: "%",
}
"""The specifiers of ``strftime``: those that mean the same everywhere."""

_FIRST_MONDAY = datetime(1, 1, 1)  # noqa: DTZ001 — no zone: UTC


def _date_part(unit: str, moment: datetime) -> Value:
    return PARTS[unit](moment)


def _index(unit: str, moment: datetime) -> int:
    """The number of the period of ``unit`` that the moment lies in."""
    match unit:
        case "year":
            return moment.year
        case "quarter":
            return moment.year * 4 + (moment.month - 1) // 3
        case "month":
            return moment.year * 12 + moment.month - 1
        case "week":
            return (moment - _FIRST_MONDAY).days // 7
        case _:
            return from_datetime(moment) // LENGTHS[unit.upper()]


def _date_diff(unit: str, start: datetime, end: datetime) -> int:
    return _index(unit, end) - _index(unit, start)


def _date_trunc(unit: str, moment: datetime) -> datetime:
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "year":
            return day.replace(month=1, day=1)
        case "quarter":
            return day.replace(month=(moment.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            return day.replace(day=1)
        case "week":
            return day - timedelta(days=day.weekday())
        case _:
            length = LENGTHS[unit.upper()]
            return to_datetime(from_datetime(moment) // length * length)


def _add_days(day: date, count: int) -> date | None:
    try:
        return day + timedelta(days=count)
    except OverflowError:
        return None


def _add_microseconds(moment: datetime, count: int) -> datetime | None:
    try:
        return moment + timedelta(microseconds=count)
    except OverflowError:
        return None


def _add_months(moment: datetime, count: int) -> datetime | None:
    """The same day of another month, or the last one if that month is shorter."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + count, 12)
    if not 1 <= year <= 9999:  # noqa: PLR2004 — the years of the calendar
        return None
    day = min(moment.day, monthrange(year, month + 1)[1])
    return moment.replace(year=year, month=month + 1, day=day)


def _make_date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except (ValueError, OverflowError):
        return None


def _make_timestamp(microseconds: int) -> datetime | None:
    try:
        return to_datetime(microseconds)
    except OverflowError:
        return None


def _last_day(moment: datetime) -> date:
    return date(moment.year, moment.month, monthrange(moment.year, moment.month)[1])


def _strftime(moment: datetime, format_: str) -> str:
    result = ""
    position = 0
    while position < len(format_):
        width = 2 if format_[position] == "%" else 1
        token = format_[position : position + width]
        result += FORMATS[token](moment) if width == 2 else token  # noqa: PLR2004 — % and a letter
        position += width
    return result


STRICT: dict[str, Callable[..., Value]] = {
    "add_days": _add_days,
    "add_microseconds": _add_microseconds,
    "add_months": _add_months,
    "date_diff": _date_diff,
    "date_part": _date_part,
    "date_trunc": _date_trunc,
    "epoch_ms": lambda moment: from_datetime(moment) // 1_000,
    "epoch_us": from_datetime,
    "last_day": _last_day,
    "make_date": _make_date,
    "make_timestamp": _make_timestamp,
    "strftime": _strftime,
}
