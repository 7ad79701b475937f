"""Random subqueries: as conditions of WHERE, and as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from oracle.expressions import Choose, Column, Expressions
from oracle.sources import SIGNS, Sources
from oracle.templates import TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["SIGNS", "Subqueries"]


@dataclass(frozen=True, slots=True)
class Subqueries:
    """Writes subqueries; ``choose`` makes every choice, ``union`` writes one of a type."""

    choose: Choose
    sources: Sources
    union: Callable[[str], str]

    def condition(self, columns: Sequence[Column], depth: int) -> str:
        """A condition of WHERE with a subquery in it."""
        write = Expressions(self.choose, tuple(columns))
        type_ = self.choose(write.types())
        match self.choose(("exists", "in", "any", "scalar", "or", "case", "not", "row")):
            case "exists":
                inner = self.inner(type_, outer=columns, depth=depth, free=True)
                return f"{self.choose(('', 'NOT '))}EXISTS ({inner})"
            case "in":
                inner = self.inner(type_, outer=columns, depth=depth, free=True)
                return f"{write.scalar(type_, 1)} {self.choose(('IN', 'NOT IN'))} ({inner})"
            case "any":
                inner = self.inner(type_, outer=columns, depth=depth, free=True)
                word = self.choose(("ANY", "ALL", "SOME"))
                return f"{write.scalar(type_, 1)} {self.choose(SIGNS)} {word} ({inner})"
            case "scalar":
                inner = self.inner(type_, "scalar", outer=columns, depth=depth)
                sides = [write.scalar(type_, 1), f"({inner})"]
                sides = sides[::-1] if self.choose.one_in(2) else sides
                return f"{sides[0]} {self.choose(SIGNS)} {sides[1]}"
            case "or":
                return f"({self.truth(columns)} OR {write.scalar('BOOLEAN', 1)})"
            case "case":
                value = write.scalar("BOOLEAN", 1)
                return (
                    f"CASE WHEN {self.truth(columns)} THEN {value} ELSE {self.truth(columns)} END"
                )
            case "row":
                text, others = self.sources.item(self.choose("abcrpvw"))
                left, right = self.choose_pairs(columns, others)
                word = self.choose(("IN", "NOT IN"))
                return f"({left}) {word} (SELECT {right} FROM {text})"
            case _:
                return f"NOT {self.truth(columns)}"

    def truth(self, columns: Sequence[Column]) -> str:
        """A subquery as a BOOLEAN value."""
        write = Expressions(self.choose, tuple(columns))
        type_ = self.choose(write.types())
        left, inner = write.scalar(type_, 1), self.inner(type_, outer=columns)
        match self.choose(("exists", "in", "any", "scalar")):
            case "exists":
                return f"({self.choose(('', 'NOT '))}EXISTS ({inner}))"
            case "in":
                return f"({left} {self.choose(('IN', 'NOT IN'))} ({inner}))"
            case "any":
                return f"({left} {self.choose(SIGNS)} {self.choose(('ANY', 'ALL'))} ({inner}))"
            case _:
                inner = self.inner(type_, "scalar", outer=columns)
                return f"({left} {self.choose(SIGNS)} ({inner}))"

    def value(self, columns: Sequence[Column]) -> tuple[str, str]:
        """A subquery in the SELECT list, with its type."""
        if self.choose.one_in(2):
            return "BOOLEAN", self.truth(columns)
        type_ = self.choose(TYPES)
        inner = f"({self.inner(type_, 'scalar', outer=columns)})"
        other = Expressions(self.choose, tuple(columns)).scalar(type_, 1)
        return type_, self.choose((inner, f"COALESCE({inner}, {other})"))

    def inner(
        self,
        type_: str,
        kind: str = "rows",
        *,
        outer: Sequence[Column] = (),
        depth: int = 0,
        free: bool = False,
    ) -> str:
        """A subquery of one column, correlated by chance; by inequalities too if it is ``free``."""
        if kind == "rows" and self.choose.one_in(5):
            return self.union(type_)
        text, columns = self.sources.item(self.choose("abcrpvw"))
        write = Expressions(self.choose, columns)
        grouped = kind == "scalar" or self.choose.one_in(6)
        item = write.aggregate(type_, 1) if grouped else write.scalar(type_, 1)
        parts = []
        if outer and self.choose.one_in(2):
            sign = self.choose(("=", *SIGNS)) if free and not grouped else "="
            parts += self.sources.compared(outer, columns, sign)
        if self.choose.one_in(2):
            parts.append(write.scalar("BOOLEAN", 1))
        if depth and self.choose.one_in(2):
            parts.append(self.condition(columns, depth - 1))
        where = f" WHERE {' AND '.join(parts)}" if parts else ""
        group = f" GROUP BY {columns[1].text}" if grouped and kind == "rows" else ""
        distinct = self.choose(("", "", "DISTINCT ")) if not grouped else ""
        return f"SELECT {distinct}{item} FROM {text}{where}{group}"

    def choose_pairs(self, left: Sequence[Column], right: Sequence[Column]) -> tuple[str, str]:
        """Two columns of each side with the same types, or constants where there are none."""
        pairs = [f"{a.text} {b.text}" for a in left for b in right if a.type == b.type] or ["1 1"]
        chosen = [self.choose(pairs).split() for _ in range(2)]
        return ", ".join(pair[0] for pair in chosen), ", ".join(pair[1] for pair in chosen)
