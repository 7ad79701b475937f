r"""Regular expressions: the part of their language that means the same everywhere.

A pattern has characters, ``.``, classes such as ``[a-z]``, the groups ``( )`` and ``(?: )``, ``|``,
the repetitions ``* + ? {2,3}`` and their reluctant forms, ``^`` and ``$`` for the two ends of the
text, and the escapes ``\d \D \w \W \s \S \b \B`` (of ASCII characters), ``\n \t \r``, and of
punctuation. There is no look-around and no reference back: such patterns cannot be run in linear
time. A replacement has ``\0`` for the match, ``\1`` to ``\9`` for its groups, and ``\\``.
"""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["PatternError", "check_replacement", "compile_pattern", "expand"]

_TOKEN = re.compile(
    r"\\(?P<escape>.)"
    r"|(?P<open>\(\?:?)"
    r"|(?P<class>\[\^?\]?(?:\\.|[^\]\\])*\])"
    r"|(?P<repeat>(?:[*+?]|\{\d+(?:,\d*)?\})[?+]?)"
    r"|(?P<plain>.)",
    re.DOTALL | re.ASCII,
)
_BLANK = r"\t\n\f\r "
_LETTERS = "dDwWntr"
_REFERENCE = re.compile(r"\\(.?)", re.DOTALL)


class PatternError(ValueError):
    """The text is not a pattern, or not a replacement for it."""


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    r"""The pattern in the form Python runs.

    >>> compile_pattern(r"^(\d+)$").search("42")[1]
    '42'

    Raises:
        PatternError: It is not in the language.
    """
    try:
        return re.compile(
            "".join(_translate(token) for token in _TOKEN.finditer(pattern)), re.ASCII
        )
    except re.error as error:
        raise PatternError(error.msg) from error


def _translate(token: re.Match[str]) -> str:
    text = token[0]
    if token["escape"] is not None:
        return _escape(token["escape"])
    if token["open"] == "(?":
        raise PatternError("a group begins with ( or (?:")
    if token["class"] is not None:
        return _class(text)
    if token["repeat"] is not None and len(text) > 1 and text.endswith("+"):
        raise PatternError("a repetition is followed by another one")
    if text == "{":
        raise PatternError(r"a brace that is no repetition is written \{")
    # Python's $ also matches before a line end that ends the text.
    return r"\Z" if text == "$" else text


def _escape(character: str) -> str:
    if character in "sS":
        return f"[{'^' if character == 'S' else ''}{_BLANK}]"
    if character.isalnum() and character not in f"{_LETTERS}bB":
        raise PatternError(f"\\{character} is not supported")
    return f"\\{character}"


def _class(text: str) -> str:
    for escape in re.findall(r"\\(.)", text, re.DOTALL):
        if escape.isalnum() and escape not in f"{_LETTERS}s":
            raise PatternError(f"\\{escape} cannot stand in a class")
    # Other systems read these as classes within a class.
    if any(sign in text[1:] for sign in ("[", "--", "&&", "||", "~~")):
        raise PatternError("a class cannot hold another class")
    return text.replace(r"\s", _BLANK)


def check_replacement(replacement: str, groups: int) -> None:
    """Raise a ``PatternError`` unless each reference of the replacement is to a group."""
    for reference in _REFERENCE.finditer(replacement):
        if reference[1] == "\\":
            continue
        if not (reference[1].isascii() and reference[1].isdigit()):
            raise PatternError(r"\ stands before a digit or another \ in a replacement")
        if int(reference[1]) > groups:
            raise PatternError(f"the pattern has no group {reference[1]}")


def expand(replacement: str, found: re.Match[str]) -> str:
    """The replacement with the groups of the match put in."""
    return _REFERENCE.sub(
        lambda reference: "\\" if reference[1] == "\\" else found[int(reference[1])] or "",
        replacement,
    )
