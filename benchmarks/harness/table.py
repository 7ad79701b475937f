"""Tables: what a benchmark has found, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

__all__ = ["Cell", "Table"]

Cell: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of figures under a title.

    Attributes:
        title: What is asked.
        columns: The names of the columns.
        rows: The figures.
        notes: What must be known to read them.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.columns) for row in self.rows), "a cell for each column"

    def markdown(self) -> str:
        """The table as people read it.

        >>> print(Table("Speed", ("side", "seconds"), (("a", 1.5), ("b", None))).markdown())
        ### Speed
        <BLANKLINE>
        | side | seconds |
        |---|---:|
        | a | 1.5 |
        | b |  |
        """
        lines = [f"### {self.title}", ""]
        lines.append(f"| {' | '.join(self.columns)} |")
        marks = ("---:" if self._is_number(i) else "---" for i in range(len(self.columns)))
        lines.append(f"|{'|'.join(marks)}|")
        lines += [f"| {' | '.join(map(_text, row))} |" for row in self.rows]
        return "\n".join([*lines, *(["", *self.notes] if self.notes else [])])

    def json(self) -> dict[str, object]:
        """The table as programs read it."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"title": self.title, "rows": rows, "notes": list(self.notes)}

    def _is_number(self, column: int) -> bool:
        cells = [row[column] for row in self.rows if row[column] is not None]
        return bool(cells) and all(
            isinstance(cell, int | float) and not isinstance(cell, bool) for cell in cells
        )


def _text(cell: Cell) -> str:
    match cell:
        case None:
            return ""
        case bool():
            return "yes" if cell else "NO"
        case float():
            return f"{cell:.3g}" if abs(cell) < 1000 else f"{cell:,.0f}"  # noqa: PLR2004 — digits
        case int():
            return f"{cell:,}"
        case str():
            return cell
