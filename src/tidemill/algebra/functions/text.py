"""The meaning of the functions of text.

Positions and lengths count code points, from 1. Case follows the full mapping of Unicode ("ß" in
upper case is "SS"). ``trim`` without characters takes away the blanks of Unicode (category Zs), not
tabs and line ends. ``reverse`` turns round code points, also those of a combined character.
``repeat``, ``lpad`` and ``rpad`` make texts of at most ``LONGEST`` characters; where the result
would be longer, it is NULL: one row cannot take all memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.algebra.functions.patterns import compile_pattern, expand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tidemill.model.types import Value

__all__ = ["LONGEST", "NULL_AWARE", "PATTERNS", "STRICT", "grown_length"]

LONGEST = 2**24
"""The length of the longest text that is made of a shorter one."""

PATTERNS = frozenset({"like", "ilike", "regexp_extract", "regexp_matches", "regexp_replace"})
"""The functions of a pattern: Python may take for ever to find it, so engines have their own."""

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
    signs: list[tuple[str, bool]] = []  # a character, and whether it stands for others
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            literal = next(characters, None)
            if literal is None:
                return None  # the pattern ends where something should be escaped
            signs.append((literal, False))
        else:
            signs.append((character, character in "%_"))
    return _is_like(text, signs)


def _is_like(text: str, signs: list[tuple[str, bool]]) -> bool:
    """Each % takes as little as it can: only the last one has to be tried again."""
    place = sign = 0
    again: tuple[int, int] | None = None
    while place < len(text):
        character, is_wild = signs[sign] if sign < len(signs) else ("", False)
        if is_wild and character == "%":
            sign += 1
            again = sign, place
        elif is_wild or character == text[place]:
            sign, place = sign + 1, place + 1
        elif again is not None:
            again = again[0], again[1] + 1
            sign, place = again
        else:
            return False
    return all(rest == ("%", True) for rest in signs[sign:])


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

    The next match is looked for behind the last one. If it is empty and directly there, it does
    not count, and the search goes on one character later.
    """
    compiled = compile_pattern(pattern)
    result, done, place = "", 0, 0
    while place <= len(text) and (found := compiled.search(text, place)) is not None:
        if found.start() == found.end() == done and place > 0:
            place += 1
            continue
        result += text[done : found.start()] + expand(replacement, found)
        done = place = found.end()
        if "g" not in options:
            break
        if found.start() == found.end():
            place += 1
    return result + text[done:]


def _concat(*parts: Value) -> str:
    return "".join(_present(parts))


def _concat_ws(separator: Value, *parts: Value) -> str | None:
    return str(separator).join(_present(parts)) if separator is not None else None


def _present(parts: Iterable[Value]) -> list[str]:
    return [str(part) for part in parts if part is not None]


def grown_length(function: str, values: Sequence[Value]) -> int:
    """How long the result of a call is at most, if it can be longer than all its texts together."""
    texts = [value for value in values if isinstance(value, str)]
    match function, texts:
        case "replace", [text, search, replacement] if search:
            return len(text) + text.count(search) * len(replacement)
        case "concat_ws", [separator, *parts]:
            return sum(map(len, parts)) + len(separator) * len(parts)
        case _:
            return sum(map(len, texts))  # repeat and the pads have their own limit


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
