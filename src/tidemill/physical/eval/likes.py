"""LIKE: a pattern as a regular expression, or as something simpler.

A constant pattern is translated when the query is compiled; a column of patterns becomes a column
of regular expressions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidemill.algebra.expr import Literal
from tidemill.physical.eval.binding import constant, let
from tidemill.physical.eval.regexps import checked

if TYPE_CHECKING:
    from tidemill.algebra.expr import Call
    from tidemill.physical.eval.binding import Compiler

__all__ = ["COMPILERS"]


def _like(call: Call, arguments: tuple[pl.Expr, ...]) -> pl.Expr:
    escape = str(constant(call.arguments[2])) if len(arguments) > 2 else ""  # noqa: PLR2004
    text, pattern = arguments[:2]
    if call.function == "ilike":
        text, escape = text.str.to_lowercase(), escape.lower()
    match call.arguments[1]:
        case Literal(str() as known):
            known = known.lower() if call.function == "ilike" else known
            return _like_constant(text, known, escape)
        case _:
            pattern = pattern.str.to_lowercase() if call.function == "ilike" else pattern
            regex = _like_regex(pattern, escape)
            return let(text, regex, body=lambda t, r: t.str.contains(r, strict=False))


def _like_constant(text: pl.Expr, pattern: str, escape: str) -> pl.Expr:
    tokens = _like_tokens(pattern, escape)
    if tokens is None:
        return pl.when(text.is_null()).then(pl.lit(None, dtype=pl.Boolean))  # NULL everywhere
    match [token for token in tokens if token in ("%", "_")]:
        case []:
            return text == _plain(tokens)
        case ["%"] if tokens[-1] == "%":
            return text.str.starts_with(_plain(tokens[:-1]))
        case ["%"] if tokens[0] == "%":
            return text.str.ends_with(_plain(tokens[1:]))
        case ["%", "%"] if tokens[0] == tokens[-1] == "%":
            return text.str.contains(_plain(tokens[1:-1]), literal=True)
        case _:
            signs = {"%": ".*", "_": "."}
            regex = "".join(signs.get(t) or pl.escape_regex(t[-1]) for t in tokens)
            return text.str.contains(checked(f"(?s)^{regex}$"))


def _like_tokens(pattern: str, escape: str) -> list[str] | None:
    r"""``%`` and ``_`` for themselves, and every other character behind a ``\``."""
    tokens = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            literal = next(characters, None)
            if literal is None:
                return None  # the pattern ends where something should be escaped
            tokens.append(f"\\{literal}")
        else:
            tokens.append(character if character in "%_" else f"\\{character}")
    return tokens


def _plain(tokens: list[str]) -> pl.Expr:
    return pl.lit("".join(token[-1] for token in tokens))


def _like_regex(pattern: pl.Expr, escape: str) -> pl.Expr:
    """A column of patterns as one of regular expressions; NULL where one ends with the escape."""
    if len(escape) != 1:
        regex = _signs(pattern.str.escape_regex())
        return pl.concat_str(pl.lit("(?s)^"), regex, pl.lit("$"))
    sign = pl.escape_regex(escape)
    token = pl.element()
    escaped = token.str.slice(1).str.escape_regex()
    meaning = (
        pl.when(token.str.len_chars() > 1).then(escaped).otherwise(_signs(token.str.escape_regex()))
    )
    meaning = pl.when(token == escape).then(None).otherwise(meaning)
    tokens = pattern.str.extract_all(f"(?s){sign}.|.")
    regex = tokens.list.eval(meaning).list.join("", ignore_nulls=False)
    return pl.concat_str(pl.lit("(?s)^"), regex, pl.lit("$"))


def _signs(text: pl.Expr) -> pl.Expr:
    any_text = text.str.replace_all("%", ".*", literal=True)
    return any_text.str.replace_all("_", ".", literal=True)


COMPILERS: dict[str, Compiler] = {"ilike": _like, "like": _like}
