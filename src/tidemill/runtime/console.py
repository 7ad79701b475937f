"""The console as a sink: the new rows of each batch, printed as a plain table.

    hot, batch 3
    item  n                start                  end
    ----  -  -------------------  -------------------
    pen   2  2026-03-01 12:00:00  2026-03-01 12:03:00
    … and 17 more rows

Times are written as calendars have them; ``end`` is the end of time.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import polars as pl

from tidemill.errors import RunError
from tidemill.model.doubles import double_text
from tidemill.model.time import time_text
from tidemill.runtime.shapes import RESULTS, Shape

if TYPE_CHECKING:
    from tidemill.model.schema import Schema

__all__ = ["ConsoleSink", "cell_text", "table_text"]

_WIDEST = 40


@dataclass(frozen=True, slots=True)
class ConsoleSink:
    """Prints an answer to standard output, so that a batch that is delivered again is seen again.

    Attributes:
        query: Whose answer it is.
        schema: The columns of the answer.
        rows: How many rows of a batch are printed at most.
        shape: In which form.
    """

    query: str
    schema: Schema
    rows: int = 20
    shape: Shape = RESULTS

    def take(self, frame: pl.DataFrame, batch: int) -> None:
        """Print the new rows of a batch.

        Raises:
            RunError: Standard output is closed.
        """
        try:
            sys.stdout.write(f"{self.query}, batch {batch}\n{table_text(frame, self.rows)}\n")
            sys.stdout.flush()
        except (OSError, ValueError) as error:  # a closed file is a ValueError
            raise RunError(
                f'the answer of "{self.query}" cannot be printed: {error}',
                hint="keep the terminal open, or write INTO parquet(…)",
            ) from error


def table_text(frame: pl.DataFrame, rows: int) -> str:
    r"""The first rows of an answer, whose last columns are times or a time and a sign, as a table.

    >>> frame = pl.DataFrame({"item": ["pen", None], "n": [10, 2], "start": [1, 2], "end": [3, 3]})
    >>> print(table_text(frame, 1))
    item   n  start  end
    ----  --  -----  ---
    pen   10      1    3
    … and 1 more row
    """
    shown = frame.head(rows)
    *columns, first, last = (shown[name] for name in shown.columns)
    # A sign is a small number, and no time.
    times = [first] if last.dtype == pl.Int32 else [first, last]
    others = [*columns, last] if last.dtype == pl.Int32 else columns
    cells = [[cell_text(value) for value in column] for column in others]
    cells[len(columns) : len(columns)] = [[time_text(v) for v in column] for column in times]
    is_right = [column.dtype.is_numeric() for column in (*columns, first, last)]
    lines = [
        [cell_text(name), "-" * max(map(len, [cell_text(name), *column])), *column]
        for name, column in zip(shown.columns, cells, strict=True)
    ]
    widths = [len(column[1]) for column in lines]
    texts = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, is_right, strict=True)
        ).rstrip()
        for line in zip(*lines, strict=True)
    ]
    if left := frame.height - shown.height:
        texts.append(f"… and {left:,} more row{'s' if left > 1 else ''}")
    return "\n".join(texts)


def cell_text(value: object) -> str:
    r"""A value on one line, cut where it is long; what cannot be printed is written as an escape.

    >>> cell_text(None), cell_text(0.1 + 0.2), cell_text("two\nlines"), cell_text(math.inf)
    ('NULL', '0.3', 'two\\nlines', 'Infinity')
    """
    match value:
        case None:
            return "NULL"
        case float():
            return f"{value:.12g}" if math.isfinite(value) else double_text(value)
        case datetime():
            return str(value)
        case _:
            text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(value))
            return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
