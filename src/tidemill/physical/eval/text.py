"""The functions of text; positions and lengths count code points.

Where one argument is a column and the text a constant, ``let`` makes a column of the text.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.expr import Literal
from tidemill.algebra.functions.text import LONGEST
from tidemill.physical.eval import likes, regexps
from tidemill.physical.eval.binding import let
from tidemill.physical.eval.doubles import gather
from tidemill.physical.eval.growth import bytes_of, is_small, kept_small

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemill.algebra.expr import Call
    from tidemill.physical.eval.binding import Compiler

__all__ = ["COMPILERS"]

_BLANKS = "".join(map(chr, (0x20, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)))
_CHARACTERS = "(?s)."
_LONG = 2**32
_NOTHING = pl.lit("")
_HEX = pl.Series([f"{byte:02x}" for byte in range(256)])


def _length(text: pl.Expr) -> pl.Expr:
    return text.str.len_chars().cast(pl.Int64)


def _of_text(function: Callable[[pl.Expr], pl.Expr]) -> Compiler:
    return lambda _, arguments: function(arguments[0])


def _bound(function: Callable[..., pl.Expr]) -> Compiler:
    """The function of arguments that it may use more than once."""
    return lambda _, arguments: let(*arguments, body=function)


def _two_texts(function: Callable[[pl.Expr, pl.Expr], pl.Expr]) -> Compiler:
    def compile_(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
        if isinstance(call.arguments[0], Literal):
            return let(*arguments, body=function)
        return function(*arguments)

    return compile_


def _trim(function: Callable[..., pl.Expr]) -> Compiler:
    def of_column(text: pl.Expr, characters: pl.Expr) -> pl.Expr:
        # Polars strips blanks where there are no characters.
        return pl.when(characters.is_not_null()).then(function(text, characters))

    def compile_(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
        if len(arguments) == 1:
            return function(arguments[0], _BLANKS)
        if isinstance(call.arguments[1], Literal):
            return function(arguments[0], arguments[1])
        return let(*arguments, body=of_column)

    return compile_


def _substring(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    match call.arguments[1:]:
        case (Literal(int() as start),) if start > 0:
            return arguments[0].str.slice(start - 1)
        case (Literal(int() as start), Literal(int() as length)) if start > 0 <= length:
            return arguments[0].str.slice(start - 1, length)
        case _:
            return let(*arguments, body=_part)


def _part(text: pl.Expr, start: pl.Expr, length: pl.Expr | None = None) -> pl.Expr:
    # 128 bits: a start and a length may lie at the ends of their range.
    start = start.cast(pl.Int128)
    first = pl.when(start < 0).then(_length(text).cast(pl.Int128) + start).otherwise(start - 1)
    if length is None:
        return text.str.slice(first.clip(0, _LONG).cast(pl.Int64))
    last = first + length.cast(pl.Int128)
    low = pl.min_horizontal(first, last).clip(0, _LONG).cast(pl.Int64)
    high = pl.max_horizontal(first, last).clip(0, _LONG).cast(pl.Int64)
    # min_horizontal passes over NULL.
    return pl.when(last.is_not_null()).then(text.str.slice(low, high - low))


def _count(count: pl.Expr) -> pl.Expr:
    return count.clip(-_LONG, _LONG)


def _replace(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    arguments = kept_small(call, arguments, _replaced_size)
    match call.arguments:
        case (_, Literal(str() as search), Literal(str() as replacement)):
            if not search:
                return arguments[0]
            return arguments[0].str.replace_all(search, replacement, literal=True)
        case _:
            return let(*arguments, body=_replaced)


def _replaced(text: pl.Expr, search: pl.Expr, replacement: pl.Expr) -> pl.Expr:
    joined = text.str.split(search).list.join(replacement)
    given = replacement.is_not_null()
    return pl.when(search != "").then(joined).when((search == "") & given).then(text)


def _replaced_size(given: list[pl.Series]) -> int:
    text, search, replacement = given
    longest = replacement.str.len_bytes().max()
    assert longest is None or isinstance(longest, int), "a length"
    quick = bytes_of(text) * max(longest or 0, 1)
    if is_small(quick):
        return quick
    found = text.to_frame("text").with_columns(search.alias("search"), replacement.alias("new"))
    counts = pl.col("text").str.count_matches(pl.col("search"), literal=True).cast(pl.Int64)
    made = pl.when(pl.col("search") != "").then(counts * pl.col("new").str.len_bytes())
    return bytes_of(text) + int(found.select(made.sum()).item() or 0)


def _position(text: pl.Expr, search: pl.Expr) -> pl.Expr:
    """Polars finds bytes; the characters in front of the match are counted."""
    front = _length(text.str.splitn(search, 2).struct.field("field_0"))
    found = pl.when(text.str.contains(search, literal=True)).then(front + 1).otherwise(0)
    first = pl.when(search == "").then(pl.lit(1, dtype=pl.Int64)).otherwise(found)
    return pl.when(text.is_not_null() & search.is_not_null()).then(first)


def _repeated(text: pl.Expr, count: pl.Expr) -> pl.Expr:
    def times(text: pl.Expr, length: pl.Expr, count: pl.Expr) -> pl.Expr:
        fits = length * count <= LONGEST
        # What has no value is not made: the count of such a row is 0.
        number = pl.when(fits & (length > 0)).then(count).otherwise(0)
        return pl.when(fits).then(_copies(text, number))

    return let(text, _length(text), count.clip(0, 2 * LONGEST), body=times)


def _repeated_size(given: list[pl.Series]) -> int:
    text, count = given
    copies = count.cast(pl.Int64).clip(0, 2 * LONGEST)
    fits = text.str.len_chars().cast(pl.Int64) * copies <= LONGEST
    return int((text.str.len_bytes().cast(pl.Int64) * copies).filter(fits).sum() or 0)


def _repeat(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    return let(*kept_small(call, arguments, _repeated_size), body=_repeated)


def _copies(text: pl.Expr, count: pl.Expr) -> pl.Expr:
    return text.repeat_by(count.cast(pl.UInt32)).list.join("")


def _pad(*, left: bool) -> Compiler:
    def compile_(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
        arguments = kept_small(call, arguments, _padded_size)
        match call.arguments:
            case (_, Literal(int() as length), Literal(str() as pad)) if (
                len(pad) == 1 and 0 <= length <= LONGEST
            ):
                text = arguments[0].str
                filled = text.pad_start(length, pad) if left else text.pad_end(length, pad)
                return filled.str.head(length)
            case _:
                return let(*arguments, body=_padded(left=left))

    return compile_


def _padded_size(given: list[pl.Series]) -> int:
    text, length, pad = given
    wanted = length.cast(pl.Int64)
    made = wanted.filter((wanted <= LONGEST) & text.is_not_null() & pad.is_not_null())
    width = (pad.str.len_bytes() / pad.str.len_chars()).fill_nan(0.0).max()
    assert width is None or isinstance(width, float), "a quotient"
    return bytes_of(text) + math.ceil(width or 0) * int(made.clip(0).sum() or 0)


def _padded(*, left: bool) -> Callable[..., pl.Expr]:
    def padded(text: pl.Expr, length: pl.Expr, pad: pl.Expr) -> pl.Expr:
        return let(text, pad, length, length - _length(text), _length(pad), body=filled)

    def filled(
        text: pl.Expr, pad: pl.Expr, length: pl.Expr, missing: pl.Expr, width: pl.Expr
    ) -> pl.Expr:
        possible = (width > 0) & (length <= LONGEST)
        copies = pl.when(possible & (missing > 0)).then(missing // width + 1).otherwise(0)
        padding = _copies(pad, copies).str.head(missing.clip(0, LONGEST))
        cut = text.str.head(length.clip(0, _LONG))
        result = padding + cut if left else cut + padding
        return pl.when(possible | ((missing <= 0) & width.is_not_null())).then(result)

    return lambda text, length, pad: padded(text, length.clip(-_LONG, _LONG), pad)


def _split_part(text: pl.Expr, separator: pl.Expr, index: pl.Expr) -> pl.Expr:
    characters = text.str.extract_all(_CHARACTERS)
    parts = pl.when(separator == "").then(characters).otherwise(text.str.split(separator))
    position = pl.when(index > 0).then(index - 1).when(index < 0).then(index)
    part = parts.list.get(position, null_on_oob=True).fill_null("")
    given = text.is_not_null() & separator.is_not_null() & index.is_not_null()
    return pl.when(given).then(part)


def _reverse(text: pl.Expr) -> pl.Expr:
    """Polars' own keeps combined characters together, and in ASCII those of a line end."""
    simple = (text.str.len_bytes() == text.str.len_chars()) & ~text.str.contains("\r", literal=True)
    others = pl.when(~simple).then(text)
    by_character = others.str.extract_all(_CHARACTERS).list.reverse().list.join("")
    return pl.when(simple).then(text.str.reverse()).otherwise(by_character)


