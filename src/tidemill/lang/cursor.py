"""Cursor: a place in the tokens of one statement, and the ways to move on.

Clauses that are ours and not SQL's (statements, windows, durations, types) are read with it. A
production takes the cursor, moves it past what it has read and answers with a value; if the text
does not fit, it raises a ParseError at the token that does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, TypeVar

from sqlglot import Token, TokenType

from tidemill.errors import ParseError, Span, closest
from tidemill.lang.statements import Name
from tidemill.lang.tokens import token_span
from tidemill.lang.words import NAME_TOKENS, RESERVED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

T = TypeVar("T")

__all__ = ["CLOSING", "OPENING", "Cursor", "is_name", "reads_as", "reserved_hint"]

_QUOTED = frozenset({TokenType.STRING, TokenType.IDENTIFIER})

# Reserved words that are not meant as a name; where one stands too early, something is missing.
_CLAUSE_WORDS = frozenset(
    {
        *("AND", "AS", "BY", "CROSS", "ELSE", "EXCEPT", "FROM", "GROUP", "HAVING", "INNER"),
        *("INTERSECT", "INTO", "IS", "JOIN", "LIMIT", "ON", "OR", "ORDER", "OUTER", "QUALIFY"),
        *("SELECT", "THEN", "UNION", "USING", "WHEN", "WHERE", "WITH"),
    }
)


def reads_as(token: Token | None, word: str) -> bool:
    """Whether a token is this word or sign (and not a name or a string that looks like it)."""
    return token is not None and token.token_type not in _QUOTED and token.text.upper() == word


def is_name(token: Token | None) -> bool:
    """Whether a token can be a name: a word that is not reserved, or anything in quotes."""
    if token is None or token.token_type not in NAME_TOKENS:
        return False
    return token.token_type is TokenType.IDENTIFIER or token.text.upper() not in RESERVED


def reserved_hint(token: Token | None) -> str | None:
    """How to use the token as a name, if it is a reserved word that is often meant as one."""
    if token is None or token.token_type in _QUOTED:
        return None
    word = token.text.upper()
    if word not in RESERVED or word in _CLAUSE_WORDS:
        return None
    return f'{word} is a reserved word; as a name it stands in quotes: "{token.text}"'


OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)


class Cursor:
    """A position in a sequence of tokens."""

    def __init__(self, tokens: Sequence[Token], index: int = 0) -> None:
        self.tokens = tokens
        self.index = index

    @property
    def current(self) -> Token | None:
        """The token to be read next, or None at the end."""
        return self.peek(0)

    def peek(self, ahead: int) -> Token | None:
        """The token so many places ahead."""
        index = self.index + ahead
        return self.tokens[index] if index < len(self.tokens) else None

    def at(self, *words: str) -> bool:
        """Whether these words or signs come next."""
        return all(reads_as(self.peek(ahead), word) for ahead, word in enumerate(words))

    def at_any(self, words: Iterable[str]) -> bool:
        """Whether one of these words comes next."""
        return any(self.at(word) for word in words)

    def accept(self, *words: str) -> bool:
        """Move past these words if they come next."""
        if not self.at(*words):
            return False
        self.index += len(words)
        return True

    def expect(self, *words: str, hint: str | None = None) -> None:
        """Move past these words, which must come next."""
        for word in words:
            if not self.accept(word):
                self.fail_expected(f'"{word}"' if not word[0].isalpha() else word, hint=hint)

    def accept_type(self, token_type: TokenType) -> Token | None:
        """The next token, if it is of this type."""
        token = self.current
        if token is None or token.token_type is not token_type:
            return None
        self.index += 1
        return token

    def name(self, what: str) -> Name:
        """The next token as a name of something."""
        token = self.current
        if token is None or not is_name(token):
            self.fail_expected(what, hint=reserved_hint(token))
        if not token.text:
            self.fail("a name must not be empty", hint="write a name between the quotes")
        self.index += 1
        return Name(token.text, token_span(token))

    def choice(self, words: Iterable[str]) -> str:
        """The next token, which must be one of these words, in upper case."""
        allowed = tuple(words)
        for word in allowed:
            if self.accept(word):
                return word
        near = closest(self.current.text, allowed) if self.current else None
        return self.fail_expected(f"{', '.join(allowed[:-1])} or {allowed[-1]}", hint=near)

    def separated(self, item: Callable[[Cursor], T]) -> tuple[T, ...]:
        """One or more items between commas."""
        items = [item(self)]
        while self.accept(","):
            items.append(item(self))
        return tuple(items)

    def leave_parentheses(self) -> bool:
        """Move past the ")" that closes around the cursor; answers whether a comma stood inside."""
        depth, has_comma = 1, False
        while depth and (token := self.current):
            kind = token.token_type
            depth += (kind in OPENING) - (kind in CLOSING)
            has_comma = has_comma or (depth == 1 and kind is TokenType.COMMA)
            self.index += 1
        return has_comma

    def span_from(self, start: int) -> Span:
        """The text from the token at index ``start`` up to the cursor."""
        return Span(self.tokens[start].start, self.tokens[max(start, self.index - 1)].end + 1)

    def here(self) -> Span:
        """The current token, or the place behind the last one."""
        if self.current is not None:
            return token_span(self.current)
        end = self.tokens[-1].end + 1 if self.tokens else 0
        return Span(end, end)

    def found(self) -> str:
        """The current token as an error message names it."""
        if self.current is None:
            return "the end of the statement"
        if self.current.token_type is TokenType.STRING:
            return f"'{self.current.text}'"
        return f'"{self.current.text}"'

    def fail(self, message: str, *, span: Span | None = None, hint: str | None = None) -> NoReturn:
        """Raise a ParseError, at the current token unless told otherwise."""
        raise ParseError(message, span=span or self.here(), hint=hint)

    def fail_expected(self, what: str, *, hint: str | None = None) -> NoReturn:
        """Raise a ParseError that says what should have come next."""
        self.fail(f"expected {what}, found {self.found()}", hint=hint)
