"""Texts as values of a declared type, each exactly or not at all.

A column is converted as a whole. What that leaves in doubt, a number with an exponent for example,
is read once more in plain Python, text by text; such texts are few.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.batch import polars_type
from tidemill.model.types import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.model.types import DataType

__all__ = ["Fitted", "beyond_calendar", "fit_texts", "patched"]

Fitted = tuple[pl.Series, pl.Series | None]
"""Values of the declared type, and which rows have a value that it does not hold, if any does."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_FIRST_DAY, _LAST_DAY, _DAY = -719_162, 2_932_896, 86_400_000_000
"""The years 1 to 9999 in days from 1970, and a day in microseconds."""
_RANGES = {Kind.INTEGER: 2**31, Kind.BIGINT: 2**63}

_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_MOMENT = (
    rf"^({_DATE})(?:[T ]({_CLOCK})(?::([0-5][0-9])(?:\.([0-9]{{1,6}})0*)?)?"
    r"(Z|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?)?$"
)
_QUICK_MOMENTS = [
    (rf"^{_DATE}{between}{_CLOCK}:[0-5][0-9]{fraction}$", f"%Y-%m-%d{between}%H:%M:%S{form}")
    for between in "T "
    for fraction, form in (("", ""), (r"\.[0-9]{6}", ".%6f"))
]
"""The forms that most programs write: what they look like, and how they are read at once."""


def fit_texts(texts: pl.Series, type_: DataType) -> Fitted:
    """The texts as values of a type.

    >>> from tidemill.model.types import BIGINT
    >>> values, bad = fit_texts(pl.Series(["7", "1e3", "1.5", None]), BIGINT)
    >>> values.to_list(), bad.to_list()
    ([7, 1000, None, None], [False, False, True, False])
    """
    match type_.kind:
        case Kind.VARCHAR | Kind.NULL:
            return texts.cast(polars_type(type_)), None
        case Kind.BOOLEAN:
            return _booleans(texts)
        case Kind.INTEGER | Kind.BIGINT:
            numbers = texts.cast(polars_type(type_), strict=False)
            return patched(texts, numbers, _lost(texts, numbers), lambda t: _integer(t, type_.kind))
        case Kind.DECIMAL:
            return _decimals(texts, type_)
        case Kind.DOUBLE:
            return _doubles(texts)
        case Kind.DATE:
            return _dates(texts)
        case Kind.TIMESTAMP:
            return _moments(texts)


def patched(
    source: pl.Series,
    values: pl.Series,
    doubtful: pl.Series | None,
    judge: Callable[[object], object | None],
) -> Fitted:
    """The values, with those in doubt as ``judge`` reads them; ``None`` is none of the type.

    Args:
        source: What the values were made of.
        values: The values.
        doubtful: Where they are in doubt, if they are anywhere.
        judge: Reads one.
    """
    if doubtful is None:
        return values, None
    again = source.filter(doubtful)
    known = {found: judge(found) for found in again.unique().to_list()}
    found = pl.Series([known[text] for text in again.to_list()], dtype=values.dtype)
    places = doubtful.cast(pl.Int64).cum_sum() + (values.len() - 1)
    index = pl.int_range(values.len(), eager=True).zip_with(~doubtful, places)
    values = pl.concat([values.rename(""), found]).gather(index)
    bad = doubtful & values.is_null()
    return values, bad if bad.any() else None


def _lost(source: pl.Series, values: pl.Series) -> pl.Series | None:
    """Which rows have no value any more, if some have none."""
    if values.null_count() == source.null_count():
        return None
    return values.is_null() & source.is_not_null()


def _booleans(texts: pl.Series) -> Fitted:
    values, other = texts == "true", texts == "false"
    if (values | other).all():
        return values, None
    lower = texts.str.to_lowercase()
    values, other = lower == "true", lower == "false"
    bad = (~(values | other)).fill_null(value=False)
    if not bad.any():
        return values, None
    nothing = pl.repeat(None, texts.len(), dtype=pl.Boolean, eager=True)
    return values.zip_with(~bad, nothing), bad


def _decimals(texts: pl.Series, type_: DataType) -> Fitted:
    values = texts.cast(polars_type(type_), strict=False)
    # The cast rounds. Digits behind the scale may be zeros, and an exponent may move the point.
    rounded = texts.str.contains(rf"\.[0-9]{{{type_.scale}}}[0-9]*[1-9]|[eE]")
    doubtful = (rounded | values.is_null()) & texts.is_not_null()
    doubtful = doubtful.fill_null(value=False)
    return patched(
        texts,
        values,
        doubtful if doubtful.any() else None,
        lambda text: _decimal(text, type_.precision, type_.scale),
    )