def _ascii(text: pl.Expr) -> pl.Expr:
    """The code point, from the bytes of UTF-8: each but the first has six of its bits."""
    hexadecimal = text.str.head(1).str.encode("hex")
    number = hexadecimal.str.to_integer(base=16, strict=False, dtype=pl.Int64)

    def decoded(text: pl.Expr, n: pl.Expr) -> pl.Expr:
        b1, b2, b3, b4 = (n // 256**place % 256 for place in (3, 2, 1, 0))
        low = b4 % 64
        code = (
            pl.when(n < 2**8)
            .then(n)
            .when(n < 2**16)
            .then(b3 % 32 * 64 + low)
            .when(n < 2**24)
            .then((b2 % 16 * 64 + b3 % 64) * 64 + low)
            .otherwise(((b1 % 8 * 64 + b2 % 64) * 64 + b3 % 64) * 64 + low)
        )
        return pl.when(text == "").then(pl.lit(0, dtype=pl.Int64)).otherwise(code)

    return let(text, number, body=decoded).cast(pl.Int32)


def _chr(code: pl.Expr) -> pl.Expr:
    """The character, from the bytes of its UTF-8."""

    def encoded(c: pl.Expr) -> pl.Expr:
        exists = c.is_between(0, 0x10FFFF) & ~c.is_between(0xD800, 0xDFFF)
        return let(pl.when(exists).then(c), body=spelled)

    def spelled(c: pl.Expr) -> pl.Expr:
        tails = [_byte(c // 64**place % 64 + 0x80) for place in (2, 1, 0)]
        return (
            pl.when(c < 2**7)
            .then(_byte(c.clip(0, 0x7F)))
            .when(c < 2**11)
            .then(_byte(0xC0 + c // 64 % 32) + tails[2])
            .when(c < 2**16)
            .then(_byte(0xE0 + c // 64**2 % 16) + tails[1] + tails[2])
            .otherwise(_byte(0xF0 + c // 64**3 % 8) + tails[0] + tails[1] + tails[2])
        )

    return let(code, body=encoded).str.decode("hex").cast(pl.String)


def _byte(value: pl.Expr) -> pl.Expr:
    return gather(_HEX, value)


def _joined(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    first, second = kept_small(call, arguments, _total_size)
    return first + second


def _total_size(given: list[pl.Series]) -> int:
    return sum(map(bytes_of, given))


def _concat(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    arguments = kept_small(call, arguments, _total_size)
    return pl.concat_str(*arguments, ignore_nulls=True)


def _concat_ws(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    separator, *parts = kept_small(call, arguments, _separated_size)
    match call.arguments[0]:
        case Literal(str() as constant):
            return pl.concat_str(*parts, separator=constant, ignore_nulls=True)
        case _:
            return pl.concat_list(*parts).list.drop_nulls().list.join(separator)


def _separated_size(given: list[pl.Series]) -> int:
    return _total_size(given[1:]) + bytes_of(given[0]) * (len(given) - 1)


COMPILERS: dict[str, Compiler] = {
    **likes.COMPILERS,
    **regexps.COMPILERS,
    "||": _joined,
    "ascii": _of_text(_ascii),
    "chr": _of_text(_chr),
    "concat": _concat,
    "concat_ws": _concat_ws,
    "contains": _two_texts(lambda text, search: text.str.contains(search, literal=True)),
    "ends_with": _two_texts(lambda text, search: text.str.ends_with(search)),
    "left": _two_texts(lambda text, count: text.str.head(_count(count))),
    "length": _of_text(_length),
    "lower": _of_text(lambda text: text.str.to_lowercase()),
    "lpad": _pad(left=True),
    "ltrim": _trim(lambda text, characters: text.str.strip_chars_start(characters)),
    "repeat": _repeat,
    "replace": _replace,
    "reverse": _bound(_reverse),
    "right": _two_texts(lambda text, count: text.str.tail(_count(count))),
    "rpad": _pad(left=False),
    "rtrim": _trim(lambda text, characters: text.str.strip_chars_end(characters)),
    "split_part": _bound(_split_part),
    "starts_with": _two_texts(lambda text, search: text.str.starts_with(search)),
    "strpos": _bound(_position),
    "substring": _substring,
    "trim": _trim(lambda text, characters: text.str.strip_chars(characters)),
    "upper": _of_text(lambda text: text.str.to_uppercase()),
}
