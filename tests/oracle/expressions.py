"""Random expressions of every type, as text: templates filled with others, and with columns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from oracle.templates import AGGREGATES, LITERALS, TEMPLATES, TYPES, WORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Choose", "Column", "Expressions"]

_HOLE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Choose:
    """Makes the choices; ``number`` gives one below another. The first option is the simplest."""

    number: Callable[[int], int]

    def __call__(self, options: Sequence[str]) -> str:
        """One of the options."""
        return options[self.number(len(options))]

    def one_in(self, count: int) -> bool:
        """Whether to do what is done once in so many times."""
        return self.number(count) == count - 1


@dataclass(frozen=True, slots=True)
class Column:
    """A column in sight: its text, its type, and whether sums of it are exact."""

    text: str
    type: str
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Expressions:
    """Writes expressions over columns; ``choose`` makes every choice."""

    choose: Choose
    columns: tuple[Column, ...] = ()

    def leaf(self, type_: str) -> str:
        """A column of the type or, if there is none or by chance, a constant."""
        if type_ == "EXACT":
            found = [c.text for c in self.columns if c.exact]
            return self.choose(found or ["1e0", "2.5e0"])
        found = [c.text for c in self.columns if c.type == type_]
        return self.choose(LITERALS[type_] if not found or self.choose.one_in(4) else found)

    def types(self) -> tuple[str, ...]:
        """The types of the columns, or all if there are none."""
        return tuple(dict.fromkeys(column.type for column in self.columns)) or TYPES

    def scalar(self, type_: str, depth: int) -> str:
        """An expression of the type."""
        if depth == 0 or self.choose(("leaf", "template", "template")) == "leaf":
            return self.leaf(type_)
        return self.filled(self.choose(_templates(type_, frozenset(self.types()))), depth - 1)

    def filled(self, template: str, depth: int) -> str:
        """The template with something in its holes."""

        def hole(match: re.Match[str]) -> str:
            name = match[1]
            return self.choose(WORDS[name]) if name in WORDS else self.scalar(name, depth)

        return _HOLE.sub(hole, template)

    def aggregate(self, type_: str, depth: int) -> str:
        """An aggregate of the type."""
        call = self.filled(self.choose(AGGREGATES[type_]), depth)
        if self.choose.one_in(4):
            call += f" FILTER (WHERE {self.scalar('BOOLEAN', 1)})"
        return call


@cache
def _templates(type_: str, known: frozenset[str]) -> tuple[str, ...]:
    """The templates that can say something about columns of these types."""
    found = [t for t in TEMPLATES[type_] if known.intersection(_HOLE.findall(t))]
    return tuple(found) or TEMPLATES[type_]
