"""Random FROM clauses: streams, relations and queries under windows, joined in every way."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from oracle.expressions import Choose, Column, Expressions
from oracle.world import SOURCES

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ROW_WINDOWS", "SIGNS", "Item", "Select", "Sources"]

Item: TypeAlias = tuple[str, tuple[Column, ...]]
"""A FROM item or several: the text, and the columns in sight."""

TIME_WINDOWS = (
    "RANGE 4",
    "RANGE 5",
    "RANGE 4 SLIDE 2",
    "RANGE 6 SLIDE 3",
    "RANGE UNBOUNDED",
    "NOW",
)
ROW_WINDOWS = ("ROWS 2", "ROWS 4", "ROWS 3 SLIDE 2", "ROWS UNBOUNDED", "ROWS 1")
SESSION_WINDOWS = ("SESSION 1", "SESSION 3")
JOINS = ("JOIN", "INNER JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL OUTER JOIN", ",", "CROSS JOIN")
SIGNS = ("=", "<>", "<", "<=", ">", ">=")
_STREAMS = re.compile(r"\b(RANGE|ROWS|SESSION|NOW|[IDR]STREAM)\b")


@dataclass(frozen=True, slots=True)
class Select:
    """The text of a query, and what its columns are called."""

    text: str
    columns: tuple[Column, ...]


@dataclass(slots=True)
class Sources:
    """Writes FROM items; ``choose`` makes every choice."""

    choose: Choose
    _aliases: int = field(default=0)

    def alias(self) -> str:
        self._aliases += 1
        return f"t{self._aliases}"

    def any(self) -> Item:
        """A stream or a relation."""
        return self.item(self.choose("aabbcrpvw"))

    def item(self, name: str, alias: str | None = None) -> Item:
        """A stream with a window, or a relation; under an alias."""
        source = SOURCES[name]
        alias = alias or self.alias()
        columns = tuple(
            Column(f"{alias}.{column}", type_, exact=type_ == "DOUBLE")
            for column, type_ in source.columns.items()
        )
        operator = self.choose((*[""] * 12, "ISTREAM", "DSTREAM", "RSTREAM"))
        text = f"{operator}({name})" if operator else name
        windows = source.windows or bool(operator)
        return self.windowed(text, alias, list(source.columns), windows), columns

    def over(self, query: Select, name: str = "") -> Item:
        """A query in FROM, or its name: plain, under a window, or under a stream operator."""
        alias = self.alias()
        columns = tuple(Column(f"{alias}.{c.text}", c.type) for c in query.columns)
        names = [column.text for column in query.columns]
        operator = self.choose(("", "", "", "ISTREAM", "DSTREAM", "RSTREAM"))
        text = name if name and not operator else f"{operator}({name or query.text})"
        # What reads relations only is a relation, and takes no window.
        streams = bool(operator) or _STREAMS.search(query.text) is not None
        return self.windowed(text, alias, names, streams and not self.choose.one_in(3)), columns

    def windowed(self, text: str, alias: str, names: Sequence[str], windows: bool) -> str:  # noqa: FBT001
        if not windows:
            return f"{text} {self.choose(('', 'AS '))}{alias}"
        frame = self.choose((*TIME_WINDOWS, *ROW_WINDOWS, *SESSION_WINDOWS, ""))
        if not frame:
            return f"{text} {alias}"
        if frame.startswith(("ROWS", "SESSION")) and self.choose.one_in(2):
            frame = f"PARTITION BY {self.choose(names)} {frame}"
        window = self.choose((f"[{frame}]", f"WINDOW({frame})"))
        return self.choose((f"{text} {window} AS {alias}", f"{text} {alias} {window}"))

    def joined(self, count: int, first: Item) -> Item:
        """An item, and others joined to it."""
        text, columns = first
        near = columns  # what ON can see: JOIN binds tighter than a comma
        for _ in range(count - 1):
            joined, others = self.any()
            match self.choose(JOINS):
                case ",":
                    text, near = f"{text}, {joined}", others
                case "CROSS JOIN":
                    text, near = f"{text} CROSS JOIN {joined}", (*near, *others)
                case join if self.usable(near, others) and self.choose.one_in(2):
                    text = f"{text} {join} {joined} USING (k)"
                    near = (*near, *others)
                case join:
                    text = f"{text} {join} {joined} ON {self.on(near, others)}"
                    near = (*near, *others)
            columns = (*columns, *others)
        return text, columns

    def on(self, left: Sequence[Column], right: Sequence[Column]) -> str:
        sign = self.choose(("=", "=", *SIGNS))
        condition = " AND ".join(self.compared(left, right, sign)) or "TRUE"
        if self.choose.one_in(3):
            write = Expressions(self.choose, (*left, *right))
            condition = f"{condition} {self.choose(('AND', 'OR'))} {write.scalar('BOOLEAN', 1)}"
        return condition

    def usable(self, left: Sequence[Column], right: Sequence[Column]) -> bool:
        """Whether both sides have one k that can be merged."""
        keys = [[c.type for c in side if c.text.endswith(".k")] for side in (left, right)]
        return all(len(types) == 1 for types in keys)

    def compared(self, left: Sequence[Column], right: Sequence[Column], sign: str) -> list[str]:
        """Two columns of the same type compared, if there are any."""
        pairs = [f"{a.text} {sign} {b.text}" for a in left for b in right if a.type == b.type]
        return [self.choose(pairs)] if pairs else []