def _doubles(texts: pl.Series) -> Fitted:
    values = texts.cast(pl.Float64, strict=False)
    bad = _lost(texts, values)
    infinite = values.is_infinite().fill_null(value=False)
    if infinite.any():
        # A number that is too large is no infinity.
        beyond = infinite & texts.str.contains("[0-9]")
        bad = beyond if bad is None else bad | beyond
        values = values.set(beyond, None)
    return values, bad if bad is not None and bad.any() else None


def _dates(texts: pl.Series) -> Fitted:
    values = texts.str.to_date("%Y-%m-%d", strict=False)
    wrong = ~texts.str.contains(f"^{_DATE}$")
    return _without(texts, values, wrong)


def _moments(texts: pl.Series) -> Fitted:
    first = next(iter(texts.drop_nulls().head(1)), "")
    for looks, form in _QUICK_MOMENTS:
        if re.match(looks, first):
            if texts.str.contains(looks).all():
                values = texts.str.to_datetime(form, time_unit="us", strict=False)
                return _without(texts, values, None)
            break
    return _moments_of_any_form(texts)


def _moments_of_any_form(texts: pl.Series) -> Fitted:
    """Calendar times, which may differ in form from row to row."""
    day, clock, second, fraction, zone = texts.str.extract_groups(_MOMENT).struct.unnest()
    whole = (
        day
        + "T"
        + clock.fill_null("00:00")
        + ":"
        + second.fill_null("00")
        + "."
        + fraction.fill_null("").str.pad_end(6, "0")
    )
    values = whole.str.to_datetime("%Y-%m-%dT%H:%M:%S.%6f", time_unit="us", strict=False)
    if zone.null_count() < zone.len():
        digits = zone.str.replace_all("[Z:+-]", "").str.pad_end(4, "0")
        minutes = digits.str.slice(0, 2).cast(pl.Int64) * 60 + digits.str.slice(2).cast(pl.Int64)
        west = zone.str.starts_with("-").fill_null(value=False)
        minutes = minutes.fill_null(0).zip_with(~west, -minutes)
        values = values - (minutes * 60_000_000).cast(pl.Duration("us"))
    return _without(texts, values, None)


def _without(texts: pl.Series, values: pl.Series, wrong: pl.Series | None) -> Fitted:
    """The dates or times, without those of another form, and those that no calendar has."""
    beyond = beyond_calendar(values)
    if beyond is not None:
        wrong = beyond if wrong is None else wrong | beyond
    if wrong is not None and (wrong := wrong.fill_null(value=False)).any():
        values = values.zip_with(~wrong, values.clear(values.len()))
    return values, _lost(texts, values)


def beyond_calendar(values: pl.Series) -> pl.Series | None:
    """Which dates or times are not of the years 1 to 9999, if some are not."""
    unit = _DAY if values.dtype == pl.Datetime else 1
    counts = values.cast(pl.Int64)  # to_physical() costs ten times as much on few rows
    least, greatest = counts.min(), counts.max()
    if not isinstance(least, int) or not isinstance(greatest, int):
        return None
    first, last = _FIRST_DAY * unit, (_LAST_DAY + 1) * unit
    if first <= least and greatest < last:
        return None
    return ((counts < first) | (counts >= last)).fill_null(value=False)


def _integer(text: object, kind: Kind) -> int | None:
    number = _decimal(text, 19, 0)
    if number is None:
        return None
    return int(number) if -_RANGES[kind] <= number < _RANGES[kind] else None


def _decimal(text: object, precision: int, scale: int) -> Decimal | None:
    """The number a text is, if a DECIMAL of these digits holds it exactly."""
    assert isinstance(text, str), "texts are judged"
    if not _NUMBER.fullmatch(text):
        return None
    if not re.search("[1-9]", re.split("[eE]", text)[0]):
        return Decimal(0)  # whatever the exponent
    try:
        sign, digits, exponent = Decimal(text).as_tuple()
    except InvalidOperation:
        return None  # no DECIMAL has such an exponent
    assert isinstance(exponent, int), "the number is finite"
    written = "".join(map(str, digits)).strip("0")
    exponent += len(digits) - len("".join(map(str, digits)).rstrip("0"))
    if exponent < -scale or len(written) + exponent > precision - scale:
        return None
    return Decimal(f"{'-' * sign}{written}e{exponent}")
