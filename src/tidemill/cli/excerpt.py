"""Excerpts: some rows of an answer as texts, and a table of them that fits into a width.

    hot at 2026-03-01 12:04:59.999999: 20 rows
     item                …      price
    ─────────────────────────────────
     a long name that …  …         12
    … and 19 more

Where columns do not fit, texts are cut; where that is not enough, the columns before the times, or
the last ones, are left out, and a column of dots stands in their place. Numbers are never cut.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Group
from rich.text import Text

from tidemill.cli.table import table
from tidemill.runtime.console import cell_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from rich.table import Table

__all__ = ["Excerpt", "excerpt_lines", "excerpt_of", "grid", "shortened"]

_GAP = 3
_SHORT = 8
"""How many characters of a string are shown at least, if it has as many."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Some rows of an answer.

    Attributes:
        title: Of what, and how many there are.
        columns: The names of the columns.
        rows: The rows, as texts.
        numbers: Which columns are numbers.
        times: How many of the last columns say when, and stay when others are left out.
        more: How many rows there are besides.
        is_tail: Whether the last of the rows are the ones to keep where there is little room.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()
    times: int = 0
    more: int = 0
    is_tail: bool = False


def excerpt_of(
    title: str, frame: pl.DataFrame, *, times: Sequence[Sequence[str]] = (), more: int = 0
) -> Excerpt:
    """The rows of a frame; its last columns are times, which are given as texts.

    Args:
        title: Of what they are.
        frame: The rows.
        times: The texts of its last columns.
        more: How many rows there are besides.
    """
    values = frame.columns[: len(frame.columns) - len(times)]
    cells = [*([cell_text(value) for value in frame[name]] for name in values), *times]
    numbers = (at for at, name in enumerate(values) if frame.schema[name].is_numeric())
    names = tuple(cell_text(name) for name in frame.columns)
    rows = tuple(zip(*cells, strict=True))
    return Excerpt(title, names, rows, frozenset(numbers), len(times), more)


def shortened(excerpt: Excerpt, rows: int) -> Excerpt:
    """The same with fewer rows."""
    if excerpt.is_tail:
        return replace(excerpt, rows=excerpt.rows[max(0, len(excerpt.rows) - rows) :])
    left_out = max(0, len(excerpt.rows) - rows)
    return replace(excerpt, rows=excerpt.rows[:rows], more=excerpt.more + left_out)


def excerpt_lines(excerpt: Excerpt, width: int, *, is_dense: bool = False) -> Group:
    """What a terminal of a width shows of it.

    Args:
        excerpt: The rows.
        width: How many characters a line has.
        is_dense: Whether to do without the rule below the names of the columns.
    """
    parts: list[Text | Table] = [Text(excerpt.title, no_wrap=True, overflow="ellipsis")]
    if excerpt.rows:
        parts.append(grid(excerpt, width, is_dense=is_dense))
    if excerpt.more:
        parts.append(Text(f"… and {excerpt.more:,} more", style="dim"))
    return Group(*parts)


def grid(excerpt: Excerpt, width: int, *, is_dense: bool = False) -> Table:
    """The table alone."""
    kept, widths = _fitted(excerpt, width)
    left_out = len(kept) < len(excerpt.columns)
    # The column of dots stands where columns were left out: before the times.
    place = len(kept) - excerpt.times if left_out else len(kept)
    made = table(is_dense=is_dense)
    for number, at in enumerate(kept):
        if number == place:
            made.add_column("…", no_wrap=True)
        made.add_column(
            excerpt.columns[at],
            justify="right" if at in excerpt.numbers else "left",
            no_wrap=True,
            max_width=widths[number],
        )
    if left_out and place == len(kept):
        made.add_column("…", no_wrap=True)
    for row in excerpt.rows:
        cells = [row[at] for at in kept]
        made.add_row(*cells[:place], *(["…"] if left_out else []), *cells[place:])
    return made


def _fitted(excerpt: Excerpt, width: int) -> tuple[list[int], list[int]]:
    """Which columns there is room for, and how wide they are."""
    names, count = excerpt.columns, len(excerpt.columns)
    wide = [max(cell_len(text) for text in (names[at], *(r[at] for r in excerpt.rows)))
            for at in range(count)]  # fmt: skip
    times = range(count - excerpt.times, count)
    least = [w if at in excerpt.numbers or at in times else min(w, _SHORT)
             for at, w in enumerate(wide)]  # fmt: skip
    room = width - 2
    kept = list(range(count))
    while len(kept) > 1 and _taken([least[at] for at in kept], is_cut=len(kept) < count) > room:
        others = [at for at in kept if at not in times]
        # One column besides the times is better than both times and no value.
        kept.remove(others[-1] if len(others) > 1 else kept[-1])
    widths = [least[at] for at in kept]
    free = room - _taken(widths, is_cut=len(kept) < count)
    while free > 0 and (short := [i for i, at in enumerate(kept) if widths[i] < wide[at]]):
        for i in short[:free]:
            widths[i] += 1
        free -= min(free, len(short))
    return kept, [max(1, min(w, room)) for w in widths]


def _taken(widths: list[int], *, is_cut: bool) -> int:
    """How wide columns are together, with the gaps between them and the column of dots."""
    gaps = len(widths) - 1 + is_cut
    return sum(widths) + _GAP * gaps + is_cut
