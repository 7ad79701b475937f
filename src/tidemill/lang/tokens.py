"""Tokens: the text cut into words, names, literals and signs, each with its place.

The cutting is sqlglot's. What it would pass over (a comment that never ends, a number that runs
into a word, a sign the language does not have) is found first and refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final

from sqlglot import Token, TokenType
from sqlglot import tokens as sqlglot_tokens
from sqlglot.errors import TokenError

from tidemill.errors import ParseError, Span
from tidemill.lang.words import TOKEN_TYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Tokenizer", "check_brackets", "token_span", "tokenize"]

_LEXEME: Final = re.compile(
    r"""
      \s+
    | --[^\n\r]* | /\*.*?\*/
    | '(?:[^']|'')*+'
    | "(?:[^"]|"")*+" | `(?:[^`]|``)*+`
    | [0-9]++(?:\.[0-9]*+)?+(?:[eE][+-]?[0-9]++)?+(?!\w)
    | [^\W0-9]\w*
    | \|\| | :: | <> | != | <= | >= | => | // | /(?!\*) | [-+*%=<>(),.;\[\]]
    """,
    re.VERBOSE | re.DOTALL,
)

_UNFINISHED: Final = {
    "'": ("string literal is not closed", "end it with '"),
    '"': ("quoted name is not closed", 'end it with "'),
    "`": ("quoted name is not closed", "end it with `"),
    "/*": ("comment is not closed", "end it with */"),
}

_NUMBER_LIKE: Final = re.compile(r"[0-9][\w.]*")

_CLOSING: Final = {TokenType.R_PAREN: TokenType.L_PAREN, TokenType.R_BRACKET: TokenType.L_BRACKET}


class Tokenizer(sqlglot_tokens.Tokenizer):
    """sqlglot's tokenizer with the words and signs of this language only."""

    IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]
    KEYWORDS: ClassVar[dict[str, TokenType]] = TOKEN_TYPES
    COMMANDS: ClassVar[set[TokenType]] = set()
    NESTED_COMMENTS = False


def tokenize(text: str) -> list[Token]:
    """The tokens of a script.

    Raises:
        ParseError: There is something in the text that is no token.
    """
    _check_lexemes(text)
    try:
        tokens = Tokenizer().tokenize(text)
    except TokenError as error:
        raise ParseError("the text cannot be read", span=Span(0, len(text))) from error
    for token in tokens:
        if token.token_type is TokenType.IDENTIFIER:
            _check_name(token)
    return tokens


def _check_name(token: Token) -> None:
    """Refuse quoted names that are kept for the system, or invisible."""
    if token.text.startswith("@"):
        raise ParseError(
            "a name must not begin with @", span=token_span(token), hint="choose another name"
        )
    if token.text == "*" or (token.text.startswith("^") and token.text.endswith("$")):
        raise ParseError(  # the kernels take such a name for a pattern of names
            "a name must not be *, nor begin with ^ and end with $",
            span=token_span(token),
            hint="choose another name",
        )
    if any(ord(character) < ord(" ") for character in token.text):
        raise ParseError(
            "a name must not contain control characters",
            span=token_span(token),
            hint="choose another name",
        )


def token_span(token: Token) -> Span:
    """Where a token stands; sqlglot counts its end inclusively."""
    return Span(token.start, token.end + 1)


def check_brackets(tokens: Sequence[Token]) -> None:
    """Raise a ParseError at the first bracket without a partner."""
    open_brackets: list[Token] = []
    for token in tokens:
        if token.token_type in _CLOSING.values():
            open_brackets.append(token)
        elif opening := _CLOSING.get(token.token_type):
            if not open_brackets:
                raise ParseError(f'"{token.text}" closes nothing', span=token_span(token))
            if open_brackets[-1].token_type != opening:
                _refuse_open(open_brackets[-1])
            open_brackets.pop()
    if open_brackets:
        _refuse_open(open_brackets[-1])


def _refuse_open(bracket: Token) -> None:
    partner = ")" if bracket.token_type is TokenType.L_PAREN else "]"
    raise ParseError(
        f'"{bracket.text}" is not closed', span=token_span(bracket), hint=f'add a "{partner}"'
    )


def _check_lexemes(text: str) -> None:
    position = 0
    while position < len(text):
        if match := _LEXEME.match(text, position):
            position = match.end()
            continue
        for opening, (message, hint) in _UNFINISHED.items():
            if text.startswith(opening, position):
                raise ParseError(message, span=Span(position, position + len(opening)), hint=hint)
        if number := _NUMBER_LIKE.match(text, position):
            raise ParseError(f'malformed number "{number[0]}"', span=Span(*number.span()))
        raise ParseError(
            f'unexpected character "{text[position]}"', span=Span(position, position + 1)
        )
