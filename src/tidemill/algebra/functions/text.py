"""The meaning of the functions of text.

Positions and lengths count code points, from 1. Case follows the full mapping of Unicode ("ß" in
upper case is "SS"). ``trim`` without characters takes away the blanks of Unicode (category Zs), not
tabs and line ends. ``reverse`` turns round code points, also those of a combined character.
``repeat``, ``lpad`` and ``rpad`` make texts of at most ``LONGEST`` characters; where the result
would be longer, it is NULL: one row cannot take all memory.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tidemill.algebra.functions.patterns import compile_pattern, expand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tidemill.model.types import Value

__all__ = ["LONGEST", "NULL_AWARE", "STRICT"]

LONGEST = 2**24
"""The length of the longest text that is made of a shorter one."""

_BLANKS = "".join(map(chr, (0x20, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)))
_SURROGATES = range(0xD800, 0xE000)
_CODE_POINTS = range(0x110000)


def _trim(text: str, characters: str = _BLANKS) -> str:
    return text.strip(characters)


def _ltrim(text: str, characters: str = _BLANKS) -> str:
    return text.lstrip(characters)


def _rtrim(text: str, characters: str = _BLANKS) -> str:
    return text.rstrip(characters)


def _substring(text: str, start: int, length: int | None = None) -> str:
    """The part from ``start``, which counts from the end if negative; ``length`` may go back."""
    first = len(text) + start if start < 0 else start - 1
    if length is None:
        return text[max(first, 0) :]
    low, high = (first, first + length) if length >= 0 else (first + length, first)
    return text[max(low, 0) : max(high, 0)]


def _left(text: str, count: int) -> str:
    return text[:count] if count >= 0 else text[: max(len(text) + count, 0)]


def _right(text: str, count: int) -> str:
    return text[max(len(text) - count, 0) :] if count >= 0 else text[-count:]


def _replace(text: str, search: str, replacement: str) -> str:
    return text.replace(search, replacement) if search else text


def _padding(text: str, length: int, pad: str) -> str | None:
    """What the text lacks to be so long, if it can be made."""
    missing = length - len(text)
    if missing <= 0:
        return ""
    if not pad or length > LONGEST:
        return None
    return (pad * (missing // len(pad) + 1))[:missing]


def _lpad(text: str, length: int, pad: str) -> str | None:
    padding = _padding(text, length, pad)
    return None if padding is None else padding + text[: max(length, 0)]


def _rpad(text: str, length: int, pad: str) -> str | None:
    padding = _padding(text, length, pad)
    return None if padding is None else text[: max(length, 0)] + padding


def _repeat(text: str, count: int) -> str | None:
    return text * count if len(text) * count <= LONGEST else None


def _split_part(text: str, separator: str, index: int) -> str:
    parts = text.split(separator) if separator else list(text)
    position = index - 1 if index > 0 else len(parts) + index
    return parts[position] if index != 0 and 0 <= position < len(parts) else ""


def _chr(code: int) -> str | None:
    return chr(code) if code in _CODE_POINTS and code not in _SURROGATES else None


def _like(text: str, pattern: str, escape: str = "") -> bool | None:
    parts = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            literal = next(characters, None)
            if literal is None:
                return None  # the pattern ends where something should be escaped
            parts.append(re.escape(literal))
        else:
            parts.append({"%": ".*", "_": "."}.get(character, re.escape(character)))
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def _ilike(text: str, pattern: str, escape: str = "") -> bool | None:
    return _like(text.lower(), pattern.lower(), escape.lower())


def _regexp_matches(text: str, pattern: str) -> bool:
    return compile_pattern(pattern).search(text) is not None


def _regexp_extract(text: str, pattern: str, group: int = 0) -> str:
    """The first match, or a group of it; nothing where there is none."""
    found = compile_pattern(pattern).search(text)
    return "" if found is None else found[group] or ""


def _regexp_replace(text: str, pattern: str, replacement: str, options: str = "") -> str:
    """The text with the first match replaced, or with the option "g" all of them.

    An empty match directly behind another match does not count.
    """
    result, done = "", 0
    for found in compile_pattern(pattern).finditer(text):
        if found.end() == found.start() == done > 0:
            continue
        result += text[done : found.start()] + expand(replacement, found)
        done = found.end()
        if "g" not in options:
            break
    return result + text[done:]


def _concat(*parts: Value) -> str:
    return "".join(_present(parts))


def _concat_ws(separator: Value, *parts: Value) -> str | None:
    return str(separator).join(_present(parts)) if separator is not None else None


def _present(parts: Iterable[Value]) -> list[str]:
    return [str(part) for part in parts if part is not None]


STRICT: dict[str, Callable[..., Value]] = {
    "||": lambda left, right: left + right,
    "ascii": lambda text: ord(text[0]) if text else 0,
    "chr": _chr,
    "contains": lambda text, search: search in text,
    "ends_with": lambda text, search: text.endswith(search),
    "ilike": _ilike,
    "left": _left,
    "length": len,
    "like": _like,
    "lower": str.lower,
    "lpad": _lpad,
    "ltrim": _ltrim,
    "regexp_extract": _regexp_extract,
    "regexp_matches": _regexp_matches,
    "regexp_replace": _regexp_replace,
    "repeat": _repeat,
    "replace": _replace,
    "reverse": lambda text: text[::-1],
    "right": _right,
    "rpad": _rpad,
    "rtrim": _rtrim,
    "split_part": _split_part,
    "starts_with": lambda text, search: text.startswith(search),
    "strpos": lambda text, search: text.find(search) + 1,
    "substring": _substring,
    "trim": _trim,
    "upper": str.upper,
}

NULL_AWARE: dict[str, Callable[..., Value]] = {"concat": _concat, "concat_ws": _concat_ws}
