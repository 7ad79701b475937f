"""Units: numbers, times and sizes as people read them."""

from __future__ import annotations

__all__ = ["batches_text", "bytes_text", "files_text", "lag_text", "rate_text", "seconds_text"]

_MINUTE, _HOUR = 60, 3600
_KILO = 1000


def lag_text(microseconds: int | None) -> str:
    """How far one instant lies behind another.

    >>> lag_text(90_500_000), lag_text(0), lag_text(12), lag_text(None)
    ('1 min 30 s', '0', '12 us', '-')
    """
    if microseconds is None:
        return "-"
    if microseconds == 0:
        return "0"
    if microseconds < _KILO**2:
        return f"{microseconds // _KILO} ms" if microseconds >= _KILO else f"{microseconds} us"
    return seconds_text(microseconds / _KILO**2)


def seconds_text(seconds: float) -> str:
    """A duration.

    >>> seconds_text(1.54), seconds_text(90), seconds_text(7300)
    ('1.5 s', '1 min 30 s', '2 h 1 min')
    """
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    whole = int(seconds)
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"


def rate_text(rate: float) -> str:
    """So many in a second.

    >>> rate_text(12345.6), rate_text(0.25), rate_text(0)
    ('12,346/s', '0.2/s', '0/s')
    """
    return f"{rate:.1f}/s" if 0 < rate < 1 else f"{rate:,.0f}/s"


def batches_text(count: int) -> str:
    """A number of batches.

    >>> batches_text(1), batches_text(1200)
    ('1 batch', '1,200 batches')
    """
    return "1 batch" if count == 1 else f"{count:,} batches"


def bytes_text(count: int) -> str:
    """A size.

    >>> bytes_text(999), bytes_text(1_234_567)
    ('999 B', '1.2 MB')
    """
    if count < _KILO:
        return f"{count} B"
    size, units = float(count), ["kB", "MB", "GB", "TB"]
    unit = ""
    while units and size >= _KILO:
        size, unit = size / _KILO, units.pop(0)
    return f"{size:.1f} {unit}"


def files_text(files: tuple[int, int] | None) -> str:
    """How many files of how many.

    >>> files_text((3, 1200)), files_text(None)
    ('3/1,200', '')
    """
    return "" if files is None else f"{files[0]:,}/{files[1]:,}"
