"""Conversions between types; what has no value of the other type is NULL.

Texts are matched against the form of the target before they are read, since Polars reads more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.model.doubles import special_text
from tidemill.model.types import DataType, Kind
from tidemill.physical.eval.binding import int128, let, one_zero, quotient, whole
from tidemill.physical.eval.dates import DAY, days_of, moment_of
from tidemill.physical.eval.decimals import from_digits, rescaled, rounded
from tidemill.physical.eval.numbers import half_away

if TYPE_CHECKING:
    from tidemill.algebra.expr import Cast

__all__ = ["compile_cast"]

_BLANKS = " \t\n\v\f\r"
_WHOLE = r"^[+-]?[0-9]+$"
_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_NOT_FINITE = r"^[+-]?(?i:inf|infinity|nan)$"
_PIECES = (
    r"^(?<sign>[+-]?)(?<whole>[0-9]*)\.?(?<part>[0-9]*)"
    r"(?:[eE](?<down>-?)\+?0*(?<exponent>[0-9]*))?$"
)
_MOMENT = (
    r"^(?<year>[0-9]{4})-(?<month>[0-9]{2})-(?<day>[0-9]{2})"
    r"(?:[ T](?<hour>[0-9]{2}):(?<minute>[0-9]{2})(?::(?<second>[0-9]{2})"
    r"(?:\.(?<fraction>[0-9]+))?)?(?:Z|(?<shift>[+-])(?<hours>[0-9]{2})(?::(?<minutes>[0-9]{2}))?)?)?$"
)
_TRUE, _FALSE = ["true", "t", "yes", "y", "1"], ["false", "f", "no", "n", "0"]
_EXACT_DIGITS, _EXACT_SCALE = 15, 22
_FAR = 10**6
_LEAST_WITHOUT_EXPONENT = 1e-4


def compile_cast(cast: Cast, x: pl.Expr) -> pl.Expr:
    """``x``, compiled from the input of the cast, as a value of its type."""
    source, target = cast.input.type, cast.type
    if source == target:
        return x
    match target.kind:
        case Kind.BOOLEAN:
            return _to_boolean(x, source)
        case Kind.INTEGER | Kind.BIGINT:
            return _to_integer(x, source, target)
        case Kind.DECIMAL:
            return _to_decimal(x, source, target)
        case Kind.DOUBLE:
            return _to_double(x, source)
        case Kind.VARCHAR:
            return _to_text(x, source)
        case Kind.DATE:
            return (_to_moment(x) if source.kind is Kind.VARCHAR else x).cast(pl.Date)
        case Kind.TIMESTAMP:
            return _to_moment(x) if source.kind is Kind.VARCHAR else x.cast(pl.Datetime("us"))
        case Kind.NULL:
            raise AssertionError("only NULL converts to NULL, and constants are not cast")


def _to_boolean(x: pl.Expr, source: DataType) -> pl.Expr:
    if source.kind is Kind.VARCHAR:
        return let(
            x.str.to_lowercase(),
            body=lambda text: (
                pl.when(text.is_in(_TRUE))
                .then(pl.lit(True))
                .when(text.is_in(_FALSE))
                .then(pl.lit(False))
            ),
        )
    return x.to_physical() != int128(0) if source.kind is Kind.DECIMAL else x != 0


def _to_integer(x: pl.Expr, source: DataType, target: DataType) -> pl.Expr:
    match source.kind:
        case Kind.VARCHAR:
            return whole(_matching(x, _WHOLE), target)
        case Kind.DOUBLE:
            return whole(x.round(0), target)  # halves to even
        case Kind.DECIMAL:
            return whole(rounded(x.to_physical(), source.scale), target)
        case _:
            return whole(x, target)


def _matching(x: pl.Expr, pattern: str) -> pl.Expr:
    """The text without blanks around, where it has the form; else NULL."""
    return let(
        x.str.strip_chars(_BLANKS),
        body=lambda text: pl.when(text.str.contains(pattern)).then(text),
    )


def _to_decimal(x: pl.Expr, source: DataType, target: DataType) -> pl.Expr:
    match source.kind:
        case Kind.VARCHAR:
            return from_digits(_read_decimal(x, target.scale), target)
        case Kind.DOUBLE:
            shifted = x * pl.lit(float(10**target.scale))
            return from_digits(half_away(shifted).cast(pl.Int128, strict=False), target)
        case _:
            return rescaled(x, source, target)


def _read_decimal(x: pl.Expr, scale: int) -> pl.Expr:
    """The scaled integer that is nearest to the number in the text, digit by digit."""

    def read(found: pl.Expr) -> pl.Expr:
        whole_, part = found.struct.field("whole"), found.struct.field("part")
        exponent = found.struct.field("exponent").fill_null("")
        far = exponent.str.len_chars() > len(str(_FAR)) - 1
        size = pl.when(far).then(pl.lit(_FAR)).otherwise(exponent.cast(pl.Int64, strict=False))
        size = size.fill_null(0)
        shift = pl.when(found.struct.field("down") == "-").then(-size).otherwise(size)
        digits = (whole_ + part).str.strip_chars_start("0")
        places = shift + scale - part.str.len_chars().cast(pl.Int64)
        sign = found.struct.field("sign")
        return let(digits, places, sign, body=_shifted)

    found = _matching(x, _NUMBER).str.extract_groups(_PIECES)
    return let(found, body=read)


def _shifted(digits: pl.Expr, places: pl.Expr, sign: pl.Expr) -> pl.Expr:
    """The digits with so many zeros behind, or so many cut off and rounded; signed."""

    def kept(digits: pl.Expr, sign: pl.Expr, length: pl.Expr) -> pl.Expr:
        count = length.clip(0, 40)
        text = digits.str.head(count).str.pad_end(count, "0")
        up = (digits.str.slice(count, 1) >= "5") & (length >= 0)
        value = pl.when(count > 0).then(text).otherwise(pl.lit("0")).cast(pl.Int128, strict=False)
        size = value + up.cast(pl.Int128)
        fits = pl.when((length <= 38) | (digits == "")).then(size)  # noqa: PLR2004 — digits
        return pl.when(sign == "-").then(0 - fits).otherwise(fits)

    length = pl.when(digits == "").then(pl.lit(0)).otherwise(digits.str.len_chars() + places)
    return let(digits, sign, length, body=kept)


def _to_double(x: pl.Expr, source: DataType) -> pl.Expr:
    if source.kind is Kind.VARCHAR:
        read = _matching(x, f"{_NUMBER}|{_NOT_FINITE}").cast(pl.Float64, strict=False)
        return let(read, body=one_zero)
    if source.kind is not Kind.DECIMAL:
        return x.cast(pl.Float64)
    if source.precision <= _EXACT_DIGITS and source.scale <= _EXACT_SCALE:
        # Both are exact, and one division rounds once.
        return quotient(x.to_physical().cast(pl.Float64), pl.lit(float(10**source.scale)))
    return x.cast(pl.String).cast(pl.Float64)  # reading a text rounds once


def _to_text(x: pl.Expr, source: DataType) -> pl.Expr:
    match source.kind:
        case Kind.DOUBLE:
            return _double_text(x)
        case Kind.TIMESTAMP:  # six digits of fraction, always
            return x.cast(pl.String).str.strip_chars_end("0").str.strip_suffix(".")
        case _:
            return x.cast(pl.String)


def _double_text(x: pl.Expr) -> pl.Expr:
    """As Python writes it: an exponent below 0.0001, and of two digits at least."""

    def corrected(x: pl.Expr, text: pl.Expr) -> pl.Expr:
        small = x.abs() < _LEAST_WITHOUT_EXPONENT
        with_exponent = (
            pl.when(small)  # NULL for the others: there is nothing to be searched
            .then(text)
            .str.replace(r"^(-?)0\.0000([1-9])$", "${1}${2}e-05")
            .str.replace(r"^(-?)0\.0000([1-9])([0-9]+)$", "${1}${2}.${3}e-05")
            .str.replace(r"e-([0-9])$", "e-0${1}")
        )
        number = pl.when(small).then(with_exponent).otherwise(text)
        return pl.when(x.is_finite()).then(number).otherwise(special_text(x))

    return let(x, body=lambda y: let(y, y.cast(pl.String), body=corrected))


def _to_moment(x: pl.Expr) -> pl.Expr:
    def read(found: pl.Expr) -> pl.Expr:
        def number(name: str) -> pl.Expr:
            return found.struct.field(name).cast(pl.Int64, strict=False)

        def optional(name: str) -> pl.Expr:
            return number(name).fill_null(0)

        fraction = found.struct.field("fraction").fill_null("").str.head(6).str.pad_end(6, "0")
        day = days_of(number("year"), number("month"), number("day"))
        hour, minute, second = optional("hour"), optional("minute"), optional("second")
        shift = optional("hours") * 60 + optional("minutes")
        valid = (hour < 24) & (minute < 60) & (second < 60) & (shift < 24 * 60)  # noqa: PLR2004
        shift = pl.when(found.struct.field("shift") == "-").then(-shift).otherwise(shift)
        seconds = (hour * 60 + minute - shift) * 60 + second
        return pl.when(valid).then(day * DAY + seconds * 1_000_000 + fraction.cast(pl.Int64))

    found = x.str.strip_chars(_BLANKS).str.extract_groups(_MOMENT)
    return moment_of(let(found, body=read))
