r"""Errors: what went wrong, where in the text, and a way on.

The class says at which stage, the message what, the span where, the hint how to go on.

>>> error = BindError('column "volum" does not exist', span=Span(15, 20),
...                   hint='did you mean "volume"?')
>>> print(error.located("SELECT *\nWHERE volum > 10"))
column "volum" does not exist
   2 | WHERE volum > 10
             ^^^^^
hint: did you mean "volume"?
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from tidemill.masking import mask, masked_prose, secrets_in, without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

__all__ = [
    "BindError",
    "Note",
    "ParseError",
    "PlanError",
    "RunError",
    "Span",
    "TidemillError",
    "TidemillWarning",
    "TooLargeError",
    "closest",
    "suggestion",
]


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of character offsets in the source text."""

    start: int
    end: int


class TidemillError(Exception):
    """The root of all errors a user can cause. What it tells holds no secrets (``masking.py``).

    Attributes:
        message: What is wrong, lower case, names in double quotes.
        span: Where, as offsets into the source text, if it is known.
        hint: A way on, if there is one.
    """

    def __init__(self, message: str, *, span: Span | None = None, hint: str | None = None) -> None:
        self.message = masked_prose(message)
        self.span = span
        self.hint = None if hint is None else masked_prose(hint)
        super().__init__(self.message)
        self.source: str | None = None
        self.statement: str | None = None

    def located(self, source: str, *, statement: str | None = None) -> Self:
        """The same error, now able to show the line; text given earlier is kept.

        Args:
            source: The text the span points into.
            statement: Which statement of a script it was, and what became of the others.
        """
        if self.source is None:
            self.source = source
            self.statement = statement
            self.hide(secrets_in(source))
        return self

    def hide(self, secrets: Iterable[str]) -> Self:
        """The same error without these secrets in its message and hint."""
        known = tuple(secrets)
        self.message = without_secrets(self.message, known)
        self.hint = None if self.hint is None else without_secrets(self.hint, known)
        self.args = (self.message,)
        return self

    def __str__(self) -> str:
        parts = [self.message]
        if self.source is not None and self.span is not None:
            parts.append(_excerpt(self.source, self.span))
        if self.hint is not None:
            parts.append(f"hint: {self.hint}")
        if self.statement is not None:
            parts.append(f"in statement {self.statement}")
        return "\n".join(parts)


class TidemillWarning(UserWarning):
    """A statement that has a meaning, but probably not the one that was wanted."""


@dataclass(frozen=True, slots=True)
class Note:
    """What is to be warned of: what is probably wrong, where, and how to say what was meant."""

    message: str
    span: Span | None
    hint: str

    def text(self, source: str) -> str:
        """The note with its place in the text; it holds no secrets."""
        told = TidemillError(self.message, span=self.span, hint=self.hint)
        return str(told.located(source))


class ParseError(TidemillError):
    """The text is not a statement of the language."""


class BindError(TidemillError):
    """The statement names or combines things that do not exist or do not fit."""


class PlanError(TidemillError):
    """The query has a meaning but cannot be run as asked."""


class RunError(TidemillError):
    """Something went wrong while data flowed."""


class TooLargeError(RunError):
    """What an operator was about to make does not fit into memory; the engine adds its queries.

    Polars makes it again of its text, with remarks of its own behind it.
    """

    def __init__(self, message: str) -> None:
        super().__init__(
            message.split("\n", maxsplit=1)[0],
            hint="give it less at a time: a shorter window, a condition, or shorter texts",
        )


def closest(name: str, known: Iterable[str]) -> str | None:
    """A hint that names the known name most like ``name``, if one is near enough.

    >>> closest("pric", ["price", "auction"])
    'did you mean "price"?'
    """
    by_lower = {candidate.lower(): candidate for candidate in sorted(known)}
    found = get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.6)
    return f'did you mean "{by_lower[found[0]]}"?' if found else None


def suggestion(name: str, known: Iterable[str], *, what: str = "columns") -> str:
    """A hint that names the known name most like ``name``, or else the known ones.

    >>> suggestion("seller", ["price", "auction"])
    'the columns are price, auction'
    """
    names = list(dict.fromkeys(known))
    most = 8
    listed = ", ".join(names[:most]) + (", …" if len(names) > most else "")
    return closest(name, names) or (f"the {what} are {listed}" if names else f"there are no {what}")


def _excerpt(source: str, span: Span) -> str:
    """The line of the text with carets below the place, both without secrets."""
    shown = mask(source)
    text = shown.text
    place = min(span.start, len(source))
    number = source.count("\n", 0, shown.line_start(place)) + 1
    start = shown.position(place)
    end = shown.position(min(span.end, len(source)), is_end=True)
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", line_start)
    line_end = len(text) if line_end < 0 else line_end
    line = text[line_start:line_end]
    prefix = f"{number:>4} | "
    # A tab stays a tab before the caret, so that both lines are shifted alike.
    indent = "".join("\t" if c == "\t" else " " for c in line[: start - line_start])
    width = max(1, min(end, line_end) - start)
    return f"{prefix}{line}\n{' ' * len(prefix)}{indent}{'^' * width}"
