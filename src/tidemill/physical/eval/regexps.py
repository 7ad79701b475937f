r"""Regular expressions, in the dialect of Polars.

In that dialect ``\d``, ``\w`` and ``\s`` are of Unicode: ours are written out. Two things differ
in what they find, and are seen to here:

- ``\B`` is in an empty text there and not here; an empty text has a pattern of its own.
- A group that is repeated and may be empty (``(a*)*``) has another last match. It is refused where
  that shows.

Whatever the pattern, the time is linear in the text; a search that goes back, as Python's does, may
take for ever. So no pattern is run by Python, also not to find out something about it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.functions.patterns import PatternError, compile_pattern
from tidemill.errors import PlanError
from tidemill.physical.eval.binding import constant, let
from tidemill.physical.eval.growth import bytes_of, is_small, kept_small

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tidemill.algebra.expr import Call
    from tidemill.physical.eval.binding import Compiler

__all__ = ["COMPILERS", "checked"]

_TOKEN = re.compile(
    r"\\(?P<escape>.)|(?P<class>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<plain>.)", re.DOTALL
)
_WORD = "0-9A-Za-z_"
_ESCAPES = {
    "d": "[0-9]",
    "D": "[^0-9]",
    "w": f"[{_WORD}]",
    "W": f"[^{_WORD}]",
    "b": r"(?-u:\b)",
    "B": r"(?-u:\B)",
    "Z": r"\z",
    "n": r"\n",
    "t": r"\t",
    "r": r"\r",
    "f": r"\f",
}
_IN_CLASS = {**_ESCAPES, "d": "0-9", "w": _WORD}
_REFERENCE = re.compile(r"\\(.)|\$", re.DOTALL)


def checked(regex: str) -> str:
    """The regular expression, if Polars takes it.

    Raises:
        PlanError: It is too large.
    """
    try:
        pl.Series([""]).str.contains(regex)
    except pl.exceptions.ComputeError as error:
        raise PlanError(
            f"the pattern cannot be run: {error}", hint="write a shorter or simpler pattern"
        ) from error
    return regex


_NOWHERE = r"[^\s\S]"
"""A pattern that is found nowhere."""


def _regex(pattern: str, *, of_empty: bool = False) -> str:
    r"""The pattern in the dialect; for the empty text ``\B`` is nowhere."""
    try:
        python = compile_pattern(pattern).pattern
    except PatternError as error:
        raise PlanError(
            f"the pattern '{pattern}' is not valid: {error}", hint="write a simpler pattern"
        ) from error
    return checked("".join(_translate(token, of_empty) for token in _TOKEN.finditer(python)))


def _translate(token: re.Match[str], of_empty: bool) -> str:  # noqa: FBT001
    if of_empty and token["escape"] == "B":
        return _NOWHERE
    if token["escape"] is not None:
        return _ESCAPES.get(token["escape"]) or pl.escape_regex(token["escape"])
    if token["class"] is not None:
        return re.sub(
            r"\\(.)",
            lambda found: _IN_CLASS.get(found[1]) or pl.escape_regex(found[1]),
            token[0],
            flags=re.DOTALL,
        )
    return token[0]


def _may_be_empty(pattern: str) -> bool:
    """Whether there may be a match of no characters; what looks around itself always may."""
    looks = any(t["plain"] in ("^", "$") or t["escape"] in ("b", "B") for t in _tokens(pattern))
    return looks or bool(pl.Series([""]).str.contains(f"^(?:{_regex(pattern)})$")[0])


def _repeats_nothing(pattern: str) -> bool:
    """Whether a group that may be empty is repeated."""
    starts: list[int] = []
    for token in _tokens(pattern):
        if token["plain"] == "(":
            starts.append(token.start())
        elif token["plain"] == ")":
            group = pattern[starts.pop() : token.end()]
            if pattern[token.end() :].startswith(("*", "+", "{")) and _may_be_empty(group):
                return True
    return False


def _tokens(pattern: str) -> Iterator[re.Match[str]]:
    return _TOKEN.finditer(pattern)


def _with_empty_text(
    pattern: str, text: pl.Expr, result: Callable[[pl.Expr, str], pl.Expr]
) -> pl.Expr:
    """The result of a text and a regular expression."""
    regex = _regex(pattern)
    if r"\B" not in pattern:
        return result(text, regex)
    other = _regex(pattern, of_empty=True)
    return let(
        text, body=lambda t: pl.when(t == "").then(result(t, other)).otherwise(result(t, regex))
    )


def _refuse_repeated_nothing(pattern: str) -> None:
    if _repeats_nothing(pattern):
        raise PlanError(
            f"in the pattern '{pattern}' a group is repeated that may be empty: "
            "what it matches is not defined",
            hint="write the group so that it has at least one character, as (a+)* for (a*)*",
        )


def _matches(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    pattern = str(constant(call.arguments[1]))
    return _with_empty_text(pattern, arguments[0], lambda text, regex: text.str.contains(regex))


def _extract(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    pattern = str(constant(call.arguments[1]))
    group = constant(call.arguments[2]) if len(arguments) > 2 else 0  # noqa: PLR2004
    assert isinstance(group, int), "the number of a group"
    _refuse_repeated_nothing(pattern)

    def found(text: pl.Expr, regex: str) -> pl.Expr:
        return pl.when(text.is_not_null()).then(text.str.extract(regex, group).fill_null(""))

    return let(arguments[0], body=lambda text: _with_empty_text(pattern, text, found))


def _replace(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    pattern, replacement, *options = (str(constant(part)) for part in call.arguments[1:])
    _refuse_repeated_nothing(pattern)
    value = _REFERENCE.sub(_reference, replacement)
    text = kept_small(call, arguments, lambda given: _replaced_size(given, pattern, replacement))[0]
    if "g" not in options:
        return _with_empty_text(pattern, text, lambda t, regex: t.str.replace(regex, value))
    return _with_empty_text(pattern, text, lambda t, regex: t.str.replace_all(regex, value))


def _replaced_size(given: list[pl.Series], pattern: str, replacement: str) -> int:
    """How many bytes there are at most: a group is a part of the text, once for each reference."""
    text, length = given[0], len(replacement.encode())
    size = bytes_of(text)
    copied = size * (1 + replacement.count("\\"))
    quick = copied + (size + text.len()) * length
    if is_small(quick):
        return quick
    return copied + int(text.str.count_matches(_regex(pattern)).sum() or 0) * length


def _reference(found: re.Match[str]) -> str:
    if found[0] == "$":
        return "$$"
    return "\\" if found[1] == "\\" else f"${{{found[1]}}}"


COMPILERS: dict[str, Compiler] = {
    "regexp_extract": _extract,
    "regexp_matches": _matches,
    "regexp_replace": _replace,
}
