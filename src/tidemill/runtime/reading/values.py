"""Columns of any type as columns of a declared type: one rule for all formats and both engines.

A value that the declared type cannot represent exactly makes its row malformed. A column whose type
says something else than the declared one, such as a BOOLEAN for a BIGINT or a count of milliseconds
for a count of microseconds, is an error: it is never taken for what it is not. A DOUBLE is the
nearest to the number that stands there, as everywhere.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import polars as pl

from tidemill.errors import RunError
from tidemill.model.batch import polars_type
from tidemill.model.types import Kind
from tidemill.runtime.reading.texts import Fitted, beyond_calendar, fit_texts, patched

if TYPE_CHECKING:
    from tidemill.model.schema import Field
    from tidemill.model.types import DataType

__all__ = ["fit", "values_of"]

_NANOSECONDS = 1_000


def fit(column: pl.Series, field: Field, where: str) -> Fitted:
    """A column in the type of a field, and which rows have a value that it does not hold, if any.

    Args:
        column: What was found.
        field: What was declared.
        where: Where it was found, for errors.

    Raises:
        RunError: It is of a type that says something else.
    """
    dtype, type_ = column.dtype, field.type
    if dtype == polars_type(type_):
        return _in_calendar(column, None) if type_.is_temporal else (column, None)
    if dtype == pl.Null:
        return column.cast(polars_type(type_)), None
    if isinstance(dtype, pl.Categorical | pl.Enum):
        column, dtype = column.cast(pl.String), pl.String()
    found = _fit_by_type(column, dtype, type_)
    if found is None:
        raise RunError(
            f'column "{field.name}" of {where} is {dtype} and not {type_}', hint=_way(dtype, type_)
        )
    return _in_calendar(*found) if type_.is_temporal else found


def values_of(column: pl.Series) -> list[object]:
    """The values of a column for people; times that no calendar has as numbers."""
    if isinstance(column.dtype, pl.Date | pl.Datetime):
        fine = pl.Datetime("us") if isinstance(column.dtype, pl.Datetime) else pl.Date()
        moments = column.cast(fine, strict=False)
        if beyond_calendar(moments) is not None or _loses(column, moments):
            return column.to_physical().to_list()
    return column.to_list()


def _in_calendar(column: pl.Series, bad: pl.Series | None) -> Fitted:
    """Dates or times, without those that no calendar has."""
    beyond = beyond_calendar(column)
    if beyond is None:
        return column, bad
    return _nulled(column, beyond), beyond if bad is None else bad | beyond


def _fit_by_type(column: pl.Series, dtype: pl.DataType, type_: DataType) -> Fitted | None:
    match dtype:
        case pl.String():
            return fit_texts(column, type_)
        case pl.Binary() if type_.kind is Kind.VARCHAR:
            return _decoded(column)
        case pl.Date() if type_.kind is Kind.TIMESTAMP:
            return _checked(column, column.cast(pl.Datetime("us"), strict=False))
        case pl.Datetime():
            return _from_datetime(column, dtype, type_)
        case pl.Decimal() if type_.is_numeric:
            return _from_decimal(column, type_)
        case _ if dtype.is_integer() and type_.is_numeric:
            fitted = column.cast(polars_type(type_), strict=False)
            return fitted, _lost(column, fitted)
        case _ if dtype.is_float() and type_.is_numeric:
            return _from_float(column.cast(pl.Float64), type_)
        case _:
            return None


def _decoded(column: pl.Series) -> Fitted:
    """Bytes as text; those that are no UTF-8 are none."""
    try:
        return column.cast(pl.String), None
    except pl.exceptions.PolarsError:
        everything = column.is_not_null()
        nothing = pl.repeat(None, column.len(), dtype=pl.String, eager=True)
        return patched(column, nothing, everything, _text)


def _text(content: object) -> str | None:
    assert isinstance(content, bytes), "bytes are judged"
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _from_datetime(column: pl.Series, dtype: pl.Datetime, type_: DataType) -> Fitted | None:
    utc = column if dtype.time_zone is None else column.dt.convert_time_zone("UTC")
    utc = utc.dt.replace_time_zone(None)
    match type_.kind:
        case Kind.TIMESTAMP:
            return _microseconds(utc, dtype)
        case Kind.DATE:
            days = utc.cast(pl.Date)
            return _checked(utc, days, days.cast(utc.dtype, strict=False))
        case Kind.BIGINT if dtype.time_unit == "us":  # the same number by either reading
            return utc.to_physical(), None
        case _:
            return None


def _microseconds(utc: pl.Series, dtype: pl.Datetime) -> Fitted:
    fitted = utc.cast(pl.Datetime("us"), strict=False)
    bad = _lost(utc, fitted)
    if dtype.time_unit == "ns":
        finer = (utc.to_physical() % _NANOSECONDS != 0).fill_null(value=False)
        bad = finer if finer.any() else None
        if bad is not None:
            fitted = _nulled(fitted, bad)
    return fitted, bad


def _from_decimal(column: pl.Series, type_: DataType) -> Fitted:
    if type_.kind is Kind.DOUBLE:
        return column.cast(pl.String).cast(pl.Float64), None  # by the digits: the nearest there is
    fitted = column.cast(polars_type(type_), strict=False)
    return _checked(column, fitted, fitted.cast(column.dtype, strict=False))


def _from_float(column: pl.Series, type_: DataType) -> Fitted:
    if type_.kind is Kind.DOUBLE:
        return column, None
    if type_.is_integer:
        fitted = column.cast(polars_type(type_), strict=False)
        return _checked(column, fitted, fitted.cast(pl.Float64))
    # A binary fraction has at most ``scale`` decimals if its double, ``scale`` times, is whole.
    scaled = column * float(2**type_.scale)
    limit = float(10 ** (type_.precision - type_.scale))
    exact = ((scaled.floor() == scaled) & (column.abs() < limit)).fill_null(value=False)
    nothing = pl.repeat(None, column.len(), dtype=polars_type(type_), eager=True)
    fitted, _ = patched(column, nothing, exact if exact.any() else None, _decimal)
    return fitted, _lost(column, fitted)


def _decimal(number: object) -> Decimal:
    assert isinstance(number, float), "floats are judged"
    return Decimal(number)


def _checked(column: pl.Series, fitted: pl.Series, again: pl.Series | None = None) -> Fitted:
    """The values, without those that do not come back as they were."""
    again = fitted.cast(column.dtype, strict=False) if again is None else again
    same = again == column
    if same.all() and not _loses(column, fitted):
        return fitted, None
    bad = ~same.fill_null(value=False) & column.is_not_null()
    return (_nulled(fitted, bad), bad) if bad.any() else (fitted, None)


def _loses(column: pl.Series, fitted: pl.Series) -> bool:
    return column.null_count() != fitted.null_count()


def _lost(column: pl.Series, fitted: pl.Series) -> pl.Series | None:
    return fitted.is_null() & column.is_not_null() if _loses(column, fitted) else None


def _nulled(values: pl.Series, bad: pl.Series) -> pl.Series:
    return values.zip_with(~bad, values.clear(values.len()))


def _way(dtype: pl.DataType, type_: DataType) -> str:
    if isinstance(dtype, pl.Datetime):
        return "declare it TIMESTAMP; a BIGINT of microseconds is not the same number"
    if type_.is_temporal and dtype.is_integer():
        return "declare it BIGINT; whether it counts seconds or something else is not known"
    return "declare the type that it has, or convert it before"
