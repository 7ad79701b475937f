"""Time: a 64-bit integer, microseconds since the epoch; one microsecond is the chronon.

Intervals are half-open ``[start, end)``. Calendars stay at the edge of the system.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from operator import index
from typing import NewType, SupportsIndex

from tidemill.errors import RunError

__all__ = [
    "END_OF_TIME",
    "UNITS",
    "Time",
    "duration_text",
    "from_datetime",
    "time_text",
    "to_datetime",
    "to_instant",
]

Time = NewType("Time", int)

END_OF_TIME = Time(2**63 - 1)
"""The end of an interval that never ends, and the watermark of a stream that has ended."""

# Six digits of a second at most: what is more exact is no instant here.
_ISO = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d(:?\d\d)?)?)?")

UNITS = {
    "WEEK": 7 * 24 * 3_600_000_000,
    "DAY": 24 * 3_600_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}
"""The units of fixed length, in microseconds, longest first."""

_CALENDAR = range(10**12, 253_402_300_800 * 10**6)
"""Times before the twelfth of January 1970 are taken for numbers, as in small examples, and those
after the year 9999, which calendars do not have."""

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 — timestamps carry no zone; they count from the UTC epoch


def duration_text(microseconds: int) -> str:
    """The shortest text of a duration: one number and the longest unit that divides it.

    >>> duration_text(600_000_000), duration_text(5), duration_text(90_000_000)
    ('10m', '5us', '90s')
    """
    short = {
        "WEEK": "w",
        "DAY": "d",
        "HOUR": "h",
        "MINUTE": "m",
        "SECOND": "s",
        "MILLISECOND": "ms",
    }
    for unit, length in UNITS.items():
        if microseconds % length == 0 and unit in short and unit != "WEEK":
            return f"{microseconds // length}{short[unit]}"
    return f"{microseconds}us"


def to_datetime(time: int) -> datetime:
    """The calendar form of an instant, without a zone.

    >>> to_datetime(1_500_000)
    datetime.datetime(1970, 1, 1, 0, 0, 1, 500000)
    """
    return _EPOCH + timedelta(microseconds=time)


def from_datetime(moment: datetime) -> Time:
    """The instant of a calendar time; one without a zone is taken as UTC.

    >>> from_datetime(datetime(1970, 1, 1, 0, 0, 1))
    1000000
    """
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return Time((moment - _EPOCH) // timedelta(microseconds=1))


def to_instant(value: object) -> Time:
    """An instant as people give it.

    A number counts microseconds since 1970. A calendar time, or its text in ISO form, is taken as
    UTC if it has no zone; a date means the beginning of that day.

    >>> to_instant("1970-01-01T00:00:01"), to_instant("1970-01-01 01:00:01+01:00"), to_instant(5)
    (1000000, 1000000, 5)

    Raises:
        RunError: It is no instant.
    """
    with suppress(ValueError, OverflowError):
        match value:
            case bool():
                pass
            case SupportsIndex():
                return Time(index(value))
            case datetime():
                return from_datetime(value)
            case date():
                return from_datetime(datetime.fromisoformat(value.isoformat()))
            case str() if _ISO.fullmatch(value):
                return from_datetime(datetime.fromisoformat(value))
    raise RunError(
        f"{value!r} is no instant",
        hint="give a number of microseconds since 1970, a datetime, or a text such as "
        "'2026-03-01T12:00:00'",
    )


def time_text(time: int | None) -> str:
    """An instant as people read it: a calendar time, or the number itself if it is none.

    >>> time_text(1_772_366_400_070_000), time_text(7), time_text(END_OF_TIME), time_text(None)
    ('2026-03-01 12:00:00.07', '7', 'end', '-')
    >>> time_text(END_OF_TIME - 1)
    '9223372036854775806'
    """
    if time is None:
        return "-"
    if time == END_OF_TIME:
        return "end"
    if time not in _CALENDAR:
        return str(time)
    text = f"{to_datetime(time):%Y-%m-%d %H:%M:%S.%f}"
    return text.rstrip("0").rstrip(".")
